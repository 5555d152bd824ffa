// Idea: The products on tensor cores, 16 x 8 x 8 of them an instruction of a warp, on operands rounded to TF32. In which
//     order a warp numbers its rows and its steps along k is its own choice, as long as both operands agree: so numbered that
//     a lane's four rows of A follow one another, it loads them as one vector, stores D likewise, and takes two steps of a
//     column of B, as it comes, as another. Pitches of 4 floats over a multiple of 32, and of 8, keep those loads free of
//     bank conflicts.
// Bottleneck: L2: a tile of 128 x 128 does 32 operations for each byte that it fetches, 256 x 128 does 43. And each fragment
//     passes through registers, where it is rounded, on its way to the tensor cores: 315 TFLOP/s of mma.sync alone on an H200,
//     where Hopper's warpgroups did a whole product at 385.
// Next: The same accuracy as float32, by three such products. Or Hopper's warpgroups, which read shared memory themselves.
// Source: Own work; fragments as in the PTX ISA, mma.m16n8k8.

#include "../../ptx.cuh"

constexpr int kWarp = 32;
constexpr int kWarpRows = 64;  // of D a warp
constexpr int kRowBlocks = kWarpRows / 16;  // products of an instruction that cover them
constexpr int kSteps = 8;  // along k of an instruction
constexpr int kGroup = 8;  // tiles side by side that blocks walk along before they turn

// What a lane holds of 64 rows of A and the columns of B, for 8 steps along k.
template <int kWarpColumns>
struct Fragments {
  static constexpr int kColumnBlocks = kWarpColumns / 8;
  using Sums = float[kRowBlocks][kColumnBlocks][4];
  float values[kRowBlocks][4];
  float weights[kColumnBlocks][2];
};

extern __shared__ float4 tiles[];

// x rounded to TF32's 11 bits, as a tensor core takes it: 8193 x is 13 bits longer than x, which float32 rounds off. Two
// instructions; cvt.rna.tf32 becomes three on Hopper, and copies. Not for infinities, nor beyond 2^114: they become NaN.
__device__ __forceinline__ unsigned rounded(float x) { return __float_as_uint(fmaf(x, -8192.0f, x * 8193.0f)); }

// sums += values * weights with both rounded to TF32.
struct RoundedProduct {
  static constexpr int kWarpColumns = 64;  // of D a warp
  using Operands = Fragments<kWarpColumns>;

  __device__ __forceinline__ static void add(Operands::Sums& sums, const Operands& of) {
    unsigned values[kRowBlocks][4];
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) values[i][e] = rounded(of.values[i][e]);
#pragma unroll
    for (int j = 0; j < Operands::kColumnBlocks; ++j) {
      const unsigned weights[2] = {rounded(of.weights[j][0]), rounded(of.weights[j][1])};
#pragma unroll
      for (int i = 0; i < kRowBlocks; ++i) mma_m16n8k8_tf32(sums[i][j], values[i], weights);
    }
  }
};

// D = alpha A B + beta C by blocks of kRows x kColumns. kWhole: m, n and k are multiples of the tile, so that nothing needs a
// guard and fours are aligned.
template <class Product, int kRows, int kColumns, int kDepth, int kStages, bool kWhole>
__device__ __forceinline__ void multiply(const float* __restrict__ a, const float* __restrict__ b,
                                         const float* __restrict__ c, float* __restrict__ d, int m, int n, int k,
                                         float alpha, float beta) {
  using Operands = typename Product::Operands;
  constexpr int kWarpColumns = Product::kWarpColumns, kColumnBlocks = Operands::kColumnBlocks;
  constexpr int kThreads = kRows / kWarpRows * (kColumns / kWarpColumns) * kWarp;
  constexpr int kPitchOfA = kRows + 4, kPitchOfB = kDepth + 8;  // [step along k][row] and [column][step along k]
  constexpr int kStage = kDepth * kPitchOfA + kColumns * kPitchOfB;
  float* const stages = (float*)tiles;

  // Tiles are walked along kGroup columns of tiles side by side, row after row.
  const int tile_rows = (m + kRows - 1) / kRows, tile_columns = (n + kColumns - 1) / kColumns;
  const int group = blockIdx.x / (kGroup * tile_rows), in_group = blockIdx.x % (kGroup * tile_rows);
  const int width = min(kGroup, tile_columns - group * kGroup);
  const int first_row = in_group / width * kRows;
  const int first_column = (group * kGroup + in_group % width) * kColumns;

  // This thread's copies.
  constexpr int kCopy = kWhole ? 4 : 1;                                          // floats at a time
  constexpr int kThreadsAStep = kRows / kCopy, kThreadsAColumn = kDepth / kCopy;  // that copy one
  constexpr int kStepsAtOnce = kThreads / kThreadsAStep, kColumnsAtOnce = kThreads / kThreadsAColumn;
  static_assert(kStepsAtOnce * kThreadsAStep == kThreads && kColumnsAtOnce * kThreadsAColumn == kThreads, "whole ones");
  const int a_row = threadIdx.x % kThreadsAStep * kCopy, a_step = threadIdx.x / kThreadsAStep;
  const int b_step = threadIdx.x % kThreadsAColumn * kCopy, b_column = threadIdx.x / kThreadsAColumn;
  const float* from_a = a + (size_t)a_step * m + first_row + a_row;
  const float* from_b = b + (size_t)(first_column + b_column) * k + b_step;
  const bool row_exists = first_row + a_row < m;
  const int columns_left = n - first_column - b_column;
  int steps_left = k;
  const auto copy = [&](int stage) {
    float* to_a = stages + stage * kStage + a_step * kPitchOfA + a_row;
    float* to_b = stages + stage * kStage + kDepth * kPitchOfA + b_column * kPitchOfB + b_step;
#pragma unroll
    for (int step = 0; step < kDepth; step += kStepsAtOnce) {
      const bool exists = kWhole || (row_exists && a_step + step < steps_left);
      cp_async<4 * kCopy>(to_a + step * kPitchOfA, exists ? from_a + (size_t)step * m : a, exists);
    }
#pragma unroll
    for (int column = 0; column < kColumns; column += kColumnsAtOnce) {
      const bool exists = kWhole || (column < columns_left && b_step < steps_left);
      cp_async<4 * kCopy>(to_b + column * kPitchOfB, exists ? from_b + (size_t)column * k : b, exists);
    }
    from_a += (size_t)kDepth * m;
    from_b += kDepth;
    steps_left -= kDepth;
  };

  // Lane l, g = l / 4 and t = l % 4. What an instruction calls rows g and g + 8 are for us rows 4g and 4g + 1 of 32, and 4g +
  // 2 and 4g + 3 for the next; steps t and t + 4 are 2t and 2t + 1.
  const int warp = threadIdx.x / kWarp, g = threadIdx.x % kWarp / 4, t = threadIdx.x % 4;
  const int row = warp % (kRows / kWarpRows) * kWarpRows + 4 * g;
  const int column = warp / (kRows / kWarpRows) * kWarpColumns;
  const auto load = [&](Operands& to, int stage, int step) {
    const float* of_a = stages + stage * kStage + (step + 2 * t) * kPitchOfA + row;
    const float* of_b = stages + stage * kStage + kDepth * kPitchOfA + (column + g) * kPitchOfB + step + 2 * t;
#pragma unroll
    for (int i = 0; i < kRowBlocks; i += 2)
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const float4 four = *(const float4*)(of_a + odd * kPitchOfA + i * 16);
        to.values[i][2 * odd] = four.x;
        to.values[i][2 * odd + 1] = four.y;
        to.values[i + 1][2 * odd] = four.z;
        to.values[i + 1][2 * odd + 1] = four.w;
      }
#pragma unroll
    for (int j = 0; j < kColumnBlocks; ++j) {
      const float2 two = *(const float2*)(of_b + j * 8 * kPitchOfB);
      to.weights[j][0] = two.x;
      to.weights[j][1] = two.y;
    }
  };

#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    if (steps_left > 0) copy(stage);
    cp_async_commit();
  }
  cp_async_wait<kStages - 2>();
  __syncthreads();
  Operands fragments[2];
  load(fragments[0], 0, 0);

  constexpr int kUnrolled = kWhole ? kDepth / kSteps : 2;  // with guards more does not fit the registers
  typename Operands::Sums sums = {};
  int stage = 0, free_stage = kStages - 1;
#pragma unroll 1
  for (int first = 0; first < k; first += kDepth) {
    if (steps_left > 0) copy(free_stage);  // nobody reads it since the last barrier
    cp_async_commit();
    free_stage = stage;
    const int next = stage + 1 == kStages ? 0 : stage + 1;
#pragma unroll kUnrolled
    for (int step = 0; step < kDepth; step += kSteps) {
      const int now = step / kSteps % 2;
      if (step + kSteps < kDepth) {
        load(fragments[1 - now], stage, step + kSteps);
      } else {
        cp_async_wait<kStages - 2>();
        __syncthreads();
        load(fragments[1 - now], next, 0);  // after the last step nobody uses it
      }
      Product::add(sums, fragments[now]);
    }
    static_assert(kDepth / kSteps % 2 == 0, "the first fragments of a stage are fragments[0]");
    stage = next;
  }

#pragma unroll
  for (int j = 0; j < kColumnBlocks; ++j)
#pragma unroll
    for (int odd = 0; odd < 2; ++odd) {
      const int of_column = first_column + column + 8 * j + 2 * t + odd;
      if (of_column >= n) continue;
#pragma unroll
      for (int i = 0; i < kRowBlocks; i += 2) {
        const int of_row = first_row + row + i * 16;
        const size_t at = (size_t)of_column * m + of_row;
        const float four[4] = {sums[i][j][odd], sums[i][j][2 + odd], sums[i + 1][j][odd], sums[i + 1][j][2 + odd]};
        if constexpr (kWhole) {
          const float4 old = *(const float4*)(c + at);
          *(float4*)(d + at) = make_float4(alpha * four[0] + beta * old.x, alpha * four[1] + beta * old.y,
                                           alpha * four[2] + beta * old.z, alpha * four[3] + beta * old.w);
        } else {
#pragma unroll
          for (int e = 0; e < 4; ++e)
            if (of_row + e < m) d[at + e] = alpha * four[e] + beta * c[at + e];
        }
      }
    }
}

template <int kRows, int kColumns, int kDepth, int kStages, bool kWhole>
__global__ void __launch_bounds__(kRows / kWarpRows * (kColumns / RoundedProduct::kWarpColumns) * kWarp)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ d,
         int m, int n, int k, float alpha, float beta) {
  multiply<RoundedProduct, kRows, kColumns, kDepth, kStages, kWhole>(a, b, c, d, m, n, k, alpha, beta);
}
