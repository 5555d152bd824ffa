"""The product of `gemm_bf16` in FP8 (E4M3), with results in BF16."""
