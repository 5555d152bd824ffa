// Idea: For few tiles: the blocks of a cluster compute a tile together, each a part of k, and add up a share of its columns each.
// Bottleneck: What every launch costs: the first bytes from memory, the exchange of sums, and the way out, with few steps between.
// Next: Sums that keep more bits: those of FP8 products on Hopper have about 14.
// Source: Own work; `gemm_bf16` v08_cluster_sums.

#include "../../gemm_bf16/kernels/v08_cluster_sums.cu"
