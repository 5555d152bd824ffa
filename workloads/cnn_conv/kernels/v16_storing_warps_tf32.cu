// Idea: The products of v13_warpgroups_tf32 in blocks that have a warp for loads and three for stores. The TMA loads rows of pixels into a
//     ring of stages. Consumers put their outputs into another ring, and go on. The storing warps write the rows of a stage as they lie, 16
//     bytes a lane. A block has an equal share of all output rows, from any second row of any image on, so that all end together.
// Bottleneck: Stores of few rows of many planes, 272 bytes each for two rows: 376 us for 10,000 images of layer 2 on an H200, as
//     v13_warpgroups_tf32, and 48.8 us for 1000, where that takes 77.8, measured with a plane for each storing warp at a time. Without stores
//     it takes 223 us. A kernel that only stores two rows at a time takes 302 us, four rows 281, whole planes 198. With whole lines
//     instead, stored by the same three warps, the rung took 831 us, and with pieces of 272 bytes stored by the TMA 443 us.
// Next: Whole images in shared memory, which are stored as one piece.
// Source: Own work; fragments and operands are those of PTX ISA, wgmma; warpgroups that take turns, J. Shah et al., "FlashAttention-3", 2024.

#include "../../hopper.cuh"

constexpr int kSize = 7;
constexpr int kLanes = 32;
constexpr int kLayerMaps = 16;
constexpr int kLayerChannels = 4;
constexpr int kPairs = 64;           // of a warpgroup: two neighbouring outputs each
constexpr int kColumns = 32;         // of a filter row: maps, and both outputs of each
constexpr int kWords = 32;           // along k: channels, and eight pixels of each
constexpr int kSums = kColumns / 2;  // of a slot, a thread
constexpr int kSegments = 2 * kSize - 1;
constexpr int kWarpgroups = 2;  // that multiply
constexpr int kConsumers = kWarpgroups * 128;
constexpr int kConsumerWarps = kConsumers / kLanes;
constexpr int kStorers = 3 * kLanes;  // threads; a fourth warp loads
constexpr int kThreads = kConsumers + kStorers + kLanes;
constexpr int kInRows = 2;    // of a stage
constexpr int kAtOnce = 4;    // vectors that a storer reads before it writes them
constexpr int kUnderWay = 2;  // products of an input row that are not done when the other warpgroup has its turn
constexpr int kUnit = 2;      // output rows, of which shares are whole numbers: they begin at 16 bytes

__device__ __forceinline__ unsigned rounded_bits(float x) { return __float_as_uint(x) + 0x1000u; }

template <int stages>
struct Stages {
  Mbarrier full[stages], empty[stages];
};

// A share is cut into pieces: output rows of kImages images side by side. kOutRows: rows of a stage of outputs.
template <int kHeight, int kWidth, int kImages, int kInStages, int kOutRows, int kOutStages>
struct Convolution {
  static_assert(kHeight % 2 == 0 && kWidth % 4 == 0 && kOutRows % kUnit == 0);
  static constexpr int kOutHeight = kHeight - kSize + 1, kOutWidth = kWidth - kSize + 1, kAcross = kOutWidth / 2;
  static_assert(kImages * kAcross <= kWarpgroups * kPairs);
  static constexpr int kUnits = kOutHeight / kUnit;
  static constexpr int kOutPlane = kOutHeight * kOutWidth, kPlanes = kImages * kLayerMaps;
  static constexpr int kInPlane = kInRows * kWidth, kInFloats = kImages * kLayerChannels * kInPlane;  // of a stage
  static constexpr int kStage = kOutRows * kOutWidth;                                                 // floats of a plane
  // The stages of a plane stand behind one another. Planes are so far apart that lanes with neighbouring maps meet other banks.
  static constexpr int kRing = kOutStages * kStage, kRingStride = kRing + (24 - kRing % 16) % 16;

  struct Memory {
    unsigned filters[kSegments * kColumns * kWords];
    float in[kInStages][(kInFloats + 31) / 32 * 32];
    float out[kPlanes][kRingStride];
    Stages<kInStages> in_stages;
    Stages<kOutStages> out_stages;
    Mbarrier turn[kWarpgroups], filled;
  };
  struct Piece {
    int image, top, rows;
  };

  Memory& memory;
  int unit, end;  // of the share

  __device__ __forceinline__ Convolution(Memory& memory, int images) : memory(memory) {
    const long long units = (long long)((images + kImages - 1) / kImages) * kUnits;
    unit = units * blockIdx.x / gridDim.x, end = units * (blockIdx.x + 1) / gridDim.x;
  }

  __device__ __forceinline__ bool next(Piece& piece) {
    if (unit >= end) return false;
    const int first = unit % kUnits, count = min(end - unit, kUnits - first);
    piece = {unit / kUnits * kImages, first * kUnit, count * kUnit};
    unit += count;
    return true;
  }

  // By one lane. Rows below the images are zeros.
  __device__ __forceinline__ void load(const TensorMap& x) {
    Ring<kInStages> at;
    for (Piece piece; next(piece);)
      for (int row = 0; row < piece.rows + kSize - 1; row += kInRows, at.next()) {
        mbarrier_wait(&memory.in_stages.empty[at.stage], at.parity ^ 1);
        mbarrier_arrive_expect(&memory.in_stages.full[at.stage], kInFloats * sizeof(float));
        tma_load(memory.in[at.stage], x, (piece.top + row) * kWidth, piece.image * kLayerChannels, &memory.in_stages.full[at.stage]);
      }
  }

  // By the storing warps.
  __device__ __forceinline__ void store(float* y, int images, int thread) {
    Ring<kOutStages> at;
    for (Piece piece; next(piece);) {
      const int planes = min(kImages, images - piece.image) * kLayerMaps;
      for (int row = 0; row < piece.rows; row += kOutRows, at.next()) {
        mbarrier_wait(&memory.out_stages.full[at.stage], at.parity);
        write(y + (size_t)piece.image * kLayerMaps * kOutPlane + (piece.top + row) * kOutWidth, memory.out[0] + at.stage * kStage, planes,
              min(kOutRows, piece.rows - row) * kOutWidth / 4, thread);
        __syncwarp();
        if (threadIdx.x % kLanes == 0) mbarrier_arrive(&memory.out_stages.empty[at.stage]);
      }
    }
  }
  // The first `vectors` of each plane.
  __device__ __forceinline__ void write(float* to, const float* from, int planes, int vectors, int thread) {
    const int planes_on = kStorers / vectors, vectors_on = kStorers % vectors;
    int plane = thread / vectors, i = thread % vectors;
#pragma unroll 1
    while (plane < planes) {
      float4 vector[kAtOnce];
      int at[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        at[j] = plane < planes ? plane * kOutPlane + 4 * i : -1;
        if (at[j] >= 0) vector[j] = *(const float4*)(from + plane * kRingStride + 4 * i);
        plane += planes_on, i += vectors_on;
        if (i >= vectors) i -= vectors, ++plane;
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j)
        if (at[j] >= 0) *(float4*)(to + at[j]) = vector[j];
    }
  }

  // By the consumers: filter row (7 - s) % 7 in segment s, as in toeplitz_warpgroups.cuh.
  __device__ __forceinline__ void fill(const float* __restrict__ k, int thread) {
#pragma unroll 14
    for (int i = thread; i < kSize * kColumns * kWords / 2; i += kConsumers) {
      const int t = i % 4, c = i / 4 % kLayerChannels, column = i / 16 % kColumns, segment = i / 16 / kColumns;
      const int map = column / 2, tap = 2 * t - column % 2;
      const float* row = k + ((map * kLayerChannels + c) * kSize + (kSize - segment) % kSize) * kSize;
      const unsigned weights[2] = {rounded_bits(tap >= 0 ? __ldg(row + tap) : 0.0f),
                                   rounded_bits(tap + 1 < kSize ? __ldg(row + tap + 1) : 0.0f)};
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int word = column * kWords + ((2 * c + half) ^ column % 8) * 4 + t;
        memory.filters[segment * kColumns * kWords + word] = weights[half];
        if (segment + kSize < kSegments) memory.filters[(segment + kSize) * kColumns * kWords + word] = weights[half];
      }
    }
    fence_proxy_async();
  }
};

// A consumer's part: pairs g and g + 8 of its warp's 16, pixels 2t and 2t + 1 of each.
template <class Share, int kWidth, int kImages, int kInStages, int kOutRows, int kOutStages>
struct Strip : Share {
  using Share::memory;
  using typename Share::Memory;
  using typename Share::Piece;
  static constexpr int kAcross = Share::kAcross, kOutWidth = Share::kOutWidth;
  static constexpr int kInPlane = Share::kInPlane, kRingStride = Share::kRingStride;

  unsigned long long filters;
  int near_from, far_from;  // floats from the row on
  int near_to, far_to;      // negative: nowhere
  const float* row_from;    // the row that is loaded next
  float* row_to;            // where the row that is completed next stands
  int left_in, left_out;    // rows of the stage
  Ring<kInStages> in;
  Ring<kOutStages> out;
  int warpgroup;
  unsigned turn_parity;
  float zero;  // unknown to the compiler, which else keeps sixteen of them in registers
  float sums[kSize * kSums];
  unsigned pixels[kLayerChannels][4];
  float2 near[kLayerChannels], far[kLayerChannels];

  __device__ __forceinline__ Strip(Memory& memory, int images, int thread) : Share(memory, images) {
    const int pair = thread / kLanes * 16 + threadIdx.x % kLanes / 4, t = threadIdx.x % 4;
    warpgroup = __shfl_sync(~0u, thread / 128, 0);
    turn_parity = warpgroup == 0;
    zero = __int_as_float(images >> 31);  // of a positive number
    filters = wgmma_operand(memory.filters);
    near_from = from(pair) + 2 * t, far_from = from(pair + 8) + 2 * t;
    near_to = to(pair, t), far_to = to(pair + 8, t);
  }
  static __device__ __forceinline__ int from(int pair) {
    pair = min(pair, kImages * kAcross - 1);
    return pair / kAcross * kLayerChannels * kInPlane + pair % kAcross * 2;
  }
  static __device__ __forceinline__ int to(int pair, int t) {
    if (pair >= kImages * kAcross) return -1;
    return (pair / kAcross * kLayerMaps + t) * kRingStride + pair % kAcross * 2;
  }

  __device__ __forceinline__ void wait_for_rows() {
    mbarrier_wait(&memory.in_stages.full[in.stage], in.parity);
    row_from = memory.in[in.stage];
    left_in = kInRows;
  }
  // `anew`: the first row of a piece.
  __device__ __forceinline__ void load_row(bool anew) {
    if (anew || left_in == 0) {
      __syncwarp();
      if (threadIdx.x % kLanes == 0) mbarrier_arrive(&memory.in_stages.empty[in.stage]);
      in.next();
      wait_for_rows();
    }
    read_row();
  }
  __device__ __forceinline__ void read_row() {
#pragma unroll
    for (int c = 0; c < kLayerChannels; ++c) {
      near[c] = *(const float2*)(row_from + near_from + c * kInPlane);
      far[c] = *(const float2*)(row_from + far_from + c * kInPlane);
    }
    row_from += kWidth, --left_in;
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

  __device__ __forceinline__ void wait_for_turn() {
    mbarrier_wait(&memory.turn[warpgroup], turn_parity);
    turn_parity ^= 1;
  }
  __device__ __forceinline__ void pass_turn() {
    __syncwarp();
    if (threadIdx.x % kLanes == 0) mbarrier_arrive(&memory.turn[1 - warpgroup]);
  }

  // Adds the input row at hand to the first `slots` slots, and loads the next if there is one. Slot `completed` is put into shared memory.
  template <int slots, int completed>
  __device__ __forceinline__ void add(int segment, bool more, bool anew) {
    const unsigned long long operand = filters + segment * (kColumns * kWords / 4);
    wait_for_turn();
    keep_pixels();
    wgmma_fence();
#pragma unroll
    for (int c = 0; c < kLayerChannels; ++c) {
      wgmma_tf32(reinterpret_cast<float(&)[slots * kSums]>(sums), pixels[c], operand + 2 * c, true);
      wgmma_commit();
    }
    if (more) load_row(anew);
    wgmma_wait<kUnderWay>();
    pass_turn();
    wgmma_wait<0>();
    wgmma_keep(sums);
    if constexpr (completed >= 0) put(sums + completed * kSums);
    make_pixels();
  }

  __device__ __forceinline__ void put(const float* sums) {
    if (left_out == kOutRows) mbarrier_wait(&memory.out_stages.empty[out.stage], out.parity ^ 1);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (near_to >= 0) *(float2*)(row_to + near_to + 4 * j * kRingStride) = make_float2(sums[4 * j], sums[4 * j + 1]);
      if (far_to >= 0) *(float2*)(row_to + far_to + 4 * j * kRingStride) = make_float2(sums[4 * j + 2], sums[4 * j + 3]);
    }
    row_to += kOutWidth;
    if (--left_out == 0) pass_rows();
  }
  __device__ __forceinline__ void pass_rows() {
    __syncwarp();
    if (threadIdx.x % kLanes == 0) mbarrier_arrive(&memory.out_stages.full[out.stage]);
    out.next();
    begin_stage();
  }
  __device__ __forceinline__ void begin_stage() {
    row_to = memory.out[0] + out.stage * Share::kStage;
    left_out = kOutRows;
  }

  template <int slot>
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = slot * kSums; i < (slot + 1) * kSums; ++i) copy_register(sums[i], zero);
  }
  template <int slots>
  __device__ __forceinline__ void move_down() {
#pragma unroll
    for (int i = 0; i < slots * kSums; ++i) copy_register(sums[i], sums[i + kSums]);
  }

  // The first six input rows of a piece, which complete nothing.
  template <int r>
  __device__ __forceinline__ void begin() {
    if constexpr (r < kSize - 1) {
      add<r + 1, -1>((kSize - r) % kSize, true, false);
      begin<r + 1>();
    }
  }
  // Up to seven rows, each of which completes one. `last`: no other rows of the piece follow; `more`: rows follow.
  template <int s>
  __device__ __forceinline__ void turn(int& rows, bool last, bool more) {
    if constexpr (s < kSize) {
      --rows;
      add<kSize, s>((kSize + 1 - s) % kSize, rows > 0 || more, last && rows == 0);
      clear<s>();
      if (rows == 0) return;
      turn<s + 1>(rows, last, more);
    }
  }
  // The last six rows of a piece, where they stand in the first slots: fewer and fewer are under way.
  template <int s>
  __device__ __forceinline__ void shrink(bool more) {
    if constexpr (s < kSize - 1) {
      constexpr int slots = kSize - 1 - s;
      add<slots, 0>((kSize + 1 - s) % kSize + s, slots > 1 || more, slots == 1);
      move_down<slots - 1>();
      clear<slots - 1>();
      shrink<s + 1>(more);
    }
  }

  __device__ __forceinline__ void run() {
    Piece piece;
    bool more = this->next(piece);
    wait_for_rows();
    read_row();
    make_pixels();
    begin_stage();
#pragma unroll 1
    while (more) {
#pragma unroll
      for (int i = 0; i < kSize * kSums; ++i) sums[i] = 0.0f;
      wgmma_keep(sums);
      begin<0>();
      int rows = piece.rows;
      more = this->next(piece);
      const bool shrinks = rows % kSize == kSize - 1;
      rows -= shrinks ? kSize - 1 : 0;
#pragma unroll 1
      while (rows > 0) turn<0>(rows, !shrinks, shrinks || more);
      if (shrinks) shrink<0>(more);
      if (kOutRows > kUnit && left_out < kOutRows) pass_rows();
    }
  }
};

template <int kHeight, int kWidth, int kImages, int kInStages, int kOutRows, int kOutStages>
__global__ void __launch_bounds__(kThreads, 1)
    conv_layer(const __grid_constant__ TensorMap x, const float* __restrict__ k, float* __restrict__ y, int images) {
  using Share = Convolution<kHeight, kWidth, kImages, kInStages, kOutRows, kOutStages>;
  using Part = Strip<Share, kWidth, kImages, kInStages, kOutRows, kOutStages>;
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<typename Share::Memory>(dynamic);
  if (threadIdx.x == 0) {
    for (int s = 0; s < kInStages; ++s)
      mbarrier_init(&memory.in_stages.full[s], 1), mbarrier_init(&memory.in_stages.empty[s], kConsumerWarps);
    for (int s = 0; s < kOutStages; ++s)
      mbarrier_init(&memory.out_stages.full[s], kConsumerWarps), mbarrier_init(&memory.out_stages.empty[s], kStorers / kLanes);
    for (auto& turn : memory.turn) mbarrier_init(&turn, 4);
    mbarrier_init(&memory.filled, kConsumers);
    fence_mbarrier_init();
  }
  __syncthreads();
  const int thread = threadIdx.x - (kThreads - kConsumers);
  if (thread < 0) {
    give_registers<56>();
    if (threadIdx.x >= kLanes) Share(memory, images).store(y, images, threadIdx.x - kLanes);
    else if (threadIdx.x == 0) Share(memory, images).load(x);
    return;
  }
  take_registers<224>();
  Part part(memory, images, thread);
  part.fill(k, thread);
  mbarrier_arrive(&memory.filled);
  mbarrier_wait(&memory.filled, 0);
  part.run();
}
