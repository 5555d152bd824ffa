"""Traces of Proton, the profiler of Triton, from inside a kernel."""
