// Idea: The 8x8x8 tile lies in an array with longer rows and planes, one size a permutation, so that the threads of a warp meet
//     other banks. The config says whose sizes: the report's (its table 2), or those with the fewest passes by our count.
// Bottleneck: Padding alone cannot do it: with rows of 8 threads no size serves both the store and the load of the tile without
//     conflicts, except for (0,1,2) and (1,0,2); the report counts none, we count 3 to 5 passes instead of 2. And the tile's
//     rows are still 32 bytes.
// Next: Longer rows: a tile of the plane in which the transposition happens, 32 by 32.
// Source: Kernel G of E. Sgarbanti, Advanced Computer Architectures report, section 0.4.4: 170 GB/s for (2,1,0) on a GTX 1070, as
//     much as its copy through shared memory. Our count: bank_conflicts.py.

constexpr int TILE = 8;

template <int P0, int P1, int P2, int ROWS, int COLUMNS>
__global__ void __launch_bounds__(TILE* TILE* TILE)
    transpose(const float* __restrict__ in, float* __restrict__ out, int dim0, int dim1, int dim2) {
  __shared__ float tile[TILE][ROWS][COLUMNS];
  const int dim[3] = {dim0, dim1, dim2};
  const int corner[3] = {int(blockIdx.z) * TILE, int(blockIdx.y) * TILE, int(blockIdx.x) * TILE};  // of the tile in the input
  const int thread[3] = {int(threadIdx.z), int(threadIdx.y), int(threadIdx.x)};

  const int z = corner[0] + thread[0], y = corner[1] + thread[1], x = corner[2] + thread[2];
  if (z < dim0 && y < dim1 && x < dim2) tile[thread[P0]][thread[P1]][thread[P2]] = in[(z * dim1 + y) * dim2 + x];
  __syncthreads();

  const int out0 = corner[P0] + thread[0], out1 = corner[P1] + thread[1], out2 = corner[P2] + thread[2];
  if (out0 < dim[P0] && out1 < dim[P1] && out2 < dim[P2])
    out[(out0 * dim[P1] + out1) * dim[P2] + out2] = tile[thread[0]][thread[1]][thread[2]];
}
