// What both rungs of one product of TF32 on warpgroups share: a stage, and the product of a tile.

constexpr int kProducers = 128, kConsumers = 256;

template <int columns>
struct Stage {
  float a[kRows * kDepth];
  float b[columns * kDepth];
};

// Steps of a tile. They are even, for two sets of fragments take turns; beyond k the TMA fills stages with zeros.
__device__ __forceinline__ int steps_of(int k) { return (k + 2 * kDepth - 1) / (2 * kDepth) * 2; }

// sums = a * b of the stages that come next. release(stage) is called when a stage has been read, while the one after it is multiplied.
template <int columns, int stages, class Release>
__device__ __forceinline__ void multiply_tile(float (&sums)[columns / 2], int steps, const Stage<columns>* stage, Pipeline<stages>& pipeline,
                                              Ring<stages>& ring, const WgmmaFragments& fragments, Release release) {
  unsigned values[2][16];
  int previous = 0;
#pragma unroll 1
  for (int step = 0; step < steps; step += 2) {
#pragma unroll
    for (int turn = 0; turn < 2; ++turn) {
      auto& now = stage[ring.stage];
      mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
#pragma unroll
      for (int i = 0; i < 16; ++i) values[turn][i] = __float_as_uint(fragments.load(now.a, i / 4, i % 4));
      const unsigned long long operand = wgmma_operand(now.b);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < 4; ++i) wgmma_tf32(sums, values[turn] + 4 * i, operand + 2 * i, step + turn + i > 0);
      wgmma_commit();
      wgmma_wait<1>();
      if (step + turn > 0) release(previous);
      previous = ring.stage;
      ring.next();
    }
  }
  wgmma_wait<0>();
  wgmma_keep(sums);
  release(previous);
}
