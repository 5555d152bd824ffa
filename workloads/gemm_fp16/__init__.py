"""The product of `gemm_bf16` in FP16."""
