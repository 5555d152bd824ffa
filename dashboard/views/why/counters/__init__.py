"""What limits each variant?"""
