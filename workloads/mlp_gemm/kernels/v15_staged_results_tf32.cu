// Idea: The way out of v12_wgmma_tf32 keeps the tensor cores waiting: a tile's 128 KB of C come in, and its 128 KB of D go out, by accesses of
//     4 bytes. Here C comes by TMA into the stages of the pipeline, behind the last steps of a tile. The consumers write D over it, each thread
//     over the elements that it read, without bank conflicts. A second warp of the producers has the TMA store D, and frees the stage. No
//     consumer waits for memory.
// Bottleneck: The tensor cores, and the power that they draw. On an H100 without any way out, n = 4096 takes 342 us and n = 8192 3028 us; with it
//     373 and 3101. At n = 1024 there are 32 tiles for 132 multiprocessors, and tiles of 64 columns (v12_wgmma_tf32) are faster.
// Next: Nothing that we know of. Tiles of 128 columns take 1.3 times the time at n = 2048. A hint that L2 need not keep C and D gains nothing.
// Source: Own work; PTX ISA, cp.async.bulk.tensor from shared to global memory.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_stores.cuh"
#include "wgmma_tile.cuh"
#include "tf32_product.cuh"
#include "cluster_tiles.cuh"
#include "staged_boxes.cuh"

// Blocks of a cluster have tiles one below the other and fetch a share of the columns of B each, as in v14_shared_columns_tf32. C is a tensor
// map for the stages, and `c_values` for L2, at the pitch that the TMA takes.
template <int columns, int stages, int blocks>
__global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(kProducers + kConsumers, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap c,
         const __grid_constant__ TensorMap d, const float* c_values, int m, int n, int k, float alpha, float beta) {
  constexpr int kConsumerWarps = kConsumers / 32;
  constexpr int kAhead = 48;  // steps before the end of a tile when L2 is asked for C
  using Part = Parts<columns>;
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
  pipeline.init(blocks * kConsumerWarps, kConsumerWarps);  // `split`: the consumers have written D into a stage
  if constexpr (blocks > 1) cluster_sync();

  const int rank = blocks > 1 ? cluster_rank() : 0, clusters = gridDim.x / blocks, first = blockIdx.x / blocks;
  const int tiles = tiles_of_clusters<columns, blocks>(m, n), steps = steps_of(k);

  if (threadIdx.x < kProducers) {
    give_registers<40>();
    if (threadIdx.x < 32) {  // loads
      Ring<stages> ring;
      for (int tile = first; tile < tiles; tile += clusters) {
        int row, column;
        place_in_cluster<columns, blocks>(tile, rank, m, n, row, column);
        for (int step = 0; step < steps; ++step, ring.next()) {
          mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
          if (threadIdx.x == 0) fetch_share<blocks>(stage[ring.stage], a, b, row, column, step, rank, &pipeline.full[ring.stage]);
          const int of_c = step - max(0, steps - kAhead);
          if (of_c >= 0) prefetch_tile<columns>(c_values, row, column, (m + 3) / 4 * 4, n, of_c);
        }
        for (int part = 0; part < Part::kCount; ++part, ring.next()) {
          Mbarrier* full = &pipeline.full[ring.stage];
          mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
          if (threadIdx.x > 0) continue;
          mbarrier_arrive_expect(full, Part::bytes(part));
          Part::for_each_box(part, stage[ring.stage],
                             [&](float* box, int down, int across) { tma_load(box, c, row + down, column + across, full); });
        }
      }
    } else if (threadIdx.x < 64) {  // stores
      int position = 0;             // steps and parts so far
      unsigned parities = 0;        // of `split`, a bit a stage
      for (int tile = first; tile < tiles; tile += clusters) {
        int row, column;
        place_in_cluster<columns, blocks>(tile, rank, m, n, row, column);
        position += steps;
        for (int part = 0; part < Part::kCount; ++part, ++position) {
          const int at = position % stages;
          mbarrier_wait(&pipeline.split[at], parities >> at & 1);
          parities ^= 1u << at;
          if (threadIdx.x == 32) {
            Part::for_each_box(part, stage[at], [&](const float* box, int down, int across) {
              if (row + down < m && column + across < n) tma_store(d, row + down, column + across, box);
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
    const BoxShare share(thread);
    const auto release = [&](int of_stage) { release_share<blocks>(pipeline, of_stage, rank); };
    Ring<stages> ring;
    for (int tile = first; tile < tiles; tile += clusters) {
      float sums[columns / 2];
      multiply_tile<columns>(sums, steps, stage, pipeline, ring, fragments, release);
#pragma unroll
      for (int part = 0; part < Part::kCount; ++part, ring.next()) {
        mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
#pragma unroll
        for (int across = 0; across < Part::kColumns; across += kBox) {
          const int column = part * Part::kColumns + across;
          if (column < columns) share.replace(Part::box(stage[ring.stage], thread / 64, across / kBox), sums + column / 2, alpha, beta);
        }
        fence_proxy_async();
        __syncwarp();
        if (threadIdx.x % 32 == 0) mbarrier_arrive(&pipeline.split[ring.stage]);
      }
    }
  }
  if constexpr (blocks > 1) cluster_sync();  // before a block ends, no other writes to its shared memory any more
}

// An array without the padding at the ends of its rows.
__global__ void crop(const float* in, float* out, int rows, int columns, int pitch) {
  const int element = blockIdx.x * blockDim.x + threadIdx.x, column = element % pitch;
  if (element < rows * pitch && column < columns) out[(size_t)(element / pitch) * columns + column] = in[element];
}
