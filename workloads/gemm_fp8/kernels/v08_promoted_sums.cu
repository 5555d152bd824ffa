// Idea: Sums that keep more bits. Hopper adds FP8 products with about 14 bits, so that long sums lose their last terms. Here the tensor cores add no
//     more than `every` stages of 128 products at a time; the sum is then added in float32 to one that each thread keeps. Both take registers,
//     so that tiles have 128 columns.
// Bottleneck: The additions, one for each element and `every` stages, while the tensor cores work for the other warpgroup at best; and tiles of half
//     the size, for which L2 brings a third more.
// Next: -
// Source: DeepSeek-V3 Technical Report, 2024, section 3.3.2; the kernel is that of `gemm_bf16` v05_staged_results.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "../../hopper_stores.cuh"
#include "../../hopper_low_precision.cuh"
#include "../../gemm_bf16/kernels/tiles.cuh"
#include "../../gemm_bf16/kernels/pad.cuh"

template <int columns, int stages, int buffers>
struct Memory {
  Stage<columns> stage[stages];
  Boxes<buffers> boxes;
};

// total = a * b of the stages that come next, for one of the warpgroups, `every` stages at a time. A stage is released as in multiply_tile.
template <class Element, int every, int columns, int stages>
__device__ __forceinline__ void multiply_promoted(float (&total)[columns / 2], int steps, const Stage<columns>* stage, Pipeline<stages>& pipeline,
                                                  Ring<stages>& ring, int warpgroup) {
  float sums[columns / 2];
#pragma unroll
  for (int i = 0; i < columns / 2; ++i) total[i] = 0.0f;
#pragma unroll 1
  for (int first = 0; first < steps; first += every) {
    int last = 0;
#pragma unroll
    for (int turn = 0; turn < every; ++turn) {
      if (first + turn >= steps) break;
      const auto& now = stage[ring.stage];
      mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
      const unsigned long long a = wgmma_operand(now.a + warpgroup * 64 * kRowBytes), b = wgmma_operand(now.b);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < 4; ++i) wgmma(Element{}, sums, a + 2 * i, b + 2 * i, turn + i > 0);
      wgmma_commit();
      wgmma_wait<1>();
      if (turn > 0) pipeline.release(last);
      last = ring.stage;
      ring.next();
    }
    wgmma_wait<0>();
    wgmma_keep(sums);
    pipeline.release(last);
#pragma unroll
    for (int i = 0; i < columns / 2; ++i) total[i] += sums[i];
  }
}

template <class Element, int columns, int stages, int buffers, int every, bool boxed>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap d, unsigned short* values,
         int m, int n, int k, int band) {
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<Memory<columns, stages, buffers>>(dynamic);
  __shared__ Pipeline<stages> pipeline;
  pipeline.init(kConsumers / 32);

  const int tiles = tiles_of<columns, 1, 1>(m, n), steps = steps_of<Element>(k);
  const Place<1, 1> place;
  int row, column;
  Ring<stages> ring;

  if (threadIdx.x >= kConsumers) {
    give_registers<40>();
    for (int tile = blockIdx.x; threadIdx.x < kConsumers + 32 && tile < tiles; tile += gridDim.x) {
      place.tile<columns>(tile, band, m, n, row, column);
      for (int step = 0; step < steps; ++step, ring.next()) {
        mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
        if (threadIdx.x == kConsumers)
          place.fetch(memory.stage[ring.stage], a, b, row, column, step * kDepth<Element>, &pipeline.full[ring.stage]);
      }
    }
  } else {
    take_registers<232>();
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      float total[columns / 2];
      multiply_promoted<Element, every, columns>(total, steps, memory.stage, pipeline, ring, threadIdx.x / 128);
      place.tile<columns>(tile, band, m, n, row, column);
      if constexpr (boxed)
        stage_tile<typename Element::Result>(total, memory.boxes, d, row, column, m, n);
      else
        store_tile<typename Element::Result>(total, values, row, column, m, n);
    }
    if (boxed && threadIdx.x % 32 == 0) tma_store_wait_read<0>();  // shared memory is there until the TMA has read it
  }
}
