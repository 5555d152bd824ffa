// Idea: No shared memory and no barrier. A thread owns four columns and walks down `rows` rows with a 5 x 8 window of pixels
//     in registers: each step loads one row of eight (a float4 and a float2 on either side, the sides hits in L1), drops
//     the oldest, and stores four outputs as one float4. The next row is under way while the present one is computed.
// Bottleneck: Latency. Long strips read each pixel almost once, (rows + 4) / rows times, but leave few threads, each with one
//     row of loads in flight: too few bytes on their way to keep DRAM busy, and hopeless when the image is small.
// Next: Short strips with all their loads issued before the first multiply-add.
// Source: Own work; the window is the line buffer of image pipelines, kept in registers.

constexpr int kSize = 5;
constexpr int kRadius = kSize / 2;
constexpr int kThreads = 128;
constexpr int kColumns = 4;                    // outputs of a thread along a row
constexpr int kSpan = kColumns + 2 * kRadius;  // pixels that they need

__constant__ float filter[kSize * kSize];

struct Row {
  float pixel[kSpan];  // columns x - 2 to x + 5
};

// Row y of the image around column x, zeros outside. kVector: the width is a multiple of four, so rows are 16-byte aligned.
template <bool kVector>
__device__ __forceinline__ Row load_row(const float* __restrict__ b, int y, int x, int height, int width) {
  Row row = {};
  if (y < 0 || y >= height) return row;
  const float* from = b + (size_t)y * width + x;
  if constexpr (kVector) {
    const float2 zero = make_float2(0.0f, 0.0f);
    const float2 left = x > 0 ? __ldg((const float2*)(from - kRadius)) : zero;
    const float4 centre = __ldg((const float4*)from);
    const float2 right = x + kColumns < width ? __ldg((const float2*)(from + kColumns)) : zero;
    row = {{left.x, left.y, centre.x, centre.y, centre.z, centre.w, right.x, right.y}};
  } else {
#pragma unroll
    for (int k = 0; k < kSpan; ++k) {
      const int column = x + k - kRadius;
      if (0 <= column && column < width) row.pixel[k] = __ldg(from + k - kRadius);
    }
  }
  return row;
}

template <int kRows, bool kVector>
__global__ void __launch_bounds__(kThreads)
    conv2d(const float* __restrict__ b, float* __restrict__ c, int height, int width) {
  static_assert(kRows % kSize == 0, "the window turns once in five rows, so that its slots are known when compiling");
  const int x = (blockIdx.x * kThreads + threadIdx.x) * kColumns;
  if (x >= width) return;

  const int top = blockIdx.y * kRows;
  Row window[kSize];  // at row y = top + step, image row y + m - 2 lies in slot (step + m) % 5
#pragma unroll
  for (int m = 0; m < kSize - 1; ++m) window[m] = load_row<kVector>(b, top + m - kRadius, x, height, width);
  Row next = load_row<kVector>(b, top + kRadius, x, height, width);

#pragma unroll 1
  for (int turn = 0; turn < kRows; turn += kSize) {
#pragma unroll
    for (int step = 0; step < kSize; ++step) {
      const int y = top + turn + step;
      if (y >= height) return;
      window[(step + kSize - 1) % kSize] = next;
      next = load_row<kVector>(b, y + kRadius + 1, x, height, width);

      float sum[kColumns] = {};
#pragma unroll
      for (int m = 0; m < kSize; ++m)
#pragma unroll
        for (int n = 0; n < kSize; ++n)
#pragma unroll
          for (int k = 0; k < kColumns; ++k)
            sum[k] = fmaf(filter[m * kSize + n], window[(step + m) % kSize].pixel[k + n], sum[k]);

      float* to = c + (size_t)y * width + x;
      if constexpr (kVector) {
        *(float4*)to = make_float4(sum[0], sum[1], sum[2], sum[3]);
      } else {
#pragma unroll
        for (int k = 0; k < kColumns; ++k)
          if (x + k < width) to[k] = sum[k];
      }
    }
  }
}
