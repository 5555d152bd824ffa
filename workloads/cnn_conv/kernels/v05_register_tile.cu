// Idea: A thread computes 4x4 outputs of one map. It reads the 10x10 pixels that they need once a channel, a row of ten at a
//     time, and adds each row into the up to four output rows that it belongs to: 100 loads for 784 multiply-adds
//     instead of 784. The map is a block's own, so that weights come as uniform registers, which cost no load of a thread.
// Bottleneck: Uniform registers: there are 63, and a channel has 49 weights. Each further channel reloads all of them, and
//     sm_90 has no multiply-add with an operand in constant memory. Tiles overlap too: rows are read 2.5 times out of L1.
// Next: Stay in the same columns and slide down the image, so that no row is read twice; weights in a thread's own registers.
// Source: Register blocking as in V. Volkov, "Better performance at lower occupancy", GTC 2010; own code.

constexpr int kSize = 7;
constexpr int kSide = 4;                  // outputs of a thread along both sides
constexpr int kSpan = kSide + kSize - 1;  // pixels that they need
constexpr int kThreads = 128;
constexpr int kMostWeights = 16 * 4 * kSize * kSize;

__constant__ float weights[kMostWeights];

// kPairs: the image's width is even, so that pixels at even columns are 8-byte aligned.
template <bool kPairs>
__device__ __forceinline__ void load_row(float (&pixel)[kSpan], const float* __restrict__ from) {
  if constexpr (kPairs) {
#pragma unroll
    for (int i = 0; i < kSpan; i += 2) {
      const float2 pair = __ldg((const float2*)(from + i));
      pixel[i] = pair.x, pixel[i + 1] = pair.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kSpan; ++i) pixel[i] = __ldg(from + i);
  }
}

template <bool kPairs>
__global__ void __launch_bounds__(kThreads, 8)
    conv_layer(const float* __restrict__ x, float* __restrict__ y, int batch, int channels, int maps, int height, int width) {
  const int out_height = height - kSize + 1, out_width = width - kSize + 1;
  const int tiles_across = (out_width + kSide - 1) / kSide, tiles_down = (out_height + kSide - 1) / kSide;
  const int tile = blockIdx.x * kThreads + threadIdx.x, m = blockIdx.y;
  if (tile >= batch * tiles_down * tiles_across) return;
  // The last tile of a row or column is moved back inside: it shares outputs with its neighbour, and both write the same.
  const int left = min(tile % tiles_across * kSide, out_width - kSide);
  const int top = min(tile / tiles_across % tiles_down * kSide, out_height - kSide);
  const int b = tile / (tiles_across * tiles_down);

  float sum[kSide][kSide] = {};
  const float* from = x + ((size_t)b * channels * height + top) * width + left;
#pragma unroll 1
  for (int c = 0; c < channels; ++c, from += (size_t)height * width) {
    const float* weight = weights + (m * channels + c) * kSize * kSize;
#pragma unroll
    for (int r = 0; r < kSpan; ++r) {
      float pixel[kSpan];
      load_row<kPairs>(pixel, from + r * width);
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
        const int p = r - i;  // the filter row that this input row meets in output row i
        if (p < 0 || p >= kSize) continue;
#pragma unroll
        for (int q = 0; q < kSize; ++q)
#pragma unroll
          for (int j = 0; j < kSide; ++j) sum[i][j] = fmaf(weight[p * kSize + q], pixel[j + q], sum[i][j]);
      }
    }
  }

  float* to = y + ((size_t)(b * maps + m) * out_height + top) * out_width + left;
#pragma unroll
  for (int i = 0; i < kSide; ++i) {
    if constexpr (kPairs) {
#pragma unroll
      for (int j = 0; j < kSide; j += 2) *(float2*)(to + i * out_width + j) = make_float2(sum[i][j], sum[i][j + 1]);
    } else {
#pragma unroll
      for (int j = 0; j < kSide; ++j) to[i * out_width + j] = sum[i][j];
    }
  }
}
