// Idea: Two launches. A cluster of blocks has all hidden units of a tile of samples, so that the output layer follows while the activations are in
//     registers: they are operands of its product as they stand. Blocks exchange sums of ten classes, not activations, and each goes on with
//     its own units. Activations never go to memory; gradients of the hidden units do once, in BF16.
// Bottleneck: At few rows two launches in a row: 37 rows take 17 us on an H200. At 8192 rows it takes 102 us, of which both products would need a
//     third at the rate of gemm_bf16: sigmoid and output layer, behind the product of each tile, keep the tensor cores waiting.
// Next: The second launch begins while the first one ends.
// Source: Own work; sums that become operands in registers as in FlashAttention (T. Dao et al., 2022).

#include "step.cuh"
