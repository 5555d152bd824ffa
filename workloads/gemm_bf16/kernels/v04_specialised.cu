// Idea: One warp of a third warpgroup does nothing but ask for stages, and goes on into the next tile while the others store: a block a
//     multiprocessor takes one tile after another. The two warpgroups that multiply get its registers, and have tiles of 128 x 256. While they
//     wait for the products of one stage, those of the next are under way.
// Bottleneck: The way out: a tile's 64 KB go to D by stores of 4 bytes, and the tensor cores wait meanwhile, for about two steps along k.
// Next: D by way of shared memory and the TMA, which stores beside the next product.
// Source: The order of producer and consumers is that of NVIDIA's CUTLASS 3 ("warp-specialised persistent").

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "../../hopper_stores.cuh"
#include "../../hopper_low_precision.cuh"
#include "tiles.cuh"
#include "pad.cuh"

template <class Element, int columns, int stages>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, unsigned short* d, int m, int n, int k, int band) {
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
  pipeline.init(kConsumers / 32);

  const int tiles = tiles_of<columns, 1, 1>(m, n), steps = steps_of<Element>(k);
  const Place<1, 1> place;
  int row, column;
  Ring<stages> ring;

  if (threadIdx.x >= kConsumers) {
    give_registers<40>();
    if (threadIdx.x >= kConsumers + 32) return;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      place.tile<columns>(tile, band, m, n, row, column);
      for (int step = 0; step < steps; ++step, ring.next()) {
        mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
        if (threadIdx.x == kConsumers)
          place.fetch(stage[ring.stage], a, b, row, column, step * kDepth<Element>, &pipeline.full[ring.stage]);
      }
    }
    return;
  }

  take_registers<232>();
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float sums[columns / 2];
    multiply_tile<Element, columns>(sums, steps, stage, pipeline, ring, threadIdx.x / 128, [&](int of) { pipeline.release(of); });
    place.tile<columns>(tile, band, m, n, row, column);
    store_tile<typename Element::Result>(sums, d, row, column, m, n);
  }
}
