// Idea: B is turned first, so that the TMA brings a stage of A and of B with one request each. The copies of v07_warp_tile turn B on its way,
//     4 bytes at a time: they take issue slots and turns of shared memory from the loads of the multiply-adds. A warp arrives at a barrier
//     when it has read a stage. Half a stage later the first thread waits for all warps and asks for the next one. The block never waits
//     as a whole.
// Bottleneck: The registers' ports, as for v07_warp_tile: in the machine code for sm_90a one multiply-add in 11 has three reads, against one
//     in eight; with 8 x 16 elements a thread it is one in 22. On an H200 the turn takes 34 of 2615 us at n = 4096, and 150 of 20955 us at
//     n = 8192. At n = 4096 the tile of 128 x 256 takes 2712 us: it fills the multiprocessors in four waves, the last of them not full.
// Next: Nothing that we know of. A tile of 256 x 128 takes 2788 us at n = 4096, and 8 x 16 elements a thread in a tile of 128 x 128 2736 us.
// Source: Own work; PTX ISA, cp.async.bulk.tensor.

#include "v07_warp_tile.cu"
#include "../../hopper.cuh"
#include "pad.cuh"

constexpr int kTurned = 32;  // rows and columns that a block of `turn` turns

// B, column after column -> row after row, at a pitch that the TMA takes, filled up with zeros. Threads 32 x 8.
__global__ void turn(const float* __restrict__ b, float* __restrict__ turned, int n, int k, int pitch) {
  __shared__ float tile[kTurned][kTurned + 1];
  const int step = blockIdx.x * kTurned, column = blockIdx.y * kTurned;
#pragma unroll
  for (int i = threadIdx.y; i < kTurned; i += 8)
    if (step + threadIdx.x < k && column + i < n) tile[i][threadIdx.x] = b[(size_t)(column + i) * k + step + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = threadIdx.y; i < kTurned; i += 8)
    if (step + i < k && column + threadIdx.x < pitch)
      turned[(size_t)(step + i) * pitch + column + threadIdx.x] = column + threadIdx.x < n ? tile[threadIdx.x][i] : 0;
}

// A block a tile. kApart: how far apart the rows are whose multiply-adds follow one another.
template <int kRows, int kColumns, int kDepth, int kThreadRows, int kThreadColumns, int kWarpsDown, int kStages, int kBlocks,
          bool kWhole, int kApart>
__global__ void __launch_bounds__(kRows / kThreadRows * (kColumns / kThreadColumns), kBlocks)
    gemm_turned(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const float* __restrict__ c,
                float* __restrict__ d, int m, int n, int k, float alpha, float beta) {
  using Tile = BlockTile<kRows, kColumns, kDepth, kThreadRows, kThreadColumns, kWarpsDown, kStages, kWhole>;
  struct Stage {
    float a[kDepth][kRows], b[kDepth][kColumns];
  };
  extern __shared__ __align__(128) char memory[];
  auto* stages = reinterpret_cast<Stage*>(memory);
  __shared__ Pipeline<kStages> pipeline;
  pipeline.init(Tile::kWarps);

  const Tile tile(blockIdx.x, m, n);  // for the place of this thread
  const int count = (k + kDepth - 1) / kDepth;  // stages in all
  const auto fetch = [&](int number, int to) {
    Mbarrier* full = &pipeline.full[to];
    mbarrier_arrive_expect(full, sizeof(Stage));
    tma_load(stages[to].a, a, tile.first_row, number * kDepth, full);
    tma_load(stages[to].b, b, tile.first_column, number * kDepth, full);
  };
  if (threadIdx.x == 0)
    for (int i = 0; i < min(kStages, count); ++i) fetch(i, i);

  float values[2][kThreadRows], weights[2][kThreadColumns];
  const float *of_a = &stages->a[0][tile.row], *of_b = &stages->b[0][tile.column];
  const auto load = [&](int fragment, int p) {
#pragma unroll
    for (int i = 0; i < kThreadRows; i += kFour)
      *(float4*)&values[fragment][i] = *(const float4*)(of_a + p * kRows + i / kFour * Tile::kRowsApart);
#pragma unroll
    for (int j = 0; j < kThreadColumns; j += kFour)
      *(float4*)&weights[fragment][j] = *(const float4*)(of_b + p * kColumns + j / kFour * Tile::kColumnsApart);
  };
  mbarrier_wait(&pipeline.full[0], 0);
  load(0, 0);

  float sums[kThreadColumns][kThreadRows] = {};  // as tile.sums they get registers of one bank 1.1 to 1.4 times as often
  Ring<kStages> ring, before;
#pragma unroll 1
  for (int number = 0; number < count; ++number) {
#pragma unroll
    for (int p = 0; p < kDepth; ++p) {
      if (p == kDepth / 2 && threadIdx.x == 0 && number > 0 && number - 1 + kStages < count) {
        mbarrier_wait(&pipeline.empty[before.stage], before.parity);
        fetch(number - 1 + kStages, before.stage);
      }
      if (p + 1 < kDepth) {
        load((p + 1) % 2, p + 1);
      } else {
        pipeline.release(ring.stage);
        before = ring;
        ring.next();
        if (number + 1 < count) mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
        of_a = &stages[ring.stage].a[0][tile.row], of_b = &stages[ring.stage].b[0][tile.column];
        load(0, 0);  // after the last step nobody uses it
      }
#pragma unroll
      for (int j = 0; j < kThreadColumns; ++j)
#pragma unroll
        for (int t = 0; t < kThreadRows; ++t) {
          const int turn = j % 2 ? kThreadRows - 1 - t : t;  // down one column and up the next
          const int i = turn * kApart % kThreadRows + turn * kApart / kThreadRows;
          sums[j][i] = fmaf(values[p % 2][i], weights[p % 2][j], sums[j][i]);
        }
    }
  }

#pragma unroll
  for (int j = 0; j < kThreadColumns; ++j) {
    const int column = tile.first_column + tile.column + j % kFour + j / kFour * Tile::kColumnsApart;
    if (column >= n) continue;
#pragma unroll
    for (int i = 0; i < kThreadRows; i += kFour) {
      const int row = tile.first_row + tile.row + i / kFour * Tile::kRowsApart;
      if (row >= m) continue;  // never where tiles are whole; without it the sums get such registers too
      const size_t at = (size_t)column * m + row;
      const float* four = &sums[j][i];
      if constexpr (kWhole) {
        const float4 old = *(const float4*)(c + at);
        *(float4*)(d + at) = make_float4(alpha * four[0] + beta * old.x, alpha * four[1] + beta * old.y,
                                         alpha * four[2] + beta * old.z, alpha * four[3] + beta * old.w);
      } else {
#pragma unroll
        for (int e = 0; e < kFour; ++e)
          if (row + e < m) d[at + e] = alpha * four[e] + beta * c[at + e];
      }
    }
  }
}
