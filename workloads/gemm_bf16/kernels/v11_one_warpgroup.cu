// Idea: v08_early_loads with tiles of 64 x 128 for one warpgroup, which keeps the tensor cores busy on its own. Two with 64 x 64 each read B twice:
//     for as many products this one reads shared memory a quarter less.
// Bottleneck: Shared memory, it seems, which the TMA writes as often as the tensor cores read it: a step took as long at n = 512 as at n = 1024,
//     where four times as many blocks ask L2. On an H200 n = 1024 takes 6.6 us, v08_early_loads 7.0 and cuBLASLt 6.3. Three ways that
//     gain nothing there: pairs of blocks that fetch rows of A for each other (7.3), pairs that add up parts of k of 128 x 128 (7.4), and
//     results straight from registers to memory (7.2).
// Next: For a last wave that is not full, rows of a tile that begin at the same place of a line.
// Source: Own work.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "../../hopper_stores.cuh"
#include "../../hopper_low_precision.cuh"
#include "tiles.cuh"
#include "small_tiles.cuh"
#include "pad.cuh"

constexpr int kLoaders = 32;

template <int columns, int stages>
struct Memory {
  SmallStage<columns> stage[stages];
  Boxes<1> boxes;
};

template <class Element, int columns, int stages, bool boxed>
__global__ void __launch_bounds__(kThreads + kLoaders, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap d, unsigned short* values,
         int m, int n, int k) {
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<Memory<columns, stages>>(dynamic);
  __shared__ Pipeline<stages> pipeline;
  const int steps = steps_of<Element>(k), row = blockIdx.x * kSmallRows, column = blockIdx.y * columns;
  const auto fetch = [&](int of, int step) {
    auto& stage = memory.stage[of];
    mbarrier_arrive_expect(&pipeline.full[of], sizeof stage);
    tma_load(stage.a, a, step * kDepth<Element>, row, &pipeline.full[of]);
    tma_load(stage.b, b, step * kDepth<Element>, column, &pipeline.full[of]);
  };

  if (threadIdx.x == kThreads) {
    prefetch_map(a), prefetch_map(b);
    for (int stage = 0; stage < stages; ++stage) {
      mbarrier_init(&pipeline.full[stage], 1);
      mbarrier_init(&pipeline.empty[stage], kThreads / 32);
    }
    fence_mbarrier_init();
    for (int step = 0; step < min(steps, stages); ++step) fetch(step, step);
    prefetch_map(d);
  }
  __syncthreads();

  Ring<stages> ring;
  if (threadIdx.x >= kThreads) {
    for (int step = stages; step < steps; ++step, ring.next()) {
      mbarrier_wait(&pipeline.empty[ring.stage], ring.parity);
      if (threadIdx.x == kThreads) fetch(ring.stage, step);
    }
    return;
  }

  float sums[columns / 2];
  int previous = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
    start_product<Element, columns>(sums, memory.stage[ring.stage], step > 0);
    wgmma_wait<1>();
    if (step > 0) pipeline.release(previous);
    previous = ring.stage;
    ring.next();
  }
  wgmma_wait<0>();
  wgmma_keep(sums);

  if constexpr (boxed) {
    stage_tile<typename Element::Result>(sums, memory.boxes, d, row, column, m, n);
    if (threadIdx.x % 32 == 0) tma_store_wait_read<0>();  // shared memory is there until the TMA has read it
  } else {
    store_tile<typename Element::Result>(sums, values, row, column, m, n);
  }
}
