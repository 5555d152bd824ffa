// Idea: For a last wave that fills less than half of the GPU: its tiles are cut into narrow ones, of 64 or 128 columns in place of 256, so that
//     each cluster has at most one. The product of n = 3000 has 2.2 waves of wide tiles: two, and one of narrow tiles. Nothing goes through
//     scratch memory, as the parts of v07_equal_shares do, and no second launch adds them up.
// Bottleneck: At n = 3000 it takes 91 us, as v07_equal_shares does, where two waves and a third would take 78: rows of 6,000 bytes begin within
//     a line of 128, so that each row of a box is read from two lines of L2. Without clusters it takes 129 us there. In FP8, whose rows are
//     padded, it takes 57 us, and v04_clusters 61.
// Next: For few tiles, smaller ones, and copies without tensor maps.
// Source: Own work; the rest is that of v06_clusters.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "../../hopper_stores.cuh"
#include "../../hopper_low_precision.cuh"
#include "tiles.cuh"
#include "pad.cuh"

template <int columns, int stages, int buffers>
struct Memory {
  Stage<columns> stage[stages];
  Boxes<buffers> boxes;
};

// Asks for the stages of a tile, by a warp.
template <class Element, int down, int columns, int room, int stages>
__device__ __forceinline__ void load_tile(const Place<down, 1>& place, Stage<columns, room>* stage, Pipeline<stages>& pipeline,
                                          Ring<stages>& ring, const TensorMap& a, const TensorMap& b, int row, int column, int steps) {
  for (int step = 0; step < steps; ++step, ring.next()) {
    mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
    if (threadIdx.x == kConsumers)
      place.fetch(stage[ring.stage], a, b, row, column, step * kDepth<Element>, &pipeline.full[ring.stage]);
  }
}

// Tiles below `whole` are wide. Of the others each has kNarrow narrow ones, and a cluster one of these at most.
template <class Element, int columns, int stages, int buffers, int down, int narrow, bool boxed>
__global__ void __cluster_dims__(down, 1, 1) __launch_bounds__(kProducers + kConsumers, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap b_narrow,
         const __grid_constant__ TensorMap d, unsigned short* values, int m, int n, int k, int band, int whole) {
  constexpr int kNarrow = columns / narrow;
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<Memory<columns, stages, buffers>>(dynamic);
  auto* narrow_stage = reinterpret_cast<Stage<narrow, columns>*>(memory.stage);
  __shared__ Pipeline<stages> pipeline;
  if (threadIdx.x == kConsumers) prefetch_map(a), prefetch_map(b), prefetch_map(b_narrow), prefetch_map(d);
  pipeline.init(Place<down, 1>::kReleases);
  if constexpr (down > 1) cluster_meet();

  const int steps = steps_of<Element>(k), cluster = blockIdx.x / down, clusters = gridDim.x / down;
  const bool has_narrow = cluster < (tiles_of<columns, down, 1>(m, n) - whole) * kNarrow;
  const Place<down, 1> place;
  int row, column;
  Ring<stages> ring;
  const auto place_narrow = [&] {
    place.template tile<columns>(whole + cluster / kNarrow, band, m, n, row, column);
    column += cluster % kNarrow * narrow;
  };

  if (threadIdx.x >= kConsumers) {
    give_registers<40>();
    if (threadIdx.x < kConsumers + 32) {
      for (int tile = cluster; tile < whole; tile += clusters) {
        place.template tile<columns>(tile, band, m, n, row, column);
        load_tile<Element>(place, memory.stage, pipeline, ring, a, b, row, column, steps);
      }
      if (has_narrow) {
        place_narrow();
        load_tile<Element>(place, narrow_stage, pipeline, ring, a, b_narrow, row, column, steps);
      }
    }
  } else {
    take_registers<232>();
    const auto release = [&](int of) { place.release(pipeline, of); };
    for (int tile = cluster; tile < whole; tile += clusters) {
      float sums[columns / 2];
      multiply_tile<Element, columns>(sums, steps, memory.stage, pipeline, ring, threadIdx.x / 128, release);
      place.template tile<columns>(tile, band, m, n, row, column);
      if constexpr (boxed)
        stage_tile<typename Element::Result>(sums, memory.boxes, d, row, column, m, n);
      else
        store_tile<typename Element::Result>(sums, values, row, column, m, n);
    }
    if (has_narrow) {
      float sums[narrow / 2];
      multiply_tile<Element, narrow>(sums, steps, narrow_stage, pipeline, ring, threadIdx.x / 128, release);
      place_narrow();
      if constexpr (boxed)
        stage_tile<typename Element::Result>(sums, memory.boxes, d, row, column, m, n);
      else
        store_tile<typename Element::Result>(sums, values, row, column, m, n);
    }
    if (boxed && threadIdx.x % 32 == 0) tma_store_wait_read<0>();  // shared memory is there until the TMA has read it
  }
  if constexpr (down > 1) cluster_meet();  // before a block ends, no other writes to its shared memory any more
}
