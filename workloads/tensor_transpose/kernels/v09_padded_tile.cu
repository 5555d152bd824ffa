// Idea: Every permutation that moves the innermost dimension is a stack of plane transpositions: between the input's
//     innermost dimension and the output's, stacked along the third. A 32x32 tile, 256 threads with four elements each, rows
//     of 128 bytes on both sides, and a padded row of 33 that leaves no bank conflict.
// Bottleneck: 4-byte accesses: four loads of 4 bytes a thread in flight, and an instruction an element on each of four ways. For
//     (2,0,1) and (2,1,0) neighbouring tile rows lie a plane apart, and 128 bytes at a time are little for a DRAM page.
// Next: 16 bytes an access.
// Source: The tile of G. Ruetsch and P. Micikevicius, Optimizing Matrix Transpose in CUDA, NVIDIA 2009, in a stack of planes.

constexpr int TILE = 32;
constexpr int ROWS_AT_ONCE = 8;

// The input plane has `height` rows of `width` contiguous floats, `in_row` apart; the output plane has `width` rows of `height`.
__global__ void __launch_bounds__(TILE* ROWS_AT_ONCE)
    transpose(const float* __restrict__ in, float* __restrict__ out, int height, int width, long long in_row, long long in_plane,
              long long out_row, long long out_plane) {
  __shared__ float tile[TILE][TILE + 1];
  const int top = blockIdx.y * TILE, left = blockIdx.x * TILE;
  in += blockIdx.z * in_plane;
  out += blockIdx.z * out_plane;

#pragma unroll
  for (int p = 0; p < TILE / ROWS_AT_ONCE; p++) {
    const int r = p * ROWS_AT_ONCE + threadIdx.y, row = top + r, column = left + threadIdx.x;
    if (row < height && column < width) tile[r][threadIdx.x] = in[row * in_row + column];
  }
  __syncthreads();
#pragma unroll
  for (int p = 0; p < TILE / ROWS_AT_ONCE; p++) {
    const int r = p * ROWS_AT_ONCE + threadIdx.y, row = left + r, column = top + threadIdx.x;
    if (row < width && column < height) out[row * out_row + column] = tile[threadIdx.x][r];
  }
}
