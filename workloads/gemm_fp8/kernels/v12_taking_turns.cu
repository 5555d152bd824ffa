// Idea: The warpgroups of a block have a tile each, of 128 x 160, and take turns: while one stores, the other multiplies.
// Bottleneck: L2, it seems. On an H200 4096x4096x14336 takes 300 us, where v04_clusters takes 311 and cuBLASLt 295.
// Next: The shape of the tile by the shape of the product.
// Source: `gemm_bf16` v13_taking_turns.

#include "../../gemm_bf16/kernels/v13_taking_turns.cu"
