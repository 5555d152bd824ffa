"""The GPU by CUDA: kernels compiled and launched, timed by events, and what the GPU measurably can do."""
