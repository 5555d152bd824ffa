// Idea: For a few dozen tiles: smaller ones, and plain copies in place of those of the TMA.
// Bottleneck: What every launch costs. On an H200 n = 256 takes 2.4 us and n = 512 3.1, where v06_early_loads takes 3.6 and 4.0.
// Next: At n = 1024 tiles as large as before, by the TMA, and a warpgroup each too.
// Source: Own work; `gemm_bf16` v10_plain_copies.

#include "../../gemm_bf16/kernels/v10_plain_copies.cu"
