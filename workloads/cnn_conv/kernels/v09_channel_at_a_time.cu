// Idea: Uniform weights for layer 2. A thread holds the sums of a tile two columns wide and `rows` high through all channels; a
//     warp loads the 49 weights that join a channel to its map into uniform registers, an instruction each, then uses each of
//     them 2 rows times: 1666 multiply-adds at 17 rows for 92 loads of pixels, two at a time, and 49 of weights. Tiles of 2x17
//     fit 34x34 outputs exactly, and the loads of neighbouring lanes are neighbours in memory.
// Bottleneck: Multiply-adds, 92 of 100 instructions: 72.5 GFLOP cannot take less than 1.1 ms on fp32 units.
// Next: Tensor cores, which multiply five times as much in a second by mma.sync.
// Source: Own work.

constexpr int kSize = 7;
constexpr int kChannels = 4;
constexpr int kMaps = 16;
constexpr int kColumns = 2;                  // outputs of a thread along a row
constexpr int kSpan = kColumns + kSize - 1;  // pixels that they need
constexpr int kWarps = 4;                    // a map each
constexpr int kLanes = 32;

__constant__ float weights[kMaps * kChannels * kSize * kSize];

// kPairs: the image's width is even, so that pixels at even columns are 8-byte aligned.
template <bool kPairs>
__device__ __forceinline__ void load_row(float (&pixel)[kSpan], const float* __restrict__ from) {
#pragma unroll
  for (int i = 0; i < kSpan; i += 2)
    if constexpr (kPairs) {
      const float2 pair = __ldg((const float2*)(from + i));
      pixel[i] = pair.x, pixel[i + 1] = pair.y;
    } else {
      pixel[i] = __ldg(from + i), pixel[i + 1] = __ldg(from + i + 1);
    }
}

template <int kHeight, int kWidth, int kRows>
__global__ void __launch_bounds__(kWarps * kLanes, kRows > 9 ? 7 : 10)
    conv_layer(const float* __restrict__ x, float* __restrict__ y, int tiles) {
  constexpr int kOutHeight = kHeight - kSize + 1, kOutWidth = kWidth - kSize + 1;
  constexpr int kAcross = (kOutWidth + kColumns - 1) / kColumns, kDown = (kOutHeight + kRows - 1) / kRows;
  constexpr bool kPairs = kWidth % 2 == 0;
  const int m = blockIdx.x % (kMaps / kWarps) * kWarps + __shfl_sync(~0u, threadIdx.x / kLanes, 0);  // the same in a warp
  const int tile = blockIdx.x / (kMaps / kWarps) * kLanes + threadIdx.x % kLanes;
  if (tile >= tiles) return;
  const int b = tile / (kAcross * kDown);
  // The last tile of a row or column is moved back inside: it shares outputs with its neighbour, and both write the same.
  const int left = min(tile % kAcross * kColumns, kOutWidth - kColumns);
  const int top = min(tile / kAcross % kDown * kRows, kOutHeight - kRows);

  float sum[kRows][kColumns] = {};
  const float* from = x + ((size_t)b * kChannels * kHeight + top) * kWidth + left;
#pragma unroll 1
  for (int c = 0; c < kChannels; ++c, from += kHeight * kWidth) {
    const float* weight = weights + (m * kChannels + c) * kSize * kSize;
#pragma unroll
    for (int r = 0; r < kRows + kSize - 1; ++r) {
      float pixel[kSpan];
      load_row<kPairs>(pixel, from + r * kWidth);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int p = r - i;  // the filter row that this input row meets in output row i
        if (p < 0 || p >= kSize) continue;
#pragma unroll
        for (int q = 0; q < kSize; ++q)
#pragma unroll
          for (int j = 0; j < kColumns; ++j) sum[i][j] = fmaf(weight[p * kSize + q], pixel[j + q], sum[i][j]);
      }
    }
  }

  float* to = y + ((size_t)(b * kMaps + m) * kOutHeight + top) * kOutWidth + left;
#pragma unroll
  for (int i = 0; i < kRows; ++i, to += kOutWidth)
    if constexpr (kPairs) {
      *(float2*)to = make_float2(sum[i][0], sum[i][1]);
    } else {
      to[0] = sum[i][0], to[1] = sum[i][1];
    }
}
