// Idea: For rows that are no multiple of 128 bytes: a row of a box then lies in two lines of L2, and the time goes with the rows that are fetched.
//     But rows eight apart begin at the same place of a line. A tile has such rows of A, and its steps along k begin where their lines begin: a
//     row of A is read from one line a step, and only those of B from two. Tiles of 192 x 192, for three warpgroups, read fewer rows for as many
//     products than those of 128 x 192, and at n = 3000 they make two waves, nearly full.
// Bottleneck: The tensor cores: two such waves take 72 us at the rate that they reach in a loop without loads (828 TFLOP/s), and on an H200
//     n = 3000 takes 78, as with cuBLASLt. v09_narrow_last takes 92, and v06_clusters with tiles of 128 x 192 does too. How much of the gain each
//     of the two ideas has was not measured. Warpgroups that start one after another gain nothing, nor does a stage less for more boxes of D.
// Next: A tile for each warpgroup, so that while one stores the others multiply.
// Source: Own work; the rest is that of v06_clusters.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "../../hopper_stores.cuh"
#include "../../hopper_boxes.cuh"
#include "../../hopper_low_precision.cuh"
#include "tiles.cuh"
#include "pad.cuh"

constexpr int kTallRows = 192;  // of a tile: three warpgroups of 64
constexpr int kMultipliers = 384, kLoaders = 32;
constexpr int kMultiplierWarps = kMultipliers / 32;
constexpr int kBlocks = 2;  // of a cluster, one below the other

template <int columns>
struct TallStage {
  unsigned char a[kTallRows * kRowBytes];
  unsigned char b[columns * kRowBytes];
};

template <int columns, int stages, int buffers>
struct Memory {
  TallStage<columns> stage[stages];
  unsigned boxes[kMultiplierWarps][buffers][kBoxRows * kBoxColumns / 2];
};

// What of D a block computes: rows `apart` apart, from number `group` of those that begin with row `first`.
struct Tile {
  int first, group, column;

  // By the number of the cluster's tile. `groups`: rows of A / apart. `band` tiles one below the other are walked together.
  template <int columns>
  __device__ __forceinline__ static Tile of(int number, int rank, int apart, int groups, int n, int band) {
    constexpr int kHeight = kBlocks * kTallRows;
    const int tiles_down = (groups + kHeight - 1) / kHeight * apart, tiles_across = (n + columns - 1) / columns;
    const int of_band = number / (band * tiles_across), within = number % (band * tiles_across);
    const int height = min(band, tiles_down - of_band * band), down = of_band * band + within % height;
    return {down % apart, down / apart * kHeight + rank * kTallRows, within / height * columns};
  }

  // Element along k, at most 0, where lines of the tile's rows of A begin. `pitch`: elements from a row to the next.
  template <class Element>
  __device__ __forceinline__ int start(int pitch) const {
    return -(first * (pitch % kDepth<Element>) % kDepth<Element>);
  }
};

// A and D are maps of three axes: row / apart, row % apart, column.
template <class Element, int columns, int stages, int buffers, bool boxed>
__global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kMultipliers + kLoaders, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap d, unsigned short* values,
         int m, int n, int k, int pitch, int band, int apart) {
  using Result = typename Element::Result;
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<Memory<columns, stages, buffers>>(dynamic);
  __shared__ Pipeline<stages> pipeline;
  if (threadIdx.x == kMultipliers) prefetch_map(a), prefetch_map(b), prefetch_map(d);
  pipeline.init(kMultiplierWarps * kBlocks);
  cluster_meet();

  const int rank = cluster_rank(), cluster = blockIdx.x / kBlocks, clusters = gridDim.x / kBlocks, groups = m / apart;
  constexpr int kHeight = kBlocks * kTallRows;
  const int tiles = (groups + kHeight - 1) / kHeight * apart * ((n + columns - 1) / columns);
  Ring<stages> ring;

  if (threadIdx.x >= kMultipliers) {
    for (int number = cluster; number < tiles; number += clusters) {
      const Tile tile = Tile::of<columns>(number, rank, apart, groups, n, band);
      for (int x = tile.start<Element>(pitch); x < k; x += kDepth<Element>, ring.next()) {
        Mbarrier* full = &pipeline.full[ring.stage];
        auto& stage = memory.stage[ring.stage];
        constexpr int kShare = columns / kBlocks;  // of the rows of B, which this block fetches for both
        mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
        if (threadIdx.x == kMultipliers) {
          mbarrier_arrive_expect(full, sizeof stage);
          tma_load(stage.a, a, x, tile.first, tile.group, full);
          tma_load_multicast(stage.b + rank * kShare * kRowBytes, b, x, tile.column + rank * kShare, full, (1u << kBlocks) - 1);
        }
      }
    }
  } else {
    const int warpgroup = threadIdx.x / 128, warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4;
    const auto release = [&](int of) {
      pipeline.release(of);
      if (lane == 0) mbarrier_arrive_remote(&pipeline.empty[of], rank ^ 1);
    };
    for (int number = cluster; number < tiles; number += clusters) {
      const Tile tile = Tile::of<columns>(number, rank, apart, groups, n, band);
      float sums[columns / 2];
      int previous = -1;
#pragma unroll 1
      for (int x = tile.start<Element>(pitch); x < k; x += kDepth<Element>) {
        const auto& now = memory.stage[ring.stage];
        mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
        const unsigned long long of_a = wgmma_operand(now.a + warpgroup * 64 * kRowBytes), of_b = wgmma_operand(now.b);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; ++i) wgmma(Element{}, sums, of_a + 2 * i, of_b + 2 * i, previous >= 0 || i > 0);
        wgmma_commit();
        wgmma_wait<1>();
        if (previous >= 0) release(previous);
        previous = ring.stage;
        ring.next();
      }
      wgmma_wait<0>();
      wgmma_keep(sums);
      release(previous);

      const int top = tile.group + warp * kBoxRows;
#pragma unroll
      for (int part = 0; part < columns / kBoxColumns; ++part) {
        const float* of = sums + 32 * part;
        const int left = tile.column + part * kBoxColumns;
        if constexpr (boxed) {
          unsigned* box = memory.boxes[warp][part % buffers];
          if (lane == 0) tma_store_wait_read<buffers - 1>();
          __syncwarp();
#pragma unroll
          for (int i = 0; i < 32; i += 2)
            box[(group + i % 4 / 2 * 8) * (kBoxColumns / 2) + (i / 4 ^ group) * 4 + lane % 4] = rounded_pair(Result{}, of[i], of[i + 1]);
          fence_proxy_async();
          __syncwarp();
          if (lane == 0) {
            if (left < n && top < groups) tma_store(d, left, tile.first, top, box);
            tma_store_commit();
          }
        } else {
#pragma unroll
          for (int i = 0; i < 32; i += 2) {
            const int down = top + group + i % 4 / 2 * 8;
            if (down < groups)
              store_pair(values, down * apart + tile.first, left + i / 4 * 8 + lane % 4 * 2, m, n, rounded_pair(Result{}, of[i], of[i + 1]));
          }
        }
      }
    }
    if (boxed && lane == 0) tma_store_wait_read<0>();  // shared memory is there until the TMA has read it
  }
  cluster_meet();  // before a block ends, no other writes to its shared memory any more
}
