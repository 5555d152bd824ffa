// Idea: The same step; the new weights are averaged between the GPUs by NCCL, all four arrays, which lie in one piece, at once. Nothing
//     goes through the host: the whole operation is one CUDA graph.
// Bottleneck: The average begins when the last weight is new, and the multiprocessors wait for it: the fewer rows a rank has, the larger
//     is its share.
// Next: Average what is new while the rest is computed.
// Source: NVIDIA NCCL, ncclAllReduce with ncclAvg; kernels: `mlp_training` v04_fused.

#include "../../mlp_training/kernels/v04_fused.cu"
