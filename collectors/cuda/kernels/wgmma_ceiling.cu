// Idea: the most that the tensor cores of Hopper do in TF32: both operands stand in shared memory, and two warpgroups of a block multiply them
//     again and again.
// Bottleneck: the tensor cores, and that is its purpose.
// Next: nothing.
// Source: ours; the shape is that of the rungs, 64 x 256 sums a warpgroup.

#include "../../../workloads/hopper.cuh"

constexpr int kRows = 64, kColumns = 256, kDepth = 32;

struct Operands {
  float a[2][kRows * kDepth];
  float b[kColumns * kDepth];
};

// Four products m64n256k8 a step and warpgroup: 4 * 2 * 64 * 256 * 8 operations.
extern "C" __global__ void __launch_bounds__(256, 1)
    ceiling_wgmma_tf32(const float* __restrict__ in, float* __restrict__ never, int steps) {
  extern __shared__ char memory[];
  auto& operands = *aligned_1024<Operands>(memory);
  for (int i = threadIdx.x; i < sizeof(Operands) / sizeof(float); i += blockDim.x) operands.a[0][i] = in[i];
  fence_proxy_async();
  __syncthreads();
  const unsigned long long a = wgmma_operand(operands.a[threadIdx.x / 128]), b = wgmma_operand(operands.b);
  float sums[kColumns / 2] = {};
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < kDepth / 8; ++i) wgmma_tf32(sums, a + 2 * i, b + 2 * i, true);
    wgmma_commit();
    wgmma_wait<1>();
  }
  wgmma_wait<0>();
  wgmma_keep(sums);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kColumns / 2; ++i) sum += sums[i];
  if (sum == 1.0e30f) never[threadIdx.x] = sum;
}
