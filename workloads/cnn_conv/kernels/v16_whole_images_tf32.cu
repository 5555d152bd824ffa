// Idea: An image at a time: seven bands of its rows stand side by side in a product, where v13_warpgroups_tf32 has rows of seven images. A
//     band has five output rows, and their sums are all in registers. The outputs of an image are one piece of 74 KB, in shared memory as in
//     global memory. One copy by the TMA stores them while the next image fills the second of two buffers. One copy loads an image, while
//     the one before is multiplied. Few images are shared out evenly.
// Bottleneck: Memory. On an H200 10,000 images take 295 us, and a kernel that only reads and writes as many bytes takes 255 us; on an H100
//     368 and 345 us. There the kernel takes 268 us without its stores, and 359 us without its products.
// Next: -
// Source: Own work; fragments and operands are those of PTX ISA, wgmma; warpgroups that take turns, J. Shah et al., "FlashAttention-3", 2024.

#include "../../hopper.cuh"
#include "../../hopper_stores.cuh"

constexpr int kSize = 7;
constexpr int kLanes = 32;
constexpr int kLayerMaps = 16;
constexpr int kLayerChannels = 4;
constexpr int kPairs = 64;           // of a warpgroup: two neighbouring outputs each
constexpr int kColumns = 32;         // of a filter row: maps, and both outputs of each
constexpr int kWords = 32;           // along k: channels, and eight pixels of each
constexpr int kSums = kColumns / 2;  // of an output row, a thread
constexpr int kWarpgroups = 2;       // that multiply
constexpr int kConsumers = kWarpgroups * 128;
constexpr int kConsumerWarps = kConsumers / kLanes;
constexpr int kThreads = kConsumers + 2 * kLanes;  // a warp loads, a warp stores
constexpr int kUnderWay = 2;  // products of an input row that are not done when the other warpgroup has its turn
constexpr int kBuffers = 2;   // of images, and of outputs

__device__ __forceinline__ unsigned rounded_bits(float x) { return __float_as_uint(x) + 0x1000u; }

struct Buffers {
  Mbarrier full[kBuffers], empty[kBuffers];
};

// kRows: output rows of a band. The last band is moved up to where it ends with the image.
template <int kHeight, int kWidth, int kRows>
struct Images {
  static_assert(kRows <= kSize && kWidth % 4 == 0);
  static constexpr int kOutHeight = kHeight - kSize + 1, kOutWidth = kWidth - kSize + 1, kAcross = kOutWidth / 2;
  static constexpr int kBands = (kOutHeight + kRows - 1) / kRows;
  static_assert(kBands * kAcross <= kWarpgroups * kPairs && kOutHeight >= kRows);
  static constexpr int kInPlane = kHeight * kWidth, kOutPlane = kOutHeight * kOutWidth;
  static constexpr int kIn = kLayerChannels * kInPlane, kOut = kLayerMaps * kOutPlane;
  // Maps of neighbouring lanes t are so many planes apart that lanes meet other banks.
  static constexpr int kApart = kOutPlane % 16 == 8 ? 1 : 2;

  struct Memory {
    unsigned filters[kSize * kColumns * kWords];
    float out[kBuffers][(kOut + 31) / 32 * 32];
    float in[kBuffers][(kIn + 31) / 32 * 32];
    Buffers in_buffers, out_buffers;
    Mbarrier turn[kWarpgroups], filled;
  };

  // By one lane.
  static __device__ __forceinline__ void load(Memory& memory, const TensorMap& x, int images) {
    Ring<kBuffers> at;
    for (int image = blockIdx.x; image < images; image += gridDim.x, at.next()) {
      mbarrier_wait(&memory.in_buffers.empty[at.stage], at.parity ^ 1);
      mbarrier_arrive_expect(&memory.in_buffers.full[at.stage], kIn * sizeof(float));
      tma_load(memory.in[at.stage], x, 0, image * kLayerChannels * kHeight, &memory.in_buffers.full[at.stage]);
    }
  }

  // By one lane.
  static __device__ __forceinline__ void store(Memory& memory, float* y, int images) {
    Ring<kBuffers> at;
    for (int image = blockIdx.x; image < images; image += gridDim.x, at.next()) {
      mbarrier_wait(&memory.out_buffers.full[at.stage], at.parity);
      tma_store_bytes(y + (size_t)image * kOut, memory.out[at.stage], kOut * sizeof(float));
      tma_store_commit();
      tma_store_wait_read<0>();
      mbarrier_arrive(&memory.out_buffers.empty[at.stage]);
    }
  }

  // By the consumers: filter row 6 - s in segment s.
  static __device__ __forceinline__ void fill(Memory& memory, const float* __restrict__ k, int thread) {
#pragma unroll 14
    for (int i = thread; i < kSize * kColumns * kWords / 2; i += kConsumers) {
      const int t = i % 4, c = i / 4 % kLayerChannels, column = i / 16 % kColumns, segment = i / 16 / kColumns;
      const int tap = 2 * t - column % 2;
      const float* row = k + ((map_of(column / 8, column % 8 / 2) * kLayerChannels + c) * kSize + kSize - 1 - segment) * kSize;
      const unsigned weights[2] = {rounded_bits(tap >= 0 ? __ldg(row + tap) : 0.0f),
                                   rounded_bits(tap + 1 < kSize ? __ldg(row + tap + 1) : 0.0f)};
#pragma unroll
      for (int half = 0; half < 2; ++half)
        memory.filters[(segment * kColumns + column) * kWords + ((2 * c + half) ^ column % 8) * 4 + t] = weights[half];
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
    int from, to;  // floats of an image, and of outputs in the first of the thread's maps
    int first;     // row of the band that is not the band's above too; kRows: there is no such pair

    __device__ __forceinline__ Pair(int pair, int t) {
      const int band = min(pair / Of::kAcross, Of::kBands - 1), left = pair % Of::kAcross * 2;
      const int top = min(band * kRows, Of::kOutHeight - kRows);
      from = top * kWidth + left + 2 * t;
      to = Of::map_of(0, t) * Of::kOutPlane + top * Of::kOutWidth + left;
      first = pair < Of::kBands * Of::kAcross ? band * kRows - top : kRows;
    }
  };

  Memory& memory;
  unsigned long long filters;
  Pair near_pair, far_pair;
  Ring<kBuffers> in, out;
  int warpgroup;
  unsigned turn_parity;
  float zero;  // unknown to the compiler
  float sums[kRows * kSums];
  unsigned pixels[kLayerChannels][4];
  float2 near[kLayerChannels], far[kLayerChannels];

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
    const float* image = memory.in[in.stage] + row * kWidth;
#pragma unroll
    for (int c = 0; c < kLayerChannels; ++c) {
      near[c] = *(const float2*)(image + near_pair.from + c * Of::kInPlane);
      far[c] = *(const float2*)(image + far_pair.from + c * Of::kInPlane);
    }
  }
  __device__ __forceinline__ void load_first_row() {
    mbarrier_wait(&memory.in_buffers.full[in.stage], in.parity);
    load_row<0>();
  }
  __device__ __forceinline__ void make_pixels() {
#pragma unroll
    for (int c = 0; c < kLayerChannels; ++c) {
      pixels[c][0] = rounded_bits(near[c].x), pixels[c][1] = rounded_bits(far[c].x);
      pixels[c][2] = rounded_bits(near[c].y), pixels[c][3] = rounded_bits(far[c].y);
    }
    keep_pixels();
  }
  __device__ __forceinline__ void keep_pixels() {
#pragma unroll
    for (int c = 0; c < kLayerChannels; ++c) wgmma_keep(pixels[c]);
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
    for (int c = 0; c < kLayerChannels; ++c) {
      wgmma_tf32(reinterpret_cast<float(&)[rows * kSums]>(sums), pixels[c], operand + 2 * c, true);
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
    float* to = memory.out[out.stage] + row * Of::kOutWidth;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int plane = Of::map_of(j, 0) * Of::kOutPlane, i = 4 * j;
      if (row >= near_pair.first) *(float2*)(to + near_pair.to + plane) = make_float2(sums[i], sums[i + 1]);
      if (row >= far_pair.first) *(float2*)(to + far_pair.to + plane) = make_float2(sums[i + 2], sums[i + 3]);
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
    conv_layer(const __grid_constant__ TensorMap x, const float* __restrict__ k, float* __restrict__ y, int images) {
  using Of = Images<kHeight, kWidth, kRows>;
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<typename Of::Memory>(dynamic);
  if (threadIdx.x == 0) {
    for (int s = 0; s < kBuffers; ++s) {
      mbarrier_init(&memory.in_buffers.full[s], 1), mbarrier_init(&memory.in_buffers.empty[s], kConsumerWarps);
      mbarrier_init(&memory.out_buffers.full[s], kConsumerWarps), mbarrier_init(&memory.out_buffers.empty[s], 1);
    }
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
