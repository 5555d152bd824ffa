// Idea: The warpgroups of a block have a tile each, of 128 x 160, and take turns: while one stores, the other multiplies.
// Bottleneck: Not yet measured.
// Next: The shape of the tile by the shape of the product.
// Source: `gemm_bf16` v13_taking_turns.

#include "../../gemm_bf16/kernels/v13_taking_turns.cu"
