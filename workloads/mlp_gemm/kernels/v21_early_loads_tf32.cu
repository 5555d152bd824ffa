// Idea: v18_cluster_sums_tf32 with nothing before the first loads: the thread that loads makes the barriers, and asks for all stages and for C before
//     the other threads know of them. C and D go through shared memory by the TMA, in place of 4 bytes an access. A tile of 64 rows has one
//     warpgroup, so that A and B are read by one each; where tiles are few, the blocks of a cluster have a part of k each. Where that leaves
//     multiprocessors idle, further clusters have slices of k of the same tile, and a second launch, which is early, adds them up. Operands that
//     the TMA does not take as they lie are copied to whole lines, while the product starts.
// Bottleneck: At n = 1024 shared memory: of a step, copies take 192 cycles, fragments of A 64 and B 128, where the products take 256. On an H200
//     it takes 12.1 us, v18_cluster_sums_tf32 13.4 and cuBLASLt 13.3; n = 512 takes 5.2 us, 7.0 and 6.8. At small sizes what every launch costs.
//     Of few tiles, shape=2112x4544x256 takes 26 us and v19_equal_shares_tf32 30; shape=256x8000x128 takes 11.8 and 14.3, for which slices of
//     parts of eight would take 11.1. Copies without tensor maps (cp.async), whose values threads round to TF32 in shared memory, take 1.12
//     times as long at n = 128, 1.13 at 256 and 1.37 at 512.
// Next: Whole waves where tiles are many: from n = 1280 on, tiles of 128 x 128 are as fast or faster. Three parts of 128 x 128, for which no share
//     has as many columns as another, take shape=337x2711x1499 31.5 us in place of 35.6.
// Source: Own work; early loads are those of `gemm_bf16` v08_early_loads.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "../../hopper_cluster_sums.cuh"
#include "../../hopper_stores.cuh"
#include "../../hopper_early.cuh"
#include "../../hopper_maps.cuh"
#include "wgmma_tile.cuh"
#include "pad_lines.cuh"

constexpr int kLanes = 32;
constexpr int kAdders = 256;     // threads of a block that adds slices
constexpr int kBox = 32;         // rows of A, C and D in a line of shared memory
constexpr int kBoxColumns = 16;  // of C and D in a box

template <int rows, int columns>
struct Stage {
  float a[rows / kBox][kDepth * kBox];
  float b[columns * kDepth];
};

template <int rows, int columns, int stages, int parts>
struct Memory {
  static constexpr int kOfBlock = columns / parts;  // columns that a block of the cluster adds up
  Stage<rows, columns> stage[stages];
  float results[kOfBlock / kBoxColumns][rows / kBox][kBoxColumns * kBox];
  OthersSums<parts, kOfBlock / 2, rows * 2> others;
};
template <int rows, int columns, int stages>
struct Memory<rows, columns, stages, 1> {
  Stage<rows, columns> stage[stages];
  float results[columns / kBoxColumns][rows / kBox][kBoxColumns * kBox];
};

// alpha * sums + beta * C over a box of C, for a thread's 8 elements. Lanes of the upper rows take the two columns of a pair in the other order, so
// that all lanes of a warp meet different banks.
struct BoxShare {
  int at[2][2];  // first or second column, first or second row
  bool upper;

  __device__ __forceinline__ explicit BoxShare(int thread) {
    const int warp = thread / 32, group = thread % 32 / 4, step = thread % 4;
    upper = group >= 4;
#pragma unroll
    for (int turn = 0; turn < 2; ++turn)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int column = 2 * step + (upper ? 1 - turn : turn), piece = 4 * (group / 4) + 2 * (warp % 2) + half;
        at[turn][half] = column * kBox + 4 * (piece ^ column) + group % 4;
      }
  }

  // Without C, `add` is false.
  template <bool add>
  __device__ __forceinline__ void replace(float* box, const float* sums, float alpha, float beta) const {
    float old[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) old[i] = add ? box[i / 4 * 8 * kBox + at[i % 2][i / 2 % 2]] : 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float sum = upper ? sums[i ^ 1] : sums[i];
      box[i / 4 * 8 * kBox + at[i % 2][i / 2 % 2]] = alpha * sum + beta * old[i];
    }
  }
};

// sums = a * b of the stages that come next, an even number.
template <int rows, int columns, int stages>
__device__ __forceinline__ void multiply_steps(float (&sums)[columns / 2], int steps, const Stage<rows, columns>* stage, Pipeline<stages>& pipeline,
                                               const WgmmaFragments& fragments) {
  unsigned values[2][16];
  Ring<stages> ring;
  int previous = 0;
  if (steps == 0) {
#pragma unroll
    for (int i = 0; i < columns / 2; ++i) sums[i] = 0.0f;
  }
#pragma unroll 1
  for (int step = 0; step < steps; step += 2) {
#pragma unroll
    for (int turn = 0; turn < 2; ++turn) {
      auto& now = stage[ring.stage];
      mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
#pragma unroll
      for (int i = 0; i < 16; ++i) values[turn][i] = __float_as_uint(fragments.load(now.a[0], i / 4, i % 4));
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
}

// Calls visit(box, first row, first column) for each box of C.
template <int across, int down, class Visit>
__device__ __forceinline__ void for_each_box(float (&boxes)[across][down][kBoxColumns * kBox], int row, int column, Visit visit) {
  for (int x = 0; x < across; ++x)
    for (int y = 0; y < down; ++y) visit(boxes[x][y], row + y * kBox, column + x * kBoxColumns);
}

// Where D goes: out of registers; by boxes of the TMA; as sums of a slice of k, which `add_slices` adds, by boxes too.
constexpr int kValues = 0, kBoxes = 1, kSlices = 2;

// A cluster's blocks have a part of k each, and clusters of the same tile a slice: blockIdx.z. The map `of_d` is that of D, or of all slices, which
// lie one behind the other and have whole boxes of columns.
template <int rows, int columns, int stages, int parts, int way>
__global__ void __cluster_dims__(parts, 1, 1) __launch_bounds__(rows * 2 + kLanes, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap of_c,
         const __grid_constant__ TensorMap of_d, const float* __restrict__ c, float* __restrict__ d, int m, int n, int k, float alpha, float beta) {
  constexpr int kMultipliers = rows * 2, kOfBlock = columns / parts, kShare = kOfBlock / 2;
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<Memory<rows, columns, stages, parts>>(dynamic);
  __shared__ Pipeline<stages> pipeline;
  __shared__ Mbarrier summed, added;  // the other blocks' sums, and C, are there

  constexpr int kPair = 2 * kDepth;  // a step for each set of fragments
  const int part = parts > 1 ? cluster_rank() : 0, pairs = (k + kPair - 1) / kPair, all = parts * gridDim.z, mine_of_all = blockIdx.z * parts + part;
  const int first = 2 * (pairs * mine_of_all / all), steps = 2 * (pairs * (mine_of_all + 1) / all) - first;
  const int row = blockIdx.x / parts * rows, column = blockIdx.y * columns, share_column = column + part * kOfBlock;
  const auto fetch = [&](int of, int step) {
    auto& to = memory.stage[of];
    Mbarrier* full = &pipeline.full[of];
    mbarrier_arrive_expect(full, sizeof to);
    tma_load(to.b, b, (first + step) * kDepth, column, full);
    for (int box = 0; box < rows / kBox; ++box) tma_load(to.a[box], a, row + box * kBox, (first + step) * kDepth, full);
  };

  let_next_launch_start();
  if (threadIdx.x == kMultipliers) {
    prefetch_map(a), prefetch_map(b);
    if constexpr (way == kBoxes) prefetch_map(of_c);
    for (int stage = 0; stage < stages; ++stage) {
      mbarrier_init(&pipeline.full[stage], 1);
      mbarrier_init(&pipeline.empty[stage], kMultipliers / 32);
    }
    mbarrier_init(&added, 1);
    if constexpr (parts > 1)
      memory.others.expect(&summed);
    else
      fence_mbarrier_init();
    wait_for_launch_before();  // which pads
    for (int step = 0; step < min(steps, stages); ++step) fetch(step, step);
    if constexpr (way == kBoxes) {
      mbarrier_arrive_expect(&added, sizeof memory.results);
      for_each_box(memory.results, row, share_column, [&](float* box, int y, int x) { tma_load(box, of_c, y, x, &added); });
    }
    if constexpr (way != kValues) prefetch_map(of_d);
  }
  __syncthreads();
  if constexpr (parts > 1) cluster_arrive_relaxed();

  if (threadIdx.x >= kMultipliers) {
    Ring<stages> ring;
    for (int step = stages; step < steps; ++step, ring.next()) {
      mbarrier_wait(&pipeline.empty[ring.stage], ring.parity);
      if (threadIdx.x == kMultipliers) fetch(ring.stage, step);
    }
    if constexpr (parts > 1) cluster_wait();
  } else {
    const int thread = threadIdx.x;
    const WgmmaFragments fragments(thread);
    float sums[columns / 2], mine[kShare];
    multiply_steps<rows, columns, stages>(sums, steps, memory.stage, pipeline, fragments);
    if constexpr (parts > 1) {
      memory.others.add(sums, mine, &summed, part);
    } else {
#pragma unroll
      for (int i = 0; i < kShare; ++i) mine[i] = sums[i];
    }

    if constexpr (way != kValues) {
      const BoxShare share(thread);
      if constexpr (way == kBoxes) mbarrier_wait(&added, 0);
#pragma unroll
      for (int across = 0; across < kOfBlock / kBoxColumns; ++across)
        share.replace<way == kBoxes>(memory.results[across][thread / 64], mine + 8 * across, way == kBoxes ? alpha : 1.0f, beta);
      fence_proxy_async();
    } else {
      const int share_row = row + fragments.row;
      const long long start = (long long)(share_column + fragments.across(0)) * m + share_row;
      const auto place = [&](int i) { return start + (long long)(fragments.across(i) - fragments.across(0)) * m + fragments.down(i); };
      const auto inside = [&](int i) { return share_row + fragments.down(i) < m && share_column + fragments.across(i) < n; };
#pragma unroll
      for (int i = 0; i < kShare; ++i)
        if (inside(i)) d[place(i)] = alpha * mine[i] + beta * c[place(i)];
    }
  }

  if constexpr (way != kValues) {
    __syncthreads();  // D is in shared memory
    if (threadIdx.x == kMultipliers) {
      const int slice = way == kSlices ? blockIdx.z * ((n + kBoxColumns - 1) / kBoxColumns * kBoxColumns) : 0;
      for_each_box(memory.results, row, share_column, [&](const float* box, int y, int x) {
        if (y < m && x < n) tma_store(of_d, y, slice + x, box);
      });
      tma_store_commit();
      tma_store_wait_read<0>();
    }
  }
}

// D = alpha * sum of the slices + beta * C, a thread an element.
__global__ void __launch_bounds__(kAdders)
    add_slices(const float* __restrict__ slices, const float* __restrict__ c, float* __restrict__ d, int m, int n, int count, float alpha, float beta) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y, pitch = (m + 3) / 4 * 4;
  const size_t place = (size_t)column * m + row;
  const float old = row < m ? c[place] : 0.0f;
  wait_for_launch_before();
  if (row >= m) return;
  const size_t slice = (size_t)((n + kBoxColumns - 1) / kBoxColumns * kBoxColumns) * pitch;
  const float* from = slices + (size_t)column * pitch + row;
  float sum = 0.0f;
#pragma unroll 8
  for (int i = 0; i < count; ++i) sum += from[i * slice];
  d[place] = alpha * sum + beta * old;
}
