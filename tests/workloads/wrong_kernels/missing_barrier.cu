// Reads the shared tile without waiting for the threads that write it.
template <int P0, int P1, int P2>
__global__ void transpose(const float* in, float* out, int dim0, int dim1, int dim2) {
  __shared__ float tile[8][8][8];
  const int dim[3] = {dim0, dim1, dim2};
  const int corner[3] = {int(blockIdx.z) * 8, int(blockIdx.y) * 8, int(blockIdx.x) * 8};
  const int thread[3] = {int(threadIdx.z), int(threadIdx.y), int(threadIdx.x)};
  const int z = corner[0] + thread[0], y = corner[1] + thread[1], x = corner[2] + thread[2];
  if (z < dim0 && y < dim1 && x < dim2) tile[thread[P0]][thread[P1]][thread[P2]] = in[(z * dim1 + y) * dim2 + x];
  const int out0 = corner[P0] + thread[0], out1 = corner[P1] + thread[1], out2 = corner[P2] + thread[2];
  if (out0 < dim[P0] && out1 < dim[P1] && out2 < dim[P2])
    out[(out0 * dim[P1] + out1) * dim[P2] + out2] = tile[thread[0]][thread[1]][thread[2]];
}
