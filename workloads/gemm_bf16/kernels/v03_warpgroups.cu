// Idea: Two warpgroups multiply 64 x 128 elements each straight out of shared memory (wgmma). One thread asks for both operands by TMA, which
//     swizzles them on the way, three stages ahead; no warp copies or loads fragments.
// Bottleneck: The tensor cores wait at each step: all warps wait for the products before the stage is free and the next copy is asked for, and a
//     block's last stage and its stores to D have nothing to hide behind but the other block of the multiprocessor.
// Next: A warp that does nothing but ask for stages, and larger tiles: 128 x 256 elements read a quarter less a product.
// Source: PTX ISA, wgmma, cp.async.bulk.tensor.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "../../hopper_stores.cuh"
#include "../../hopper_low_precision.cuh"
#include "tiles.cuh"
#include "pad.cuh"

template <class Element, int columns, int stages>
__global__ void __launch_bounds__(kConsumers, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, unsigned short* d, int m, int n, int k) {
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
  pipeline.init(1);
  const int row = blockIdx.x * kRows, column = blockIdx.y * columns, steps = steps_of<Element>(k);
  const Place<1, 1> place;
  const auto fetch = [&](int step) {
    const int at = step % stages;
    if (threadIdx.x == 0 && step < steps) place.fetch(stage[at], a, b, row, column, step * kDepth<Element>, &pipeline.full[at]);
  };
  for (int step = 0; step < stages - 1; ++step) fetch(step);

  float sums[columns / 2];
  Ring<stages> ring;
#pragma unroll 1
  for (int step = 0; step < steps; ++step, ring.next()) {
    fetch(step + stages - 1);
    const auto& now = stage[ring.stage];
    mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
    const unsigned long long of_a = wgmma_operand(now.a + threadIdx.x / 128 * 64 * kRowBytes), of_b = wgmma_operand(now.b);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; ++i) wgmma(Element{}, sums, of_a + 2 * i, of_b + 2 * i, step + i > 0);
    wgmma_commit();
    wgmma_wait<0>();
    __syncthreads();  // the stage is free
  }
  wgmma_keep(sums);
  store_tile<typename Element::Result>(sums, d, row, column, m, n);
}
