// Idea: Each warp writes its rounded results to shared memory and has the TMA store them, beside the next product.
// Bottleneck: The tensor cores and their power where tiles fill the multiprocessors many times over; L2 before that.
// Next: Blocks that share what they fetch.
// Source: Own work; `gemm_bf16` v05_staged_results.

#include "../../gemm_bf16/kernels/v05_staged_results.cu"
