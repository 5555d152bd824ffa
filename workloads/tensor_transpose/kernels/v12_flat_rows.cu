// Idea: Where the innermost dimension stays, nothing is transposed: rows move, or the whole tensor does. Neighbouring threads take
//     neighbouring vectors of the output, whichever rows they belong to, so that no lane is left over at the end of a row. The row
//     of a vector comes from a product with a reciprocal and a shift in place of a division, and all loads of a thread come before its
//     stores.
// Bottleneck: Memory: as fast as the copy for (0,1,2), 97 to 98 % of it for (1,0,2). Rows that are no multiple of 16 bytes are moved
//     in elements of 4 bytes, which takes more of them in flight: config `per_thread`. On an H200 blocks of 256 threads are up to 5 %
//     faster than blocks of 1024, and on an H100 up to 1 % slower: config `threads`.
// Next: The permutations that move the innermost dimension.
// Source: Own work; the reciprocals after T. Granlund and P. L. Montgomery, "Division by Invariant Integers using Multiplication".

// (0,1,2): the copy, of vectors as far as they go.
template <int PER_THREAD, int THREADS>
__global__ void __launch_bounds__(THREADS) copy(const float* __restrict__ in, float* __restrict__ out, unsigned count) {
  const unsigned first = blockIdx.x * (THREADS * PER_THREAD) + threadIdx.x, vectors = count / 4;
  float4 value[PER_THREAD];
#pragma unroll
  for (int k = 0; k < PER_THREAD; k++)
    if (first + k * THREADS < vectors) value[k] = reinterpret_cast<const float4*>(in)[first + k * THREADS];
#pragma unroll
  for (int k = 0; k < PER_THREAD; k++)
    if (first + k * THREADS < vectors) reinterpret_cast<float4*>(out)[first + k * THREADS] = value[k];
  const unsigned rest = 4 * vectors + first;
  if (rest < count) out[rest] = in[rest];
}

// n / d of n < 2^31, by reciprocal and shift of d.
__device__ __forceinline__ unsigned over(unsigned n, unsigned reciprocal, unsigned shift) {
  return static_cast<unsigned long long>(n) * reciprocal >> shift;
}

// (1,0,2): out[a][b] = in[b][a], rows of `columns` vectors T; `count` vectors in all.
template <class T, int PER_THREAD, int THREADS>
__global__ void __launch_bounds__(THREADS)
    copy_rows(const T* __restrict__ in, T* __restrict__ out, unsigned count, unsigned dim_a, unsigned dim_b, unsigned columns,
              unsigned reciprocal_b, unsigned shift_b, unsigned reciprocal_columns, unsigned shift_columns) {
  const unsigned first = blockIdx.x * (THREADS * PER_THREAD) + threadIdx.x;
  T value[PER_THREAD];
#pragma unroll
  for (int k = 0; k < PER_THREAD; k++) {
    const unsigned to = first + k * THREADS;
    const unsigned row = over(to, reciprocal_columns, shift_columns), column = to - row * columns;
    const unsigned a = over(row, reciprocal_b, shift_b), b = row - a * dim_b;
    // By __ldg, or the compiler moves the last load behind a store.
    if (to < count) value[k] = __ldg(in + ((b * dim_a + a) * columns + column));
  }
#pragma unroll
  for (int k = 0; k < PER_THREAD; k++)
    if (first + k * THREADS < count) out[first + k * THREADS] = value[k];
}
