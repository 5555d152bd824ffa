"""Which ranges are variants of one another?"""
