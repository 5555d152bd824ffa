// Idea: For tiles that do not fill the multiprocessors: after the waves of v14_shared_columns_tf32 that are full, the tiles left over lie behind
//     one another along k, as one line of steps, and each cluster of `blocks` blocks has an equal share of it, wherever tiles end. Where that
//     makes parts little longer, each tile has equally many equal parts: clusters side by side then ask L2 for the same rows and columns at a
//     time. A block leaves its sums of a part of a tile in scratch memory, and a second kernel adds the parts of each tile in their order.
//     Where all waves are full, or shares would save less than they cost, this is v14_shared_columns_tf32, or v12_wgmma_tf32 for one block.
//     Operands that the TMA does not take as they lie are padded in one launch.
// Bottleneck: L2, it seems. On an H200 shape=700x5000x1300 takes 53 us in clusters of two and 57 in single blocks (columns=256). cuBLASLt takes
//     61 us, and 45 if A was transposed beforehand. shape=1337x2209x901 takes 48 us where v14_shared_columns_tf32 takes 75, and cuBLASLt 70.
//     At n = 2048 nothing is cut, and v15_staged_results_tf32 is faster.
// Next: A tensor map that takes four rows of an operand as one has a pitch that is a multiple of 16 bytes, however long rows are: only the rows
//     beyond the last whole four need a copy.
// Source: Own work; shares of a line of tiles are the "stream-K" of M. Osama et al., 2023.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "wgmma_tile.cuh"
#include "tf32_product.cuh"
#include "cluster_tiles.cuh"
#include "line.cuh"
#include "pad_operands.cuh"

constexpr int kFour = 4;

// Blocks of a cluster have tiles one below the other and fetch a share of the columns of B each, as in v14_shared_columns_tf32.
template <int columns, int stages, int blocks>
__global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(kProducers + kConsumers, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const float* c, float* d, float4* parts, int m, int n,
         int k, float alpha, float beta, int whole, int share, int span) {
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
  pipeline.init(blocks * kConsumers / 32);  // a stage is empty when all blocks have read what each writes
  if constexpr (blocks > 1) cluster_sync();

  const int rank = blocks > 1 ? cluster_rank() : 0, cluster = blockIdx.x / blocks;
  const int tiles = tiles_of_clusters<columns, blocks>(m, n);
  const Line line{whole, share, span};
  Pieces pieces(line, tiles, steps_of(k) / 2, cluster, gridDim.x / blocks);
  Piece piece;
  Ring<stages> ring;

  if (threadIdx.x < kProducers) {
    give_registers<40>();
    if (threadIdx.x >= 32) return;  // the barrier of a cluster waits for threads that have not ended
    while (pieces.next(piece)) {
      int row, column;
      place_in_cluster<columns, blocks>(piece.tile, rank, m, n, row, column);
      for (int step = 2 * piece.begin; step < 2 * piece.end; ++step, ring.next()) {
        mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
        if (threadIdx.x == 0) fetch_share<blocks>(stage[ring.stage], a, b, row, column, step, rank, &pipeline.full[ring.stage]);
        prefetch_tile<columns>(c, row, column, m, n, step);
      }
    }
  } else {
    take_registers<232>();
    const int thread = threadIdx.x - kProducers;
    const WgmmaFragments fragments(thread);
    const auto release = [&](int of_stage) { release_share<blocks>(pipeline, of_stage, rank); };
    while (pieces.next(piece)) {
      float sums[columns / 2];
      multiply_tile<columns>(sums, 2 * (piece.end - piece.begin), stage, pipeline, ring, fragments, release);
      int row, column;
      place_in_cluster<columns, blocks>(piece.tile, rank, m, n, row, column);
      if (piece.tile < whole) {
        store_tile(sums, c, d, row, column, fragments, m, n, alpha, beta);
      } else if (row < m) {  // a thread's fours lie apart, so that a warp writes 512 bytes in one go
        float4* to = parts + (size_t)(line.place(cluster, piece.tile) * blocks + rank) * (kRows * columns / kFour) + thread;
#pragma unroll
        for (int i = 0; i < columns / 2; i += kFour)
          if (column + fragments.across(i) < n) to[i / kFour * kConsumers] = make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]);
      }
    }
  }
  if constexpr (blocks > 1) cluster_sync();  // before a block ends, no other writes to its shared memory any more
}

// D = alpha * sum of the parts + beta * C for the tiles of the line: blockIdx.x a block's tile, blockIdx.y one of the fours of each thread.
template <int columns, int blocks>
__global__ void __launch_bounds__(kConsumers)
    add_parts(const float4* __restrict__ parts, const float* __restrict__ c, float* __restrict__ d, int m, int n, float alpha, float beta,
              int whole, int share, int span) {
  constexpr int kFours = kRows * columns / kFour;  // of a part
  const Line line{whole, share, span};
  const int tile = whole + blockIdx.x / blocks, rank = blockIdx.x % blocks, count = line.parts(tile);
  const WgmmaFragments fragments(threadIdx.x);
  int row, column;
  place_in_cluster<columns, blocks>(tile, rank, m, n, row, column);
  row += fragments.row, column += fragments.across(kFour * blockIdx.y);
  if (row >= m || column >= n) return;
  const auto place = [&](int i) { return (long long)(column + i % 2) * m + row + fragments.down(i); };
  const auto inside = [&](int i) { return row + fragments.down(i) < m && column + i % 2 < n; };
  float old[kFour];
#pragma unroll
  for (int i = 0; i < kFour; ++i) old[i] = inside(i) ? c[place(i)] : 0.0f;

  const int first = line.place(line.first_block(tile), tile) * blocks + rank;
  const float4* from = parts + (size_t)first * kFours + blockIdx.y * kConsumers + threadIdx.x;
  float4 sum = *from;
#pragma unroll 4
  for (int part = 1; part < count; ++part) {
    const float4 value = from[(size_t)part * blocks * kFours];
    sum = make_float4(sum.x + value.x, sum.y + value.y, sum.z + value.z, sum.w + value.w);
  }
  const float sums[kFour] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
  for (int i = 0; i < kFour; ++i)
    if (inside(i)) d[place(i)] = alpha * sums[i] + beta * old[i];
}
