// Idea: For few tiles: the blocks of a cluster compute a tile of v12_wgmma_tf32 together, each a part of k, as v16_cluster_sums does in float32. A tile
//     may then have 128 x 128 elements at n = 1024 too, where v12_wgmma_tf32 fills the GPU with tiles of 128 x 64. Each block adds up a share of
//     the columns through the shared memory of the others, and loads its share of C while it waits for them.
// Bottleneck: Not measured yet. At n = 1024 a multiprocessor copies 512 KB from L2 in place of 768, and its shared memory is busy for 10,000
//     cycles in place of 14,000: 20 of 32 steps of its tensor cores. That is 2 us less; the sums' way through the cluster adds 0.5 us and two
//     barriers. The estimate is 13.5 to 14.5 us on an H200, where v12_wgmma_tf32 takes 14.9. Many tiles gain nothing: every tile is split.
// Next: Tiles of one row of a larger cluster that share A.
// Source: Own work; parts along k are the "split-K" of NVIDIA CUTLASS.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "wgmma_tile.cuh"
#include "tf32_product.cuh"

constexpr int kLanes = 32;
constexpr int kThreads = kConsumers + kLanes;  // a warp loads; sums of this size need no registers of others

template <int columns, int stages, int parts>
struct Memory {
  static constexpr int kShare = columns / 2 / parts;  // sums of a thread that a block of the cluster adds up
  static_assert(kShare % 4 == 0);

  Stage<columns> stage[stages];
  float4 sums[parts - 1][kShare / 4][kConsumers];  // for the other blocks

  // What this memory's block, of number `of`, has for block `part`.
  __device__ __forceinline__ float4* sums_for(int part, int of, int thread) { return &sums[part - (part > of)][0][thread]; }
};

template <int columns, int stages, int parts>
__global__ void __cluster_dims__(parts, 1, 1) __launch_bounds__(kThreads, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const float* __restrict__ c, float* __restrict__ d, int m,
         int n, int k, float alpha, float beta) {
  using Memory = Memory<columns, stages, parts>;
  constexpr int kShare = Memory::kShare, kShareColumns = columns / parts;
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<Memory>(dynamic);
  __shared__ Pipeline<stages> pipeline;
  pipeline.init(kConsumers / kLanes);

  const int part = cluster_rank(), steps = steps_of((k + parts - 1) / parts), first = part * steps * kDepth;
  int row, column;
  place_tile<columns>(blockIdx.x / parts, m, n, row, column);
  const int share_column = column + part * kShareColumns;
  Ring<stages> ring;

  if (threadIdx.x >= kConsumers) {
    for (int step = 0; step < steps; ++step, ring.next()) {
      auto& now = memory.stage[ring.stage];
      Mbarrier* full = &pipeline.full[ring.stage];
      mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
      if (threadIdx.x == kConsumers) {
        mbarrier_arrive_expect(full, sizeof now);
        for (int box = 0; box < kRows / 32; ++box) tma_load(now.a + box * 32 * kDepth, a, row + box * 32, first + step * kDepth, full);
        tma_load(now.b, b, first + step * kDepth, column, full);
      }
      prefetch_tile<kShareColumns>(c, row, share_column, m, n, step);
    }
    cluster_sync();
    cluster_sync();
    return;
  }

  const int thread = threadIdx.x;
  const WgmmaFragments fragments(thread);
  float sums[columns / 2];
  multiply_tile<columns>(sums, steps, memory.stage, pipeline, ring, fragments, [&](int of_stage) { pipeline.release(of_stage); });

  float share[kShare];
#pragma unroll
  for (int to = 0; to < parts; ++to) {
    const float* of = sums + to * kShare;
    if (to == part) {
#pragma unroll
      for (int i = 0; i < kShare; ++i) share[i] = of[i];
    } else {
      float4* there = memory.sums_for(to, part, thread);
#pragma unroll
      for (int i = 0; i < kShare; i += 4) there[i / 4 * kConsumers] = make_float4(of[i], of[i + 1], of[i + 2], of[i + 3]);
    }
  }
  cluster_arrive();

  const auto place = [&](int i) {
    const int to_row = row + fragments.row + fragments.down(i), to_column = share_column + fragments.across(i);
    return to_row < m && to_column < n ? (long long)to_column * m + to_row : -1;
  };
  float old[kShare];
#pragma unroll
  for (int i = 0; i < kShare; ++i) old[i] = place(i) < 0 ? 0.0f : c[place(i)];

  cluster_wait();  // the sums of all blocks are there
#pragma unroll
  for (int other = 1; other < parts; ++other) {
    const int from = (part + other) % parts;
    const float4* there = of_block(memory.sums_for(part, from, thread), from);
#pragma unroll
    for (int i = 0; i < kShare; i += 4) {
      const float4 four = there[i / 4 * kConsumers];
      share[i] += four.x, share[i + 1] += four.y, share[i + 2] += four.z, share[i + 3] += four.w;
    }
  }
  cluster_arrive();  // this thread reads no other block's sums any more
#pragma unroll
  for (int i = 0; i < kShare; ++i)
    if (place(i) >= 0) d[place(i)] = alpha * share[i] + beta * old[i];
  cluster_wait();  // before a block ends, no other reads its shared memory any more
}
