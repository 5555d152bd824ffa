// Idea: The 8x8x8 tile with the permutation as a template argument.
// Bottleneck: Bank conflicts: the store of a warp into the tile takes 8 passes for (1,2,0), (2,0,1) and (2,1,0), 4 for (1,0,2) and
//     2 for (0,2,1). Rows of 8 floats and one load a thread in flight, as before.
// Next: Pad the tile so that the banks differ.
// Source: Kernel F of E. Sgarbanti, Advanced Computer Architectures report, section 0.4.3: 155 GB/s for (2,1,0) on a GTX 1070.

constexpr int TILE = 8;

template <int P0, int P1, int P2>
__global__ void __launch_bounds__(TILE* TILE* TILE)
    transpose(const float* __restrict__ in, float* __restrict__ out, int dim0, int dim1, int dim2) {
  __shared__ float tile[TILE][TILE][TILE];
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
