// Idea: (0,2,1) is a stack of matrices, each transposed by itself: a square tile in the plane instead of a cube, one element a
//     thread, one row of padding against bank conflicts. Tiles of 8x8 and 32x32, to compare with the cube of 8x8x8.
// Bottleneck: 8x8: rows of 32 bytes and blocks of two warps. 32x32: rows of 128 bytes, but a block of 1024 threads that all wait at
//     one barrier, with one 4-byte load each in flight.
// Next: Fewer threads with several elements each, and the other permutations.
// Source: The matrix transposition of E. Sgarbanti, Advanced Computer Architectures report, section 0.5.3, figures 5 and 6.

template <int TILE>
__global__ void __launch_bounds__(TILE* TILE)
    transpose(const float* __restrict__ in, float* __restrict__ out, int height, int width) {
  __shared__ float tile[TILE][TILE + 1];
  const size_t matrix = size_t(blockIdx.z) * height * width;
  const int top = blockIdx.y * TILE, left = blockIdx.x * TILE;

  int row = top + threadIdx.y, column = left + threadIdx.x;
  if (row < height && column < width) tile[threadIdx.y][threadIdx.x] = in[matrix + size_t(row) * width + column];
  __syncthreads();

  row = left + threadIdx.y, column = top + threadIdx.x;  // of the output
  if (row < width && column < height) out[matrix + size_t(row) * height + column] = tile[threadIdx.x][threadIdx.y];
}
