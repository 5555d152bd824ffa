// Idea: Warpgroups of 128 threads ask for 64 x 256 products at once (wgmma), with B straight out of shared memory. One warp of
//     a third warpgroup does nothing but ask for tiles, by TMA, four stages ahead and on into the next tile while the others store, and
//     for C, which L2 has when it is needed. wgmma wants B along k, as it lies; A lies along m: it goes through registers instead,
//     where it is rounded on the way, so that no operand is transposed beforehand.
// Bottleneck: The tensor cores, at large sizes; at n = 1024 there are 32 tiles of 128 x 256 for 132 multiprocessors, and tiles of 64
//     columns are faster. B is cut to 10 bits, not rounded: an error of 4.2e-4, where two rounded operands have 2.6e-4.
// Next: Three such products in place of one, for the error of float32.
// Source: PTX ISA, wgmma; the order of producer and consumers is that of NVIDIA's CUTLASS 3 ("warp-specialised persistent").

#include "../../ptx.cuh"
#include "../../hopper.cuh"
#include "wgmma_tile.cuh"

constexpr int kConsumers = 256;

template <int columns>
struct Stage {
  float a[kRows * kDepth];
  float b[columns * kDepth];
};

template <int columns, int stages>
__global__ void __launch_bounds__(128 + kConsumers, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const float* c, float* d, int m, int n,
         int k, float alpha, float beta) {
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
  pipeline.init(kConsumers / 32);

  const int tiles = ((m + kRows - 1) / kRows) * ((n + columns - 1) / columns);
  const int steps = (k + 2 * kDepth - 1) / (2 * kDepth) * 2;  // even: two sets of fragments take turns
  Ring<stages> ring;

  if (threadIdx.x < 128) {
    give_registers<40>();
    if (threadIdx.x >= 32) return;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      int row, column;
      place_tile<columns>(tile, m, n, row, column);
      for (int step = 0; step < steps; ++step, ring.next()) {
        auto& now = stage[ring.stage];
        mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
        if (threadIdx.x == 0) {
          mbarrier_arrive_expect(&pipeline.full[ring.stage], sizeof(Stage<columns>));
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
    float sums[columns / 2];
    unsigned values[2][16];
    int previous = 0;
#pragma unroll 1
    for (int step = 0; step < steps; step += 2) {
#pragma unroll
      for (int turn = 0; turn < 2; ++turn) {
        auto& now = stage[ring.stage];
        mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
#pragma unroll
        for (int i = 0; i < 16; ++i) values[turn][i] = to_tf32(fragments.load(now.a, i / 4, i % 4));
        const unsigned long long operand = wgmma_operand(now.b);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; ++i) wgmma_tf32(sums, values[turn] + 4 * i, operand + 2 * i, step + turn + i > 0);
        wgmma_commit();
        wgmma_wait<1>();
        if (step + turn > 0) pipeline.release(previous);
        previous = ring.stage;
        ring.next();
      }
    }
    wgmma_wait<0>();
    wgmma_keep(sums);
    pipeline.release(previous);
    int row, column;
    place_tile<columns>(tile, m, n, row, column);
    store_tile(sums, c, d, row, column, fragments, m, n, alpha, beta);
  }
}
