// Idea: An image at a time, as v16_whole_images_tf32 of `cnn_conv` has it: bands of its rows stand side by side in a product of a filter row. Two
//     neighbouring pixels of a channel are a word of wgmma's operand as they lie in memory, so that pixels go from shared memory to
//     the tensor cores without an instruction on them. A product of 16 terms has two channels. Results are rounded by twos, and an image of them,
//     37 KB, is one copy of the TMA.
// Bottleneck: 1,000 images take 24.2 us on an H200, twice what their bytes take from memory. A block has eight images at most then: what it does before the
//     first and after the last counts. The products of an image are 2,240 clocks by their sizes, in some 4,000 for each; moves of sums from row to row
//     and the turns of the two warpgroups are what else it does.
// Next: -
// Source: Own work; fragments and operands are those of PTX ISA, wgmma; warpgroups that take turns, J. Shah et al., "FlashAttention-3", 2024.

#include "../../hopper.cuh"
#include "../../hopper_bf16.cuh"
#include "../../hopper_stores.cuh"

constexpr int kSize = 7;
constexpr int kLanes = 32;
constexpr int kLayerMaps = 16;
constexpr int kLayerChannels = 4;
constexpr int kPairs = 64;           // of a warpgroup: two neighbouring outputs each
constexpr int kColumns = 32;         // of a filter row: maps, and both outputs of each
constexpr int kWords = 32;           // of a column in shared memory, half of which are used: eight pixels of four channels
constexpr int kProducts = 2;         // of an input row: two channels each
constexpr int kSums = kColumns / 2;  // of an output row, a thread
constexpr int kWarpgroups = 2;       // that multiply
constexpr int kConsumers = kWarpgroups * 128;
constexpr int kConsumerWarps = kConsumers / kLanes;
constexpr int kThreads = kConsumers + 2 * kLanes;  // a warp loads, a warp stores
constexpr int kUnderWay = 1;                       // products of an input row that are not done when the other warpgroup has its turn
constexpr int kInBuffers = 4, kOutBuffers = 2;     // of images

template <int buffers>
struct Buffers {
  Mbarrier full[buffers], empty[buffers];
};

// kRows: output rows of a band. The last band is moved up to where it ends with the image.
template <int kHeight, int kWidth, int kRows>
struct Images {
  static_assert(kRows <= kSize && kWidth % 8 == 0);
  static constexpr int kOutHeight = kHeight - kSize + 1, kOutWidth = kWidth - kSize + 1, kAcross = kOutWidth / 2;
  static constexpr int kBands = (kOutHeight + kRows - 1) / kRows;
  static_assert(kBands * kAcross <= kWarpgroups * kPairs && kOutHeight >= kRows);
  // Words of two elements.
  static constexpr int kInRow = kWidth / 2, kInPlane = kHeight * kInRow, kIn = kLayerChannels * kInPlane;
  static constexpr int kOutPlane = kOutHeight * kAcross, kOut = kLayerMaps * kOutPlane;
  // Maps of neighbouring lanes t are so many planes apart that lanes meet other banks.
  static constexpr int kApart = kOutPlane % 16 == 8 ? 1 : kOutPlane % 8 == 4 ? 2 : 4;

  struct Memory {
    unsigned filters[kSize * kColumns * kWords];
    unsigned out[kOutBuffers][(kOut + 31) / 32 * 32];
    unsigned in[kInBuffers][(kIn + 31) / 32 * 32];
    Buffers<kInBuffers> in_buffers;
    Buffers<kOutBuffers> out_buffers;
    Mbarrier turn[kWarpgroups], filled;
  };

  // By one lane.
  static __device__ __forceinline__ void load(Memory& memory, const TensorMap& x, int images) {
    Ring<kInBuffers> at;
    for (int image = blockIdx.x; image < images; image += gridDim.x, at.next()) {
      mbarrier_wait(&memory.in_buffers.empty[at.stage], at.parity ^ 1);
      mbarrier_arrive_expect(&memory.in_buffers.full[at.stage], kIn * sizeof(unsigned));
      tma_load(memory.in[at.stage], x, 0, image * kLayerChannels * kHeight, &memory.in_buffers.full[at.stage]);
    }
  }

  // By one lane.
  static __device__ __forceinline__ void store(Memory& memory, unsigned* y, int images) {
    Ring<kOutBuffers> at;
    for (int image = blockIdx.x; image < images; image += gridDim.x, at.next()) {
      mbarrier_wait(&memory.out_buffers.full[at.stage], at.parity);
      tma_store_bytes(y + (size_t)image * kOut, memory.out[at.stage], kOut * sizeof(unsigned));
      tma_store_commit();
      tma_store_wait_read<0>();
      mbarrier_arrive(&memory.out_buffers.empty[at.stage]);
    }
  }

  // By the consumers: filter row 6 - s in segment s. The eight pixels of a channel are one piece of a column, swizzled.
  static __device__ __forceinline__ void fill(Memory& memory, const unsigned short* __restrict__ k, int thread) {
#pragma unroll 14
    for (int i = thread; i < kSize * kColumns * kLayerChannels * 4; i += kConsumers) {
      const int t = i % 4, c = i / 4 % kLayerChannels, column = i / 16 % kColumns, segment = i / 16 / kColumns;
      const int tap = 2 * t - column % 2;
      const unsigned short* row = k + ((map_of(column / 8, column % 8 / 2) * kLayerChannels + c) * kSize + kSize - 1 - segment) * kSize;
      const unsigned first = tap >= 0 ? row[tap] : 0, second = tap + 1 < kSize ? row[tap + 1] : 0;
      memory.filters[(segment * kColumns + column) * kWords + (c ^ column % 8) * 4 + t] = first | second << 16;
    }
    fence_proxy_async();
  }
  // The map that lane t has in the j-th four of columns.
  static __device__ __forceinline__ int map_of(int j, int t) { return j % kApart + kApart * t + 4 * kApart * (j / kApart); }
};

// A consumer's part: pairs g and g + 8 of its warp's 16, pixels 2t and 2t + 1 of each.
template <int kHeight, int kWidth, int kRows>
struct Strip {
  using Of = Images<kHeight, kWidth, kRows>;
  using Memory = typename Of::Memory;
  static constexpr int kSteps = kRows + kSize - 1;  // input rows of a band

  // Two outputs of a row of a band, with those below it.
  struct Pair {
    int from, to;  // words of an image, and of results in the first of the thread's maps
    int first;     // row of the band that is not the band's above too; kRows: there is no such pair

    __device__ __forceinline__ Pair(int pair, int t) {
      const int band = min(pair / Of::kAcross, Of::kBands - 1), left = pair % Of::kAcross;
      const int top = min(band * kRows, Of::kOutHeight - kRows);
      from = top * Of::kInRow + left + t;
      to = Of::map_of(0, t) * Of::kOutPlane + top * Of::kAcross + left;
      first = pair < Of::kBands * Of::kAcross ? band * kRows - top : kRows;
    }
  };

  Memory& memory;
  unsigned long long filters;
  Pair near_pair, far_pair;
  Ring<kInBuffers> in;
  Ring<kOutBuffers> out;
  int warpgroup;
  unsigned turn_parity;
  float zero;  // unknown to the compiler
  float sums[kRows * kSums];
  unsigned pixels[kProducts][4], next[kProducts][4];

  __device__ __forceinline__ Strip(Memory& memory, int images, int thread)
      : memory(memory), near_pair(pair_of(thread), thread % 4), far_pair(pair_of(thread) + 8, thread % 4) {
    warpgroup = __shfl_sync(~0u, thread / 128, 0);
    turn_parity = warpgroup == 0;
    zero = __int_as_float(images >> 31);  // of a positive number
    filters = wgmma_operand(memory.filters);
  }
  static __device__ __forceinline__ int pair_of(int thread) { return thread / kLanes * 16 + thread % kLanes / 4; }

  __device__ __forceinline__ void release(Mbarrier& barrier) {
    __syncwarp();
    if (threadIdx.x % kLanes == 0) mbarrier_arrive(&barrier);
  }

  template <int row>
  __device__ __forceinline__ void load_row() {
    const unsigned* image = memory.in[in.stage] + row * Of::kInRow;
#pragma unroll
    for (int c = 0; c < kLayerChannels; ++c) {
      next[c / 2][c % 2 * 2] = image[near_pair.from + c * Of::kInPlane];
      next[c / 2][c % 2 * 2 + 1] = image[far_pair.from + c * Of::kInPlane];
    }
  }
  __device__ __forceinline__ void load_first_row() {
    mbarrier_wait(&memory.in_buffers.full[in.stage], in.parity);
    load_row<0>();
  }
  __device__ __forceinline__ void make_pixels() {
#pragma unroll
    for (int i = 0; i < kProducts * 4; ++i) pixels[i / 4][i % 4] = next[i / 4][i % 4];
    keep_pixels();
  }
  __device__ __forceinline__ void keep_pixels() {
#pragma unroll
    for (int i = 0; i < kProducts; ++i) wgmma_keep(pixels[i]);
  }

  // Adds input row `step` of the bands to the output rows that it meets, and loads the next. `more`: another image follows.
  template <int step>
  __device__ __forceinline__ void add(bool more) {
    constexpr int first = step < kSize ? 0 : step - kSize + 1, last = step < kRows ? step : kRows - 1, rows = last - first + 1;
    const unsigned long long operand = filters + (kSize - 1 - step + first) * (kColumns * kWords / 4);
    mbarrier_wait(&memory.turn[warpgroup], turn_parity);
    turn_parity ^= 1;
    keep_pixels();
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < kProducts; ++i) {
      wgmma_bf16(reinterpret_cast<float(&)[rows * kSums]>(sums), pixels[i], operand + 2 * i);
      wgmma_commit();
    }
    if constexpr (step + 1 < kSteps) {
      load_row<step + 1>();
    } else {
      release(memory.in_buffers.empty[in.stage]);
      in.next();
      if (more) load_first_row();
    }
    wgmma_wait<kUnderWay>();
    release(memory.turn[1 - warpgroup]);
    wgmma_wait<0>();
    wgmma_keep(sums);
    if constexpr (step >= kSize - 1) {
      put<first>();
      move_down<rows - 1>();
    }
    make_pixels();
  }

  // A row of the bands, which is complete in the first sums.
  template <int row>
  __device__ __forceinline__ void put() {
    if (row == 0) mbarrier_wait(&memory.out_buffers.empty[out.stage], out.parity ^ 1);
    unsigned* to = memory.out[out.stage] + row * Of::kAcross;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int plane = Of::map_of(j, 0) * Of::kOutPlane, i = 4 * j;
      if (row >= near_pair.first) to[near_pair.to + plane] = to_bf16_pair(sums[i], sums[i + 1]);
      if (row >= far_pair.first) to[far_pair.to + plane] = to_bf16_pair(sums[i + 2], sums[i + 3]);
    }
    if (row == kRows - 1) {
      fence_proxy_async();
      release(memory.out_buffers.full[out.stage]);
      out.next();
    }
  }

  // The rows below the first become the first: products want their sums in neighbouring registers, and the first always in the same.
  template <int rows>
  __device__ __forceinline__ void move_down() {
#pragma unroll
    for (int i = 0; i < rows * kSums; ++i) copy_register(sums[i], sums[i + kSums]);
#pragma unroll
    for (int i = rows * kSums; i < (rows + 1) * kSums; ++i) copy_register(sums[i], zero);
  }

  template <int step>
  __device__ __forceinline__ void add_from(bool more) {
    if constexpr (step < kSteps) {
      add<step>(more);
      add_from<step + 1>(more);
    }
  }

  __device__ __forceinline__ void run(int images) {
    load_first_row();
    make_pixels();
#pragma unroll
    for (int i = 0; i < kRows * kSums; ++i) copy_register(sums[i], zero);
#pragma unroll 1
    for (int image = blockIdx.x; image < images; image += gridDim.x) add_from<0>(image + gridDim.x < images);
  }
};

template <int kHeight, int kWidth, int kRows>
__global__ void __launch_bounds__(kThreads, 1)
    conv_layer(const __grid_constant__ TensorMap x, const unsigned short* __restrict__ k, unsigned* __restrict__ y, int images) {
  using Of = Images<kHeight, kWidth, kRows>;
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<typename Of::Memory>(dynamic);
  if (threadIdx.x == 0) {
    for (int s = 0; s < kInBuffers; ++s)
      mbarrier_init(&memory.in_buffers.full[s], 1), mbarrier_init(&memory.in_buffers.empty[s], kConsumerWarps);
    for (int s = 0; s < kOutBuffers; ++s)
      mbarrier_init(&memory.out_buffers.full[s], kConsumerWarps), mbarrier_init(&memory.out_buffers.empty[s], 1);
    for (auto& turn : memory.turn) mbarrier_init(&turn, 4);
    mbarrier_init(&memory.filled, kConsumers);
    fence_mbarrier_init();
  }
  __syncthreads();
  const int warp = __shfl_sync(~0u, threadIdx.x / kLanes, 0);
  if (warp == kConsumerWarps) {
    if (threadIdx.x % kLanes == 0) Of::load(memory, x, images);
  } else if (warp > kConsumerWarps) {
    if (threadIdx.x % kLanes == 0) Of::store(memory, y, images);
  } else {
    Of::fill(memory, k, threadIdx.x);
    mbarrier_arrive(&memory.filled);
    mbarrier_wait(&memory.filled, 0);
    Strip<kHeight, kWidth, kRows>(memory, images, threadIdx.x).run(images);
  }
}
