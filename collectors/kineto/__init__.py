"""Imports traces of PyTorch's profiler (Kineto)."""
