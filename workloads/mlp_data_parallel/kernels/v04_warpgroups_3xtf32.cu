// Idea: The step in three launches on Hopper's warpgroups, three products of TF32 for one of float32, then the average by NCCL, in one CUDA
//     graph.
// Bottleneck: The faster the step, the larger the share of the average, which takes as long as before.
// Next: The average beside the backward pass, as v03_overlapped has it; here one kernel has product and update of all weights.
// Source: Own work; kernels: `mlp_training` v07_warpgroups_3xtf32.

#include "../../mlp_training/kernels/v07_warpgroups_3xtf32.cu"
