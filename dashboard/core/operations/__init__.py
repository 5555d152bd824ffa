"""Operators of PyTorch in a profile: which are worth work, how they are called again, and what a faster one is worth."""
