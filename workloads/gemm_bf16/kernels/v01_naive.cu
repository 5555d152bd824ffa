// Idea: A thread an element of D. Operands are BF16 in memory, products and sums float32.
// Bottleneck: The load pipe: each multiply-add wants two loads of 2 bytes, and lanes side by side read rows of B that lie 2 k bytes apart. The
//     tensor cores do nothing.
// Next: Tensor cores, fed from shared memory.
// Source: Own work.

__device__ __forceinline__ float value_of(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }

__global__ void gemm(const unsigned short* __restrict__ a, const unsigned short* __restrict__ b, unsigned short* __restrict__ d, int m, int n,
                     int k) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0.0f;
  for (int step = 0; step < k; ++step) sum += value_of(a[(size_t)row * k + step]) * value_of(b[(size_t)column * k + step]);
  const unsigned bits = __float_as_uint(sum);
  d[(size_t)row * n + column] = (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);  // to the nearest, ties to even
}
