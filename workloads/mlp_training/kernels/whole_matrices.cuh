// The steps between the products, a kernel each, every one a pass over whole matrices. Matrices are column-major, a sample a column.

constexpr int kThreads = 256;

#define ELEMENT_OR_RETURN(count)                         \
  const int i = blockIdx.x * blockDim.x + threadIdx.x;   \
  if (i >= count) return

__global__ void __launch_bounds__(kThreads) forward_sigmoid(float* __restrict__ a, int count) {
  ELEMENT_OR_RETURN(count);
  a[i] = 1.0f / (1.0f + expf(-a[i]));
}

// In place, a thread a column.
__global__ void __launch_bounds__(kThreads) forward_softmax(float* __restrict__ p, int rows, int columns) {
  ELEMENT_OR_RETURN(columns);
  float* column = p + (size_t)i * rows;
  float largest = column[0];
  for (int row = 1; row < rows; ++row) largest = fmaxf(largest, column[row]);
  float sum = 0.0f;
  for (int row = 0; row < rows; ++row) sum += column[row] = expf(column[row] - largest);
  for (int row = 0; row < rows; ++row) column[row] /= sum;
}

// p becomes (p - y) * scale.
__global__ void __launch_bounds__(kThreads) backward_difference(float* __restrict__ p, const float* __restrict__ y, float scale, int count) {
  ELEMENT_OR_RETURN(count);
  p[i] = (p[i] - y[i]) * scale;
}

// d becomes the gradient before the sigmoid: d * a * (1 - a).
__global__ void __launch_bounds__(kThreads) backward_sigmoid(float* __restrict__ d, const float* __restrict__ a, int count) {
  ELEMENT_OR_RETURN(count);
  d[i] *= a[i] * (1.0f - a[i]);
}

// Adds the columns up, a thread a row.
__global__ void __launch_bounds__(kThreads) backward_bias(const float* __restrict__ d, float* __restrict__ sums, int rows, int columns) {
  ELEMENT_OR_RETURN(rows);
  float sum = 0.0f;
  for (int column = 0; column < columns; ++column) sum += d[(size_t)column * rows + i];
  sums[i] = sum;
}

__global__ void __launch_bounds__(kThreads)
    update(float* __restrict__ to, const float* __restrict__ from, const float* __restrict__ gradient, float rate, int count) {
  ELEMENT_OR_RETURN(count);
  to[i] = from[i] - rate * gradient[i];
}
