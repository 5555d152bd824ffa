// Idea: The one kernel text that every route of this workload calls. A block of 32x8 threads moves a tile of 32x32 floats through
//     shared memory: it reads rows of 128 bytes and writes rows of 128 bytes. A padded row of 33 leaves no bank conflict.
// Bottleneck: Memory bandwidth for large matrices. For small ones the launch, which this workload compares between the routes.
// Next: 16 bytes an access, as the rungs of tensor_transpose go on.
// Source: The report's shared-memory kernel for two dimensions (E. Sgarbanti, Advanced Computer Architectures report, section 0.5.3),
//     with the tile of G. Ruetsch and P. Micikevicius, Optimizing Matrix Transpose in CUDA, NVIDIA 2009.

constexpr int kTile = 32;
constexpr int kRowsAtOnce = 8;

// x has `height` rows of `width` floats, y has `width` rows of `height`. The name is not mangled, so that each route finds it.
extern "C" __global__ void __launch_bounds__(kTile* kRowsAtOnce)
    transpose(const float* __restrict__ x, float* __restrict__ y, int height, int width) {
  __shared__ float tile[kTile][kTile + 1];
  const int top = blockIdx.y * kTile, left = blockIdx.x * kTile;

#pragma unroll
  for (int r = threadIdx.y; r < kTile; r += kRowsAtOnce) {
    const int row = top + r, column = left + threadIdx.x;
    if (row < height && column < width) tile[r][threadIdx.x] = x[(size_t)row * width + column];
  }
  __syncthreads();
#pragma unroll
  for (int r = threadIdx.y; r < kTile; r += kRowsAtOnce) {
    const int row = left + r, column = top + threadIdx.x;
    if (row < width && column < height) y[(size_t)row * height + column] = tile[threadIdx.x][r];
  }
}
