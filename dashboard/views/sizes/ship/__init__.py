"""Which variants should I ship, and when does each run?"""
