// What the rungs of TF32 share whose clusters have tiles one below the other: each block fetches a share of the columns of B for all. `blocks` is 1
// where there are no clusters. After hopper_clusters.cuh, wgmma_tile.cuh and tf32_product.cuh.

// How many tiles of clusters cover D.
template <int columns, int blocks>
__device__ __forceinline__ int tiles_of_clusters(int m, int n) {
  constexpr int kClusterRows = blocks * kRows;
  return ((m + kClusterRows - 1) / kClusterRows) * ((n + columns - 1) / columns);
}

// First row and column of a block's tile by the number of its cluster's tile, as if a cluster were a block of a matrix with fewer rows.
template <int columns, int blocks>
__device__ __forceinline__ void place_in_cluster(int number, int rank, int m, int n, int& row, int& column) {
  place_tile<columns>(number, (m + blocks - 1) / blocks, n, row, column);
  row = row * blocks + rank * kRows;
}

// Asks for a stage: a block's rows of A, and its share of the columns of B, which go to all blocks.
template <int blocks, int columns>
__device__ __forceinline__ void fetch_share(Stage<columns>& stage, const TensorMap& a, const TensorMap& b, int row, int column, int step,
                                            int rank, Mbarrier* full) {
  constexpr int kShare = columns / blocks;
  mbarrier_arrive_expect(full, sizeof stage);
  for (int box = 0; box < kRows / 32; ++box) tma_load(stage.a + box * 32 * kDepth, a, row + box * 32, step * kDepth, full);
  if constexpr (blocks > 1)
    tma_load_multicast(stage.b + rank * kShare * kDepth, b, step * kDepth, column + rank * kShare, full, (1 << blocks) - 1);
  else
    tma_load(stage.b, b, step * kDepth, column, full);
}

// Arrives at the barrier of each other block that lies where `barrier` lies in this one.
template <int blocks>
__device__ __forceinline__ void arrive_at_others(Mbarrier* barrier, int rank) {
  for (int other = 1; other < blocks; ++other) mbarrier_arrive_remote(barrier, (rank + other) % blocks);
}

// Releases a stage that all blocks write into. Its barrier waits for the consumers of all.
template <int blocks, int stages>
__device__ __forceinline__ void release_share(Pipeline<stages>& pipeline, int stage, int rank) {
  pipeline.release(stage);
  if (threadIdx.x % 32 == 0) arrive_at_others<blocks>(&pipeline.empty[stage], rank);
}
