// Idea: The two blocks of a cluster have tiles one below the other, which need the same columns of B. Each fetches half of them, and the TMA writes
//     it into the shared memory of both (multicast): a block asks L2 for 32 KB a stage in place of 48.
// Bottleneck: The tensor cores, as before. L2 does not limit v12_wgmma_tf32, so that fewer bytes from it gain nothing: on an H200 the time is
//     the same at n = 2048 and 4096, and 3 % longer at 8192. It is longer at small sizes too, where the blocks of a cluster wait for each other.
// Next: Nothing that we know of. Clusters of 4 take nearly twice the time: 30 of them run at once, which is 120 of 132 multiprocessors.
// Source: PTX ISA, cp.async.bulk.tensor with .multicast::cluster; clusters alike in NVIDIA's CUTLASS 3.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "wgmma_tile.cuh"
#include "tf32_product.cuh"

// First row and column of the tiles of a cluster, by their number: bands as those of place_tile.
template <int columns, int blocks>
__device__ __forceinline__ void place_tiles(int number, int m, int n, int& row, int& column) {
  constexpr int kTiles = kBand / blocks, kClusterRows = blocks * kRows;
  const int down = (m + kClusterRows - 1) / kClusterRows, across = (n + columns - 1) / columns;
  const int band = number / (kTiles * across), within = number % (kTiles * across);
  const int height = min(kTiles, down - band * kTiles);
  row = (band * kTiles + within % height) * kClusterRows;
  column = within / height * columns;
}

template <int columns, int stages, int blocks>
__global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(kProducers + kConsumers, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const float* c, float* d, int m, int n,
         int k, float alpha, float beta) {
  constexpr int kClusterRows = blocks * kRows;
  constexpr int kShare = columns / blocks;  // of B that a block fetches
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
  pipeline.init(blocks * kConsumers / 32);  // a stage is empty when all blocks have read what each writes
  cluster_sync();

  const int rank = cluster_rank(), clusters = gridDim.x / blocks;
  const int tiles = ((m + kClusterRows - 1) / kClusterRows) * ((n + columns - 1) / columns);
  const int steps = steps_of(k);
  Ring<stages> ring;

  if (threadIdx.x < kProducers) {
    give_registers<40>();
    for (int tile = blockIdx.x / blocks; threadIdx.x < 32 && tile < tiles; tile += clusters) {
      int row, column;
      place_tiles<columns, blocks>(tile, m, n, row, column);
      row += rank * kRows;
      for (int step = 0; step < steps; ++step, ring.next()) {
        auto& now = stage[ring.stage];
        Mbarrier* full = &pipeline.full[ring.stage];
        mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
        if (threadIdx.x == 0) {
          mbarrier_arrive_expect(full, sizeof now);
          for (int box = 0; box < kRows / 32; ++box) tma_load(now.a + box * 32 * kDepth, a, row + box * 32, step * kDepth, full);
          tma_load_multicast(now.b + rank * kShare * kDepth, b, step * kDepth, column + rank * kShare, full, (1 << blocks) - 1);
        }
        prefetch_tile<columns>(c, row, column, m, n, step);
      }
    }
  } else {
    take_registers<232>();
    const WgmmaFragments fragments(threadIdx.x - kProducers);
    const auto release = [&](int of_stage) {
      pipeline.release(of_stage);
      if (threadIdx.x % 32 == 0)
        for (int other = 1; other < blocks; ++other) mbarrier_arrive_remote(&pipeline.empty[of_stage], (rank + other) % blocks);
    };
    for (int tile = blockIdx.x / blocks; tile < tiles; tile += clusters) {
      float sums[columns / 2];
      multiply_tile<columns>(sums, steps, stage, pipeline, ring, fragments, release);
      int row, column;
      place_tiles<columns, blocks>(tile, m, n, row, column);
      store_tile(sums, c, d, row + rank * kRows, column, fragments, m, n, alpha, beta);
    }
  }
  cluster_sync();  // before a block ends, no other writes to its shared memory any more
}
