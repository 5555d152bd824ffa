// Idea: For layer 2. The 16 maps are 16 lanes, so that a warp computes two rows of 34 outputs of all maps from pixels that half of its
//     lanes load at the same address, four at a time. Each of the 28 rows of a filter, seven weights that differ from lane to
//     lane, comes from shared memory when it is needed, and stays in registers for 34 outputs. Results go through shared
//     memory, because neighbouring lanes hold outputs of different maps.
// Bottleneck: Multiply-adds of three register operands, which often meet in one bank, and L1: for each row of weights ten loads of
//     pixels and two of weights, since every output row reads its seven input rows again.
// Next: The map is a warp's: its weights are then the same in all lanes, and uniform registers hold them.
// Source: Own work.

constexpr int kSize = 7;
constexpr int kChannels = 4;
constexpr int kMaps = 16;
constexpr int kColumns = 34;                 // outputs of a thread, along a row
constexpr int kSpan = kColumns + kSize - 1;  // pixels that they need
constexpr int kLanes = 32;
constexpr int kWarps = 4;
constexpr int kFilterRows = kChannels * kSize;

template <int kHeight, int kWidth>
__global__ void __launch_bounds__(kWarps * kLanes, 5)
    conv_layer(const float* __restrict__ x, const float* __restrict__ k, float* __restrict__ y, int strips) {
  constexpr int kOutHeight = kHeight - kSize + 1, kOutWidth = kWidth - kSize + 1;
  constexpr int kAcross = (kOutWidth + kColumns - 1) / kColumns;
  constexpr bool kAligned = kWidth % 4 == 0 && kAcross == 1;  // what a thread reads of a row is 16-byte aligned
  __shared__ float4 weights[kFilterRows][2][kMaps];           // seven weights of a filter row and a zero
  __shared__ float2 results[kWarps][kLanes][kColumns / 2];

  for (int i = threadIdx.x; i < kFilterRows * kMaps; i += kWarps * kLanes) {
    const float* from = k + (i % kMaps * kFilterRows + i / kMaps) * kSize;
    weights[i / kMaps][0][i % kMaps] = make_float4(from[0], from[1], from[2], from[3]);
    weights[i / kMaps][1][i % kMaps] = make_float4(from[4], from[5], from[6], 0.0f);
  }
  __syncthreads();

  const int warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes, m = lane % kMaps, half = lane / kMaps;
  const int strip = blockIdx.x * kWarps + warp;
  if (strip >= strips) return;
  const int b = strip / kAcross;
  // The last strip, and the last of an odd number of rows, are moved back inside: what two compute, both write the same.
  const int left = min(strip % kAcross * kColumns, kOutWidth - kColumns);
#pragma unroll 1
  for (int top = 0; top < kOutHeight; top += 2) {
    float sum[kColumns] = {};
    const float* from = x + ((size_t)b * kChannels * kHeight + min(top + half, kOutHeight - 1)) * kWidth + left;
#pragma unroll 1
    for (int row = 0; row < kFilterRows; ++row) {
      float pixel[kSpan];
#pragma unroll
      for (int i = 0; i < kSpan; i += 4)
        if constexpr (kAligned) {
          const float4 four = __ldg((const float4*)(from + i));
          pixel[i] = four.x, pixel[i + 1] = four.y, pixel[i + 2] = four.z, pixel[i + 3] = four.w;
        } else {
#pragma unroll
          for (int j = i; j < i + 4; ++j) pixel[j] = __ldg(from + j);
        }
      const float4 first = weights[row][0][m], last = weights[row][1][m];
      const float weight[kSize] = {first.x, first.y, first.z, first.w, last.x, last.y, last.z};
#pragma unroll
      for (int q = 0; q < kSize; ++q)
#pragma unroll
        for (int j = 0; j < kColumns; ++j) sum[j] = fmaf(weight[q], pixel[j + q], sum[j]);
      from += row % kSize == kSize - 1 ? (kHeight - kSize + 1) * kWidth : kWidth;  // the channel's next row, or the next channel
    }

#pragma unroll
    for (int j = 0; j < kColumns; j += 2) results[warp][lane][j / 2] = make_float2(sum[j], sum[j + 1]);
    __syncwarp();
    if (lane < kColumns / 2)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float* to = y + ((size_t)b * kMaps * kOutHeight + min(top + h, kOutHeight - 1)) * kOutWidth + left + 2 * lane;
#pragma unroll
        for (int i = 0; i < kMaps; ++i, to += kOutHeight * kOutWidth) {
          const float2 pair = results[warp][h * kMaps + i][lane];
          if constexpr (kWidth % 2 == 0)
            __stcs((float2*)to, pair);
          else
            __stcs(to, pair.x), __stcs(to + 1, pair.y);
        }
      }
    __syncwarp();  // all have read the results
  }
}
