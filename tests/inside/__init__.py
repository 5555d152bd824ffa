"""Experiments inside kernels."""
