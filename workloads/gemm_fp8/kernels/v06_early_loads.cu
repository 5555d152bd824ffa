// Idea: For few tiles: a block a tile, and nothing before the first loads but their barriers, which the thread that loads makes.
// Bottleneck: At n = 256 what every launch costs: the first bytes from memory and the way out. At n = 1024 L2.
// Next: Narrow tiles in the last wave, where tiles are many.
// Source: Own work; `gemm_bf16` v08_early_loads.

#include "../../gemm_bf16/kernels/v08_early_loads.cu"
