// Idea: Four launches in one CUDA graph instead of 15. The products of 784 x 1000 a sample have 8x8 sums a thread, operands copied three
//     stages ahead, and are cut into slices of their sums until there are blocks for the whole GPU; bias, sigmoid, output layer, softmax
//     and the gradient of the hidden layer are one kernel, which adds the slices up, with the output layer's weights in registers; the
//     gradients of the output layer run beside the large product, and one kernel adds slices, regularisation and update.
// Bottleneck: The multiply-add units in the products; at a batch of 100 the four kernels in a row and the rims of the tiles.
// Next: Tensor cores, with three products of TF32 for one of float32.
// Source: Own work; the tile after the usual designs of SGEMM (S. Boehm, "How to Optimize a CUDA Matmul Kernel"; CUTLASS).

#include "tiles.cuh"

constexpr int kPitchA = kRows + 4, kPitchB = kColumns;
constexpr int kTileMemory = kStages * kDepth * (kPitchA + kPitchB) / 4;  // of float4
constexpr int kTileBlocks = 4;                           // of a multiprocessor, where copies are vectors
constexpr int kSide = 8;                                 // sums of a thread, along both sides

// A warp has 32 x 64 of the tile, 4 x 8 lanes. A thread's rows are two groups of four, 16 apart, its columns two groups 32 apart: so lanes
// read neighbouring vectors.
template <bool kVector, bool kAcross>
__device__ __forceinline__ void product_tile(const Operands& operands, int top, int left, float* __restrict__ to, float4* memory) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row = warp / 2 * 32 + lane / 8 * 4, column = warp % 2 * 64 + lane % 8 * 4;

  float sum[kSide][kSide] = {};
  walk_stages<kVector, kAcross, kPitchA, kPitchB>(operands, top, left, (float*)memory, [&](const float* stage_a, const float* stage_b) {
    const float* a = stage_a + row;
    const float* b = stage_b + column;
#pragma unroll
    for (int k = 0; k < kDepth; ++k, a += kPitchA, b += kPitchB) {
      const float4 a0 = *(const float4*)a, a1 = *(const float4*)(a + 16), b0 = *(const float4*)b, b1 = *(const float4*)(b + 32);
      const float of_a[kSide] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
      const float of_b[kSide] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
      for (int i = 0; i < kSide; ++i)
#pragma unroll
        for (int j = 0; j < kSide; ++j) {
          const int column_of = i % 2 ? kSide - 1 - j : j;  // to and fro: a neighbour shares an operand
          sum[i][column_of] = fmaf(of_a[i], of_b[column_of], sum[i][column_of]);
        }
    }
  });
#pragma unroll
  for (int i = 0; i < kSide; ++i) {
    const int r = top + row + i % 4 + i / 4 * 16;
    if (r >= operands.rows) continue;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int c = left + column + 32 * half;
      float* at = to + (size_t)r * operands.columns + c;
      if constexpr (kVector) {
        if (c < operands.columns)
          *(float4*)at = make_float4(sum[i][4 * half], sum[i][4 * half + 1], sum[i][4 * half + 2], sum[i][4 * half + 3]);
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if (c + j < operands.columns) at[j] = sum[i][4 * half + j];
      }
    }
  }
}

#include "fused.cuh"
