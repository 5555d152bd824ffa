// How the operands of a 64 x 128 tile of a product come into shared memory: 16 steps of the sum at a time, by copies that nobody waits for.
#include "../../ptx.cuh"

constexpr int kRows = 64, kColumns = 128;  // of a tile
constexpr int kDepth = 16;                 // steps of the sum in a stage
constexpr int kStages = 3;
constexpr int kTileThreads = 128;

// Rows [0, rows) of A against columns [0, columns) of B, over steps [first, last) of the sum. A's element of row m and step k is
// a[m * a_pitch + k], or, where A is read across, a[k * a_pitch + m]; B's of step k and column n is b[k * columns + n]. Matrices have
// fewer than 2^31 elements.
struct Operands {
  const float* a;
  const float* b;
  int a_pitch, rows, columns, first, last;
};

// Starts the copies of the stage that begins at step `step`, into of_a[k][m] and of_b[k][n]. What lies outside is not
// read and becomes zero. kVector:
// the pitch and the columns are multiples of four. The patterns write each bank once: 8 steps x 4 rows a warp, or whole vectors.
template <bool kVector, bool kAcross, int kPitchA, int kPitchB>
__device__ __forceinline__ void copy_stage(const Operands& from, int top, int left, int step, float* of_a, float* of_b) {
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  if constexpr (!kAcross) {
    const int k = warp % 2 * 8 + lane % 8;
    const float* a = from.a + (top + warp / 2 * 4 + lane / 8) * from.a_pitch + step + k;
#pragma unroll 2  // not further here and below: the addresses of all copies at once would take the registers of the sums
    for (int i = 0; i < kRows / 8; ++i) {
      const int m = warp / 2 * 4 + lane / 8 + 8 * i;
      const bool inside = top + m < from.rows && step + k < from.last;
      cp_async<4>(of_a + k * kPitchA + m, a + 8 * i * from.a_pitch, inside);
    }
  } else {
    constexpr int kWidth = kVector ? 4 : 1, kAcrossThreads = kRows / kWidth, kStepsAtOnce = kTileThreads / kAcrossThreads;
    const int m = thread % kAcrossThreads * kWidth;
#pragma unroll
    for (int k = thread / kAcrossThreads; k < kDepth; k += kStepsAtOnce) {
      const bool inside = top + m < from.rows && step + k < from.last;
      cp_async<4 * kWidth>(of_a + k * kPitchA + m, from.a + (step + k) * from.a_pitch + top + m, inside);
    }
  }
  constexpr int kWidth = kVector ? 4 : 1, kAcrossThreads = kColumns / kWidth, kStepsAtOnce = kTileThreads / kAcrossThreads;
  const int n = thread % kAcrossThreads * kWidth;
#pragma unroll 1
  for (int k = thread / kAcrossThreads; k < kDepth; k += kStepsAtOnce) {
    const bool inside = left + n < from.columns && step + k < from.last;
    cp_async<4 * kWidth>(of_b + k * kPitchB + n, from.b + (step + k) * from.columns + left + n, inside);
  }
}

// Calls multiply(stage of A, stage of B) for each stage of the sum in turn, while those after it are on their way into `shared`.
template <bool kVector, bool kAcross, int kPitchA, int kPitchB, class Multiply>
__device__ __forceinline__ void walk_stages(const Operands& operands, int top, int left, float* shared, Multiply multiply) {
  constexpr int kStageFloats = kDepth * (kPitchA + kPitchB);
  const int steps = (operands.last - operands.first + kDepth - 1) / kDepth;
  const auto copy = [&](int step, float* stage) {
    if (step < steps)
      copy_stage<kVector, kAcross, kPitchA, kPitchB>(operands, top, left, operands.first + step * kDepth, stage, stage + kDepth * kPitchA);
    cp_async_commit();
  };
#pragma unroll
  for (int step = 0; step < kStages - 1; ++step) copy(step, shared + step * kStageFloats);
  float* here = shared;
  float* free = shared + (kStages - 1) * kStageFloats;  // the stage that was read last
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    cp_async_wait<kStages - 2>();
    __syncthreads();
    copy(step + kStages - 1, free);
    multiply(here, here + kDepth * kPitchA);
    free = here;
    here = here == shared + (kStages - 1) * kStageFloats ? shared : here + kStageFloats;
  }
}

// Writes a warp's fragments of 16 x 8 sums, as mma leaves them, from row `row` and column `column` on: this lane's first.
template <bool kVector, int kDown, int kAcross>
__device__ __forceinline__ void store_fragments(const float (&sum)[kDown][kAcross][4], const Operands& operands, int row, int column,
                                                float* __restrict__ to) {
#pragma unroll
  for (int i = 0; i < 2 * kDown; ++i) {
    const int r = row + 8 * i;
    if (r >= operands.rows) continue;
    float* line = to + (size_t)r * operands.columns;
#pragma unroll
    for (int j = 0; j < kAcross; ++j) {
      const int c = column + 8 * j;
      const float first = sum[i / 2][j][i % 2 * 2], second = sum[i / 2][j][i % 2 * 2 + 1];
      if constexpr (kVector) {
        if (c < operands.columns) *(float2*)(line + c) = make_float2(first, second);
      } else {
        if (c < operands.columns) line[c] = first;
        if (c + 1 < operands.columns) line[c + 1] = second;
      }
    }
  }
}
