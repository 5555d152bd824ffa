"""What do the copies cost, and when do they pay?"""
