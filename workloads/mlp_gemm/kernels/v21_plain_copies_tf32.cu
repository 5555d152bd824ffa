// Idea: For a few dozen tiles, smaller ones than those of v18_cluster_sums_tf32: 64 rows and 32 or 64 columns, a warpgroup each. All threads ask for
//     their pieces at once by plain copies (cp.async): no tensor map comes from memory before the first bytes. A thread rounds what it copied
//     of B to TF32, as the TMA would.
// Bottleneck: What every launch costs: on an H200 n = 256 takes 4.0 us, and v18_cluster_sums_tf32 4.6. At n = 512, where it takes 7.8 and
//     v18_cluster_sums_tf32 7.1, the number of small tiles, which ask L2 for each row too often.
// Next: A tensor map that takes four rows of an operand as one has a pitch that is a multiple of 16 bytes, however long rows are: only the rows
//     beyond the last whole four need a copy.
// Source: Own work; `gemm_bf16` v10_plain_copies.

#include "../../ptx.cuh"
#include "../../hopper_plain_copies.cuh"
#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "../../hopper_cluster_sums.cuh"
#include "wgmma_tile.cuh"

constexpr int kSmallRows = 64;  // of a tile: a warpgroup
constexpr int kThreads = 128;
constexpr int kBox = 32;  // rows of A in a line of shared memory

template <int columns>
struct Stage {
  float a[kSmallRows / kBox][kDepth * kBox];
  float b[columns * kDepth];
};

template <int columns, int stages, int parts>
struct Memory {
  Stage<columns> stage[stages];
  OthersSums<parts, columns / 2 / parts, kThreads> others;
};

// sums = a * b of `steps` steps from `first` on, an even number.
template <int columns, int stages>
__device__ __forceinline__ void multiply_part(float (&sums)[columns / 2], Stage<columns>* stage, const Pieces<kThreads>& a,
                                              const Pieces<kThreads>& b, const WgmmaFragments& fragments, int row, int first, int steps) {
  const auto copy = [&](int step) {
    if (step < steps) {
      auto& to = stage[step % stages];
#pragma unroll
      for (int box = 0; box < kSmallRows / kBox; ++box) a.copy<kDepth>(to.a[box], (first + step) * kDepth, (row + box * kBox) * 4);
      b.copy<columns>(to.b, 0, (first + step) * kDepth * 4);
    }
    cp_async_commit();
  };
#pragma unroll
  for (int step = 0; step < stages; ++step) copy(step);

  unsigned values[2][16];
#pragma unroll 1
  for (int step = 0; step < steps; step += 2) {
#pragma unroll
    for (int turn = 0; turn < 2; ++turn) {
      auto& now = stage[(step + turn) % stages];
      if (step > 0)
        cp_async_wait<stages - 3>();
      else if (turn > 0)
        cp_async_wait<stages - 2>();
      else
        cp_async_wait<stages - 1>();
#pragma unroll
      for (int i = 0; i < columns / Pieces<kThreads>::kDown; ++i) {
        uint4* piece = b.at<uint4>(now.b, i);
        const float4 x = *reinterpret_cast<const float4*>(piece);
        *piece = make_uint4(to_tf32(x.x), to_tf32(x.y), to_tf32(x.z), to_tf32(x.w));
      }
      fence_proxy_async();
      __syncthreads();  // all pieces of the stage are there, and the stage before the last has been read by all
      if (step > 0) copy(step + turn - 2 + stages);
#pragma unroll
      for (int i = 0; i < 16; ++i) values[turn][i] = to_tf32(fragments.load(now.a[0], i / 4, i % 4));
      wgmma_keep(values[turn]);
      const unsigned long long operand = wgmma_operand(now.b);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < 4; ++i) wgmma_tf32(sums, values[turn] + 4 * i, operand + 2 * i, step + turn + i > 0);
      wgmma_commit();
      wgmma_wait<1>();
    }
  }
  wgmma_wait<0>();
  wgmma_keep(sums);
}

// A cluster's blocks have a part of k each. `pitch_a`, `pitch_b`: floats.
template <int columns, int stages, int parts>
__global__ void __cluster_dims__(parts, 1, 1) __launch_bounds__(kThreads)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ d, int m, int n, int k,
         float alpha, float beta, int pitch_a, int pitch_b) {
  constexpr int kShare = columns / 2 / parts;  // sums of a thread that a block of the cluster adds up
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<Memory<columns, stages, parts>>(dynamic);
  __shared__ Mbarrier there;
  if (threadIdx.x == 0) memory.others.expect(&there);
  cluster_arrive_relaxed();

  const int part = cluster_rank(), steps = (k + 2 * kDepth * parts - 1) / (2 * kDepth * parts) * 2;
  const int row = blockIdx.x / parts * kSmallRows, column = blockIdx.y * columns;
  const WgmmaFragments fragments(threadIdx.x);
  const int share_row = row + fragments.row, share_column = column + part * (columns / parts);
  const long long share = (long long)(share_column + fragments.across(0)) * m + share_row;
  const auto place = [&](int i) { return share + (long long)(fragments.across(i) - fragments.across(0)) * m + fragments.down(i); };
  const auto inside = [&](int i) { return share_row + fragments.down(i) < m && share_column + fragments.across(i) < n; };

  float sums[columns / 2], mine[kShare], old[kShare];
  const Pieces<kThreads> of_a(a, 0, k, pitch_a * 4), of_b(b, column, n, pitch_b * 4);
#pragma unroll
  for (int i = 0; i < kShare; ++i) old[i] = inside(i) ? c[place(i)] : 0.0f;
  multiply_part<columns, stages>(sums, memory.stage, of_a, of_b, fragments, row, part * steps, steps);

  memory.others.add(sums, mine, &there, part);
#pragma unroll
  for (int i = 0; i < kShare; ++i)
    if (inside(i)) d[place(i)] = alpha * mine[i] + beta * old[i];
}
