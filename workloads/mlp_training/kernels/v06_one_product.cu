// Idea: TF32: operands rounded to 10 bits of fraction as they come out of shared memory, one product on the tensor cores.
// Bottleneck: Within the products, the loads of fragments from shared memory, one for each register; beside them, what the faster products
//     leave: the passes of the other kernels over activations and slices, and four kernels in a row.
// Next: Operands that the tensor cores read from shared memory themselves (wgmma), again with three products, and ways out of the products
//     that leave no slices.
// Source: Own work; the layout of the fragments is that of the PTX ISA, mma.m16n8k8.

#include "tiles.cuh"

constexpr int kPitchA = kRows + 8, kPitchB = kColumns + 8;  // 8 more than a multiple of 32: a fragment lies in 32 banks
constexpr int kTileMemory = kStages * kDepth * (kPitchA + kPitchB) / 4;  // of float4
constexpr int kTileBlocks = 4;                           // of a multiprocessor, where copies are vectors
constexpr int kDown = 2, kAcross = 8;

// A warp has 32 x 64 of the tile: 2 x 8 fragments of 16 x 8.
template <bool kVector, bool kReadAcross>
__device__ __forceinline__ void product_tile(const Operands& operands, int top, int left, float* __restrict__ to, float4* memory) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, member = lane % 4;
  const int row = warp / 2 * 32 + group, column = warp % 2 * 64;

  float sum[kDown][kAcross][4] = {};
  walk_stages<kVector, kReadAcross, kPitchA, kPitchB>(operands, top, left, (float*)memory, [&](const float* stage_a, const float* stage_b) {
    const float* from_a = stage_a + member * kPitchA + row;
    const float* from_b = stage_b + member * kPitchB + column + group;
#pragma unroll
    for (int k = 0; k < kDepth; k += 8) {
      unsigned a[kDown][4];
#pragma unroll
      for (int i = 0; i < kDown; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r) a[i][r] = to_tf32(from_a[(k + r / 2 * 4) * kPitchA + 16 * i + r % 2 * 8]);
#pragma unroll
      for (int j = 0; j < kAcross; ++j) {
        const unsigned b[2] = {to_tf32(from_b[k * kPitchB + 8 * j]), to_tf32(from_b[(k + 4) * kPitchB + 8 * j])};
#pragma unroll
        for (int i = 0; i < kDown; ++i) mma_m16n8k8_tf32(sum[i][j], a[i], b);
      }
    }
  });
  store_fragments<kVector>(sum, operands, top + row, left + column + 2 * member, to);
}

#include "fused.cuh"
