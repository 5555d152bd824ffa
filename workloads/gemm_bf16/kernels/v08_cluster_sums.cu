// Idea: For few tiles, where what a launch costs besides its steps decides. The thread that loads makes the barriers, and asks for the first stages
//     before the other threads know of them; descriptors are asked for before anything else. The blocks of a cluster compute a tile together,
//     each a part of k, and each adds up a share of its rows: sums come to it by stores that count on its barrier (st.async), so that nobody
//     waits for the whole cluster.
// Bottleneck: TODO
// Next: The launch before could end while this one begins (programmatic dependent launch), in a program that has one.
// Source: Own work; parts along k are the "split-K" of NVIDIA CUTLASS. PTX ISA, st.async and prefetch.tensormap.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "../../hopper_stores.cuh"
#include "../../hopper_low_precision.cuh"
#include "tiles.cuh"
#include "pad.cuh"

constexpr int kLanes = 32;
constexpr int kThreads = kConsumers + kLanes;  // a warp loads; sums of this size need no registers of others

template <int columns, int stages, int buffers, int parts>
struct Memory {
  static constexpr int kAdders = kConsumers / parts;  // threads of a block that add up

  Stage<columns> stage[stages];
  Boxes<buffers> boxes;
  float4 sums[parts > 1 ? parts - 1 : 1][columns / 8][kAdders];  // of the other blocks: of the next one by number, then of the one after it
};

template <class Element, int columns, int stages, int buffers, int parts, bool boxed>
__global__ void __cluster_dims__(parts, 1, 1) __launch_bounds__(kThreads, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap d, unsigned short* values,
         int m, int n, int k, int band) {
  using Shared = Memory<columns, stages, buffers, parts>;
  constexpr int kAdders = Shared::kAdders;
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<Shared>(dynamic);
  __shared__ Pipeline<stages> pipeline;
  __shared__ Mbarrier summed;

  const int part = parts > 1 ? cluster_rank() : 0, steps = (steps_of<Element>(k) + parts - 1) / parts;
  const Place<1, 1> place;
  int row, column;
  place.tile<columns>(blockIdx.x / parts, band, m, n, row, column);
  const auto fetch = [&](int stage, int step) {
    place.fetch(memory.stage[stage], a, b, row, column, (part * steps + step) * kDepth<Element>, &pipeline.full[stage]);
  };

  if (threadIdx.x == kConsumers) {
    prefetch_map(a), prefetch_map(b);
    if constexpr (parts > 1) mbarrier_init(&summed, 1);
    for (int stage = 0; stage < stages; ++stage) mbarrier_init(&pipeline.full[stage], 1), mbarrier_init(&pipeline.empty[stage], kConsumers / kLanes);
    fence_mbarrier_init();
    if constexpr (parts > 1) mbarrier_arrive_expect(&summed, sizeof memory.sums);
    for (int step = 0; step < min(steps, stages); ++step) fetch(step, step);
    if constexpr (boxed) prefetch_map(d);
  }
  __syncthreads();
  if constexpr (parts > 1) cluster_arrive_relaxed();

  Ring<stages> ring;
  if (threadIdx.x >= kConsumers) {
    for (int step = stages; step < steps; ++step, ring.next()) {
      mbarrier_wait(&pipeline.empty[ring.stage], ring.parity);
      if (threadIdx.x == kConsumers) fetch(ring.stage, step);
    }
    if constexpr (parts > 1) cluster_wait();
    return;
  }

  float sums[columns / 2];
  multiply_tile<Element, columns>(sums, steps, memory.stage, pipeline, ring, threadIdx.x / 128, [&](int of) { pipeline.release(of); });

  if constexpr (parts > 1) {
    cluster_wait();  // the other blocks have their barriers
    const int to = threadIdx.x / kAdders, adder = threadIdx.x % kAdders;
    if (to != part) {
      float4* there = &memory.sums[(part - to + parts) % parts - 1][0][adder];
#pragma unroll
      for (int i = 0; i < columns / 2; i += 4)
        store_remote(there + i / 4 * kAdders, make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]), &summed, to);
      return;
    }
    mbarrier_wait_of_cluster(&summed, 0);
#pragma unroll
    for (int other = 0; other < parts - 1; ++other)
#pragma unroll
      for (int i = 0; i < columns / 2; i += 4) {
        const float4 four = memory.sums[other][i / 4][adder];
        sums[i] += four.x, sums[i + 1] += four.y, sums[i + 2] += four.z, sums[i + 3] += four.w;
      }
  }
  if constexpr (boxed) {
    stage_tile<typename Element::Result>(sums, memory.boxes, d, row, column, m, n);
    if (threadIdx.x % kLanes == 0) tma_store_wait_read<0>();  // shared memory is there until the TMA has read it
  } else {
    store_tile<typename Element::Result>(sums, values, row, column, m, n);
  }
}
