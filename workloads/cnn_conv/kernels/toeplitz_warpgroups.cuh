// What the rungs on Hopper's warpgroups share. The products themselves are theirs, in a struct `Product`.
//
// As in toeplitz.cuh eight pixels of a channel make two neighbouring outputs, but a product is 64 such pairs, side by side, by all
// seven filter rows of all 16 maps:
//
//     64 pairs x 8 pixels   times   8 pixels x (7 filter rows x 16 maps x 2 outputs)   =   64 pairs x 224
//
// Pixels go through registers, straight from global memory; the filters are 224 columns in shared memory, made once a block, which
// stays until all tiles are done. An input row meets each filter row, and so adds to seven output rows, whose sums are a ring of
// seven slots in registers: output row r has slot r % 7, and is done six input rows later. What slot j wants of
// input row r is filter row (r - j) % 7: which registers a product adds to is fixed, so it is the filters that turn. They stand
// in shared memory almost twice, as 13 segments, and a product begins at any of seven. Where an image begins and ends, fewer
// output rows are under way, in neighbouring slots: products have fewer columns there, and none is for nothing.
//
// Both warpgroups together have as many whole images as fit: 7 of 17 pairs across, 119 of 128. Where images are few, blocks have one
// warpgroup. Outputs leave by way of shared memory, which holds the last six output rows of each map of each image as they lie in
// global memory, one behind the other. Each second row all warps write what is new, in whole lines of 128 bytes: what is left of a
// row's last line goes with the next row. Written from registers instead, in pieces of 128 bytes or less that begin anywhere in rows of
// 136, half of all 32-byte sectors are written in part, twice.
//
// A Product has kTerms instructions of kShapes shapes for a channel, which multiply kParts parts of pixels and weights; kEarly where there are
// registers to make the next row's fragments while this row's are multiplied.

constexpr int kLayerMaps = 16;
constexpr int kLayerChannels = 4;
constexpr int kWarpgroups = 2;        // of a block, or one where its images need no more
constexpr int kWarpPairs = 16;
constexpr int kPairs = 4 * kWarpPairs;  // of a warpgroup
constexpr int kColumns = 32;          // of a filter row: maps, and both outputs of each
constexpr int kWords = 32;            // along k, of 4 bytes: channels, and eight words of each
constexpr int kSums = kColumns / 2;   // of a slot, a thread
constexpr int kSegments = 2 * kSize - 1;
constexpr int kUnderWay = 2;            // products of an input row that are not done when the other warpgroup has its turn
constexpr int kAtOnce = 4;              // vectors of outputs that a thread writes, one read after the other
constexpr int kPrefetched = kSize - 1;  // rows that pixels are asked into L2 before they are loaded
constexpr int kStaged = 6;              // output rows in shared memory: two that are written, one of which a part is left, two that are put

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

// Warpgroups take turns at the tensor cores, an input row each: while one multiplies, the other puts its outputs aside and loads. A turn is passed
// on when all but the last products are done. Whoever has a turn also knows that all warps have done what comes before their passing of the last.
template <int warpgroups>
struct Turns {
  Mbarrier* barrier;  // of each warpgroup: its turn
  int mine;
  unsigned parity;

  static __device__ __forceinline__ void init(Mbarrier (&barrier)[warpgroups]) {
    if (threadIdx.x < warpgroups) mbarrier_init(&barrier[threadIdx.x], 128);
  }

  // The first warpgroup has the first turn.
  __device__ __forceinline__ Turns(Mbarrier (&barrier)[warpgroups], int mine)
      : barrier(barrier), mine(mine), parity(mine == 0) {}

  __device__ __forceinline__ void wait() {
    mbarrier_wait(&barrier[mine], parity);
    parity ^= 1;
  }

  // Every thread says so for itself, so that each of its reads and writes is ordered.
  __device__ __forceinline__ void pass() { mbarrier_arrive(&barrier[(mine + 1) % warpgroups]); }
};

template <bool first, class A, class B>
struct Either {
  using Type = A;
};
template <class A, class B>
struct Either<false, A, B> {
  using Type = B;
};

// A thread's part of a tile: `kImages` images, the pairs of whose rows are numbered through, `kRows` output rows high. Tiles are the bands of
// that height of as many images, then of the next. What would lie beyond is moved back inside, and computed twice.
template <class Product, int kHeight, int kWidth, int kRows, int kImages>
struct Strip {
  static_assert(kRows % kSize == kSize - 1);  // the last output rows stand in slots 0 to 5
  static constexpr int kOutHeight = kHeight - kSize + 1, kOutWidth = kWidth - kSize + 1;
  static constexpr int kAcross = (kOutWidth + 1) / 2, kBands = (kOutHeight + kRows - 1) / kRows;
  static constexpr bool kEven = kWidth % 2 == 0;  // pairs are 8-byte aligned
  static constexpr int kPlane = kHeight * kWidth, kOutPlane = kOutHeight * kOutWidth;
  static constexpr int kPlanes = kImages * kLayerMaps, kRing = kStaged * kOutWidth;  // floats of a plane in shared memory
  static_assert(kImages * kAcross <= kWarpgroups * kPairs);
  static constexpr int kOfBlock = kImages * kAcross > kPairs ? 2 : 1, kBlockWarps = kOfBlock * 4;  // warpgroups
  // Outputs are written by 16 bytes where each second row and each band begins at a multiple of them, in whole lines; else one by one, in whole
  // sectors. Rows are no shorter.
  static constexpr bool kVectors = kOutWidth >= 32 && kEven && kOutPlane % 4 == 0 && kRows * kOutWidth % 4 == 0;
  using Vector = typename Either<kVectors, float4, float>::Type;
  static constexpr int kLine = kVectors ? 32 : kOutWidth >= 8 ? 8 : 1;
  static constexpr int kAlike = 8;  // lines begin alike in every eighth plane
  static_assert(kAlike * kOutPlane % kLine == 0);

  const float* image;
  float* result;
  int images;
  float* staged;                                    // six output rows of each map of each image
  int near_at, far_at;                              // where the thread's pairs stand in the first of them; negative: nowhere
  int row;                                          // output row of the band that is complete next
  int complete, leaving;                            // of the band's first so many rows the last are complete, or written next
  float* band;                                      // where the first image's first map has the band
  int planes;                                       // maps of all images that there are
  unsigned long long filters;                       // first segment, as wgmma takes it
  int warp, g, t;                                   // of the block; as in the fragments of wgmma
  float sums[kSize * kSums];                        // seven slots
  typename Product::Pixels pixels[kLayerChannels];  // fragments of the input row that is multiplied next
  PixelRow input[kLayerChannels];                   // the input row after it, on its way
  const float *near, *far, *in_advance;             // where the one after that is loaded from, and a later one prefetched
  Turns<kOfBlock> turns;
  float zero;                                       // unknown to the compiler, which else keeps sixteen of them in registers

  __device__ __forceinline__ Strip(const float* x, float* y, int images, const Filters<Product::kParts>& of, float* staged,
                                   const Turns<kOfBlock>& turns)
      : image(x), result(y), images(images), staged(staged), filters(wgmma_operand(&of)), turns(turns) {
    warp = threadIdx.x / kLanes, g = threadIdx.x % kLanes / 4, t = threadIdx.x % 4;
    zero = __int_as_float(images >> 31);  // of a positive number
    near_at = place(g), far_at = place(g + 8);
  }

  static __device__ __forceinline__ int left(int pair) { return min(pair % kAcross * 2, kOutWidth - 2); }

  // Where the pair in row `i` of the warp's 16 has its outputs of map t.
  __device__ __forceinline__ int place(int i) const {
    const int pair = warp * kWarpPairs + i;
    return pair < kImages * kAcross ? (pair / kAcross * kLayerMaps + t) * kRing + left(pair) : -1;
  }

  static __device__ __forceinline__ int first_image(int tile) { return tile / kBands * kImages; }
  static __device__ __forceinline__ int top(int tile) { return min(tile % kBands * kRows, kOutHeight - kRows); }

  __device__ __forceinline__ const float* pixels_of(int tile, int i, int c) const {
    const int pair = min(warp * kWarpPairs + i, kImages * kAcross - 1), b = min(first_image(tile) + pair / kAcross, images - 1);
    return image + ((size_t)b * kLayerChannels + c) * kPlane + top(tile) * kWidth + left(pair);
  }

  __device__ __forceinline__ void go_to(int tile) {
    near = pixels_of(tile, g, 0) + 2 * t, far = pixels_of(tile, g + 8, 0) + 2 * t;
  }

  // A lane asks for two pairs of a channel, so that the warp asks for all that its pairs have of a row.
  __device__ __forceinline__ void go_to_in_advance(int tile) {
    const int lane = threadIdx.x % kLanes;
    in_advance = pixels_of(tile, lane % 8 * 2, lane / 8);
  }

  __device__ __forceinline__ void prefetch() { prefetch_l2(in_advance), in_advance += kWidth; }

  static __device__ __forceinline__ float2 load_pair(const float* at) {
    if constexpr (kEven) return __ldg((const float2*)at);
    return make_float2(__ldg(at), __ldg(at + 1));
  }

  // Rows of a product that are no pair stay zeros, which take less power.
  __device__ __forceinline__ void load() {
#pragma unroll
    for (int c = 0; c < kLayerChannels; ++c) {
      if (near_at >= 0) input[c].near = load_pair(near + c * kPlane);
      if (far_at >= 0) input[c].far = load_pair(far + c * kPlane);
    }
    near += kWidth, far += kWidth;
  }

  // Fragments of the row that was loaded; loads the next.
  __device__ __forceinline__ void make_pixels() {
#pragma unroll
    for (int c = 0; c < kLayerChannels; ++c) pixels[c] = Product::pixels(input[c]);
    keep_pixels();
    load();
  }

  // No fragment is made behind the fence before wgmma.
  __device__ __forceinline__ void keep_pixels() {
#pragma unroll
    for (int c = 0; c < kLayerChannels; ++c)
      for (auto& part : pixels[c].word) wgmma_keep(part);
  }

  // Adds the input row at hand to the first `slots` slots, whose filter rows begin at a segment. While the tensor cores are at it, output
  // rows that both warpgroups completed a turn ago leave, and the next row is prepared. Then the sums of slot `completed` are put aside.
  // `writes`: there may be such rows.
  template <int slots, int completed, bool writes>
  __device__ __forceinline__ void add(int segment) {
    float(&of_slots)[slots * kSums] = reinterpret_cast<float(&)[slots * kSums]>(sums);
    constexpr int kSegment = kColumns * kWords / 4;  // in the 16 bytes that wgmma counts in
    const unsigned long long operand = filters + segment * kSegment;
    if constexpr (!Product::kEarly) make_pixels();
    turns.wait();
    keep_pixels();
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < Product::kTerms * kLayerChannels; ++i) {
      const int c = i % kLayerChannels;
      if (Product::kShapes > 1 && c == 0 && i > 0) wgmma_fence();  // orders sums of one shape after those of another
      Product::multiply_add(of_slots, pixels[c], operand + 2 * c, kSegments * kSegment, i / kLayerChannels);
      if (i >= Product::kTerms * kLayerChannels - 1 - kUnderWay) wgmma_commit();
    }
    if (writes && leaving > 0) write(leaving);
    leaving = complete, complete = 0;
    if constexpr (Product::kEarly) make_pixels();
    prefetch();
    wgmma_wait<kUnderWay>();
    turns.pass();
    wgmma_wait<0>();
    wgmma_keep(sums);
    __syncwarp();  // no load or store moves to another row
    if constexpr (completed >= 0) {
      put(near_at, sums + completed * kSums), put(far_at, sums + completed * kSums + 2);
      if (++row % 2 == 0 || row == kRows) complete = row;
    }
  }

  // A thread has two pairs, g and g + 8, of map t of each four.
  __device__ __forceinline__ void put(int at, const float* sums) {
    if (at < 0) return;
    float* to = staged + at + row % kStaged * kOutWidth;
#pragma unroll
    for (int four = 0; four < kLayerMaps / 4; ++four, to += 4 * kRing, sums += 4)
      if constexpr (kEven) {
        *(float2*)to = make_float2(sums[0], sums[1]);
      } else {
        if (at % 2 == 0) to[0] = sums[0];  // but not what the pair to the left has, where the last was moved
        to[1] = sums[1];
      }
  }

  // The last one or two of the band's first `rows`, up to the last whole line, and what was left of the row before.
  __device__ __forceinline__ void write(int rows) const {
#pragma unroll
    for (int i = 0; i < kAlike; i += kBlockWarps) write_planes(warp + i, rows);
  }
  // Of a plane and every eighth after it.
  __device__ __forceinline__ void write_planes(int start, int rows) const {
    constexpr int kEach = sizeof(Vector) / sizeof(float), kWhole = kLine / kEach, kMost = 2 * kOutWidth / kEach + kWhole - 1;
    Vector* const out = (Vector*)(band + start * kOutPlane);
    const Vector* const in = (const Vector*)(staged + start * kRing);
    const int count = planes - start;
    const int before = (size_t)out / sizeof(Vector) % kWhole;  // of the line in which the band begins
    const int from = (rows - 1) / 2 * 2 * kOutWidth / kEach, to = rows * kOutWidth / kEach;
    const int begin = max((before + from) / kWhole * kWhole - before, 0);
    const int end = rows == kRows ? to : (before + to) / kWhole * kWhole - before;
#pragma unroll 1
    for (int i = 0; i < kMost; i += kLanes) {
      const int at = begin + i + threadIdx.x % kLanes;
      if (at >= end) continue;
#pragma unroll
      for (int first = 0; first < kPlanes; first += kAtOnce * kAlike) {
        Vector vector[kAtOnce];
#pragma unroll
        for (int j = 0, plane = first; j < kAtOnce && plane < kPlanes; ++j, plane += kAlike)
          vector[j] = in[at % (kRing / kEach) + plane * kRing / kEach];
#pragma unroll
        for (int j = 0, plane = first; j < kAtOnce && plane < kPlanes; ++j, plane += kAlike)
          if (plane < count) __stcs(out + at + plane * kOutPlane / kEach, vector[j]);
      }
    }
  }

  template <int slot>
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = slot * kSums; i < (slot + 1) * kSums; ++i) copy_register(sums[i], zero);
  }

  // Copies that stay copies: products want their sums in neighbouring registers, and the first always in the same.
  template <int slots>
  __device__ __forceinline__ void move_down() {
#pragma unroll
    for (int i = 0; i < slots * kSums; ++i) copy_register(sums[i], sums[i + kSums]);
  }

  // Input rows r to 5: output rows 0 to r.
  template <int r>
  __device__ __forceinline__ void begin() {
    if constexpr (r < kSize - 1) {
      add<r + 1, -1, r < 2>((kSize - r) % kSize);
      begin<r + 1>();
    }
  }

  // Seven input rows on, each of which completes the output row in slot s.
  template <int s>
  __device__ __forceinline__ void turn() {
    if constexpr (s < kSize) {
      add<kSize, s, true>((kSize + 1 - s) % kSize);
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
      add<slots, 0, (kRows + s) % 2 == 1>((kSize + 1 - s) % kSize + s);
      move_down<slots - 1>();
      clear<slots - 1>();
      end<s + 1>(next_tile);
    }
  }

  // Tiles from one on, `step` apart.
  __device__ __forceinline__ void run(int tile, int step) {
    const int tiles = (images + kImages - 1) / kImages * kBands;
    go_to(tile), go_to_in_advance(tile);
    for (int r = 0; r < kPrefetched; ++r) prefetch();
    for (auto& pair : input) pair = {};
    load();
    if constexpr (Product::kEarly) make_pixels();
#pragma unroll
    for (int i = 0; i < kSize * kSums; ++i) sums[i] = 0.0f;
    wgmma_keep(sums);
    complete = leaving = 0;
    int rows = kRows;
    asm volatile("" : "+r"(rows));  // a loop, even where it has one turn: the compiler finds no registers for the rows as one piece
#pragma unroll 1
    for (; tile < tiles; tile += step) {
      begin<0>();  // in whose second turn the last tile's last rows leave
      band = result + (size_t)first_image(tile) * kLayerMaps * kOutPlane + top(tile) * kOutWidth;
      planes = min(kImages, images - first_image(tile)) * kLayerMaps;
      row = 0;
#pragma unroll 1
      for (int r = kSize - 1; r < rows; r += kSize) turn<0>();
      go_to_in_advance(tile + step);
      end<0>(tile + step);
    }
    __syncthreads();
    if (leaving > 0) write(leaving);
    write(kRows);
  }
};

// What a block does: every tile that is its.
template <class Product, int kHeight, int kWidth, int kRows, int kImages>
__device__ __forceinline__ void convolve(const float* x, const float* k, float* y, int images) {
  using Part = Strip<Product, kHeight, kWidth, kRows, kImages>;
  extern __shared__ char memory[];
  __shared__ Mbarrier barrier[Part::kOfBlock];
  auto& filters = *aligned_1024<Filters<Product::kParts>>(memory);
  Turns<Part::kOfBlock>::init(barrier);
  fill<Product>(filters, k);
  __syncthreads();
  const int warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0);
  Part part(x, y, images, filters, (float*)(&filters + 1), Turns<Part::kOfBlock>(barrier, warpgroup));
  part.run(blockIdx.x, gridDim.x);
}
