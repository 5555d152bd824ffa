"""Which rank makes the others wait, how much, and why?"""
