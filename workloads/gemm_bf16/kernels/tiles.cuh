// What the rungs on warpgroups share: a stage of operands, the order of tiles, the product of a tile, and the ways out. D = A B^T; rows of A, B
// and D lie one behind the other, and both operands along k. After hopper_clusters.cuh, hopper_stores.cuh and hopper_low_precision.cuh.

constexpr int kRows = 128;      // of a tile: two consumer warpgroups of 64
constexpr int kRowBytes = 128;  // of a row of an operand in a stage: the span of the swizzle
constexpr int kProducers = 128, kConsumers = 256;
constexpr int kBoxRows = 16, kBoxColumns = 64;  // of D that a warp hands to the TMA: rows of 128 bytes

// `room`: columns of the stages in whose place it lies.
template <int columns, int room = columns>
struct Stage {
  unsigned char a[kRows * kRowBytes];
  unsigned char b[columns * kRowBytes];
  unsigned char rest[(room - columns) * kRowBytes];
};
template <int columns>
struct Stage<columns, columns> {
  unsigned char a[kRows * kRowBytes];
  unsigned char b[columns * kRowBytes];
};

// Elements along k in a stage.
template <class Element>
constexpr int kDepth = kRowBytes / sizeof(typename Element::Bits);

template <class Element>
__device__ __forceinline__ int steps_of(int k) {
  return (k + kDepth<Element> - 1) / kDepth<Element>;
}

#include "../../hopper_maps.cuh"

// Waits for all blocks of the cluster, without a fence: barriers are visible after fence_mbarrier_init().
__device__ __forceinline__ void cluster_meet() {
  cluster_arrive_relaxed();
  cluster_wait();
}

// How many tiles of clusters of `down` x `across` blocks cover D.
template <int columns, int down, int across>
__device__ __forceinline__ int tiles_of(int m, int n) {
  return ((m + down * kRows - 1) / (down * kRows)) * ((n + across * columns - 1) / (across * columns));
}

// A block within its cluster. Blocks of a row need the same rows of A, blocks of a column the same rows of B: each fetches a share for all.
template <int down, int across>
struct Place {
  int of_row, of_column;  // number among the blocks one below the other, and side by side

  __device__ __forceinline__ Place() : Place(down * across > 1 ? cluster_rank() : 0) {}
  __device__ __forceinline__ explicit Place(int rank) : of_row(rank % down), of_column(rank / down) {}

  // First row and column of the block's tile, by the number of the cluster's tile. `band` tiles of clusters one below the other are walked
  // together, so that what they read stays in L2.
  template <int columns>
  __device__ __forceinline__ void tile(int number, int band, int m, int n, int& row, int& column) const {
    constexpr int kHeight = down * kRows, kWidth = across * columns;
    const int tiles_down = (m + kHeight - 1) / kHeight, tiles_across = (n + kWidth - 1) / kWidth;
    const int of_band = number / (band * tiles_across), within = number % (band * tiles_across);
    const int height = min(band, tiles_down - of_band * band);
    row = (of_band * band + within % height) * kHeight + of_row * kRows;
    column = within / height * kWidth + of_column * columns;
  }

  // Asks for a stage, `x` elements along k.
  template <int columns, int room>
  __device__ __forceinline__ void fetch(Stage<columns, room>& stage, const TensorMap& a, const TensorMap& b, int row, int column, int x,
                                        Mbarrier* full) const {
    constexpr int kOfA = kRows / across, kOfB = columns / down;
    constexpr unsigned kRowMates = (across > 1 ? 1u << down : 0u) | 1u;
    mbarrier_arrive_expect(full, sizeof stage.a + sizeof stage.b);
    static_assert(across <= 2);
    if constexpr (across > 1)
      tma_load_multicast(stage.a + of_column * kOfA * kRowBytes, a, x, row + of_column * kOfA, full, kRowMates << of_row);
    else
      tma_load(stage.a, a, x, row, full);
    if constexpr (down > 1)
      tma_load_multicast(stage.b + of_row * kOfB * kRowBytes, b, x, column + of_row * kOfB, full, ((1u << down) - 1) << (of_column * down));
    else
      tma_load(stage.b, b, x, column, full);
  }

  // Releases a stage, by all lanes of a consumer's warp: to this block's producer, and to those of the blocks that write into it.
  template <int stages>
  __device__ __forceinline__ void release(Pipeline<stages>& pipeline, int stage) const {
    pipeline.release(stage);
    if (down * across > 1 && threadIdx.x % 32 == 0) {
      for (int other = 1; other < down; ++other)
        mbarrier_arrive_remote(&pipeline.empty[stage], of_column * down + (of_row + other) % down);
      for (int other = 1; other < across; ++other)
        mbarrier_arrive_remote(&pipeline.empty[stage], (of_column + other) % across * down + of_row);
    }
  }

  // Arrivals that make a stage empty.
  static constexpr int kReleases = kConsumers / 32 * (down + across - 1);
};

// sums = a * b of the stages that come next, for one of the warpgroups. release(stage) is called when a stage has been read, while the one after
// it is multiplied.
template <class Element, int columns, int room, int stages, class Release>
__device__ __forceinline__ void multiply_tile(float (&sums)[columns / 2], int steps, const Stage<columns, room>* stage,
                                              Pipeline<stages>& pipeline, Ring<stages>& ring, int warpgroup, Release release) {
  int previous = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const auto& now = stage[ring.stage];
    mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
    const unsigned long long a = wgmma_operand(now.a + warpgroup * 64 * kRowBytes), b = wgmma_operand(now.b);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; ++i) wgmma(Element{}, sums, a + 2 * i, b + 2 * i, step + i > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (step > 0) release(previous);
    previous = ring.stage;
    ring.next();
  }
  wgmma_wait<0>();
  wgmma_keep(sums);
  release(previous);
}

// Two neighbours of a row of D, of which the second or both may be outside.
__device__ __forceinline__ void store_pair(unsigned short* d, int row, int column, int m, int n, unsigned pair) {
  if (row >= m || column >= n) return;
  unsigned short* to = d + (long long)row * n + column;
  if (n % 2 == 0) {
    *reinterpret_cast<unsigned*>(to) = pair;
  } else {
    to[0] = (unsigned short)pair;
    if (column + 1 < n) to[1] = (unsigned short)(pair >> 16);
  }
}

// A consumer's share of a tile to D out of its registers.
template <class Result, int count>
__device__ __forceinline__ void store_tile(const float (&sums)[count], unsigned short* d, int row, int column, int m, int n) {
  const int thread = threadIdx.x % kConsumers, below = row + thread / 32 * 16 + thread % 32 / 4, right = column + thread % 4 * 2;
#pragma unroll
  for (int i = 0; i < count; i += 2)
    store_pair(d, below + i % 4 / 2 * 8, right + i / 4 * 8, m, n, rounded_pair(Result{}, sums[i], sums[i + 1]));
}

// Boxes of D in shared memory, `buffers` for each warp of the consumers.
template <int buffers>
struct Boxes {
  unsigned words[kConsumers / 32][buffers][kBoxRows * kBoxColumns / 2];
};

// The same by way of shared memory and the TMA, a warp's 16 rows and 64 columns at a time: words of a warp lie in different banks, and nobody
// waits for memory. D is a tensor map of such boxes.
template <class Result, int count, int buffers>
__device__ __forceinline__ void stage_tile(const float (&sums)[count], Boxes<buffers>& boxes, const TensorMap& d, int row, int column, int m,
                                           int n) {
  const int thread = threadIdx.x % kConsumers, warp = thread / 32, lane = thread % 32, group = lane / 4, step = lane % 4;
#pragma unroll
  for (int part = 0; part < count / 32; ++part) {
    unsigned* box = boxes.words[warp][part % buffers];
    if (lane == 0) tma_store_wait_read<buffers - 1>();
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 32; i += 2) {
      const int piece = i / 4 ^ group, below = group + i % 4 / 2 * 8;
      box[below * (kBoxColumns / 2) + piece * 4 + step] = rounded_pair(Result{}, sums[32 * part + i], sums[32 * part + i + 1]);
    }
    fence_proxy_async();
    __syncwarp();
    if (lane == 0) {
      const int x = column + part * kBoxColumns, y = row + warp * kBoxRows;
      if (x < n && y < m) tma_store(d, x, y, box);
      tma_store_commit();
    }
  }
}
