// Idea: The filters in constant memory, whose cache hands one word to a whole warp without taking up L1 or a register for the
//     address. `over=loops` keeps the loops of v01_milestone3, as the report measured it; `over=grid` those of v02_parallel.
// Bottleneck: The pixels: still one load for each multiply-add, out of L1. The report saw next to nothing of the change on
//     its slow baseline.
// Next: Stage the pixels of a tile in shared memory.
// Source: J. Danner, K. Torng, Y. Deng, "ECE 408 Final Project Report", University of Illinois Urbana-Champaign: optimization 2.

constexpr int kSize = 7;
constexpr int kTile = 16;
constexpr int kMostWeights = 16 * 4 * kSize * kSize;

__constant__ float weights[kMostWeights];

// The output of map m whose window starts at `window`.
__device__ __forceinline__ float output(const float* window, int m, int channels, int height, int width) {
  float sum = 0.0f;
  for (int c = 0; c < channels; ++c)
    for (int p = 0; p < kSize; ++p)
      for (int q = 0; q < kSize; ++q)
        sum += window[(c * height + p) * width + q] * weights[((m * channels + c) * kSize + p) * kSize + q];
  return sum;
}

__global__ void __launch_bounds__(kTile * kTile)
    loops(const float* x, float* y, int channels, int maps, int height, int width) {
  const int out_height = height - kSize + 1, out_width = width - kSize + 1;
  const float* image = x + (size_t)blockIdx.x * channels * height * width;
  float* result = y + (size_t)blockIdx.x * maps * out_height * out_width;
  for (int m = 0; m < maps; ++m)
    for (int h = threadIdx.y; h < out_height; h += kTile)
      for (int w = threadIdx.x; w < out_width; w += kTile)
        result[(m * out_height + h) * out_width + w] = output(image + h * width + w, m, channels, height, width);
}

__global__ void __launch_bounds__(kTile * kTile)
    grid(const float* x, float* y, int channels, int maps, int height, int width) {
  const int out_height = height - kSize + 1, out_width = width - kSize + 1;
  const int tiles_across = (out_width + kTile - 1) / kTile;
  const int b = blockIdx.x, m = blockIdx.y;
  const int h = blockIdx.z / tiles_across * kTile + threadIdx.y;
  const int w = blockIdx.z % tiles_across * kTile + threadIdx.x;
  if (h >= out_height || w >= out_width) return;
  const float* window = x + ((size_t)b * channels * height + h) * width + w;
  y[((size_t)(b * maps + m) * out_height + h) * out_width + w] = output(window, m, channels, height, width);
}
