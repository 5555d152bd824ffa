// Rows of an array at a pitch that the TMA takes, a multiple of four floats, filled up with zeros.
__global__ void pad(const float* in, float* out, int rows, int columns, int pitch) {
  const int element = blockIdx.x * blockDim.x + threadIdx.x;
  if (element >= rows * pitch) return;
  const int column = element % pitch;
  out[element] = column < columns ? in[(size_t)(element / pitch) * columns + column] : 0.0f;
}
