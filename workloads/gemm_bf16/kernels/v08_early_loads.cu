// Idea: For few tiles, where what a launch costs besides its steps decides: a block a tile, and nothing before the first loads but their barriers.
//     The thread that loads makes them, and asks for all stages before the other threads know of them. A warp loads, and no registers are handed
//     over: tiles of 128 x 64 need none. Clusters gain nothing here: their blocks have to wait for each other before the first load.
// Bottleneck: At n = 256 what every launch costs: the first bytes from memory and the way out. At n = 1024 L2, for each step of 128 x 64 x 64
//     products brings 24 KB to a block.
// Next: Narrow tiles in the last wave, where tiles are many.
// Source: Own work; the rest is that of v05_staged_results.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "../../hopper_stores.cuh"
#include "../../hopper_low_precision.cuh"
#include "tiles.cuh"
#include "pad.cuh"

constexpr int kLoaders = 32;

template <int columns, int stages, int buffers>
struct Memory {
  Stage<columns> stage[stages];
  Boxes<buffers> boxes;
};

template <class Element, int columns, int stages, int buffers, bool boxed>
__global__ void __launch_bounds__(kConsumers + kLoaders, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap d, unsigned short* values,
         int m, int n, int k, int band) {
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<Memory<columns, stages, buffers>>(dynamic);
  __shared__ Pipeline<stages> pipeline;
  const int steps = steps_of<Element>(k);
  const Place<1, 1> place;
  int row, column;
  place.tile<columns>(blockIdx.x, band, m, n, row, column);
  const auto fetch = [&](int stage, int step) {
    place.fetch(memory.stage[stage], a, b, row, column, step * kDepth<Element>, &pipeline.full[stage]);
  };

  if (threadIdx.x == kConsumers) {
    prefetch_map(a), prefetch_map(b);
    for (int stage = 0; stage < stages; ++stage) {
      mbarrier_init(&pipeline.full[stage], 1);
      mbarrier_init(&pipeline.empty[stage], kConsumers / 32);
    }
    fence_mbarrier_init();
    for (int step = 0; step < min(steps, stages); ++step) fetch(step, step);
    prefetch_map(d);
  }
  __syncthreads();

  Ring<stages> ring;
  if (threadIdx.x >= kConsumers) {
    for (int step = stages; step < steps; ++step, ring.next()) {
      mbarrier_wait(&pipeline.empty[ring.stage], ring.parity);
      if (threadIdx.x == kConsumers) fetch(ring.stage, step);
    }
    return;
  }

  float sums[columns / 2];
  multiply_tile<Element, columns>(sums, steps, memory.stage, pipeline, ring, threadIdx.x / 128, [&](int of) { pipeline.release(of); });
  if constexpr (boxed) {
    stage_tile<typename Element::Result>(sums, memory.boxes, d, row, column, m, n);
    if (threadIdx.x % 32 == 0) tma_store_wait_read<0>();  // shared memory is there until the TMA has read it
  } else {
    store_tile<typename Element::Result>(sums, values, row, column, m, n);
  }
}
