"""Kernels of a program that runs, with their real arguments, as benchmarks."""
