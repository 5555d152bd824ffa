// Rows of one or two arrays at pitches of whole lines, so that the TMA takes them and reads each line once, filled up with zeros, in one launch. The
// launch after it may be early. After hopper_early.cuh.

constexpr int kPadLine = 32;                 // floats of a line
constexpr int kPadRows = 8;                  // of a block, a warp each
constexpr int kPadLoads = 8;                 // of a thread, all under way before the first is waited for
constexpr int kPadSegment = 32 * kPadLoads;  // of a row, which a warp copies

// Blocks of this many rows and columns of an array: segments of a row behind one another, then the rows below.
struct Padding {
  int rows, columns;

  __device__ __forceinline__ int pitch() const { return (columns + kPadLine - 1) / kPadLine * kPadLine; }
  __device__ __forceinline__ int segments() const { return (pitch() + kPadSegment - 1) / kPadSegment; }
  __device__ __forceinline__ int blocks() const { return (rows + kPadRows - 1) / kPadRows * segments(); }

  __device__ __forceinline__ void copy(const float* __restrict__ in, float* __restrict__ out, int block) const {
    const int row = block / segments() * kPadRows + threadIdx.y, first = block % segments() * kPadSegment + threadIdx.x;
    if (row >= rows) return;
    in += (size_t)row * columns, out += (size_t)row * pitch();
    float values[kPadLoads];
#pragma unroll
    for (int i = 0; i < kPadLoads; ++i) values[i] = first + 32 * i < columns ? in[first + 32 * i] : 0.0f;
#pragma unroll
    for (int i = 0; i < kPadLoads; ++i)
      if (first + 32 * i < pitch()) out[first + 32 * i] = values[i];
  }
};

__global__ void __launch_bounds__(32 * kPadRows) pad_one(const float* in, float* out, int rows, int columns) {
  let_next_launch_start();
  Padding{rows, columns}.copy(in, out, blockIdx.x);
}

// The blocks of the first array, then those of the second.
__global__ void __launch_bounds__(32 * kPadRows)
    pad_two(const float* in, float* out, int rows, int columns, const float* second, float* second_out, int second_rows,
            int second_columns) {
  let_next_launch_start();
  const Padding padding{rows, columns};
  const int block = blockIdx.x, of_second = block - padding.blocks();
  if (of_second < 0)
    padding.copy(in, out, block);
  else
    Padding{second_rows, second_columns}.copy(second, second_out, of_second);
}
