// Idea: Three tiers of tiles. A block's tile in shared memory, filled by asynchronous copies that pass the registers by, several
//     steps ahead; a warp's tile as square as it gets, its lanes 8 x 4, so that a vector of A is 8 neighbouring fours, one row of banks;
//     a thread's tile in registers, whose next fragments are loaded while this step is multiplied. One barrier a step. Blocks
//     walk over D in columns eight tiles wide, so that those that run together share rows of A and columns of B in L2.
// Bottleneck: The register file: a multiply-add reads three registers, and a multiprocessor's banks hand out two a clock for each
//     that it could issue; the order of the loops lets one operand be reused. Below 2048 there are too few tiles for all multiprocessors,
//     and in general the last wave of tiles does not fill them.
// Next: Split the sums of tiles, where there are too few.
// Source: Own work; the tiers are those of NVIDIA CUTLASS, "Efficient GEMM in CUDA".

#include "../../ptx.cuh"

constexpr int kWarp = 32;
constexpr int kLaneRows = 8;  // lanes of a warp stand 8 x 4
constexpr int kLaneColumns = kWarp / kLaneRows;
constexpr int kFour = 4;
constexpr int kGroup = 8;  // tiles side by side that blocks walk along before they turn

extern __shared__ float4 tiles[];

// A block's tile is kRows x kColumns, a thread's kThreadRows x kThreadColumns, in pieces of 4 x 4. kWarpsDown warps stand one
// below the other. kVector: columns of A, B, C and D are multiples of four floats long, so that fours are whole and aligned.
template <int kRows, int kColumns, int kDepth, int kThreadRows, int kThreadColumns, int kWarpsDown, int kStages, int kBlocks,
          bool kVector>
__global__ void __launch_bounds__(kRows / kThreadRows * (kColumns / kThreadColumns), kVector ? kBlocks : 1)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ d,
         int m, int n, int k, float alpha, float beta) {
  constexpr int kThreads = kRows / kThreadRows * (kColumns / kThreadColumns);
  constexpr int kWarps = kThreads / kWarp;
  constexpr int kWarpsAcross = kWarps / kWarpsDown;
  static_assert(kWarpsDown * kLaneRows * kThreadRows == kRows && kWarpsAcross * kLaneColumns * kThreadColumns == kColumns,
                "warps cover the tile");
  // A stage holds [step along k][row] of A, then [step along k][column] of B. B comes along k, 8 steps by 4 columns a warp, and is
  // turned on its way: steps lie four banks apart and columns one, so that these 32 floats go to 32 banks.
  constexpr int kPitch = kColumns + 4;
  constexpr int kStage = kDepth * (kRows + kPitch);
  float* const stages = (float*)tiles;

  const int thread = threadIdx.x, lane = thread % kWarp, warp = thread / kWarp;

  // Tiles are walked along kGroup columns of tiles side by side, row after row.
  const int tile_rows = (m + kRows - 1) / kRows, tile_columns = (n + kColumns - 1) / kColumns;
  const int group = blockIdx.x / (kGroup * tile_rows), in_group = blockIdx.x % (kGroup * tile_rows);
  const int width = min(kGroup, tile_columns - group * kGroup);
  const int first_row = in_group / width * kRows;
  const int first_column = (group * kGroup + in_group % width) * kColumns;

  // This thread's copies.
  constexpr int kCopyBytes = kVector ? 16 : 4, kCopy = kCopyBytes / 4;
  constexpr int kThreadsARow = kRows / kCopy;  // threads that copy one step of A
  constexpr int kCopiesOfA = kDepth * kThreadsARow / kThreads, kStepsApart = kDepth / kCopiesOfA;
  static_assert(kCopiesOfA * kThreads == kDepth * kThreadsARow && kStepsApart * kCopiesOfA == kDepth, "whole steps of A");
  constexpr int kWarpsAStep = kDepth / 8;  // warps that share columns of B, 8 steps each
  constexpr int kCopiesOfB = kDepth * kColumns / kThreads, kColumnsApart = kWarps / kWarpsAStep * 4;
  static_assert(kWarps % kWarpsAStep == 0 && kColumnsApart * kCopiesOfB == kColumns, "whole columns of B");
  const int a_row = thread % kThreadsARow * kCopy, a_step = thread / kThreadsARow;
  const int b_step = warp % kWarpsAStep * 8 + lane % 8, b_column = warp / kWarpsAStep * 4 + lane / 8;
  const float* from_a = a + (size_t)a_step * m + first_row + a_row;
  const float* from_b = b + (size_t)(first_column + b_column) * k + b_step;
  const bool row_exists = first_row + a_row < m;
  const int columns_left = n - first_column - b_column;
  int steps_left = k;

  const auto copy = [&](int stage) {
    float* to_a = stages + stage * kStage + a_step * kRows + a_row;
    float* to_b = stages + stage * kStage + kDepth * kRows + b_step * kPitch + b_column;
#pragma unroll
    for (int i = 0; i < kCopiesOfA; ++i) {
      const bool exists = row_exists && a_step + i * kStepsApart < steps_left;
      cp_async<kCopyBytes>(to_a + i * kStepsApart * kRows, exists ? from_a + (size_t)(i * kStepsApart) * m : a, exists);
    }
#pragma unroll
    for (int i = 0; i < kCopiesOfB; ++i) {
      const bool exists = i * kColumnsApart < columns_left && b_step < steps_left;
      cp_async<4>(to_b + i * kColumnsApart, exists ? from_b + (size_t)(i * kColumnsApart) * k : b, exists);
    }
    from_a += (size_t)kDepth * m;
    from_b += kDepth;
    steps_left -= kDepth;
  };

  // What it computes: fours of rows 32 apart, fours of columns 16 apart.
  constexpr int kRowsApart = kLaneRows * kFour, kColumnsOfWarpApart = kLaneColumns * kFour;
  const int row = warp % kWarpsDown * kLaneRows * kThreadRows + lane % kLaneRows * kFour;
  const int column = warp / kWarpsDown * kLaneColumns * kThreadColumns + lane / kLaneRows * kFour;
  float values[2][kThreadRows], weights[2][kThreadColumns];
  const auto load = [&](int to, int stage, int p) {
    const float* of_a = stages + stage * kStage + p * kRows + row;
    const float* of_b = stages + stage * kStage + kDepth * kRows + p * kPitch + column;
#pragma unroll
    for (int i = 0; i < kThreadRows; i += kFour) *(float4*)&values[to][i] = *(const float4*)(of_a + i / kFour * kRowsApart);
#pragma unroll
    for (int j = 0; j < kThreadColumns; j += kFour)
      *(float4*)&weights[to][j] = *(const float4*)(of_b + j / kFour * kColumnsOfWarpApart);
  };

#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    copy(stage);
    cp_async_commit();
  }
  cp_async_wait<kStages - 2>();
  __syncthreads();
  load(0, 0, 0);

  float sums[kThreadColumns][kThreadRows] = {};
  int stage = 0, free_stage = kStages - 1;
#pragma unroll 1
  for (int first = 0; first < k; first += kDepth) {
    copy(free_stage);  // nobody reads it since the last barrier; beyond k it is filled with zeros
    cp_async_commit();
    free_stage = stage;
    const int next = stage + 1 == kStages ? 0 : stage + 1;
#pragma unroll
    for (int p = 0; p < kDepth; ++p) {
      if (p + 1 < kDepth) {
        load((p + 1) % 2, stage, p + 1);
      } else {
        cp_async_wait<kStages - 2>();
        __syncthreads();
        load(0, next, 0);
      }
#pragma unroll
      for (int j = 0; j < kThreadColumns; ++j)
#pragma unroll
        for (int i = 0; i < kThreadRows; ++i)
          sums[j][i] = fmaf(values[p % 2][i], weights[p % 2][j], sums[j][i]);
    }
    stage = next;
  }
  cp_async_wait<0>();

#pragma unroll
  for (int j = 0; j < kThreadColumns; ++j) {
    const int of_column = first_column + column + j % kFour + j / kFour * kColumnsOfWarpApart;
    if (of_column >= n) continue;
#pragma unroll
    for (int i = 0; i < kThreadRows; i += kFour) {
      const int of_row = first_row + row + i / kFour * kRowsApart;
      const size_t at = (size_t)of_column * m + of_row;
      const float* four = &sums[j][i];
      if constexpr (kVector) {
        if (of_row >= m) continue;
        const float4 old = *(const float4*)(c + at);
        *(float4*)(d + at) = make_float4(alpha * four[0] + beta * old.x, alpha * four[1] + beta * old.y,
                                         alpha * four[2] + beta * old.z, alpha * four[3] + beta * old.w);
      } else {
#pragma unroll
        for (int e = 0; e < kFour; ++e)
          if (of_row + e < m) d[at + e] = alpha * four[e] + beta * c[at + e];
      }
    }
  }
}
