// Idea: The large products on tensor cores, without loss: an operand is a TF32 value and, in a second, what is left of it; three of the four
//     products of these make one of float32, the small ones first. Sums over 16 steps leave the tensor cores for sums in float32, because
//     these cut off what they add instead of rounding it, which over a thousand steps is more than all of float32's own errors.
// Bottleneck: Splitting the operands in registers, again for each warp that reads them, and three products for one.
// Next: One product, where 10 bits are enough.
// Source: Own work, after S. Markidis et al., "NVIDIA Tensor Core Programmability, Performance & Precision", 2018, and CUTLASS's example of
//     3xTF32; sums outside after H. Ootomo, R. Yokota, "Recovering single precision accuracy from Tensor Cores", 2022.

#include "tiles.cuh"

constexpr int kPitchA = kRows + 8, kPitchB = kColumns + 8;  // 8 more than a multiple of 32: a fragment lies in 32 banks
constexpr int kTileMemory = kStages * kDepth * (kPitchA + kPitchB) / 4;  // of float4
constexpr int kTileBlocks = 3;                           // of a multiprocessor, where copies are vectors
constexpr int kDown = 2, kAcross = 8, kEighths = kDepth / 8;

// A float as the sum of two TF32 values.
__device__ __forceinline__ void split(float x, unsigned& large, unsigned& small) {
  large = to_tf32(x);
  small = to_tf32(x - __uint_as_float(large));
}

// A warp has 32 x 64 of the tile: 2 x 8 fragments of 16 x 8.
template <bool kVector, bool kReadAcross>
__device__ __forceinline__ void product_tile(const Operands& operands, int top, int left, float* __restrict__ to, float4* memory) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, member = lane % 4;
  const int row = warp / 2 * 32 + group, column = warp % 2 * 64;

  float sum[kDown][kAcross][4] = {};
  walk_stages<kVector, kReadAcross, kPitchA, kPitchB>(operands, top, left, (float*)memory, [&](const float* stage_a, const float* stage_b) {
    const float* from_a = stage_a + member * kPitchA + row;
    const float* from_b = stage_b + member * kPitchB + column + group;
    unsigned a[kEighths][kDown][4], a_rest[kEighths][kDown][4];
#pragma unroll
    for (int e = 0; e < kEighths; ++e)
#pragma unroll
      for (int i = 0; i < kDown; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r)
          split(from_a[(8 * e + r / 2 * 4) * kPitchA + 16 * i + r % 2 * 8], a[e][i][r], a_rest[e][i][r]);
#pragma unroll
    for (int j = 0; j < kAcross; ++j) {
      unsigned b[kEighths][2], b_rest[kEighths][2];
#pragma unroll
      for (int e = 0; e < kEighths; ++e)
#pragma unroll
        for (int r = 0; r < 2; ++r) split(from_b[(8 * e + 4 * r) * kPitchB + 8 * j], b[e][r], b_rest[e][r]);
      float part[kDown][4] = {};
#pragma unroll
      for (int e = 0; e < kEighths; ++e)
#pragma unroll
        for (int i = 0; i < kDown; ++i) {
          mma_m16n8k8_tf32(part[i], a_rest[e][i], b[e]);
          mma_m16n8k8_tf32(part[i], a[e][i], b_rest[e]);
        }
#pragma unroll
      for (int e = 0; e < kEighths; ++e)
#pragma unroll
        for (int i = 0; i < kDown; ++i) mma_m16n8k8_tf32(part[i], a[e][i], b[e]);
#pragma unroll
      for (int i = 0; i < kDown; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r) sum[i][j][r] += part[i][r];
    }
  });
  store_fragments<kVector>(sum, operands, top + row, left + column + 2 * member, to);
}

#include "fused.cuh"
