// Idea: Stage the tile with its halo, (block + 4) x (block + 4), zeros where the image ends. After one barrier the 25 reads
//     need no test, and both loops unroll into 25 shared loads and 25 multiply-adds.
// Bottleneck: The shared-memory pipe: one load for each multiply-add, and an SM issues a quarter as many loads as
//     multiply-adds. Staging goes pixel by pixel, with a division for each, and nothing is computed meanwhile.
// Next: Let a thread compute several outputs, so that a pixel that is read once is used more than once.
// Source: The usual tiled stencil with an apron, as in NVIDIA's convolutionSeparable sample; own code.

constexpr int kSize = 5;
constexpr int kRadius = kSize / 2;

__constant__ float filter[kSize * kSize];

template <int kBlock>
__global__ void __launch_bounds__(kBlock * kBlock)
    conv2d(const float* __restrict__ b, float* __restrict__ c, int height, int width) {
  constexpr int kTile = kBlock + 2 * kRadius;
  __shared__ float tile[kTile][kTile];
  const int top = blockIdx.y * kBlock - kRadius, left = blockIdx.x * kBlock - kRadius;
  for (int k = threadIdx.y * kBlock + threadIdx.x; k < kTile * kTile; k += kBlock * kBlock) {
    const int y = top + k / kTile, x = left + k % kTile;
    const bool inside = 0 <= y && y < height && 0 <= x && x < width;
    tile[k / kTile][k % kTile] = inside ? b[(size_t)y * width + x] : 0.0f;
  }
  __syncthreads();

  const int i = blockIdx.y * kBlock + threadIdx.y;
  const int j = blockIdx.x * kBlock + threadIdx.x;
  if (i >= height || j >= width) return;
  float sum = 0.0f;
#pragma unroll
  for (int m = 0; m < kSize; ++m)
#pragma unroll
    for (int n = 0; n < kSize; ++n) sum = fmaf(filter[m * kSize + n], tile[threadIdx.y + m][threadIdx.x + n], sum);
  c[(size_t)i * width + j] = sum;
}
