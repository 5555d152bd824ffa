// Idea: The naive kernel with its two indices swapped, and nothing else: threadIdx.x now runs along a row of the image, so
//     the lanes of a warp read and write neighbouring addresses.
// Bottleneck: Arithmetic that the result does not need. Each product is a float, then converted and added in double; the
//     conversion runs at a fraction of the float rate on every GPU, and double at a small fraction on most.
// Next: Add in float: 25 terms lose nothing that a float output could hold.
// Source: Own step between the report's two kernels.

constexpr int kSize = 5;
constexpr int kRadius = kSize / 2;

__global__ void conv2d(const float* a, const float* b, float* c, int height, int width) {
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= height || j >= width) return;

  const int m_begin = max(0, kRadius - i), m_end = min(kSize, height + kRadius - i);
  const int n_begin = max(0, kRadius - j), n_end = min(kSize, width + kRadius - j);
  double sum = 0.0;
  for (int m = m_begin; m < m_end; ++m)
    for (int n = n_begin; n < n_end; ++n)
      sum += a[m * kSize + n] * b[(size_t)(i + m - kRadius) * width + (j + n - kRadius)];
  c[(size_t)i * width + j] = (float)sum;
}
