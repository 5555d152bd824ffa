"""What does the end of an iteration wait for, and what would a faster kernel give?"""
