// Idea: The sliding window on short strips: a thread asks for all its rows + 4 input rows before it computes anything, so
//     that a single trip to DRAM is paid, then unrolls the walk completely. At eight rows, 12 rows of 48 bytes a thread
//     are in flight; the four rows that two strips share are read at nearly the same time, so the second read hits L2.
// Bottleneck: DRAM bandwidth on large images. On smaller ones the strips are too few: at 512 x 512 and eight rows there
//     are 8192 threads, two warps a multiprocessor of a large GPU, and a last wave of blocks that leaves most of it idle.
// Next: Shorter strips for small images, and the neighbours' pixels by shuffle instead of a second load.
// Source: Own work.

constexpr int kSize = 5;
constexpr int kRadius = kSize / 2;
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

// The strip's pixels stay in registers only if ptxas may use enough of them: 512 threads a multiprocessor leave it 128.
template <int kRows, int kThreads, bool kVector>
__global__ void __launch_bounds__(kThreads, (kRows > 4 ? 512 : 768) / kThreads)
    conv2d(const float* __restrict__ b, float* __restrict__ c, int height, int width) {
  const int x = (blockIdx.x * kThreads + threadIdx.x) * kColumns;
  if (x >= width) return;

  const int top = blockIdx.y * kRows;
  Row strip[kRows + 2 * kRadius];
#pragma unroll
  for (int r = 0; r < kRows + 2 * kRadius; ++r) strip[r] = load_row<kVector>(b, top + r - kRadius, x, height, width);

#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (top + r >= height) return;
    float sum[kColumns] = {};
#pragma unroll
    for (int m = 0; m < kSize; ++m)
#pragma unroll
      for (int n = 0; n < kSize; ++n)
#pragma unroll
        for (int k = 0; k < kColumns; ++k) sum[k] = fmaf(filter[m * kSize + n], strip[r + m].pixel[k + n], sum[k]);

    float* to = c + (size_t)(top + r) * width + x;
    if constexpr (kVector) {
      __stcs((float4*)to, make_float4(sum[0], sum[1], sum[2], sum[3]));
    } else {
#pragma unroll
      for (int k = 0; k < kColumns; ++k)
        if (x + k < width) to[k] = sum[k];
    }
  }
}
