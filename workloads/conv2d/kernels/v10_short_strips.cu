// Idea: One or two rows a thread, so that even a 512 x 512 image gives every multiprocessor several warps, and one load
//     instruction a row: the two pixels on either side come from the neighbouring lanes by shuffle, and only a warp's
//     first and last lane load theirs.
// Bottleneck: For small images the launch and one trip to DRAM, which nothing inside the kernel can shorten. For large ones
//     the overlap: at two rows each pixel is read by three strips, so L2 carries three times the traffic of DRAM.
// Next: Nothing for small images; for large ones the longer strips of v09_loads_first are better.
// Source: Own work.

constexpr int kSize = 5;
constexpr int kRadius = kSize / 2;
constexpr int kColumns = 4;                    // outputs of a thread along a row
constexpr int kSpan = kColumns + 2 * kRadius;  // pixels that they need
constexpr unsigned kWarp = 0xffffffffu;
constexpr int kLastLane = 31;

__constant__ float filter[kSize * kSize];

// Element `column` of a row, zero outside the image.
__device__ __forceinline__ float pixel_at(const float* __restrict__ row, int column, int width) {
  return 0 <= column && column < width ? __ldg(row + column) : 0.0f;
}

template <int kRows, int kThreads, bool kVector>
__global__ void __launch_bounds__(kThreads)
    conv2d(const float* __restrict__ b, float* __restrict__ c, int height, int width) {
  const int x = (blockIdx.x * kThreads + threadIdx.x) * kColumns;
  const int lane = threadIdx.x % 32;
  const bool outermost = lane == 0 || lane == kLastLane;  // in its warp
  const int side = lane == 0 ? x - kRadius : x + kColumns;
  const int top = blockIdx.y * kRows;

  float4 centre[kRows + 2 * kRadius];  // columns x to x + 3
  float2 edge[kRows + 2 * kRadius];    // of an outermost lane: columns `side` and `side` + 1
#pragma unroll
  for (int r = 0; r < kRows + 2 * kRadius; ++r) {
    centre[r] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    edge[r] = make_float2(0.0f, 0.0f);
    const int y = top + r - kRadius;
    if (y < 0 || y >= height) continue;
    const float* row = b + (size_t)y * width;
    if constexpr (kVector) {  // the width is a multiple of four, so rows are 16-byte aligned
      if (x < width) centre[r] = __ldg((const float4*)(row + x));
      if (outermost && 0 <= side && side < width) edge[r] = __ldg((const float2*)(row + side));
    } else {
      centre[r] = make_float4(pixel_at(row, x, width), pixel_at(row, x + 1, width), pixel_at(row, x + 2, width),
                              pixel_at(row, x + 3, width));
      if (outermost) edge[r] = make_float2(pixel_at(row, side, width), pixel_at(row, side + 1, width));
    }
  }

  float sum[kRows][kColumns] = {};
#pragma unroll
  for (int r = 0; r < kRows + 2 * kRadius; ++r) {
    // Every lane takes part in the shuffles, those beyond the image too: none has returned.
    float pixel[kSpan] = {__shfl_up_sync(kWarp, centre[r].z, 1),  __shfl_up_sync(kWarp, centre[r].w, 1),
                          centre[r].x,                            centre[r].y,
                          centre[r].z,                            centre[r].w,
                          __shfl_down_sync(kWarp, centre[r].x, 1), __shfl_down_sync(kWarp, centre[r].y, 1)};
    if (lane == 0) pixel[0] = edge[r].x, pixel[1] = edge[r].y;
    if (lane == kLastLane) pixel[6] = edge[r].x, pixel[7] = edge[r].y;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const int m = r - k;  // the filter row that this input row meets in output row k
      if (m < 0 || m >= kSize) continue;
#pragma unroll
      for (int n = 0; n < kSize; ++n)
#pragma unroll
        for (int column = 0; column < kColumns; ++column)
          sum[k][column] = fmaf(filter[m * kSize + n], pixel[column + n], sum[k][column]);
    }
  }

#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    if (top + k >= height || x >= width) continue;
    float* to = c + (size_t)(top + k) * width + x;
    if constexpr (kVector) {
      __stcs((float4*)to, make_float4(sum[k][0], sum[k][1], sum[k][2], sum[k][3]));
    } else {
#pragma unroll
      for (int column = 0; column < kColumns; ++column)
        if (x + column < width) to[column] = sum[k][column];
    }
  }
}
