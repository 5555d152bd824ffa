// Idea: Each rank takes the step of v04_shared_weights of mlp_training_bf16 on its own rows; the new float32 weights are averaged between the GPUs by
//     NCCL, all four arrays at once, and their BF16 copies are made once more, from the average. All of it is one CUDA graph.
// Bottleneck: 3.2 MB of float32 go when the last weight is new: on two H200s the average takes 38 of 130 us with 8,192 rows each, and 31 of 51 with 200.
// Next: Half of the bytes, which leave as soon as a block has them.
// Source: NVIDIA NCCL, ncclAllReduce with ncclAvg; kernels: `mlp_training_bf16` v04_shared_weights.

#include "../../mlp_training_bf16/kernels/step.cuh"

constexpr int kThreads = 256;

// The copies of both arrays of weights, by pairs; the first `of_w1` pairs are of w1.
__global__ void __launch_bounds__(kThreads)
    round_copies(const float2* __restrict__ new_w1, const float2* __restrict__ new_w2, unsigned* __restrict__ next_w1,
                 unsigned* __restrict__ next_w2, int of_w1, int pairs) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= pairs) return;
  const float2 pair = i < of_w1 ? new_w1[i] : new_w2[i - of_w1];
  (i < of_w1 ? next_w1 + i : next_w2 + (i - of_w1))[0] = to_bf16_pair(pair.x, pair.y);
}
