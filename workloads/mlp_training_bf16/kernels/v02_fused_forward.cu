// Idea: Two launches. A cluster of blocks has all hidden units of a tile of samples, so that the output layer follows while the activations are in
//     registers: they are operands of its product as they stand. Blocks exchange sums of ten classes, not activations, and each goes on with
//     its own units. Activations never go to memory; gradients of the hidden units do once, in BF16.
// Bottleneck: Sigmoid and output layer, behind the product of each tile, keep the tensor cores waiting. At few rows two launches in a row.
// Next: The second launch begins while the first one ends.
// Source: Own work; sums that become operands in registers as in FlashAttention (T. Dao et al., 2022).

#include "step.cuh"
