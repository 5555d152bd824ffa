// Idea: O = I W: a row of I has the 25 taps of an output pixel with all their channels, zeros where a tap falls between inputs
//     or outside. The product goes by tiles: T x T of I in shared memory, transposed, T x TV of W one column a thread, which keeps T sums
//     in registers: one operand of each multiply-add is a register, not two out of shared memory.
// Bottleneck: Three quarters of I are zeros, multiplied like the rest, and I is 25/4 times as large as the output it makes times
//     channels: written once and read again. One image is too small a matrix for the first layers: 64 rows, four tiles.
// Next: 100 images in one matrix.
// Source: S. Yi, "SHPC 2021 Fall Term Project Report", Seoul National University, 2021, sections 2.3.1 and 2.3.2, T = 16, V = 4.

#include "layers.cuh"

constexpr int kT = 16;  // rows of a tile
constexpr int kV = 4;   // its columns are kV times as many

// The matrix of the weights, 25 channels x out_channels, taps in reverse: row (r, s, c) has W[4 - r, 4 - s, :, c].
__global__ void flip_weights(const float* __restrict__ w, float* __restrict__ matrix, int channels, int out_channels) {
  const int n = blockDim.x * blockIdx.x + threadIdx.x;
  if (n >= kTaps * channels * out_channels) return;
  const int k = n % out_channels, c = n / out_channels % channels, tap = n / out_channels / channels;
  matrix[n] = w[((kTaps - 1 - tap) * out_channels + k) * channels + c];
}

// The matrix of the taps, a row an output pixel of an image.
__global__ void expand(const float* __restrict__ in, float* __restrict__ matrix, int images, int side, int channels) {
  const int n = blockDim.x * blockIdx.x + threadIdx.x;
  const int depth = kTaps * channels, pixels = 4 * side * side;
  if (n >= images * pixels * depth) return;
  const int row = n / depth, tap = n % depth / channels, c = n % channels;
  const int image = row / pixels, pixel = row % pixels;
  const int h_in = pixel / (2 * side) + tap / kSize - 3, w_in = pixel % (2 * side) + tap % kSize - 3;  // input i lies at 2i
  const bool inside = h_in >= 0 && h_in < 2 * side && w_in >= 0 && w_in < 2 * side && h_in % 2 == 0 && w_in % 2 == 0;
  matrix[n] = inside ? in[((image * side + h_in / 2) * side + w_in / 2) * channels + c] : 0.0f;
}

// c = a * b + bias: a is rows x depth, b depth x columns. One thread a column, with kT rows of it in registers.
__global__ void multiply(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
                         float* __restrict__ c, int rows, int depth, int columns) {
  __shared__ __align__(16) float tile[kT][kT + 4];  // of a, transposed: a row of it is read as vectors, the same by all threads
  const int first_row = blockIdx.x * kT;
  const int column = blockIdx.y * (kT * kV) + threadIdx.x;
  float sum[kT] = {};
  for (int first = 0; first < depth; first += kT) {
    for (int n = threadIdx.x; n < kT * kT; n += kT * kV) {
      const int row = n / kT, k = n % kT;
      const bool inside = first_row + row < rows && first + k < depth;
      tile[k][row] = inside ? a[(size_t)(first_row + row) * depth + first + k] : 0.0f;
    }
    __syncthreads();
    if (column < columns) {
#pragma unroll
      for (int k = 0; k < kT; ++k) {
        if (first + k >= depth) break;
        const float weight = b[(size_t)(first + k) * columns + column];
#pragma unroll
        for (int row = 0; row < kT; ++row) sum[row] = fmaf(weight, tile[k][row], sum[row]);
      }
    }
    __syncthreads();
  }
  if (column >= columns) return;
#pragma unroll
  for (int row = 0; row < kT; ++row)
    if (first_row + row < rows) c[(size_t)(first_row + row) * columns + column] = sum[row] + bias[column];
}
