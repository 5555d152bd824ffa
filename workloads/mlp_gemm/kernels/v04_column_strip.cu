// Idea: A block of 16 x 4 threads computes 64 rows by 16 columns of D, a thread one row, its 16 sums c[16] in registers. Only B is
//     staged, 16 x 16 floats at a time; a float of A comes from global memory into a register and is used 16 times at once.
// Bottleneck: One shared load for each multiply-add, although all lanes ask for the same float; and after
//     each barrier all 64 threads wait for their floats of A, nothing of which is asked for before it.
// Next: A tile of 8 x 8 elements a thread, both operands from shared memory in vectors of four: 4 loads for 64 multiply-adds.
// Source: M. L. Wong, "CME213 Final Project Report": algorithm 3, written from its description, since it prints no listing; the
//     shape is that of V. Volkov and J. Demmel, "Benchmarking GPUs to tune dense linear algebra", SC 2008.

constexpr int kRows = 64;  // of D, one a thread
constexpr int kColumns = 16;
constexpr int kDepth = 16;

__global__ void __launch_bounds__(kRows)
    gemm(const float* a, const float* b, const float* c, float* d, int m, int n, int k, float alpha, float beta) {
  __shared__ float b_tile[kDepth][kColumns + 1];  // [step along k][column]; padded, since it is stored along k
  const int thread = threadIdx.y * 16 + threadIdx.x;
  const int row = blockIdx.x * kRows + thread;
  const int first_column = blockIdx.y * kColumns;

  float sums[kColumns] = {};
  for (int first = 0; first < k; first += kDepth) {
    const int step = first + threadIdx.x;
#pragma unroll
    for (int j = threadIdx.y; j < kColumns; j += 4)
      b_tile[threadIdx.x][j] = first_column + j < n && step < k ? b[(size_t)(first_column + j) * k + step] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int p = 0; p < kDepth; ++p) {
      const float value = row < m && first + p < k ? a[(size_t)(first + p) * m + row] : 0.0f;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) sums[j] += value * b_tile[p][j];
    }
    __syncthreads();
  }

  if (row >= m) return;
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    if (first_column + j >= n) return;
    const size_t at = (size_t)(first_column + j) * m + row;
    d[at] = alpha * sums[j] + beta * c[at];
  }
}
