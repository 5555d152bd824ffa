// Idea: The blocks of a cluster compute a tile of v07_warp_tile together, each a part of k. Each adds up a share of the tile through the
//     shared memory of the others. The parts of v08_split_sums go through scratch memory and a second launch. A block loads its share of C
//     before it waits for the others.
// Bottleneck: The registers' ports, as for v07_warp_tile. Every tile is split. At n = 1024 two blocks a tile are 128 blocks for 132
//     multiprocessors: on an H200 they take 53.7 us, where v08_split_sums takes 56.6. At n = 4096 tiles of 128 x 64 take 2642 us, and
//     v17_turned_columns takes 2617. Small products are a chain of latencies, which small tiles in four parts shorten: tiles of 32 x 32 take
//     3.6 us at n = 128 and 5.6 us at n = 256, where v08_split_sums takes 8.6 and 10.1.
// Next: For many tiles: copies that take no issue slots from the multiply-adds.
// Source: Own work; parts along k are the "split-K" of NVIDIA CUTLASS.

#include "v07_warp_tile.cu"
#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"

// A cluster of `parts` blocks computes a tile, each block `part_depth` steps along k.
template <int kRows, int kColumns, int kDepth, int kThreadRows, int kThreadColumns, int kWarpsDown, int kStages, int kBlocks,
          bool kWhole, int parts>
__global__ void __cluster_dims__(parts, 1, 1)
    __launch_bounds__(kRows / kThreadRows * (kColumns / kThreadColumns), kWhole ? kBlocks : 1)
        gemm_cluster(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ d,
                     int m, int n, int k, float alpha, float beta, int part_depth) {
  using Tile = BlockTile<kRows, kColumns, kDepth, kThreadRows, kThreadColumns, kWarpsDown, kStages, kWhole>;
  constexpr int kFours = kThreadRows * kThreadColumns / kFour, kShare = kFours / parts;  // of a thread; that this block adds up
  float4* sums = tiles + threadIdx.x;
  const int part = cluster_rank();
  Tile tile(blockIdx.x / parts, m, n);
  tile.multiply(a, b, m, n, k, min(k, part * part_depth), min(k, (part + 1) * part_depth));

  __syncthreads();  // nobody reads the stages any more
#pragma unroll
  for (int j = 0; j < kThreadColumns; ++j)
#pragma unroll
    for (int i = 0; i < kThreadRows; i += kFour) {
      const float* four = &tile.sums[j][i];
      sums[(j * kThreadRows + i) / kFour * Tile::kThreads] =
          make_float4(alpha * four[0], alpha * four[1], alpha * four[2], alpha * four[3]);
    }

  // Where four elements of this thread lie.
  const auto place = [&](int four, int& row, int& column) {
    const int i = four % (kThreadRows / kFour), j = four / (kThreadRows / kFour);
    row = tile.first_row + tile.row + i * Tile::kRowsApart;
    column = tile.first_column + tile.column + j % kFour + j / kFour * Tile::kColumnsApart;
    return (size_t)column * m + row;
  };
  float old[kShare][kFour];
#pragma unroll
  for (int i = 0; i < kShare; ++i) {
    int row, column;
    const size_t at = place(part * kShare + i, row, column);
    if constexpr (kWhole) {
      *(float4*)old[i] = *(const float4*)(c + at);
    } else {
#pragma unroll
      for (int e = 0; e < kFour; ++e) old[i][e] = row + e < m && column < n ? c[at + e] : 0;
    }
  }
  cluster_sync();  // the sums of all blocks are there
#pragma unroll
  for (int i = 0; i < kShare; ++i) {
    float4 sum = *of_block(sums + (part * kShare + i) * Tile::kThreads, 0);
#pragma unroll
    for (int other = 1; other < parts; ++other) {
      const float4 value = *of_block(sums + (part * kShare + i) * Tile::kThreads, other);
      sum = make_float4(sum.x + value.x, sum.y + value.y, sum.z + value.z, sum.w + value.w);
    }
    const float result[kFour] = {sum.x + beta * old[i][0], sum.y + beta * old[i][1], sum.z + beta * old[i][2],
                                 sum.w + beta * old[i][3]};
    int row, column;
    const size_t at = place(part * kShare + i, row, column);
    if constexpr (kWhole) {
      *(float4*)(d + at) = make_float4(result[0], result[1], result[2], result[3]);
    } else {
#pragma unroll
      for (int e = 0; e < kFour; ++e)
        if (row + e < m && column < n) d[at + e] = result[e];
    }
  }
  cluster_sync();  // before a block ends, no other reads its shared memory any more
}
