// Idea: Threads of a warp on neighbouring rows of one column, whose 32 elements are 128 bytes in a row: whole sectors are used. The
//     transposition goes through a tile in shared memory, so that it writes in this order as well; sum and softmax take a block
//     a column, whose threads add up in shared memory, half of them at each step.
// Bottleneck: Sum and softmax: a barrier for each of the eight halvings, twice for the softmax, and the column read three times, from
//     L1 or L2 after the first. The others: one load of 4 bytes in flight a thread, which is too little to fill the memory at large sizes.
// Next: 16 bytes a load, more of them in flight, and sums by shuffles out of registers.
// Source: Own work; the tile is that of M. Harris, "An Efficient Matrix Transpose in CUDA C/C++", the halving that of his "Optimizing
//     Parallel Reduction in CUDA".

constexpr int kTile = 32;
constexpr int kTileRows = 8;   // of threads; each takes four elements of the tile
constexpr int kThreads = 256;  // of a column's block

#define ROW_AND_COLUMN()                                        \
  const int row = blockIdx.x * blockDim.x + threadIdx.x;        \
  const int column = blockIdx.y * blockDim.y + threadIdx.y;     \
  if (row >= rows || column >= columns) return;                 \
  const size_t here = (size_t)column * rows + row

__global__ void subtract(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, int rows, int columns) {
  ROW_AND_COLUMN();
  y[here] = x[here] - w[here];
}

__global__ void multiply(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, int rows, int columns) {
  ROW_AND_COLUMN();
  y[here] = x[here] * w[here];
}

__global__ void sigmoid(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  ROW_AND_COLUMN();
  y[here] = 1.0f / (1.0f + expf(-x[here]));
}

__global__ void transpose(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  __shared__ float tile[kTile][kTile + 1];  // a column more, so that a column of the tile lies in 32 banks
  const int top = blockIdx.x * kTile, left = blockIdx.y * kTile;
  for (int k = threadIdx.y; k < kTile; k += kTileRows)
    if (top + threadIdx.x < rows && left + k < columns) tile[k][threadIdx.x] = x[(size_t)(left + k) * rows + top + threadIdx.x];
  __syncthreads();
  for (int k = threadIdx.y; k < kTile; k += kTileRows)
    if (top + k < rows && left + threadIdx.x < columns) y[(size_t)(top + k) * columns + left + threadIdx.x] = tile[threadIdx.x][k];
}

struct Add {
  static __device__ float of(float a, float b) { return a + b; }
};
struct Largest {
  static __device__ float of(float a, float b) { return fmaxf(a, b); }
};

// One value of all threads' of the block; `values` may be used again afterwards.
template <class Of>
__device__ float of_block(float mine, float* values) {
  values[threadIdx.x] = mine;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) values[threadIdx.x] = Of::of(values[threadIdx.x], values[threadIdx.x + half]);
    __syncthreads();
  }
  const float result = values[0];
  __syncthreads();
  return result;
}

__global__ void __launch_bounds__(kThreads) column_sum(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  __shared__ float values[kThreads];
  const float* from = x + (size_t)blockIdx.x * rows;
  float sum = 0.0f;
  for (int row = threadIdx.x; row < rows; row += kThreads) sum += from[row];
  sum = of_block<Add>(sum, values);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads) softmax(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  __shared__ float values[kThreads];
  const float* from = x + (size_t)blockIdx.x * rows;
  float* to = y + (size_t)blockIdx.x * rows;
  float largest = from[0];
  for (int row = threadIdx.x; row < rows; row += kThreads) largest = fmaxf(largest, from[row]);
  largest = of_block<Largest>(largest, values);
  float sum = 0.0f;
  for (int row = threadIdx.x; row < rows; row += kThreads) sum += expf(from[row] - largest);
  sum = of_block<Add>(sum, values);
  for (int row = threadIdx.x; row < rows; row += kThreads) to[row] = expf(from[row] - largest) / sum;
}
