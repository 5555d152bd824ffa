// Idea: The step of v08_warpgroups_tf32 of mlp_training in BF16: products of warpgroups whose operands the TMA brings, in half of the bytes. Tensor
//     cores take BF16 operands whose rows, not steps, are neighbours, so that nothing is transposed for the way back. Three launches: the hidden
//     layer, the output layer on tensor cores, and the way back. There the blocks of a cluster have a part of the samples each, add their
//     sums up through each other's shared memory, and update the float32 weights and their BF16 copies.
// Bottleneck: The activations go to memory and back between the first two launches, and the second does little besides: on an H200 this costs 22 of
//     124 us at 8192 rows.
// Next: The output layer right behind the product, while the activations are in registers.
// Source: Own work; PTX ISA, wgmma with transposed operands, st.async.

#include "step.cuh"
