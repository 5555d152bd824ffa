"""Which kernels and which calls take the time?"""
