// Idea: The sliding window on short strips: a thread asks for all its rows + 4 input rows before it computes anything, so
//     that a single trip to DRAM is paid, then the whole walk is unrolled. At ten rows a thread has 14 rows of 48 bytes
//     in flight. The four rows that two strips share are read at nearly the same time, so the second read hits L2.
// Bottleneck: Traffic between L2 and the multiprocessors, (rows + 4) / rows times the image, because the strips that share
//     rows lie in different blocks. Longer strips lower it, but leave too few threads for small images.
// Next: Let the warps that share rows share a multiprocessor.
// Source: Own work.

constexpr int kSize = 5;
constexpr int kRadius = kSize / 2;
constexpr int kThreads = 128;
constexpr int kColumns = 4;                    // outputs of a thread along a row
constexpr int kSpan = kColumns + 2 * kRadius;  // pixels that they need

__constant__ float filter[kSize * kSize];

struct Row {
  float pixel[kSpan];  // columns x - 2 to x + 5
};

// The row of the image whose column x lies at `at`, zeros where there is no pixel. `inside`, whether there is such a row, is a
// predicate of each load: a branch would make the rows wait for one another.
// kVector: the width is a multiple of four, so that rows are 16-byte aligned.
template <bool kVector>
__device__ __forceinline__ Row load_row(const float* __restrict__ at, bool inside, int x, int width) {
  Row row = {};
  if constexpr (kVector) {
    float4 centre = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float2 left = make_float2(0.0f, 0.0f), right = left;
    if (inside) centre = __ldg((const float4*)at);
    if (inside && x > 0) left = __ldg((const float2*)(at - kRadius));
    if (inside && x + kColumns < width) right = __ldg((const float2*)(at + kColumns));
    row = {{left.x, left.y, centre.x, centre.y, centre.z, centre.w, right.x, right.y}};
  } else {
#pragma unroll
    for (int k = 0; k < kSpan; ++k) {
      const int column = x + k - kRadius;
      if (inside && 0 <= column && column < width) row.pixel[k] = __ldg(at + k - kRadius);
    }
  }
  return row;
}

template <int kRows, bool kVector>
__global__ void __launch_bounds__(kThreads)
    conv2d(const float* __restrict__ b, float* __restrict__ c, int height, int width) {
  const int x = (blockIdx.x * kThreads + threadIdx.x) * kColumns;
  if (x >= width) return;

  const int top = blockIdx.y * kRows;
  Row strip[kRows + 2 * kRadius];
  const float* from = b + (long long)(top - kRadius) * width + x;  // may lie before the image; read only where it does not
#pragma unroll
  for (int r = 0; r < kRows + 2 * kRadius; ++r) {
    const bool inside = (unsigned)(top + r - kRadius) < (unsigned)height;
    strip[r] = load_row<kVector>(from + (long long)r * width, inside, x, width);
  }

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
      *(float4*)to = make_float4(sum[0], sum[1], sum[2], sum[3]);
    } else {
#pragma unroll
      for (int k = 0; k < kColumns; ++k)
        if (x + k < width) to[k] = sum[k];
    }
  }
}
