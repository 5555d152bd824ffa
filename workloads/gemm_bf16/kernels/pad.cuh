// Rows of both operands at a pitch that the TMA takes, a multiple of 16 bytes, filled up with zeros, in one launch. After hopper_low_precision.cuh.

constexpr int kPadRows = 8;                  // of a block, a warp each
constexpr int kPadLoads = 8;                 // of a thread, all under way before the first is waited for
constexpr int kPadSegment = 32 * kPadLoads;  // of a row, which a warp copies

// blockIdx.y: the segment of a row. The rows of A, then those of B.
template <class Bits>
__global__ void __launch_bounds__(32 * kPadRows)
    pad_operands(const Bits* a, Bits* a_padded, int rows_of_a, const Bits* b, Bits* b_padded, int rows_of_b, int k, int pitch) {
  const int row = blockIdx.x * kPadRows + threadIdx.y, first = blockIdx.y * kPadSegment + threadIdx.x;
  if (row >= rows_of_a + rows_of_b) return;
  const int of_b = row - rows_of_a;
  const Bits* from = of_b < 0 ? a + (size_t)row * k : b + (size_t)of_b * k;
  Bits* to = of_b < 0 ? a_padded + (size_t)row * pitch : b_padded + (size_t)of_b * pitch;
  Bits values[kPadLoads];
#pragma unroll
  for (int i = 0; i < kPadLoads; ++i) values[i] = first + 32 * i < k ? from[first + 32 * i] : Bits(0);
#pragma unroll
  for (int i = 0; i < kPadLoads; ++i)
    if (first + 32 * i < pitch) to[first + 32 * i] = values[i];
}
