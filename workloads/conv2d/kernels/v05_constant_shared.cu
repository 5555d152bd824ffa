// Idea: The filter in constant memory, whose cache hands one weight to a whole warp, and the block's own pixels in a shared
//     tile of block x block. Pixels of the halo are not staged: they are read from global memory, where a neighbouring
//     block has most likely left them in L2.
// Bottleneck: Each of the 25 reads first asks whether its pixel is in the tile. Warps at a tile's edge take both sides of
//     that branch, and in an 8x8 tile 48 of 64 threads touch the halo; the reads from global memory stall the others. On a
//     GPU whose L1 caches global loads it loses to v04_single_precision: L1 holds what the tile holds, and asks nothing.
// Next: Stage the halo too, and drop the branch.
// Source: G. Matthews, M. Klobukov, "CUDA Assignment 3: 2D Convolution", Drexel University ECEC-622, 2017:
//     ConvolutionKernel_optimized, written from its description, since the report prints no listing of it.

constexpr int kSize = 5;
constexpr int kRadius = kSize / 2;

__constant__ float filter[kSize * kSize];

template <int kBlock>
__global__ void __launch_bounds__(kBlock * kBlock) conv2d(const float* b, float* c, int height, int width) {
  __shared__ float tile[kBlock][kBlock];
  const int i = blockIdx.y * kBlock + threadIdx.y;
  const int j = blockIdx.x * kBlock + threadIdx.x;
  const bool inside = i < height && j < width;
  if (inside) tile[threadIdx.y][threadIdx.x] = b[(size_t)i * width + j];
  __syncthreads();
  if (!inside) return;

  const int tile_top = blockIdx.y * kBlock, tile_left = blockIdx.x * kBlock;
  float sum = 0.0f;
  for (int m = 0; m < kSize; ++m) {
    const int y = i + m - kRadius;
    for (int n = 0; n < kSize; ++n) {
      const int x = j + n - kRadius;
      if (y < 0 || y >= height || x < 0 || x >= width) continue;
      const bool in_tile = tile_top <= y && y < tile_top + kBlock && tile_left <= x && x < tile_left + kBlock;
      const float pixel = in_tile ? tile[y - tile_top][x - tile_left] : b[(size_t)y * width + x];
      sum += filter[m * kSize + n] * pixel;
    }
  }
  c[(size_t)i * width + j] = sum;
}
