// Idea: Each operand is its part of 10 bits and the rest: three products in place of one, the smallest first, have the error of
//     float32. A is split in the registers that it goes through anyway. Of B the tensor cores themselves cut off all but 10
//     bits, so that B as it lies is the first part; three warps beside the producer write the rest, stage by stage, into shared
//     memory. Every 32 steps the sums, which tensor cores cut off, are added up in float32.
// Bottleneck: The tensor cores: three products for one, and the pause in which sums are added; of two warpgroups one multiplies in the
//     other's pause.
// Next: -
// Source: H. Ootomo, R. Yokota, "Recovering single precision accuracy from Tensor Cores", 2022, for the three products and
//     the sums outside; the split of B on its way is own work.

#include "../../ptx.cuh"
#include "../../hopper.cuh"
#include "wgmma_tile.cuh"

constexpr int kConsumers = 256;
constexpr int kSplitters = 96;

template <int columns>
struct Stage {
  float a[kRows * kDepth];
  float b[columns * kDepth];
  unsigned rest[columns * kDepth];  // of b
};

template <int columns, int stages>
__global__ void __launch_bounds__(128 + kConsumers, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const float* c, float* d, int m, int n,
         int k, float alpha, float beta) {
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
  pipeline.init(kConsumers / 32, kSplitters);

  const int tiles = ((m + kRows - 1) / kRows) * ((n + columns - 1) / columns);
  const int steps = (k + kDepth - 1) / kDepth;
  Ring<stages> ring;

  if (threadIdx.x < 128) {
    give_registers<40>();
    if (threadIdx.x >= 128 - kSplitters) {
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x)
        for (int step = 0; step < steps; ++step, ring.next()) {
          auto& now = stage[ring.stage];
          mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
          split_tile<columns * kDepth, kSplitters>(now.b, now.rest, threadIdx.x - (128 - kSplitters));
          mbarrier_arrive(&pipeline.split[ring.stage]);
        }
      return;
    }
    if (threadIdx.x >= 32) return;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      int row, column;
      place_tile<columns>(tile, m, n, row, column);
      for (int step = 0; step < steps; ++step, ring.next()) {
        auto& now = stage[ring.stage];
        mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
        if (threadIdx.x == 0) {
          mbarrier_arrive_expect(&pipeline.full[ring.stage], sizeof(now.a) + sizeof(now.b));
          for (int box = 0; box < kRows / 32; ++box)
            tma_load(now.a + box * 32 * kDepth, a, row + box * 32, step * kDepth, &pipeline.full[ring.stage]);
          tma_load(now.b, b, step * kDepth, column, &pipeline.full[ring.stage]);
        }
        prefetch_tile<columns>(c, row, column, m, n, step);
      }
    }
    return;
  }

  take_registers<232>();
  const int thread = threadIdx.x - 128;
  const WgmmaFragments fragments(thread);
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float sums[columns / 2] = {}, partial[columns / 2];
#pragma unroll 1
    for (int step = 0; step < steps; ++step, ring.next()) {
      auto& now = stage[ring.stage];
      mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
      const SplitFragments split_a(fragments, now.a);
      mbarrier_wait(&pipeline.split[ring.stage], ring.parity);
      wgmma_3xtf32(partial, split_a, now.b, now.rest);
      pipeline.release(ring.stage);
#pragma unroll
      for (int i = 0; i < columns / 2; ++i) sums[i] += partial[i];
    }
    int row, column;
    place_tile<columns>(tile, m, n, row, column);
    store_tile(sums, c, d, row, column, fragments, m, n, alpha, beta);
  }
}
