// Idea: Rows of A that begin at the same place of a line of L2, and tiles of 192 x 192.
// Bottleneck: The tensor cores.
// Next: A tile for each warpgroup, so that while one stores the others multiply.
// Source: Own work; `gemm_bf16` v12_rows_apart.

#include "../../gemm_bf16/kernels/v12_rows_apart.cu"
