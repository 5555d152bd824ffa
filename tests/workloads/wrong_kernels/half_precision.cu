// Rounds to the mantissa of a half on the way, and writes floats.
template <int P0, int P1, int P2>
__global__ void transpose(const float* in, float* out, int dim0, int dim1, int dim2) {
  const int dim[3] = {dim0, dim1, dim2};
  const int index[3] = {int(blockIdx.z * 8 + threadIdx.z), int(blockIdx.y * 8 + threadIdx.y), int(blockIdx.x * 8 + threadIdx.x)};
  if (index[0] >= dim0 || index[1] >= dim1 || index[2] >= dim2) return;
  const int to = (index[P0] * dim[P1] + index[P1]) * dim[P2] + index[P2];
  const unsigned bits = __float_as_uint(in[(index[0] * dim1 + index[1]) * dim2 + index[2]]);
  out[to] = __uint_as_float((bits + 0x1000) & 0xffffe000);
}
