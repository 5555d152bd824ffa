"""What does each step gain, and why?"""
