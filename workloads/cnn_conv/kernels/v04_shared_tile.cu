// Idea: Each thread stages its own pixel, 16x16 a block, in shared memory; windows read the tile, and what lies outside it
//     comes from global memory, where L1 or L2 most likely has it.
// Bottleneck: The question, asked 49 times an output and channel, whether the pixel is in the tile. With a 7x7 window only the
//     first 10x10 of 16x16 threads find all of theirs there, and as a warp is two rows of 16, every warp takes both sides of
//     the branch. The report saw it lose to the version without a tile.
// Next: No tile: give a thread several outputs, so that a pixel once loaded is used many times out of a register.
// Source: J. Danner, K. Torng, Y. Deng, "ECE 408 Final Project Report", University of Illinois Urbana-Champaign: optimization 3.

constexpr int kSize = 7;
constexpr int kTile = 16;
constexpr int kMostWeights = 16 * 4 * kSize * kSize;

__constant__ float weights[kMostWeights];

__global__ void __launch_bounds__(kTile * kTile)
    conv_layer(const float* x, float* y, int channels, int maps, int height, int width) {
  __shared__ float tile[kTile][kTile];
  const int out_height = height - kSize + 1, out_width = width - kSize + 1;
  const int tiles_across = (out_width + kTile - 1) / kTile;
  const int b = blockIdx.x, m = blockIdx.y;
  const int h = blockIdx.z / tiles_across * kTile + threadIdx.y;
  const int w = blockIdx.z % tiles_across * kTile + threadIdx.x;
  const bool has_output = h < out_height && w < out_width;

  float sum = 0.0f;
  for (int c = 0; c < channels; ++c) {
    const float* plane = x + (size_t)(b * channels + c) * height * width;
    __syncthreads();  // the tile of the channel before has been read
    if (h < height && w < width) tile[threadIdx.y][threadIdx.x] = plane[h * width + w];
    __syncthreads();
    if (!has_output) continue;
    for (int p = 0; p < kSize; ++p)
      for (int q = 0; q < kSize; ++q) {
        const int row = threadIdx.y + p, column = threadIdx.x + q;
        const bool in_tile = row < kTile && column < kTile;
        const float pixel = in_tile ? tile[row][column] : plane[(h + p) * width + w + q];
        sum += pixel * weights[((m * channels + c) * kSize + p) * kSize + q];
      }
  }
  if (has_output) y[((size_t)(b * maps + m) * out_height + h) * out_width + w] = sum;
}
