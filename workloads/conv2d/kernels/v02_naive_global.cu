// Idea: One thread an output; the 25 neighbours and the 25 weights all come from global memory, windows clipped at the
//     edges, the sum kept in double. Kept as the report has it, threadIdx.x running down the rows of the image.
// Bottleneck: Neighbouring lanes read addresses a whole row apart, so a warp's load touches up to 32 cache lines and uses
//     four bytes of each; stores likewise. A wider block reaches over more rows at once and makes it worse, which is why
//     the report found the largest block slowest.
// Next: Let threadIdx.x run along a row, so that a warp reads neighbouring addresses.
// Source: G. Matthews, M. Klobukov, "CUDA Assignment 3: 2D Convolution", Drexel University ECEC-622, 2017: ConvolutionKernel.

constexpr int kSize = 5;
constexpr int kRadius = kSize / 2;

__global__ void conv2d(const float* a, const float* b, float* c, int height, int width) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= height || j >= width) return;

  const int m_begin = max(0, kRadius - i), m_end = min(kSize, height + kRadius - i);
  const int n_begin = max(0, kRadius - j), n_end = min(kSize, width + kRadius - j);
  double sum = 0.0;
  for (int m = m_begin; m < m_end; ++m)
    for (int n = n_begin; n < n_end; ++n)
      sum += a[m * kSize + n] * b[(size_t)(i + m - kRadius) * width + (j + n - kRadius)];
  c[(size_t)i * width + j] = (float)sum;
}
