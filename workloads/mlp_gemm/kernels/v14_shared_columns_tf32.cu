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
#include "cluster_tiles.cuh"

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
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
  pipeline.init(blocks * kConsumers / 32);  // a stage is empty when all blocks have read what each writes
  cluster_sync();

  const int rank = cluster_rank(), clusters = gridDim.x / blocks;
  const int tiles = tiles_of_clusters<columns, blocks>(m, n), steps = steps_of(k);
  Ring<stages> ring;

  if (threadIdx.x < kProducers) {
    give_registers<40>();
    for (int tile = blockIdx.x / blocks; threadIdx.x < 32 && tile < tiles; tile += clusters) {
      int row, column;
      place_tiles<columns, blocks>(tile, m, n, row, column);
      row += rank * kRows;
      for (int step = 0; step < steps; ++step, ring.next()) {
        mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
        if (threadIdx.x == 0) fetch_share<blocks>(stage[ring.stage], a, b, row, column, step, rank, &pipeline.full[ring.stage]);
        prefetch_tile<columns>(c, row, column, m, n, step);
      }
    }
  } else {
    take_registers<232>();
    const WgmmaFragments fragments(threadIdx.x - kProducers);
    const auto release = [&](int of_stage) { release_share<blocks>(pipeline, of_stage, rank); };
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
