// Idea: One thread an element of D, numbered by one-dimensional blocks that run along a row of D: the threads of a warp take
//     32 neighbouring columns.
// Bottleneck: The matrices are column-major. Down the loop each thread walks along a row of A, m floats a step, with
//     one float used of each cache line; across the warp, every load of B and every access to C and D touches 32 columns, 32
//     cache lines for 128 bytes. Large matrices push those lines out of the caches before their other floats are asked for.
// Next: Two-dimensional blocks, threadIdx.x running down the columns.
// Source: M. L. Wong, "CME213 Final Project Report": algorithm 0, written from its description, since it prints no listing.

__global__ void gemm(const float* a, const float* b, const float* c, float* d, int m, int n, int k, float alpha,
                     float beta) {
  const int element = blockIdx.x * blockDim.x + threadIdx.x;
  if (element >= m * n) return;
  const int row = element / n, column = element % n;

  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += a[(size_t)p * m + row] * b[(size_t)column * k + p];
  const size_t at = (size_t)column * m + row;
  d[at] = alpha * sum + beta * c[at];
}
