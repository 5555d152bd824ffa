// Idea: A block transposes an 8x8x8 tile in shared memory: it reads along the input's rows and writes along the output's. The
//     permutation is an argument again.
// Bottleneck: Run-time indexing, bank conflicts while the tile is written, and rows of 8 floats: one 32-byte sector each, with one
//     load a thread in flight. It loses to the simple kernel where that wrote whole rows anyway.
// Next: Tell the compiler the permutation.
// Source: Kernel E of E. Sgarbanti, Advanced Computer Architectures report, section 0.4.3: 122 GB/s for (2,1,0) on a GTX 1070, up
//     from 79, but 123 instead of 192 for (1,0,2).

constexpr int TILE = 8;

__global__ void __launch_bounds__(TILE* TILE* TILE) transpose(const float* __restrict__ in, float* __restrict__ out, int dim0, int dim1,
                                                              int dim2, int perm0, int perm1, int perm2) {
  __shared__ float tile[TILE][TILE][TILE];
  const int dim[3] = {dim0, dim1, dim2};
  const int corner[3] = {int(blockIdx.z) * TILE, int(blockIdx.y) * TILE, int(blockIdx.x) * TILE};  // of the tile in the input
  const int thread[3] = {int(threadIdx.z), int(threadIdx.y), int(threadIdx.x)};

  const int z = corner[0] + thread[0], y = corner[1] + thread[1], x = corner[2] + thread[2];
  if (z < dim0 && y < dim1 && x < dim2) tile[thread[perm0]][thread[perm1]][thread[perm2]] = in[(z * dim1 + y) * dim2 + x];
  __syncthreads();

  const int out0 = corner[perm0] + thread[0], out1 = corner[perm1] + thread[1], out2 = corner[perm2] + thread[2];
  if (out0 < dim[perm0] && out1 < dim[perm1] && out2 < dim[perm2])
    out[(out0 * dim[perm1] + out1) * dim[perm2] + out2] = tile[thread[0]][thread[1]][thread[2]];
}
