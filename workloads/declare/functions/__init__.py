"""Workloads written as plain functions on arrays of NumPy, PyTorch, CuPy, Numba and JAX: see `Benchmark`."""
