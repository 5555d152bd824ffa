// Idea: Square blocks, threadIdx.x running down the columns: a warp reads consecutive floats of A, C and D, and shares one float of
//     B, which a load hands to all its lanes at once. A block uses each float that it loads once for each of its rows or columns.
// Bottleneck: The load pipe: two loads for one multiply-add, and the reuse within a block goes through L1, one instruction each time.
// Next: Load every float once a block, and keep it in shared memory.
// Source: M. L. Wong, "CME213 Final Project Report": algorithm 1, written from its description, since it prints no listing.

__global__ void gemm(const float* a, const float* b, const float* c, float* d, int m, int n, int k, float alpha,
                     float beta) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int column = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;

  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += a[(size_t)p * m + row] * b[(size_t)column * k + p];
  const size_t at = (size_t)column * m + row;
  d[at] = alpha * sum + beta * c[at];
}
