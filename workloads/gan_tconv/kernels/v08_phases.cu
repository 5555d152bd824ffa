// Idea: No product with a zero and no matrix of taps. Outputs whose rows and columns have the same parities have the same taps, 4, 6, 6 or
//     9 of them: four matrix products a layer, whose tiles are gathered on the way into shared memory, and a pixel at the edge skips the
//     taps that fall outside. Images of a pixel lie together, so that a tile is mostly one pixel of 128 images, read and written by
//     vectors. Bias, batch normalisation and ReLU are one multiply-add, folded once, at the end of the product. 8 x 8 sums a thread.
//     Weights are rearranged in each operation, and counted.
// Bottleneck: The multiply-add units: a quarter of the instructions load operands from shared memory. Few images leave rows of the grid
//     with one or nine taps for some multiprocessors at the end; smaller tiles share them out better.
// Next: One launch for all of it.
// Source: Own work; the decomposition by parity is that of sub-pixel convolution, W. Shi et al., CVPR 2016.

#include "phases.cuh"

constexpr int kDepth = 16;  // terms of a step
constexpr int kStages = 3;  // of the pipeline: one is used while the others are under way

// out = relu((in taps) * w * scale + shift); a warp has 32 rows x 64 columns, a thread 8 x 8 of them as four blocks of 4 x 4.
template <int rows, int columns, bool dense, bool round>
__global__ void __launch_bounds__(rows * columns / 64, 2 * 128 * 128 / (rows * columns))
    product(const float* __restrict__ in, const float* __restrict__ w, const float* __restrict__ folded, float* __restrict__ out, int side,
            int stride, int channels, int out_channels, int layer, int widest) {
  constexpr int kThreads = rows * columns / 64;
  __shared__ __align__(16) float a[kStages][kDepth][rows], b[kStages][kDepth][columns];
  const Tile<rows, columns> tile(side, stride, out_channels);
  Loader<rows, columns, kThreads, kDepth, 0, dense> loader(tile, in, w, channels, out_channels);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = warp / (columns / 64) * 32 + lane / 8 * 4, column = warp % (columns / 64) * 64 + lane % 8 * 4;

  const int blocks = loader.blocks();
#pragma unroll
  for (int n = 0; n < kStages - 1; ++n) {
    if (n < blocks) loader.load(&a[n][0][0], &b[n][0][0]);
    cp_async_commit();
  }
  float sum[8][8] = {};
  int stage = 0, free = kStages - 1;
#pragma unroll 1
  for (int n = 0; n < blocks; ++n) {
    cp_async_wait<kStages - 2>();
    __syncthreads();
    if (n + kStages - 1 < blocks) loader.load(&a[free][0][0], &b[free][0][0]);
    cp_async_commit();
    float4 of_a[2][2], of_b[2][2];  // of this term, and of the next
    const auto read = [&](int term) {
      of_a[term % 2][0] = *reinterpret_cast<const float4*>(&a[stage][term][row]);
      of_a[term % 2][1] = *reinterpret_cast<const float4*>(&a[stage][term][row + 16]);
      of_b[term % 2][0] = *reinterpret_cast<const float4*>(&b[stage][term][column]);
      of_b[term % 2][1] = *reinterpret_cast<const float4*>(&b[stage][term][column + 32]);
    };
    read(0);
#pragma unroll
    for (int term = 0; term < kDepth; ++term) {
      if (term + 1 < kDepth) read(term + 1);
      const float4 *u = of_a[term % 2], *v = of_b[term % 2];
      const float left[8] = {u[0].x, u[0].y, u[0].z, u[0].w, u[1].x, u[1].y, u[1].z, u[1].w};
      const float right[8] = {v[0].x, v[0].y, v[0].z, v[0].w, v[1].x, v[1].y, v[1].z, v[1].w};
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
    }
    stage = stage + 1 < kStages ? stage + 1 : 0;
    free = free + 1 < kStages ? free + 1 : 0;
  }

  const int end = side * side * stride;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int first = tile.first_row + row + 16 * half;  // of four images of one pixel
    if (first >= end) continue;
    float* to = out + (dense ? first : tile.output(first, out_channels));
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int k = tile.first_column + column + j / 4 * 32 + j % 4;
      if (k >= out_channels) continue;
      const float scale = folded[2 * layer * widest + k % widest], shift = folded[(2 * layer + 1) * widest + k % widest];
      float of[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) of[i] = rounded_if(round, fmaxf(fmaf(sum[4 * half + i][j], scale, shift), 0.0f));
      *reinterpret_cast<float4*>(to + k * stride) = make_float4(of[0], of[1], of[2], of[3]);
    }
  }
}
