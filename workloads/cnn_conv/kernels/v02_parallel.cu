// Idea: One thread an output. Images, maps and 16x16 tiles of the output are the grid's three dimensions: four of the seven
//     loops of the sequential code become parallel, three are left.
// Bottleneck: Instructions: two loads for each multiply-add, one of a pixel and one of a weight, with their addresses. All
//     lanes of a warp ask for the same weight, and L1 serves it like any other load. Layer 2 also loses threads: a tile of 16
//     covers 34 columns with 48.
// Next: Weights from the memory that is made for words that a whole warp shares.
// Source: J. Danner, K. Torng, Y. Deng, "ECE 408 Final Project Report", University of Illinois Urbana-Champaign: optimization 1,
//     after chapter 16 of Kirk and Hwu, "Programming Massively Parallel Processors", 3rd edition.

constexpr int kSize = 7;
constexpr int kTile = 16;

__global__ void __launch_bounds__(kTile * kTile)
    conv_layer(const float* x, const float* k, float* y, int channels, int maps, int height, int width) {
  const int out_height = height - kSize + 1, out_width = width - kSize + 1;
  const int tiles_across = (out_width + kTile - 1) / kTile;
  const int b = blockIdx.x, m = blockIdx.y;
  const int h = blockIdx.z / tiles_across * kTile + threadIdx.y;
  const int w = blockIdx.z % tiles_across * kTile + threadIdx.x;
  if (h >= out_height || w >= out_width) return;

  float sum = 0.0f;
  for (int c = 0; c < channels; ++c)
    for (int p = 0; p < kSize; ++p)
      for (int q = 0; q < kSize; ++q)
        sum += x[((size_t)(b * channels + c) * height + h + p) * width + w + q] *
               k[((m * channels + c) * kSize + p) * kSize + q];
  y[((size_t)(b * maps + m) * out_height + h) * out_width + w] = sum;
}
