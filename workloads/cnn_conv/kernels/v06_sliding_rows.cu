// Idea: For one channel and four maps. A thread owns four columns of one map and slides down the whole image. Each input row,
//     ten pixels read once, is added into the seven output rows that it belongs to; the oldest is then complete and stored,
//     and the sums of the others move up by one place as the next row is added to them. The map is the lane's number modulo
//     four, so that four lanes share their loads, and the 49 weights of a map stay in registers. prefetch=6 asks L2 for the
//     row six ahead.
// Bottleneck: Multiply-adds of three register operands, 196 a row for five loads and a store: a register file that is asked for
//     three words a lane often has two of them in the same bank. 49 weights also leave room for few warps to wait for DRAM.
// Next: Layer 2 has 4 channels: 196 weights a map, which no thread can hold. Give a lane a map, and fetch a row of weights at
//     a time.
// Source: Own work; the ring of sums is the line buffer of image pipelines, turned from inputs to outputs.

constexpr int kSize = 7;
constexpr int kMaps = 4;
constexpr int kColumns = 4;                  // outputs of a thread along a row
constexpr int kSpan = kColumns + kSize - 1;  // pixels that they need
constexpr int kThreads = 128;

__constant__ float weights[kMaps * kSize * kSize];

__device__ __forceinline__ void prefetch_l2(const float* address) {
#ifndef WARPLADDER_EMULATOR
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
#endif
}

// kVector: the output's width is a multiple of four. Its rows are then 16-byte aligned, those of the image, six longer, 8-byte.
template <int kPrefetch, bool kVector>
struct Strip {
  const float* from;  // the next input row
  float* to;          // the next output row
  int width, rows_left;
  float weight[kSize][kSize];
  float sum[kSize - 1][kColumns];  // sum[i] is output row i below the oldest one in progress

  __device__ __forceinline__ void load_row(float (&pixel)[kSpan]) {
    if constexpr (kVector) {
#pragma unroll
      for (int i = 0; i < kSpan; i += 2) {
        const float2 pair = __ldg((const float2*)(from + i));
        pixel[i] = pair.x, pixel[i + 1] = pair.y;
      }
    } else {
#pragma unroll
      for (int i = 0; i < kSpan; ++i) pixel[i] = __ldg(from + i);
    }
    if (kPrefetch > 0 && rows_left > kPrefetch) prefetch_l2(from + kPrefetch * width);
    from += width;
    --rows_left;
  }

  // The row at hand into the output rows kFirst to kLast below the oldest: at the top and bottom of the image there are no
  // others. The next row, if there is one, is on its way meanwhile.
  template <int kFirst, int kLast, bool kMore = true>
  __device__ __forceinline__ void step(const float (&row)[kSpan], float (&next_row)[kSpan]) {
    if constexpr (kMore) load_row(next_row);
    float moved[kSize][kColumns];  // sums after this row: what is written elsewhere than it was read needs no move
#pragma unroll
    for (int i = kFirst; i <= kLast; ++i)
#pragma unroll
      for (int q = 0; q < kSize; ++q)
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          const float before = q > 0 ? moved[i][j] : i < kSize - 1 ? sum[i][j] : 0.0f;
          moved[i][j] = fmaf(weight[kSize - 1 - i][q], row[j + q], before);
        }
    if constexpr (kFirst == 0) store(moved[0]);
#pragma unroll
    for (int i = kFirst > 1 ? kFirst : 1; i <= kLast; ++i)
#pragma unroll
      for (int j = 0; j < kColumns; ++j) sum[i - 1][j] = moved[i][j];
  }

  __device__ __forceinline__ void store(const float (&total)[kColumns]) {
    if constexpr (kVector) {
      __stcs((float4*)to, make_float4(total[0], total[1], total[2], total[3]));
    } else {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) __stcs(to + j, total[j]);
    }
    to += width - kSize + 1;
  }
};

template <int kPrefetch, bool kVector>
__global__ void __launch_bounds__(kThreads, 4)
    conv_layer(const float* __restrict__ x, float* __restrict__ y, int batch, int height, int width) {
  const int out_height = height - kSize + 1, out_width = width - kSize + 1;
  const int strips = (out_width + kColumns - 1) / kColumns;
  const int m = threadIdx.x % kMaps, strip = (blockIdx.x * kThreads + threadIdx.x) / kMaps;
  if (strip >= batch * strips) return;
  const int b = strip / strips;
  // The last strip is moved back inside: it shares columns with its neighbour, and both write the same.
  const int left = min(strip % strips * kColumns, out_width - kColumns);

  Strip<kPrefetch, kVector> s;
  s.from = x + (size_t)b * height * width + left;
  s.to = y + (size_t)(b * kMaps + m) * out_height * out_width + left;
  s.width = width;
  s.rows_left = height;
#pragma unroll
  for (int i = 0; i < kSize * kSize; ++i) s.weight[i / kSize][i % kSize] = weights[m * kSize * kSize + i];
#pragma unroll
  for (int i = 0; i < (kSize - 1) * kColumns; ++i) s.sum[i / kColumns][i % kColumns] = 0.0f;

  float even[kSpan], odd[kSpan];  // the input row at hand, and the next one
  s.load_row(even);
  s.template step<6, 6>(even, odd);
  s.template step<5, 6>(odd, even);
  s.template step<4, 6>(even, odd);
  s.template step<3, 6>(odd, even);
  s.template step<2, 6>(even, odd);
  s.template step<1, 6>(odd, even);
  int row = kSize - 1;
#pragma unroll 1
  for (; row + 1 < out_height; row += 2) {
    s.template step<0, 6>(even, odd);
    s.template step<0, 6>(odd, even);
  }
  if (row < out_height) {
    s.template step<0, 6>(even, odd);
#pragma unroll
    for (int i = 0; i < kSpan; ++i) even[i] = odd[i];
  }
  s.template step<0, 5>(even, odd);
  s.template step<0, 4>(odd, even);
  s.template step<0, 3>(even, odd);
  s.template step<0, 2>(odd, even);
  s.template step<0, 1>(even, odd);
  s.template step<0, 0, false>(odd, even);
}
