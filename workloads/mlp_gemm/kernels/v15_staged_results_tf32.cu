// Idea: The way out takes the tensor cores' time, so it is made short. C comes into the stages of the pipeline, by TMA, as the last steps of a tile; when
//     the tile is done it is there. D is written over it, element for element by the thread that read it, without conflicts of banks, and a warp
//     beside the producer has the TMA store it. No thread waits for memory, and rows go out as whole lines.
// Bottleneck: The tensor cores.
// Next: -
// Source: Own work; PTX ISA, cp.async.bulk.tensor from shared to global memory.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "wgmma_tile.cuh"
#include "tf32_product.cuh"

#ifndef MODE
#define MODE 0
#endif

#ifdef HINT  // C and D are used once: leave A and B in L2
__device__ __forceinline__ unsigned long long once() {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ void load_once(void* shared, const TensorMap& map, int x, int y, Mbarrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(
          shared_address(shared)),
      "l"(&map), "r"(x), "r"(y), "r"(shared_address(barrier)), "l"(once())
      : "memory");
}
__device__ __forceinline__ void store_once(const TensorMap& map, int x, int y, const void* shared) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%1, %2}], [%3], %4;" ::"l"(&map), "r"(x), "r"(y),
               "r"(shared_address(shared)), "l"(once())
               : "memory");
}
#else
#define load_once tma_load
#define store_once tma_store
#endif

constexpr int kBox = 32;  // rows and columns of C and D in a box

// C in a stage: boxes of 32 x 32, four below one another, then the next columns.
template <int columns>
struct Parts {
  static constexpr int kColumns = (kRows + columns) * kDepth / kRows / kBox * kBox;  // that fit into a stage
  static constexpr int kCount = (columns + kColumns - 1) / kColumns;
  static __device__ __forceinline__ int boxes_across(int part) { return min(kColumns, columns - part * kColumns) / kBox; }
  static __device__ __forceinline__ float* box(Stage<columns>& stage, int down, int across) {
    return reinterpret_cast<float*>(&stage) + (across * (kRows / kBox) + down) * kBox * kBox;
  }
};

// First row and column of the tiles of a cluster, by their number, in bands of `band` tiles one above the other.
template <int columns, int blocks, int band>
__device__ __forceinline__ void place_tiles(int number, int m, int n, int& row, int& column) {
  constexpr int kTiles = band / blocks, kClusterRows = blocks * kRows;
  const int down = (m + kClusterRows - 1) / kClusterRows, across = (n + columns - 1) / columns;
  const int of_band = number / (kTiles * across), within = number % (kTiles * across);
  const int height = min(kTiles, down - of_band * kTiles);
  row = (of_band * kTiles + within % height) * kClusterRows;
  column = within / height * columns;
}

// alpha * sums + beta * C over C, for a box of 32 columns and the thread's 16 sums in it. Lanes of the upper rows take the two columns of a pair in the
// other order: so all lanes of a warp meet different banks.
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

  __device__ __forceinline__ void replace(float* box, const float* sums, float alpha, float beta) const {
    float old[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) old[i] = box[i / 4 * 8 * kBox + at[i % 2][i / 2 % 2]];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const float sum = upper ? sums[i ^ 1] : sums[i];
      box[i / 4 * 8 * kBox + at[i % 2][i / 2 % 2]] = alpha * sum + beta * old[i];
    }
  }
};

template <int columns, int stages, int blocks, int band>
__global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(kProducers + kConsumers, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap c,
         const __grid_constant__ TensorMap d, const float* c_values, int m, int n, int k, float alpha, float beta) {
  constexpr int kClusterRows = blocks * kRows, kConsumerWarps = kConsumers / 32;
  constexpr int kShare = columns / blocks;  // of B that a block fetches
  using Of = Parts<columns>;
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
#ifndef NOMAPS
  if (threadIdx.x == 32) prefetch_map(a), prefetch_map(b), prefetch_map(c), prefetch_map(d);
#endif
  pipeline.init(blocks * kConsumerWarps, kConsumerWarps);  // `split`: the consumers have written D into a stage
  if constexpr (blocks > 1) cluster_sync();

  const int rank = blocks > 1 ? cluster_rank() : 0, clusters = gridDim.x / blocks, first = blockIdx.x / blocks;
  const int tiles = ((m + kClusterRows - 1) / kClusterRows) * ((n + columns - 1) / columns);
  const int steps = steps_of(k);
#ifdef EARLY
  const int prefetch_from = 0;
#else
  const int prefetch_from = max(0, steps - 48);
#endif

  if (threadIdx.x < kProducers) {
    give_registers<40>();
    if (threadIdx.x < 32) {
      Ring<stages> ring;
      for (int tile = first; tile < tiles; tile += clusters) {
        int row, column;
        place_tiles<columns, blocks, band>(tile, m, n, row, column);
        row += rank * kRows;
        for (int step = 0; step < steps; ++step, ring.next()) {
          auto& now = stage[ring.stage];
          Mbarrier* full = &pipeline.full[ring.stage];
          mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
          if (threadIdx.x == 0) {
            mbarrier_arrive_expect(full, sizeof now);
            for (int box = 0; box < kRows / 32; ++box) tma_load(now.a + box * 32 * kDepth, a, row + box * 32, step * kDepth, full);
            if constexpr (blocks > 1)
              tma_load_multicast(now.b + rank * kShare * kDepth, b, step * kDepth, column + rank * kShare, full, (1 << blocks) - 1);
            else
              tma_load(now.b, b, step * kDepth, column, full);
          }
          if (MODE == 0 && step >= prefetch_from) prefetch_tile<columns>(c_values, row, column, m, n, step - prefetch_from);
        }
        if (MODE == 1) continue;
        for (int part = 0; part < Of::kCount; ++part, ring.next()) {
          mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
          if (threadIdx.x == 0) {
            Mbarrier* full = &pipeline.full[ring.stage];
            const int across = Of::boxes_across(part);
            if (MODE == 2) {
              mbarrier_arrive(full);
              continue;
            }
            mbarrier_arrive_expect(full, across * kRows * kBox * sizeof(float));
            for (int x = 0; x < across; ++x)
              for (int y = 0; y < kRows / kBox; ++y)
                load_once(Of::box(stage[ring.stage], y, x), c, row + y * kBox, column + part * Of::kColumns + x * kBox, full);
          }
        }
      }
    } else if (threadIdx.x < 64 && MODE != 1) {
      int position = 0;        // steps and parts so far
      unsigned parities = 0;   // of `split`, a bit a stage
      for (int tile = first; tile < tiles; tile += clusters) {
        int row, column;
        place_tiles<columns, blocks, band>(tile, m, n, row, column);
        row += rank * kRows;
        position += steps;
        for (int part = 0; part < Of::kCount; ++part, ++position) {
          const int at = position % stages;
          mbarrier_wait(&pipeline.split[at], parities >> at & 1);
          parities ^= 1u << at;
          if (threadIdx.x == 32) {
            for (int x = 0; x < Of::boxes_across(part); ++x)
              for (int y = 0; y < kRows / kBox; ++y) {
                const int to_row = row + y * kBox, to_column = column + part * Of::kColumns + x * kBox;
                if (to_row < m && to_column < n) store_once(d, to_row, to_column, Of::box(stage[at], y, x));
              }
            tma_store_commit();
            tma_store_wait_read<0>();
          }
          __syncwarp();
          if (threadIdx.x % 32 < kConsumerWarps) {
            mbarrier_arrive(&pipeline.empty[at]);
            for (int other = 1; other < blocks; ++other) mbarrier_arrive_remote(&pipeline.empty[at], (rank + other) % blocks);
          }
        }
      }
    }
  } else {
    take_registers<232>();
    const int thread = threadIdx.x - kProducers;
    const WgmmaFragments fragments(thread);
    const BoxShare share(thread);
    const auto release = [&](int of_stage) {
      pipeline.release(of_stage);
      if (threadIdx.x % 32 == 0)
        for (int other = 1; other < blocks; ++other) mbarrier_arrive_remote(&pipeline.empty[of_stage], (rank + other) % blocks);
    };
    Ring<stages> ring;
    for (int tile = first; tile < tiles; tile += clusters) {
      float sums[columns / 2];
      multiply_tile<columns>(sums, steps, stage, pipeline, ring, fragments, release);
      if (MODE == 1) {
        float all = 0;
#pragma unroll
        for (int i = 0; i < columns / 2; ++i) all += sums[i];
        if (all == 1.2345f) const_cast<float*>(c_values)[0] = all;
        continue;
      }
#pragma unroll
      for (int part = 0; part < Of::kCount; ++part) {
        mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
#pragma unroll
        for (int x = 0; x < Of::kColumns / kBox; ++x)
          if (part * Of::kColumns + x * kBox < columns)
            share.replace(Of::box(stage[ring.stage], thread / 64, x), sums + (part * Of::kColumns + x * kBox) / 2, alpha, beta);
        fence_proxy_async();
        __syncwarp();
        if (threadIdx.x % 32 == 0) mbarrier_arrive(&pipeline.split[ring.stage]);
        ring.next();
      }
    }
  }
  if constexpr (blocks > 1) cluster_sync();  // before a block ends, no other writes to its shared memory any more
}
