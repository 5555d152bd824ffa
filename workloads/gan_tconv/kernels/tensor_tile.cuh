// A tile of a layer's product on tensor cores, by mma.sync; how terms become products of TF32 is `Terms`, a rung's own.
//
// Which rows of the tile are rows g and g + 8 of a fragment is free, as long as the sums are written where they belong: here they are
// neighbours, 2g and 2g + 1, which one read of two floats brings into the registers where the instruction wants them. Rows of shared
// memory are padded by eight floats, so that the lanes of a read meet all banks.
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
  constexpr int kDown = kWarpRows / 16, kAcross = warp_columns / 8;  // fragments of a warp
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
    const float* a = shared + stage * kStage + t * kRowOfA + warp_row + 2 * g;
    const float* b = shared + stage * kStage + kTensorDepth * kRowOfA + t * kRowOfB + warp_column + g;
    float part[kDown][kAcross][4] = {};
#pragma unroll
    for (int step = 0; step < kTensorDepth / 8; ++step) {
      float of_a[kDown][4], of_b[kAcross][2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {  // terms t, then t + 4
        const int term = 8 * step + 4 * half;
#pragma unroll
        for (int i = 0; i < kDown; ++i) {
          const float2 two = *reinterpret_cast<const float2*>(a + term * kRowOfA + 16 * i);
          of_a[i][2 * half] = two.x, of_a[i][2 * half + 1] = two.y;
        }
#pragma unroll
        for (int j = 0; j < kAcross; ++j) of_b[j][half] = b[term * kRowOfB + 8 * j];
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

  const int first = tile.first_row + warp_row + 2 * g, end = side * side * stride;
  int to[kDown];  // two images of one pixel
#pragma unroll
  for (int i = 0; i < kDown; ++i) to[i] = tile.output(first + 16 * i, out_channels);
#pragma unroll
  for (int n = 0; n < 2 * kAcross; ++n) {
    const int j = n / 2, e = n % 2, k = tile.first_column + warp_column + 8 * j + 2 * t + e;
    if (k >= out_channels) continue;
    const float scale = folded[2 * layer * widest + k], shift = folded[(2 * layer + 1) * widest + k];
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
      if (first + 16 * i >= end) continue;
      const float one = rounded_if(round, fmaxf(fmaf(sum[i][j][e], scale, shift), 0.0f));
      const float other = rounded_if(round, fmaxf(fmaf(sum[i][j][e + 2], scale, shift), 0.0f));
      *reinterpret_cast<float2*>(out + to[i] + k * stride) = make_float2(one, other);
    }
  }
}

#endif
