// Idea: v19_equal_shares_tf32 with the way out of v15_staged_results_tf32: whole tiles of C and D go through the stages by the TMA, and only the
//     parts of cut tiles go from registers to scratch memory. Where the TMA does not take C and D as they lie, the way out is that of
//     v19_equal_shares_tf32. Launches after the first are early, and copies of operands have whole lines.
// Bottleneck: The tensor cores, and the power that they draw. On an H200 n = 3000 takes 166 us, v19_equal_shares_tf32 176 and cuBLASLt 187; n = 5000
//     takes 737 us, 780 and 787. At n = 6100 rows of A and B begin within a line of 128 bytes, and it takes as long as L2 gives lines: 1367 us,
//     where cuBLASLt takes 1340; without clusters 2163.
// Next: Fewer lines of A: 128 rows lie in 5 lines and are read from 8. Copies of 512 bytes without a tensor map (cp.async.bulk), one by each lane, took
//     1.2 to 1.3 times the time, since lanes ask one after another.
// Source: Own work.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_stores.cuh"
#include "../../hopper_early.cuh"
#include "wgmma_tile.cuh"
#include "tf32_product.cuh"
#include "cluster_tiles.cuh"
#include "staged_boxes.cuh"
#include "line.cuh"
#include "pad_lines.cuh"

constexpr int kFour = 4;

// As `gemm` of v15_staged_results_tf32. Tiles from `whole` on are cut: clusters leave sums of parts of them in `parts`. `boxed`: the TMA takes C and D,
// by the maps `of_c` and `of_d`.
template <int columns, int stages, int blocks, bool boxed>
__global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(kProducers + kConsumers, 1)
    gemm_shares(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap of_c,
                const __grid_constant__ TensorMap of_d, const float* c, float* d, float4* parts, int m, int n, int k, float alpha, float beta,
                int whole, int share, int span) {
  constexpr int kConsumerWarps = kConsumers / 32;
  constexpr int kAhead = 48;  // steps before the end of a tile when L2 is asked for C
  using Part = Parts<columns>;
  let_next_launch_start();
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
  pipeline.init(blocks * kConsumerWarps, kConsumerWarps);  // `split`: the consumers have written D into a stage
  if constexpr (blocks > 1) cluster_sync();

  const int rank = blocks > 1 ? cluster_rank() : 0, cluster = blockIdx.x / blocks;
  const Line line{whole, share, span};
  Pieces pieces(line, tiles_of_clusters<columns, blocks>(m, n), steps_of(k) / 2, cluster, gridDim.x / blocks);
  Piece piece;
  const auto is_boxed = [&] { return boxed && piece.tile < whole; };
  int row, column;

  if (threadIdx.x < kProducers) {
    give_registers<40>();
    if (threadIdx.x < 32) {  // loads
      wait_for_launch_before();  // which pads
      Ring<stages> ring;
      while (pieces.next(piece)) {
        place_in_cluster<columns, blocks>(piece.tile, rank, m, n, row, column);
        const int ahead = piece.tile < whole ? max(0, 2 * piece.end - kAhead) : 2 * piece.end;
        for (int step = 2 * piece.begin; step < 2 * piece.end; ++step, ring.next()) {
          mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
          if (threadIdx.x == 0) fetch_share<blocks>(stage[ring.stage], a, b, row, column, step, rank, &pipeline.full[ring.stage]);
          if (step >= ahead) prefetch_tile<columns>(c, row, column, m, n, step - ahead);
        }
        for (int part = 0; is_boxed() && part < Part::kCount; ++part, ring.next()) {
          Mbarrier* full = &pipeline.full[ring.stage];
          mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
          if (threadIdx.x > 0) continue;
          mbarrier_arrive_expect(full, Part::bytes(part));
          Part::for_each_box(part, stage[ring.stage],
                             [&](float* box, int down, int across) { tma_load(box, of_c, row + down, column + across, full); });
        }
      }
    } else if (threadIdx.x < 64) {  // stores
      int position = 0;             // steps and parts so far
      unsigned parities = 0;        // of `split`, a bit a stage
      while (pieces.next(piece)) {
        place_in_cluster<columns, blocks>(piece.tile, rank, m, n, row, column);
        position += 2 * (piece.end - piece.begin);
        for (int part = 0; is_boxed() && part < Part::kCount; ++part, ++position) {
          const int at = position % stages;
          mbarrier_wait(&pipeline.split[at], parities >> at & 1);
          parities ^= 1u << at;
          if (threadIdx.x == 32) {
            Part::for_each_box(part, stage[at], [&](const float* box, int down, int across) {
              if (row + down < m && column + across < n) tma_store(of_d, row + down, column + across, box);
            });
            tma_store_commit();
            tma_store_wait_read<0>();
          }
          __syncwarp();
          if (threadIdx.x % 32 < kConsumerWarps) {  // in place of the consumers, which release the stages of steps
            mbarrier_arrive(&pipeline.empty[at]);
            arrive_at_others<blocks>(&pipeline.empty[at], rank);
          }
        }
      }
    }
  } else {
    take_registers<232>();
    const int thread = threadIdx.x - kProducers;
    const WgmmaFragments fragments(thread);
    const BoxShare of_box(thread);
    const auto release = [&](int of_stage) { release_share<blocks>(pipeline, of_stage, rank); };
    Ring<stages> ring;
    while (pieces.next(piece)) {
      float sums[columns / 2];
      multiply_tile<columns>(sums, 2 * (piece.end - piece.begin), stage, pipeline, ring, fragments, release);
      if (piece.tile >= whole) {  // a thread's fours lie apart, so that a warp writes 512 bytes in one go
        float4* to = parts + (size_t)(line.place(cluster, piece.tile) * blocks + rank) * (kRows * columns / kFour) + thread;
#pragma unroll
        for (int i = 0; i < columns / 2; i += kFour) to[i / kFour * kConsumers] = make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]);
      } else if constexpr (boxed) {
#pragma unroll
        for (int part = 0; part < Part::kCount; ++part, ring.next()) {
          mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
#pragma unroll
          for (int across = 0; across < Part::kColumns; across += kBox) {
            const int of = part * Part::kColumns + across;
            if (of < columns) of_box.replace(Part::box(stage[ring.stage], thread / 64, across / kBox), sums + of / 2, alpha, beta);
          }
          fence_proxy_async();
          __syncwarp();
          if (threadIdx.x % 32 == 0) mbarrier_arrive(&pipeline.split[ring.stage]);
        }
      } else {
        place_in_cluster<columns, blocks>(piece.tile, rank, m, n, row, column);
        store_tile(sums, c, d, row, column, fragments, m, n, alpha, beta);
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

  wait_for_launch_before();
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
