// Idea: The same step; the new weights are averaged between the GPUs by NCCL, all four arrays in one group and so in one kernel. Nothing
//     goes through the host: the whole operation is one CUDA graph.
// Bottleneck: The average begins when the last weight is new, and all multiprocessors wait for it: at few rows a rank it takes as long as
//     the step's kernels do.
// Next: Average what is new while the rest is computed.
// Source: NVIDIA NCCL, ncclAllReduce with ncclAvg in a group; kernels: `mlp_training` v04_fused.

#include "../../mlp_training/kernels/v04_fused.cu"
