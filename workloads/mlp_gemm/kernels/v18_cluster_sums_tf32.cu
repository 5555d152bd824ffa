// Idea: For few tiles: the blocks of a cluster compute a tile of v12_wgmma_tf32 together, each a part of k, as in v16_cluster_sums. At n = 1024
//     a pair of blocks has a tile of 128 x 128, where v12_wgmma_tf32 needs tiles of 128 x 64 to fill the GPU. Each block adds up a share
//     of the columns. Sums come to it by stores that count on its barrier (st.async): nobody waits for the whole cluster, and no fence is
//     needed. C is in registers before the product begins.
// Bottleneck: The latency of a few steps along k, and that clusters start later. At n = 1024 the TMA brings 512 KB to a multiprocessor in
//     place of 768, and its shared memory is busy for 10,200 cycles (copies 4,100, fragments of A 2,050, B for both warpgroups 4,100) in
//     place of 14,300; yet on an H100 that takes 14.5 us, as v12_wgmma_tf32 does (14.6): the exchange of 32 KB and the start of the clusters
//     take what the steps save. With fewer tiles, parts shorten the chain of steps: 7.4 us at n = 512 in place of 9.4, 4.9 at n = 256 in
//     place of 7.0. Many tiles gain nothing: each is split, and no block begins a tile while it stores another.
// Next: Tiles of 64 x 128 without clusters, whose two warpgroups take turns along k: A and B are then read by one warpgroup each.
// Source: Own work; parts along k are the "split-K" of NVIDIA CUTLASS. PTX ISA, st.async.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "wgmma_tile.cuh"
#include "tf32_product.cuh"

constexpr int kLanes = 32;
constexpr int kThreads = kConsumers + kLanes;  // a warp loads; sums of this size need no registers of others

template <int columns, int stages, int parts>
struct Memory {
  static constexpr int kShare = columns / 2 / parts;  // sums of a thread that a block of the cluster adds up
  static_assert(kShare % 4 == 0);

  Stage<columns> stage[stages];
  float4 sums[parts - 1][kShare / 4][kConsumers];  // of the other blocks: of the next one by number, then of the one after it
};

template <int columns, int stages, int parts>
__global__ void __cluster_dims__(parts, 1, 1) __launch_bounds__(kThreads, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const float* __restrict__ c, float* __restrict__ d, int m,
         int n, int k, float alpha, float beta) {
  using Shared = Memory<columns, stages, parts>;
  constexpr int kShare = Shared::kShare;
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<Shared>(dynamic);
  __shared__ Pipeline<stages> pipeline;
  __shared__ Mbarrier summed;
  if (threadIdx.x == 0) mbarrier_init(&summed, 1);
  pipeline.init(kConsumers / kLanes);
  if (threadIdx.x == 0) mbarrier_arrive_expect(&summed, sizeof memory.sums);
  cluster_arrive_relaxed();

  const int part = cluster_rank(), steps = steps_of((k + parts - 1) / parts);
  int row, column;
  place_tile<columns>(blockIdx.x / parts, m, n, row, column);
  Ring<stages> ring;

  if (threadIdx.x >= kConsumers) {
    for (int step = part * steps; step < (part + 1) * steps; ++step, ring.next()) {
      auto& now = memory.stage[ring.stage];
      Mbarrier* full = &pipeline.full[ring.stage];
      mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
      if (threadIdx.x == kConsumers) {
        mbarrier_arrive_expect(full, sizeof now);
        for (int box = 0; box < kRows / 32; ++box) tma_load(now.a + box * 32 * kDepth, a, row + box * 32, step * kDepth, full);
        tma_load(now.b, b, step * kDepth, column, full);
      }
    }
    cluster_wait();
    return;
  }

  const int thread = threadIdx.x;
  const WgmmaFragments fragments(thread);
  const int share_row = row + fragments.row, share_column = column + part * (columns / parts);
  const long long share = (long long)(share_column + fragments.across(0)) * m + share_row;
  const auto place = [&](int i) { return share + (long long)(fragments.across(i) - fragments.across(0)) * m + fragments.down(i); };
  const auto inside = [&](int i) { return share_row + fragments.down(i) < m && share_column + fragments.across(i) < n; };
  float old[kShare];
#pragma unroll
  for (int i = 0; i < kShare; ++i) old[i] = inside(i) ? c[place(i)] : 0.0f;

  float sums[columns / 2], mine[kShare];
  multiply_tile<columns>(sums, steps, memory.stage, pipeline, ring, fragments, [&](int of_stage) { pipeline.release(of_stage); });

  cluster_wait();  // the other blocks have their barriers
#pragma unroll
  for (int to = 0; to < parts; ++to) {
    const float* of = sums + to * kShare;
    if (to == part) {
#pragma unroll
      for (int i = 0; i < kShare; ++i) mine[i] = of[i];
    } else {
      float4* there = &memory.sums[(part - to + parts) % parts - 1][0][thread];
#pragma unroll
      for (int i = 0; i < kShare; i += 4)
        store_remote(there + i / 4 * kConsumers, make_float4(of[i], of[i + 1], of[i + 2], of[i + 3]), &summed, to);
    }
  }

  mbarrier_wait_of_cluster(&summed, 0);
#pragma unroll
  for (int other = 0; other < parts - 1; ++other)
#pragma unroll
    for (int i = 0; i < kShare; i += 4) {
      const float4 four = memory.sums[other][i / 4][thread];
      mine[i] += four.x, mine[i + 1] += four.y, mine[i + 2] += four.z, mine[i + 3] += four.w;
    }
#pragma unroll
  for (int i = 0; i < kShare; ++i)
    if (inside(i)) d[place(i)] = alpha * mine[i] + beta * old[i];
}
