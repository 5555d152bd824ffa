// Idea: A block of 32 x 32 threads computes 32 x 32 elements of D. Step by step along k it stages a 32 x 32 tile of A and one of B in
//     shared memory, each float loaded once by one thread and then read by 32.
// Bottleneck: The shared-memory pipe: still two loads for one multiply-add, only nearer. An SM does four multiply-adds in the
//     time of one such load, and both barriers of a step leave it idle while the tiles arrive.
// Next: Several elements a thread, with their sums in registers, so that a float that is loaded is used more than once.
// Source: M. L. Wong, "CME213 Final Project Report": algorithm 2, written from its description, since it prints no listing.

constexpr int kTile = 32;

__global__ void __launch_bounds__(kTile * kTile)
    gemm(const float* a, const float* b, const float* c, float* d, int m, int n, int k, float alpha, float beta) {
  __shared__ float a_tile[kTile][kTile];  // [step along k][row]
  __shared__ float b_tile[kTile][kTile];  // [column][step along k]
  const int row = blockIdx.x * kTile + threadIdx.x;
  const int column = blockIdx.y * kTile + threadIdx.y;

  float sum = 0.0f;
  for (int first = 0; first < k; first += kTile) {
    const int a_step = first + threadIdx.y, b_step = first + threadIdx.x;
    a_tile[threadIdx.y][threadIdx.x] = row < m && a_step < k ? a[(size_t)a_step * m + row] : 0.0f;
    b_tile[threadIdx.y][threadIdx.x] = column < n && b_step < k ? b[(size_t)column * k + b_step] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int p = 0; p < kTile; ++p) sum += a_tile[p][threadIdx.x] * b_tile[threadIdx.y][p];
    __syncthreads();
  }

  if (row >= m || column >= n) return;
  const size_t at = (size_t)column * m + row;
  d[at] = alpha * sum + beta * c[at];
}
