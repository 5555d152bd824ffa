"""Does the same rung win on another device?"""
