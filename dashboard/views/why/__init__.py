"""Why is one variant faster than another?"""
