// Idea: Warpgroups of 128 threads ask for 64 x 256 products at once (wgmma), with B straight out of shared memory. One warp of
//     a third warpgroup does nothing but ask for tiles, by TMA, four stages ahead and on into the next tile while the others store, and
//     for C, which L2 has when it is needed. wgmma wants B along k, as it lies; A lies along m: it goes through registers instead, so that
//     no operand is transposed beforehand. The TMA rounds both to the nearest TF32 as it loads them, for its tensor maps are of that type.
// Bottleneck: The tensor cores, at large sizes; at n = 1024 there are 32 tiles of 128 x 256 for 132 multiprocessors, and tiles of 64
//     columns are faster. At n = 8192 on an H200 they are busy for 93 % of the time at 1565 MHz of 1980: the GPU draws its 700 W.
// Next: Blocks that share what they fetch.
// Source: PTX ISA, wgmma; the order of producer and consumers is that of NVIDIA's CUTLASS 3 ("warp-specialised persistent"). CUDA driver API,
//     CU_TENSOR_MAP_DATA_TYPE_TFLOAT32.

#include "../../hopper.cuh"
#include "wgmma_tile.cuh"
#include "tf32_product.cuh"

template <int columns, int stages>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const float* c, float* d, int m, int n,
         int k, float alpha, float beta) {
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
  pipeline.init(kConsumers / 32);

  const int tiles = ((m + kRows - 1) / kRows) * ((n + columns - 1) / columns), steps = steps_of(k);
  Ring<stages> ring;

  if (threadIdx.x < kProducers) {
    give_registers<40>();
    if (threadIdx.x >= 32) return;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      int row, column;
      place_tile<columns>(tile, m, n, row, column);
      for (int step = 0; step < steps; ++step, ring.next()) {
        auto& now = stage[ring.stage];
        mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
        if (threadIdx.x == 0) {
          mbarrier_arrive_expect(&pipeline.full[ring.stage], sizeof now);
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
  const WgmmaFragments fragments(threadIdx.x - kProducers);
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float sums[columns / 2];
    multiply_tile<columns>(sums, steps, stage, pipeline, ring, fragments, [&](int of_stage) { pipeline.release(of_stage); });
    int row, column;
    place_tile<columns>(tile, m, n, row, column);
    store_tile(sums, c, d, row, column, fragments, m, n, alpha, beta);
  }
}
