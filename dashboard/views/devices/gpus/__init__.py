"""How much faster are more GPUs, and how many are best at each size?"""
