"""The matrix product of a linear layer in BF16; `gemm_fp16` and `gemm_fp8` are the same product in other types."""
