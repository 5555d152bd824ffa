// Stages of operands, and the product of a tile: 64 steps along k a stage, two operands in boxes of 64 elements, 128 bytes a line. After
// hopper_across.cuh and hopper_clusters.cuh.

constexpr int kDepth = 64;      // steps of a stage
constexpr int kBox = 64;        // elements of a box's lines
constexpr int kProducers = 128;  // the first warp loads
constexpr int kLineBytes = 2 * kBox;

// `rows` of A, and `columns` of B.
template <int rows, int columns>
struct Stage {
  unsigned char a[rows * kLineBytes];
  unsigned char b[columns * kLineBytes];
};

#include "../../hopper_maps.cuh"

// Where warps meet that are not all of the block. What a thread wrote to shared memory before it arrives is seen by all that have waited, and by
// wgmma and the TMA.
struct Meeting {
  Mbarrier barrier;

  // By all lanes of a warp.
  __device__ __forceinline__ void arrive() {
    fence_proxy_async();
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(&barrier);
  }
  __device__ __forceinline__ void wait() { mbarrier_wait(&barrier, 0); }
};

// Loads each step in turn, by a warp: calls early(stage, step), which tells how many bytes come and asks for those that need not wait, and
// late(stage, step) for the others. wait() stands between the two for the first stages, which are empty.
template <int stages, class Early, class Wait, class Late>
__device__ __forceinline__ void load_steps(Pipeline<stages>& pipeline, int steps, Early early, Wait wait, Late late) {
  const bool loads = threadIdx.x % 32 == 0;
  for (int step = 0; loads && step < min(steps, stages); ++step) early(step, step);
  __syncwarp();
  wait();
  Ring<stages> ring;
  for (int step = 0; step < steps; ++step, ring.next()) {
    mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
    if (loads && step >= stages) early(ring.stage, step);
    if (loads) late(ring.stage, step);
    __syncwarp();
  }
}

// sums = a * b over the stages that come, one at least, for a warpgroup with 64 rows. A is along k or, a_across, in boxes of 64 rows; B is across. A
// stage that is not filled again is not released: a block that waits for nothing more may have ended.
template <bool a_across, int rows, int columns, int stages, class Release>
__device__ __forceinline__ void multiply_steps(float (&sums)[columns / 2], int steps, Stage<rows, columns>* stage, Pipeline<stages>& pipeline,
                                               int warpgroup, Release release) {
  Ring<stages> ring;
  int previous = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    auto& now = stage[ring.stage];
    mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
    unsigned char* of_rows = now.a + warpgroup * 64 * kLineBytes;
    const unsigned long long a = a_across ? wgmma_operand_across(of_rows, kDepth * kLineBytes) : wgmma_operand(of_rows);
    const unsigned long long b = wgmma_operand_across(now.b, kDepth * kLineBytes);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < kDepth / 16; ++i) wgmma_across<a_across, true>(sums, a + (a_across ? 128 : 2) * i, b + 128 * i, step + i > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (step > 0 && step - 1 + stages < steps) release(previous);
    previous = ring.stage;
    ring.next();
  }
  wgmma_wait<0>();
  wgmma_keep(sums);
}
