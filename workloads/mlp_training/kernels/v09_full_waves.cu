// Idea: The products of v04_fused in larger tiles: 128 hidden units by 112 inputs, which 784 is a multiple of, or by 128 samples. A thread has
//     8 x 14 or 8 x 8 sums, its next operands come out of shared memory while these are multiplied, and tiles are cut along k into just so
//     many parts that their blocks fill all multiprocessors to the end. Sigmoid and slices are the output layer's, whose blocks compute a
//     part of all small gradients while the activations are in registers, and whose next samples come while it computes these.
// Bottleneck: The registers' ports. By the machine code for sm_90 a multiply-add in eight to ten reads two registers of one bank, or three. On an
//     H200 8192 samples take 0.60 ms, 0.86 of the rate of multiply-adds whose operands are all in registers. A small batch has
//     fewer tiles than that pays for: 100 samples take 44 us, by v04_fused 29.
// Next: Tiles of 8 x 16 sums are slower: 0.62 ms.
// Source: Own work; tiers of tiles and the order of the sums as in v07_warp_tile of mlp_gemm.

#include "../../ptx.cuh"
#include "hidden_sums.cuh"

constexpr int kDepth = 16;  // steps of the sum in a stage
constexpr int kStages = 3;
constexpr int kLaneRows = 8, kLaneColumns = 4;  // lanes of a warp stand 8 x 4
constexpr int kThreadRows = 8, kRowsApart = 32;  // a thread's rows are two fours
constexpr int kWarpsDown = kRows / (kLaneRows * kThreadRows);

extern __shared__ float4 tiles[];

// A times B along steps [first, last) of the sum. A's row m of step k is a[k * rows + m]; B's column n of step k is b[n * pitch + k], or,
// where kAcross, b[k * pitch + n]. A thread has 8 rows by kThreadColumns columns of a tile, in pieces of 4 x 4, and 4 x 2 if it must be.
template <int kThreadColumns, int kWarpsAcross, bool kAcross>
struct Product {
  static constexpr int kThreads = 32 * kWarpsDown * kWarpsAcross;
  static constexpr int kColumns = kWarpsAcross * kLaneColumns * kThreadColumns;
  // Copied along k, 8 steps by 4 columns a warp: steps lie an odd number of fours apart, so that 32 floats go to 32 banks.
  static constexpr int kPitch = kColumns + (kAcross ? 0 : 4);
  static constexpr int kStage = kDepth * (kRows + kPitch);
  static constexpr int kFours = kThreadColumns / 4;
  static_assert(kThreadColumns % 4 == 0 || kThreadColumns % 4 == 2, "pieces of four, and of two");

  const float* a;
  const float* b;
  int rows, columns, pitch, steps;         // steps from the next copy on
  int first_row, first_column;             // of the tile
  int row, column, last_column;            // of the thread's first four and of its last two, within the tile
  float sums[kThreadColumns][kThreadRows];

  __device__ __forceinline__ Product(const float* a, const float* b, int rows, int columns, int pitch, int first_row, int first_column,
                                     int first, int last)
      : rows(rows), columns(columns), pitch(pitch), steps(last - first), first_row(first_row), first_column(first_column), sums{} {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int of_warp = warp / kWarpsDown * kLaneColumns * kThreadColumns;
    row = warp % kWarpsDown * kLaneRows * kThreadRows + lane % kLaneRows * 4;
    column = of_warp + lane / kLaneRows * 4;
    last_column = of_warp + kFours * kLaneColumns * 4 + lane / kLaneRows * 2;
    this->a = a + (size_t)(first + a_step()) * rows + first_row + a_row();
    this->b = kAcross ? b + (size_t)(first + b_step()) * pitch + first_column + b_column()
                      : b + (size_t)(first_column + b_column()) * pitch + first + b_step();
  }

  // Within the tile, the column of the thread's j-th sum.
  __device__ __forceinline__ int column_of(int j) const {
    return j / 4 < kFours ? column + j / 4 * kLaneColumns * 4 + j % 4 : last_column + j % 4;
  }

  // What a thread copies: of A, and of B across, fours of every kStepsOf-th step; of B along k, a float of every 8th step and of every
  // kColumnsApart-th column.
  static constexpr int kVectorsOfA = kRows / 4, kStepsOfA = kThreads / kVectorsOfA;
  static constexpr int kVectorsOfB = kColumns / 4, kStepsOfB = kThreads / kVectorsOfB;
  static constexpr int kWarpsAlong = kDepth / 8, kColumnsApart = kThreads / 32 / kWarpsAlong * 4;
  static_assert(kDepth % kStepsOfA == 0 && kDepth % kStepsOfB == 0 && kColumns % kColumnsApart == 0, "whole copies");
  static __device__ __forceinline__ int a_row() { return threadIdx.x % kVectorsOfA * 4; }
  static __device__ __forceinline__ int a_step() { return threadIdx.x / kVectorsOfA; }
  static __device__ __forceinline__ int b_column() {
    return kAcross ? threadIdx.x % kVectorsOfB * 4 : threadIdx.x / 32 / kWarpsAlong * 4 + threadIdx.x % 32 / 8;
  }
  static __device__ __forceinline__ int b_step() {
    return kAcross ? threadIdx.x / kVectorsOfB : threadIdx.x / 32 % kWarpsAlong * 8 + threadIdx.x % 8;
  }

  // Starts the copies of the next stage. What lies outside is not read and becomes zero.
  __device__ __forceinline__ void copy(float* stage) {
    float* to_a = stage + a_step() * kRows + a_row();
    const bool has_row = first_row + a_row() < rows;
#pragma unroll
    for (int i = 0; i < kDepth; i += kStepsOfA) cp_async<16>(to_a + i * kRows, a + (size_t)i * rows, has_row && a_step() + i < steps);
    float* to_b = stage + kDepth * kRows + b_step() * kPitch + b_column();
    const int columns_left = columns - first_column - b_column();
    if constexpr (kAcross) {
      if (kThreads % kVectorsOfB == 0 || threadIdx.x < kStepsOfB * kVectorsOfB)
#pragma unroll
        for (int i = 0; i < kDepth; i += kStepsOfB)
          cp_async<16>(to_b + i * kPitch, b + (size_t)i * pitch, 0 < columns_left && b_step() + i < steps);
    } else {
#pragma unroll
      for (int i = 0; i < kColumns; i += kColumnsApart)
        cp_async<4>(to_b + i, b + (size_t)i * pitch, i < columns_left && b_step() < steps);
    }
    a += (size_t)kDepth * rows;
    b += kAcross ? (size_t)kDepth * pitch : kDepth;
    steps -= kDepth;
  }

  // Calls finish(column, row, four sums) for each four rows of a column.
  template <class Finish>
  __device__ __forceinline__ void compute(Finish finish) {
    float* const stages = (float*)tiles;
    alignas(16) float values[2][kThreadRows], weights[2][(kThreadColumns + 3) / 4 * 4];
    const auto load = [&](int fragment, const float* stage, int k) {
      const float* of_a = stage + k * kRows + row;
      const float* of_b = stage + kDepth * kRows + k * kPitch;
      *(float4*)&values[fragment][0] = *(const float4*)of_a;
      *(float4*)&values[fragment][4] = *(const float4*)(of_a + kRowsApart);
#pragma unroll
      for (int j = 0; j < 4 * kFours; j += 4) *(float4*)&weights[fragment][j] = *(const float4*)(of_b + column + j * kLaneColumns);
      if constexpr (kThreadColumns % 4 == 2) *(float2*)&weights[fragment][4 * kFours] = *(const float2*)(of_b + last_column);
    };

    int left = (steps + kDepth - 1) / kDepth;
#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) {
      if (steps > 0) copy(stages + stage * kStage);
      cp_async_commit();
    }
    cp_async_wait<kStages - 2>();
    __syncthreads();
    load(0, stages, 0);

    const float* stage = stages;
    float* free = stages + (kStages - 1) * kStage;  // nobody reads it since the last barrier
#pragma unroll 1
    for (; left > 0; --left) {
      if (steps > 0) copy(free);
      cp_async_commit();
      free = (float*)stage;
      const float* next = stage == stages + (kStages - 1) * kStage ? stages : stage + kStage;
#pragma unroll
      for (int k = 0; k < kDepth; ++k) {
        if (k + 1 < kDepth) {
          load((k + 1) % 2, stage, k + 1);
        } else {
          cp_async_wait<kStages - 2>();
          __syncthreads();
          load(0, next, 0);  // after the last step nobody uses it
        }
#pragma unroll
        for (int j = 0; j < kThreadColumns; ++j)
#pragma unroll
          for (int turn = 0; turn < kThreadRows; ++turn) {
            const int i = j % 2 ? kThreadRows - 1 - turn : turn;  // to and fro: a neighbour shares an operand
            sums[j][i] = fmaf(values[k % 2][i], weights[k % 2][j], sums[j][i]);
          }
      }
      stage = next;
    }
#pragma unroll
    for (int j = 0; j < kThreadColumns; ++j) {
      const int n = first_column + column_of(j);
      if (n >= columns) continue;
#pragma unroll
      for (int i = 0; i < kThreadRows; i += 4) {
        const int m = first_row + row + i / 4 * kRowsApart;
        if (m < rows) finish(n, m, make_float4(sums[j][i], sums[j][i + 1], sums[j][i + 2], sums[j][i + 3]));
      }
    }
  }
};

// The tiles that a block has a share of: calls product_of(tile's number, slice, first stage, last stage) for each.
template <class ProductOf>
__device__ __forceinline__ void walk_share(int tiles, Shares shares, ProductOf product_of) {
  const int last = min((int)(blockIdx.x + 1) * shares.share, tiles * shares.span);
#pragma unroll 1
  for (int at = blockIdx.x * shares.share; at < last;) {
    const int tile = at / shares.span, begin = at % shares.span, end = min(begin + last - at, shares.span);
    product_of(tile, (int)blockIdx.x - shares.first_block(tile), begin, end);
    at += end - begin;
    __syncthreads();  // the next tile's copies overwrite what the slowest thread still reads
  }
}

// z1[slice] = a slice of x w1 + b1. Tiles: of neighbouring hidden units, then of the next samples.
template <int kThreadColumns, int kWarpsAcross, int kBlocks>
__global__ void __launch_bounds__(32 * kWarpsDown * kWarpsAcross, kBlocks)
    forward_hidden(const float* __restrict__ x, const float* __restrict__ w1, const float* __restrict__ b1, float* __restrict__ z1, int batch,
                   int inputs, int hidden, int share, int span) {
  using Tile = Product<kThreadColumns, kWarpsAcross, false>;
  const int down = (hidden + kRows - 1) / kRows, tiles = down * ((batch + Tile::kColumns - 1) / Tile::kColumns);
  walk_share(tiles, Shares{share, span}, [&](int tile, int slice, int begin, int end) {
    Tile product(w1, x, hidden, batch, inputs, tile % down * kRows, tile / down * Tile::kColumns, begin * kDepth, min(end * kDepth, inputs));
    float* to = z1 + (size_t)slice * batch * hidden;
    product.compute([&](int n, int h, float4 sum) {
      const float4 bias = slice == 0 ? *(const float4*)(b1 + h) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      *(float4*)(to + (size_t)n * hidden + h) = make_float4(sum.x + bias.x, sum.y + bias.y, sum.z + bias.z, sum.w + bias.w);
    });
  });
}

// slices[slice] = a slice of rate * x^T dz1. Tiles: of neighbouring hidden units, then of the next inputs.
template <int kThreadColumns, int kWarpsAcross, int kBlocks>
__global__ void __launch_bounds__(32 * kWarpsDown * kWarpsAcross, kBlocks)
    backward_weights(const float* __restrict__ x, const float* __restrict__ dz1, float* __restrict__ slices, int batch, int inputs, int hidden,
                     float rate, int share, int span) {
  using Tile = Product<kThreadColumns, kWarpsAcross, true>;
  const int down = (hidden + kRows - 1) / kRows, tiles = down * ((inputs + Tile::kColumns - 1) / Tile::kColumns);
  walk_share(tiles, Shares{share, span}, [&](int tile, int slice, int begin, int end) {
    Tile product(dz1, x, hidden, inputs, inputs, tile % down * kRows, tile / down * Tile::kColumns, begin * kDepth, min(end * kDepth, batch));
    float* to = slices + (size_t)slice * inputs * hidden;
    product.compute([&](int d, int h, float4 sum) {
      *(float4*)(to + (size_t)d * hidden + h) = make_float4(rate * sum.x, rate * sum.y, rate * sum.z, rate * sum.w);
    });
  });
}
