"""CUDA: compiles and launches kernels, times them by CUDA events, and measures the ceilings of the GPU."""
