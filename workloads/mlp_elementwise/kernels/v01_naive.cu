// Idea: One thread an element, in square blocks; for the column sum and the softmax one thread a column, which it walks down.
// Bottleneck: Neighbouring threads are neighbours along a row, and a row of a column-major matrix has its elements a whole
//     column apart: every thread of a warp asks for a sector of its own, of which it uses 4 bytes of 32. A thread a column is
//     too few threads besides: 1000 columns are 32 warps for a whole GPU, each waiting for one load after another.
// Next: Neighbouring threads down a column, and many threads a column.
// Source: M. L. Wong, "CME213 Final Project Report", table 1: kernels "not optimized"; written from its description.

#define ROW_AND_COLUMN()                                        \
  const int column = blockIdx.x * blockDim.x + threadIdx.x;     \
  const int row = blockIdx.y * blockDim.y + threadIdx.y;        \
  if (row >= rows || column >= columns) return;                 \
  const size_t here = (size_t)column * rows + row

__global__ void transpose(const float* x, float* y, int rows, int columns) {
  ROW_AND_COLUMN();
  y[(size_t)row * columns + column] = x[here];
}

__global__ void subtract(const float* x, const float* w, float* y, int rows, int columns) {
  ROW_AND_COLUMN();
  y[here] = x[here] - w[here];
}

__global__ void multiply(const float* x, const float* w, float* y, int rows, int columns) {
  ROW_AND_COLUMN();
  y[here] = x[here] * w[here];
}

__global__ void sigmoid(const float* x, float* y, int rows, int columns) {
  ROW_AND_COLUMN();
  y[here] = 1.0f / (1.0f + expf(-x[here]));
}

__global__ void column_sum(const float* x, float* y, int rows, int columns) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  const float* from = x + (size_t)column * rows;
  float sum = 0.0f;
  for (int row = 0; row < rows; ++row) sum += from[row];
  y[column] = sum;
}

__global__ void softmax(const float* x, float* y, int rows, int columns) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  const float* from = x + (size_t)column * rows;
  float* to = y + (size_t)column * rows;
  float largest = from[0];
  for (int row = 1; row < rows; ++row) largest = fmaxf(largest, from[row]);
  float sum = 0.0f;
  for (int row = 0; row < rows; ++row) {
    to[row] = expf(from[row] - largest);
    sum += to[row];
  }
  for (int row = 0; row < rows; ++row) to[row] /= sum;
}
