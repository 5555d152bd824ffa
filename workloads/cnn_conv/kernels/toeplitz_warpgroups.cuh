// What the rungs on Hopper's warpgroups share. The products themselves are theirs, in a struct `Product`.
//
// As in toeplitz.cuh eight pixels of a channel make two neighbouring outputs, but a product is 64 such pairs, side by side, by all
// seven filter rows of all 16 maps:
//
//     64 pairs x 8 pixels   times   8 pixels x (7 filter rows x 16 maps x 2 outputs)   =   64 pairs x 224
//
// Pixels go through registers, straight from global memory; the filters are 224 columns in shared memory, made once a block, which
// stays until all tiles are done. An input row meets each filter row, and so adds to seven output rows, whose sums are a ring of
// seven slots in registers: output row r has slot r % 7, and is done and stored six input rows later. What slot j wants of
// input row r is filter row (r - j) % 7: which registers a product adds to is fixed, so it is the filters that turn. They stand
// in shared memory almost twice, as 13 segments, and a product begins at any of seven. Where an image begins and ends, fewer
// output rows are under way, in neighbouring slots: products have fewer columns there, and none is for nothing.

//
// A Product has kTerms instructions of kShapes shapes for a channel, which multiply kParts parts of pixels and weights; kEarly where there are
// registers to make the next row's fragments while this row's are multiplied.

constexpr int kLayerMaps = 16;
constexpr int kLayerChannels = 4;
constexpr int kWarpgroups = 2;
constexpr int kPairs = 64;            // of a warpgroup
constexpr int kColumns = 32;          // of a filter row: maps, and both outputs of each
constexpr int kWords = 32;            // along k, of 4 bytes: channels, and eight words of each
constexpr int kSums = kColumns / 2;   // of a slot, a thread
constexpr int kSegments = 2 * kSize - 1;
constexpr int kPrefetched = kSize - 1;  // rows that pixels are asked into L2 before they are loaded

// Columns of the right side, with kParts words for each weight, swizzled as wgmma reads them.
template <int kParts>
struct alignas(1024) Filters {
  unsigned word[kParts][kSegments][kColumns][kWords];
};

// By all threads of a block: filter row (7 - s) % 7 in segment s.
template <class Product>
__device__ __forceinline__ void fill(Filters<Product::kParts>& filters, const float* __restrict__ k) {
#pragma unroll 4
  for (int i = threadIdx.x; i < kSize * kColumns * kWords / 2; i += blockDim.x) {
    const int t = i % 4, c = i / 4 % kLayerChannels, column = i / 16 % kColumns, segment = i / 16 / kColumns;
    const int map = column / 2, tap = 2 * t - column % 2;
    const float* row = k + ((map * kLayerChannels + c) * kSize + (kSize - segment) % kSize) * kSize;
    const typename Product::Weights weights =
        Product::weights(tap >= 0 ? __ldg(row + tap) : 0.0f, tap + 1 < kSize ? __ldg(row + tap + 1) : 0.0f);
#pragma unroll
    for (int part = 0; part < Product::kParts; ++part)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int word = ((2 * c + half) ^ column % 8) * 4 + t;
        filters.word[part][segment][column][word] = weights.word[part][half];
        if (segment + kSize < kSegments) filters.word[part][segment + kSize][column][word] = weights.word[part][half];
      }
  }
  fence_proxy_async();
}

// Warpgroups take turns at the tensor cores, an input row each: while one multiplies, the other stores and loads. A turn is passed on when
// the last product has begun.
struct Turns {
  Mbarrier* barrier;  // of each warpgroup: its turn
  int mine;
  unsigned parity;

  static __device__ __forceinline__ void init(Mbarrier (&barrier)[kWarpgroups]) {
    if (threadIdx.x < kWarpgroups) mbarrier_init(&barrier[threadIdx.x], 4);
  }

  // The first warpgroup has the first turn.
  __device__ __forceinline__ Turns(Mbarrier (&barrier)[kWarpgroups], int mine)
      : barrier(barrier), mine(mine), parity(mine == 0) {}

  __device__ __forceinline__ void wait() {
    mbarrier_wait(&barrier[mine], parity);
    parity ^= 1;
  }

  __device__ __forceinline__ void pass(bool in_turn) {
    if (in_turn && threadIdx.x % kLanes == 0) mbarrier_arrive(&barrier[(mine + 1) % kWarpgroups]);
  }
};

// A thread's part of 64 pairs of outputs of all maps, `kRows` rows high. Pairs are numbered through the rows of a band of that height,
// the bands of an image, and the images; what would lie beyond is moved back inside, computed twice, and written alike.
template <class Product, int kHeight, int kWidth, int kRows, bool kTurns>
struct Strip {
  static_assert(kRows % kSize == kSize - 1);  // the last output rows stand in slots 0 to 5
  static constexpr int kOutHeight = kHeight - kSize + 1, kOutWidth = kWidth - kSize + 1;
  static constexpr int kAcross = (kOutWidth + 1) / 2, kBands = (kOutHeight + kRows - 1) / kRows;
  static constexpr bool kEven = kWidth % 2 == 0;  // pairs are 8-byte aligned
  static constexpr int kPlane = kHeight * kWidth, kOutPlane = kOutHeight * kOutWidth;

  const float* image;
  float* result;
  int pairs;
  unsigned long long filters;                       // first segment, as wgmma takes it
  int warp, g, t;                                   // of the warpgroup; as in the fragments of wgmma
  float sums[kSize * kSums];                        // seven slots
  float done[kSums];                                // an output row that is to be stored, if one is pending
  bool pending;
  float* to;                                        // where that row goes, or the next one
  typename Product::Pixels pixels[kLayerChannels];  // fragments of the input row that is multiplied next
  PixelRow row[kLayerChannels];                     // the input row after it, on its way
  const float *near, *far, *in_advance;             // where the one after that is loaded from, and a later one prefetched
  Turns turns;
  bool in_turn;

  __device__ __forceinline__ Strip(const float* x, float* y, int pairs, const Filters<Product::kParts>& of, const Turns& turns)
      : image(x), result(y), pairs(pairs), filters(wgmma_operand(&of)), turns(turns) {
    warp = threadIdx.x / kLanes % 4, g = threadIdx.x % kLanes / 4, t = threadIdx.x % 4;
  }

  struct Place {
    int b, top, left;
  };

  // The pair in row `row` of the warp's 16.
  __device__ __forceinline__ Place place(int tile, int row) const {
    const int pair = min(tile * kPairs + warp * 16 + row, pairs - 1);
    return {pair / (kAcross * kBands), min(pair / kAcross % kBands * kRows, kOutHeight - kRows),
            min(pair % kAcross * 2, kOutWidth - 2)};
  }

  __device__ __forceinline__ const float* pixels_of(const Place& p, int c) const {
    return image + ((size_t)p.b * kLayerChannels + c) * kPlane + p.top * kWidth + p.left;
  }

  __device__ __forceinline__ void go_to(int tile) {
    near = pixels_of(place(tile, g), 0) + 2 * t, far = pixels_of(place(tile, g + 8), 0) + 2 * t;
  }

  // A lane asks for two pairs of a channel, so that the warp asks for all that its pairs have of a row.
  __device__ __forceinline__ void go_to_in_advance(int tile) {
    const int lane = threadIdx.x % kLanes;
    in_advance = pixels_of(place(tile, lane % 8 * 2), lane / 8);
  }

  __device__ __forceinline__ void prefetch() { prefetch_l2(in_advance), in_advance += kWidth; }

  static __device__ __forceinline__ float2 load_pair(const float* at) {
    if constexpr (kEven) return __ldg((const float2*)at);
    return make_float2(__ldg(at), __ldg(at + 1));
  }

  __device__ __forceinline__ void load() {
#pragma unroll
    for (int c = 0; c < kLayerChannels; ++c) row[c] = {load_pair(near + c * kPlane), load_pair(far + c * kPlane)};
    near += kWidth, far += kWidth;
  }

  // Fragments of the row that was loaded; loads the next.
  __device__ __forceinline__ void make_pixels() {
#pragma unroll
    for (int c = 0; c < kLayerChannels; ++c) pixels[c] = Product::pixels(row[c]);
    keep_pixels();
    load();
  }

  // No fragment is made behind the fence before wgmma.
  __device__ __forceinline__ void keep_pixels() {
#pragma unroll
    for (int c = 0; c < kLayerChannels; ++c)
      for (auto& part : pixels[c].word) wgmma_keep(part);
  }

  // Adds the input row at hand to the first `slots` slots, whose filter rows begin at a segment. While the tensor cores are at it, what
  // the row before completed is stored, and the next row prepared. Then the sums of slot `completed` are taken out.
  template <int slots, int completed>
  __device__ __forceinline__ void add(int segment) {
    float(&of_slots)[slots * kSums] = reinterpret_cast<float(&)[slots * kSums]>(sums);
    constexpr int kSegment = kColumns * kWords / 4;  // in the 16 bytes that wgmma counts in
    const unsigned long long operand = filters + segment * kSegment;
    if constexpr (!Product::kEarly) make_pixels();
    if (in_turn) turns.wait();
    keep_pixels();
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < Product::kTerms * kLayerChannels; ++i) {
      const int c = i % kLayerChannels;
      if (Product::kShapes > 1 && c == 0 && i > 0) wgmma_fence();  // orders sums of one shape after those of another
      Product::multiply_add(of_slots, pixels[c], operand + 2 * c, kSegments * kSegment, i / kLayerChannels);
      if (i >= Product::kTerms * kLayerChannels - 2) wgmma_commit();
    }
    if (pending) store();
    pending = completed >= 0;
    if constexpr (Product::kEarly) make_pixels();
    prefetch();
    wgmma_wait<1>();
    turns.pass(in_turn);
    wgmma_wait<0>();
    wgmma_keep(sums);
    __syncwarp();  // no load or store moves to another row
    if constexpr (completed >= 0) move<completed * kSums, kSums>(done);
  }

  // Copies that stay copies: products want their sums in neighbouring registers, and the first always in the same.
  template <int from, int count, int size>
  __device__ __forceinline__ void move(float (&to)[size]) {
#pragma unroll
    for (int i = 0; i < count; ++i) copy_register(to[i], sums[from + i]);
  }

  static __device__ __forceinline__ void store_pair(float* at, float2 pair) {
    if constexpr (kEven)
      __stcs((float2*)at, pair);
    else
      __stcs(at, pair.x), __stcs(at + 1, pair.y);
  }

  // A thread has two pairs, g and g + 8, of map t of each four. Lanes 2 apart exchange one, so that a warp stores 16 neighbouring pairs
  // of two maps at a time.
  __device__ __forceinline__ void store() {
    const bool upper = t >= 2;
#pragma unroll
    for (int four = 0; four < kLayerMaps / 4; ++four) {
      const float* const of = done + four * 4;
      const float2 of_near = {of[0], of[1]}, of_far = {of[2], of[3]};
      const float2 mine = upper ? of_far : of_near, other = upper ? of_near : of_far;
      const float2 got = {__shfl_xor_sync(~0u, other.x, 2), __shfl_xor_sync(~0u, other.y, 2)};
      store_pair(to + four * 4 * kOutPlane, upper ? got : mine);
      store_pair(to + (four * 4 + 2) * kOutPlane, upper ? mine : got);
    }
    to += kOutWidth;
  }

  template <int slot>
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = slot * kSums; i < (slot + 1) * kSums; ++i) copy_register(sums[i], 0.0f);
  }

  // Input row r of the first six: output rows 0 to r.
  template <int r>
  __device__ __forceinline__ void begin() {
    if constexpr (r < kSize - 1) {
      add<r + 1, -1>((kSize - r) % kSize);
      if constexpr (r > 0) begin<r + 1>();
    }
  }

  // Seven input rows on, each of which completes the output row in slot s.
  template <int s>
  __device__ __forceinline__ void turn() {
    if constexpr (s < kSize) {
      add<kSize, s>((kSize + 1 - s) % kSize);
      clear<s>();
      turn<s + 1>();
    }
  }

  // The last six input rows, each of which completes the output row in slot 0; the others move down.
  template <int s>
  __device__ __forceinline__ void end(int next_tile) {
    if constexpr (s < kSize - 1) {
      constexpr int slots = kSize - 1 - s;
      if (s == (Product::kEarly ? kSize - 3 : kSize - 2)) go_to(next_tile);
      add<slots, 0>((kSize + 1 - s) % kSize + s);
      move<kSums, (slots - 1) * kSums>(sums);
      clear<slots - 1>();
      end<s + 1>(next_tile);
    }
  }

  // Tiles of 64 pairs, `step` apart.
  __device__ __forceinline__ void run(int tile, int step) {
    if (tile * kPairs >= pairs) return;
    go_to(tile), go_to_in_advance(tile);
    for (int r = 0; r < kPrefetched; ++r) prefetch();
    load();
    if constexpr (Product::kEarly) make_pixels();
#pragma unroll
    for (int i = 0; i < kSize * kSums; ++i) sums[i] = 0.0f;
    wgmma_keep(sums);
    pending = false;
    int rows = kRows;
    asm volatile("" : "+r"(rows));  // a loop, even where it has one turn: the compiler finds no registers for the rows as one piece
#pragma unroll 1
    for (; tile * kPairs < pairs; tile += step) {
      in_turn = kTurns && (tile + (kWarpgroups - 1 - turns.mine) * (int)gridDim.x) * kPairs < pairs;  // the other has a tile too
      begin<0>();
      const Place p = place(tile, g + t / 2 * 8);
      to = result + ((size_t)p.b * kLayerMaps + t % 2) * kOutPlane + p.top * kOutWidth + p.left;
      begin<1>();
#pragma unroll 1
      for (int r = kSize - 1; r < rows; r += kSize) turn<0>();
      go_to_in_advance(tile + step);
      end<0>(tile + step);
    }
    store();
  }
};

// What a block does: every tile that is its, 64 pairs a warpgroup at a time.
template <class Product, int kHeight, int kWidth, int kRows, bool kTurns>
__device__ __forceinline__ void convolve(const float* x, const float* k, float* y, int pairs) {
  extern __shared__ char memory[];
  __shared__ Mbarrier barrier[kWarpgroups];
  auto& filters = *aligned_1024<Filters<Product::kParts>>(memory);
  Turns::init(barrier);
  fill<Product>(filters, k);
  __syncthreads();
  const int warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0);
  Strip<Product, kHeight, kWidth, kRows, kTurns> strip(x, y, pairs, filters, Turns(barrier, warpgroup));
  strip.run(warpgroup * gridDim.x + blockIdx.x, kWarpgroups * gridDim.x);
}
