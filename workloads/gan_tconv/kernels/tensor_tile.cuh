// A tile of a layer's product on tensor cores, by mma.sync; how terms become products of TF32 is `Terms`, a rung's own.
//
// Fragments are read by vectors: a lane takes four rows, or columns, that lie together, and gives them to four fragments. Which of
// them is called row g of a fragment is free, as long as the sums are written where they belong. Rows of shared memory are padded by
// eight floats, so that the lanes of such a read meet all banks.
#ifndef GAN_TCONV_TENSOR_TILE
#define GAN_TCONV_TENSOR_TILE

#include "phases.cuh"

constexpr int kTensorDepth = 32, kTensorStages = 3, kPadding = 8, kWarpRows = 64;

// Terms::kPromoted: the sums of a step are added to those so far by the multiply-add units, which round; tensor cores cut off.
template <class Terms, int rows, int columns, int warp_columns, bool round>
__global__ void __launch_bounds__(rows / kWarpRows * (columns / warp_columns) * 32, 2)
    tensor_product(const float* __restrict__ in, const float* __restrict__ w, const float* __restrict__ folded, float* __restrict__ out,
                   int side, int stride, int channels, int out_channels, int layer, int widest) {
  constexpr int kThreads = rows / kWarpRows * (columns / warp_columns) * 32;
  constexpr int kRowOfA = rows + kPadding, kRowOfB = columns + kPadding, kStage = kTensorDepth * (kRowOfA + kRowOfB);
  constexpr int kDown = kWarpRows / 16, kAcross = warp_columns / 8, kGroups = warp_columns / 32;  // fragments of a warp
  extern __shared__ __align__(16) float shared[];
  const Tile<rows, columns> tile(side, stride, out_channels);
  Loader<rows, columns, kThreads, kTensorDepth, kPadding, false> loader(tile, in, w, channels, out_channels);
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int warp_row = warp / (columns / warp_columns) * kWarpRows, warp_column = warp % (columns / warp_columns) * warp_columns;

  const int blocks = loader.blocks();
#pragma unroll
  for (int n = 0; n < kTensorStages - 1; ++n) {
    if (n < blocks) loader.load(shared + n * kStage, shared + n * kStage + kTensorDepth * kRowOfA);
    cp_async_commit();
  }
  float sum[kDown][kAcross][4] = {};
  int stage = 0, free = kTensorStages - 1;
#pragma unroll 1
  for (int n = 0; n < blocks; ++n) {
    cp_async_wait<kTensorStages - 2>();
    __syncthreads();
    if (n + kTensorStages - 1 < blocks) loader.load(shared + free * kStage, shared + free * kStage + kTensorDepth * kRowOfA);
    cp_async_commit();
    const float* a = shared + stage * kStage + t * kRowOfA + warp_row + 4 * g;
    const float* b = shared + stage * kStage + kTensorDepth * kRowOfA + t * kRowOfB + warp_column + 4 * g;
    float part[kDown][kAcross][4] = {};
#pragma unroll
    for (int step = 0; step < kTensorDepth / 8; ++step) {
      float of_a[kDown][4], of_b[kAcross][2];
#pragma unroll
      for (int n = 0; n < 4; ++n) {  // rows 4g to 4g + 3, then 32 further, of term t; both of term t + 4
        const float4 four = *reinterpret_cast<const float4*>(a + (8 * step + n / 2 * 4) * kRowOfA + n % 2 * 32);
        of_a[0][n] = four.x, of_a[1][n] = four.y, of_a[2][n] = four.z, of_a[3][n] = four.w;
      }
#pragma unroll
      for (int n = 0; n < 2 * kGroups; ++n) {
        const float4 four = *reinterpret_cast<const float4*>(b + (8 * step + n % 2 * 4) * kRowOfB + n / 2 * 32);
        const int first = n / 2 * 4, half = n % 2;
        of_b[first][half] = four.x, of_b[first + 1][half] = four.y, of_b[first + 2][half] = four.z, of_b[first + 3][half] = four.w;
      }
      if constexpr (Terms::kPromoted)
        Terms::multiply(part, of_a, of_b);
      else
        Terms::multiply(sum, of_a, of_b);
    }
    if constexpr (Terms::kPromoted) {
#pragma unroll
      for (int i = 0; i < kDown; ++i)
#pragma unroll
        for (int j = 0; j < kAcross; ++j)
#pragma unroll
          for (int e = 0; e < 4; ++e) sum[i][j][e] += part[i][j][e];
    }
    stage = stage + 1 < kTensorStages ? stage + 1 : 0;
    free = free + 1 < kTensorStages ? free + 1 : 0;
  }

  const int end = side * side * stride;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int first = tile.first_row + warp_row + 32 * half + 4 * g;  // of four images of one pixel
    if (first >= end) continue;
    float* to = out + tile.output(first, out_channels);
#pragma unroll
    for (int n = 0; n < 2 * kAcross; ++n) {  // columns 2t and 2t + 1 of every fragment
      const int j = n / 2, e = 2 * half + n % 2;
      const int k = tile.first_column + warp_column + j / 4 * 32 + 4 * (2 * t + n % 2) + j % 4;
      if (k >= out_channels) continue;
      const float scale = folded[2 * layer * widest + k], shift = folded[(2 * layer + 1) * widest + k];
      float of[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) of[i] = rounded_if(round, fmaxf(fmaf(sum[i][j][e], scale, shift), 0.0f));
      *reinterpret_cast<float4*>(to + k * stride) = make_float4(of[0], of[1], of[2], of[3]);
    }
  }
}

#endif
