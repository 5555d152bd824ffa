// Idea: Each thread computes a column of `rows` outputs. It reads a row of five pixels from the shared tile once and adds it
//     into each of the up to five outputs that it belongs to, all held in registers: 5 (rows + 4) shared loads for
//     25 rows multiply-adds, so 7.5 loads an output at eight rows instead of 25. A warp spans 32 columns: no bank conflicts.
// Bottleneck: Two phases with a barrier between them. While a block waits for DRAM it computes nothing, while it computes it
//     asks for nothing, and every pixel still makes the detour through shared memory.
// Next: Leave shared memory out: neighbouring columns of a thread overlap, so that registers alone can hold the window.
// Source: Register blocking as in V. Volkov, "Better performance at lower occupancy", GTC 2010; own code.

constexpr int kSize = 5;
constexpr int kRadius = kSize / 2;
constexpr int kColumns = 32;    // threads along x, a warp
constexpr int kThreadRows = 8;  // threads along y

__constant__ float filter[kSize * kSize];

template <int kRows>
__global__ void __launch_bounds__(kColumns * kThreadRows)
    conv2d(const float* __restrict__ b, float* __restrict__ c, int height, int width) {
  constexpr int kTileRows = kThreadRows * kRows + 2 * kRadius;
  constexpr int kTileColumns = kColumns + 2 * kRadius;
  __shared__ float tile[kTileRows][kTileColumns];
  const int top = blockIdx.y * (kThreadRows * kRows) - kRadius, left = blockIdx.x * kColumns - kRadius;
  for (int r = threadIdx.y; r < kTileRows; r += kThreadRows)
    for (int s = threadIdx.x; s < kTileColumns; s += kColumns) {
      const int y = top + r, x = left + s;
      const bool inside = 0 <= y && y < height && 0 <= x && x < width;
      tile[r][s] = inside ? b[(size_t)y * width + x] : 0.0f;
    }
  __syncthreads();

  float sum[kRows] = {};
  const int first = threadIdx.y * kRows;  // the thread's first output row within the block
#pragma unroll
  for (int r = 0; r < kRows + 2 * kRadius; ++r) {
    float pixel[kSize];
#pragma unroll
    for (int n = 0; n < kSize; ++n) pixel[n] = tile[first + r][threadIdx.x + n];
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const int m = r - k;  // the filter row that this input row meets in output row k
      if (m < 0 || m >= kSize) continue;
#pragma unroll
      for (int n = 0; n < kSize; ++n) sum[k] = fmaf(filter[m * kSize + n], pixel[n], sum[k]);
    }
  }

  const int j = blockIdx.x * kColumns + threadIdx.x;
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    const int i = blockIdx.y * (kThreadRows * kRows) + first + k;
    if (i < height && j < width) c[(size_t)i * width + j] = sum[k];
  }
}
