// Idea: Three tiers of tiles. A block's tile in shared memory, filled by asynchronous copies that pass the registers by,
//     several steps ahead; a warp's tile as square as it gets, its lanes 8 x 4, so that a vector of A is 8 neighbouring
//     fours, one row of banks; a thread's tile in registers, whose next fragments are loaded while these are multiplied. One
//     barrier a step. Blocks walk over D in columns eight tiles wide, so that those that run together share rows of A and
//     columns of B in L2.
// Bottleneck: The registers' ports: a multiply-add reads three registers where two banks give one each a clock, so it must
//     find one operand in the reuse cache. Hence the order, down one column and up the next: in the machine code for sm_90 it
//     leaves one multiply-add in eight with three reads, against one in four where every column goes down. Below 2048 there
//     are too few tiles for all multiprocessors, and in general the last wave of tiles does not fill them.
// Next: Split the sums of tiles, where there are too few.
// Source: Own work; the tiers are those of NVIDIA CUTLASS, "Efficient GEMM in CUDA"; banks and reuse cache as in R. Huerta et
//     al., "Analyzing modern NVIDIA GPU cores", 2025.

#include "../../ptx.cuh"

constexpr int kWarp = 32;
constexpr int kLaneRows = 8;  // lanes of a warp stand 8 x 4
constexpr int kLaneColumns = kWarp / kLaneRows;
constexpr int kFour = 4;
constexpr int kGroup = 8;  // tiles side by side that blocks walk along before they turn

extern __shared__ float4 tiles[];

// A block's tile of kRows x kColumns, a thread's of kThreadRows x kThreadColumns in pieces of 4 x 4. kWarpsDown warps stand
// one below the other. kWhole: m, n and k are multiples of the tile, so that nothing needs a guard and fours are aligned.
template <int kRows, int kColumns, int kDepth, int kThreadRows, int kThreadColumns, int kWarpsDown, int kStages, bool kWhole>
struct BlockTile {
  static constexpr int kThreads = kRows / kThreadRows * (kColumns / kThreadColumns);
  static constexpr int kWarps = kThreads / kWarp;
  static constexpr int kRowsApart = kLaneRows * kFour;  // from a thread's four rows to its next
  static constexpr int kColumnsApart = kLaneColumns * kFour;
  static_assert(kWarpsDown * kLaneRows * kThreadRows == kRows &&
                    kWarps / kWarpsDown * kLaneColumns * kThreadColumns == kColumns,
                "warps cover the tile");
  // A stage holds [step along k][row] of A, then [step along k][column] of B. B comes along k, 8 steps by 4 columns a warp,
  // and is turned on its way: steps lie four banks apart and columns one, so that these 32 floats go to 32 banks.
  static constexpr int kPitch = kColumns + 4;
  static constexpr int kStage = kDepth * (kRows + kPitch);

  int first_row, first_column;  // of the tile
  int row, column;              // of the thread's first element, within the tile
  float sums[kThreadColumns][kThreadRows];

  // Tile number `tile` of D: the tiles are walked along kGroup columns of tiles side by side, row after row.
  __device__ __forceinline__ BlockTile(int tile, int m, int n) : sums{} {
    const int tile_rows = (m + kRows - 1) / kRows, tile_columns = (n + kColumns - 1) / kColumns;
    const int group = tile / (kGroup * tile_rows), in_group = tile % (kGroup * tile_rows);
    const int width = min(kGroup, tile_columns - group * kGroup);
    first_row = in_group / width * kRows;
    first_column = (group * kGroup + in_group % width) * kColumns;
    row = threadIdx.x / kWarp % kWarpsDown * kLaneRows * kThreadRows + threadIdx.x % kLaneRows * kFour;
    column = threadIdx.x / kWarp / kWarpsDown * kLaneColumns * kThreadColumns + threadIdx.x % kWarp / kLaneRows * kFour;
  }

  // Adds the products of steps `from` to `to` along k to the sums.
  __device__ __forceinline__ void multiply(const float* __restrict__ a, const float* __restrict__ b, int m, int n, int k,
                                           int from, int to) {
    float* const stages = (float*)tiles;
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;

    // This thread's copies.
    constexpr int kCopy = kWhole ? kFour : 1;        // floats of A at a time
    constexpr int kThreadsAStep = kRows / kCopy;     // threads that copy one step of A
    constexpr int kCopiesOfA = kDepth * kThreadsAStep / kThreads, kStepsOfAApart = kDepth / kCopiesOfA;
    static_assert(kCopiesOfA * kThreads == kDepth * kThreadsAStep && kStepsOfAApart * kCopiesOfA == kDepth, "whole steps");
    constexpr int kWarpsAcrossSteps = kDepth / 8;    // warps that share columns of B, 8 steps each
    constexpr int kCopiesOfB = kDepth * kColumns / kThreads, kColumnsOfBApart = kWarps / kWarpsAcrossSteps * 4;
    static_assert(kWarps % kWarpsAcrossSteps == 0 && kColumnsOfBApart * kCopiesOfB == kColumns, "whole columns");
    const int a_row = threadIdx.x % kThreadsAStep * kCopy, a_step = threadIdx.x / kThreadsAStep;
    const int b_step = warp % kWarpsAcrossSteps * 8 + lane % 8, b_column = warp / kWarpsAcrossSteps * 4 + lane / 8;
    const float* from_a = a + (size_t)(from + a_step) * m + first_row + a_row;
    const float* from_b = b + (size_t)(first_column + b_column) * k + from + b_step;
    const bool row_exists = first_row + a_row < m;
    const int columns_left = n - first_column - b_column;
    int steps_left = to - from;
    const auto copy = [&](int stage) {
      float* to_a = stages + stage * kStage + a_step * kRows + a_row;
      float* to_b = stages + stage * kStage + kDepth * kRows + b_step * kPitch + b_column;
#pragma unroll
      for (int i = 0; i < kCopiesOfA; ++i) {
        const bool exists = kWhole || (row_exists && a_step + i * kStepsOfAApart < steps_left);
        const float* of_step = from_a + (size_t)(i * kStepsOfAApart) * m;
        cp_async<4 * kCopy>(to_a + i * kStepsOfAApart * kRows, exists ? of_step : a, exists);
      }
#pragma unroll
      for (int i = 0; i < kCopiesOfB; ++i) {
        const bool exists = kWhole || (i * kColumnsOfBApart < columns_left && b_step < steps_left);
        const float* of_column = from_b + (size_t)(i * kColumnsOfBApart) * k;
        cp_async<4>(to_b + i * kColumnsOfBApart, exists ? of_column : b, exists);
      }
      from_a += (size_t)kDepth * m;
      from_b += kDepth;
      steps_left -= kDepth;
    };

    float values[2][kThreadRows], weights[2][kThreadColumns];
    const auto load = [&](int fragment, int stage, int p) {
      const float* of_a = stages + stage * kStage + p * kRows + row;
      const float* of_b = stages + stage * kStage + kDepth * kRows + p * kPitch + column;
#pragma unroll
      for (int i = 0; i < kThreadRows; i += kFour)
        *(float4*)&values[fragment][i] = *(const float4*)(of_a + i / kFour * kRowsApart);
#pragma unroll
      for (int j = 0; j < kThreadColumns; j += kFour)
        *(float4*)&weights[fragment][j] = *(const float4*)(of_b + j / kFour * kColumnsApart);
    };

#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) {
      if (steps_left > 0) copy(stage);
      cp_async_commit();
    }
    cp_async_wait<kStages - 2>();
    __syncthreads();
    load(0, 0, 0);

    int stage = 0, free_stage = kStages - 1;
#pragma unroll 1
    for (int first = from; first < to; first += kDepth) {
      if (steps_left > 0) copy(free_stage);  // nobody reads it since the last barrier
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
          load(0, next, 0);  // after the last step nobody uses it
        }
#pragma unroll
        for (int j = 0; j < kThreadColumns; ++j)
#pragma unroll
          for (int turn = 0; turn < kThreadRows; ++turn) {
            const int i = j % 2 ? kThreadRows - 1 - turn : turn;
            sums[j][i] = fmaf(values[p % 2][i], weights[p % 2][j], sums[j][i]);
          }
      }
      stage = next;
    }
  }

  // d = alpha * sums + beta * c.
  __device__ __forceinline__ void store(const float* __restrict__ c, float* __restrict__ d, int m, int n, float alpha,
                                        float beta) const {
#pragma unroll
    for (int j = 0; j < kThreadColumns; ++j) {
      const int of_column = first_column + column + j % kFour + j / kFour * kColumnsApart;
      if (of_column >= n) continue;  // never where tiles are whole; without it all of C is loaded at once, into registers
#pragma unroll
      for (int i = 0; i < kThreadRows; i += kFour) {
        const int of_row = first_row + row + i / kFour * kRowsApart;
        const size_t at = (size_t)of_column * m + of_row;
        const float* four = &sums[j][i];
        if constexpr (kWhole) {
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
};

template <int kRows, int kColumns, int kDepth, int kThreadRows, int kThreadColumns, int kWarpsDown, int kStages, int kBlocks,
          bool kWhole>
__global__ void __launch_bounds__(kRows / kThreadRows * (kColumns / kThreadColumns), kWhole ? kBlocks : 1)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ d,
         int m, int n, int k, float alpha, float beta) {
  BlockTile<kRows, kColumns, kDepth, kThreadRows, kThreadColumns, kWarpsDown, kStages, kWhole> tile(blockIdx.x, m, n);
  tile.multiply(a, b, m, n, k, 0, k);
  tile.store(c, d, m, n, alpha, beta);
}
