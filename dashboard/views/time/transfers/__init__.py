"""What do the copies cost?"""
