// What the rungs on tensor cores share: where a lane's pixels, weights and outputs lie, and in which order rows are multiplied.
// The products themselves are theirs, in a struct `Product`.
//
// Two neighbouring outputs of a row need eight pixels. As a matrix product over 16 such pairs and four maps:
//
//     16 pairs x 8 pixels   times   8 pixels x (4 maps x 2 outputs)   =   16 pairs x (4 maps x 2 outputs)
//
// In the column of a map's first output stand its seven weights of a filter row and a zero, in that of the second a zero and
// the weights: a Toeplitz matrix, of which 7 of 8 entries are useful. An input row that is loaded once meets seven filter
// rows, which belong to seven output rows. The pixels are numbered so that the two a lane holds of each pair are neighbours:
// k = t is pixel 2t and k = t + 4 is pixel 2t + 1.

constexpr int kSize = 7;
constexpr int kLanes = 32;
constexpr int kWarps = 4;
constexpr int kPairsPerWarp = 16;
constexpr int kMapsPerWarp = 4;
constexpr int kAhead = 3;  // rows that are loaded before they are used

// The bits of a number for a TF32 operand. Tensor cores drop the last 13 of them; half a unit of what is left, added first, makes that a
// rounding to the nearest. One addition, where cvt.rna takes several instructions to let NaN pass.
__device__ __forceinline__ unsigned rounded_bits(float x) { return __float_as_uint(x) + 0x1000u; }

// Pixels 2t and 2t + 1 of the pairs in rows g and g + 8 of a fragment.
struct PixelRow {
  float2 near, far;
};

// A lane's part of 16 pairs of outputs of four maps, `kRows` rows high. Pairs are numbered through the rows of a band of that
// height, the bands of an image, and the images. What would lie beyond the last column, band or pair is moved back inside:
// it is then computed twice, and both write the same.
template <class Product, int kChannels, int kMaps, int kHeight, int kWidth, int kRows>
struct Part {
  static constexpr int kOutHeight = kHeight - kSize + 1, kOutWidth = kWidth - kSize + 1, kInRows = kRows + kSize - 1;
  static constexpr int kAcross = (kOutWidth + 1) / 2, kBands = (kOutHeight + kRows - 1) / kRows;
  static constexpr bool kEven = kWidth % 2 == 0;      // pairs are 8-byte aligned
  static constexpr bool kFours = kOutWidth % 4 == 0;  // two pairs of outputs are 16-byte aligned, and a lane has both

  const float* image;  // where pixels and outputs of all images start
  float* result;
  const float* weight;  // filter row 0 of the map in column g
  int pairs, first_pair, first_map;
  int g, t;  // as in the fragments of mma

  __device__ __forceinline__ Part(const float* x, const float* k, float* y, int pairs) : image(x), result(y), pairs(pairs) {
    const int warp = blockIdx.x * kWarps + threadIdx.x / kLanes;
    g = threadIdx.x % kLanes / 4, t = threadIdx.x % 4;
    first_map = warp % (kMaps / kMapsPerWarp) * kMapsPerWarp;
    first_pair = warp / (kMaps / kMapsPerWarp) * kPairsPerWarp;
    weight = k + (first_map + g / 2) * kChannels * kSize * kSize;
  }

  struct Place {
    int b, top, left;
  };

  // The pair in row `row` of the fragments.
  __device__ __forceinline__ Place place(int row) const {
    const int pair = kFours ? min(first_pair + 2 * (row % 8), pairs - 2) + row / 8 : min(first_pair + row, pairs - 1);
    return {pair / (kAcross * kBands), min(pair / kAcross % kBands * kRows, kOutHeight - kRows),
            min(pair % kAcross * 2, kOutWidth - 2)};
  }

  __device__ __forceinline__ const float* pixels_of(const Place& p, int t) const {
    return image + ((size_t)p.b * kChannels * kHeight + p.top) * kWidth + p.left + 2 * t;
  }

  __device__ __forceinline__ float* outputs_of(const Place& p) const {
    return result + ((size_t)(p.b * kMaps + first_map + t) * kOutHeight + p.top) * kOutWidth + p.left;
  }

  // Row p of the filter at hand: the weights that meet pixels 2t and 2t + 1 in column g, which is a second output if g is odd.
  __device__ __forceinline__ typename Product::Weights weights(int p) const {
    const int tap = 2 * t - g % 2;
    const float* row = weight + p * kSize;
    return Product::weights(tap >= 0 ? __ldg(row + tap) : 0.0f, tap + 1 < kSize ? __ldg(row + tap + 1) : 0.0f);
  }

  static __device__ __forceinline__ float2 load_pair(const float* at) {
    if constexpr (kEven) return __ldg((const float2*)at);
    return make_float2(__ldg(at), __ldg(at + 1));
  }

  // Outputs 0 and 1 of the pair in row g, then of that in row g + 8.
  static __device__ __forceinline__ void store(float* near, float* far, const float (&sums)[4]) {
    if constexpr (kFours) {
      __stcs((float4*)near, make_float4(sums[0], sums[1], sums[2], sums[3]));
    } else if constexpr (kEven) {
      __stcs((float2*)near, make_float2(sums[0], sums[1]));
      __stcs((float2*)far, make_float2(sums[2], sums[3]));
    } else {
      __stcs(near, sums[0]), __stcs(near + 1, sums[1]), __stcs(far, sums[2]), __stcs(far + 1, sums[3]);
    }
  }

  // One channel: slides down the band with a ring of seven rows of sums, pixels straight from global memory. At the band's top
  // and bottom some of the sums belong to no output row, and are never stored: the tensor cores have time for that.
  __device__ __forceinline__ void slide() {
    static_assert(kChannels == 1);
    const Place near = place(g), far = place(g + 8);
    const float *near_from = pixels_of(near, t), *far_from = pixels_of(far, t);
    float *near_to = outputs_of(near) - (kSize - 1) * kOutWidth, *far_to = outputs_of(far) - (kSize - 1) * kOutWidth;
    typename Product::Weights filter[kSize];
#pragma unroll
    for (int p = 0; p < kSize; ++p) filter[p] = weights(p);
    float sum[kSize][4] = {};  // output row r in slot r % 7
    PixelRow row[kSize];       // input row r in slot r % 7, those that are under way
#pragma unroll
    for (int r = 0; r < kAhead; ++r) row[r] = {load_pair(near_from + r * kWidth), load_pair(far_from + r * kWidth)};
#pragma unroll 1
    for (int turn = 0; turn < kInRows; turn += kSize) {
#pragma unroll
      for (int s = 0; s < kSize; ++s) {
        if (turn + s >= kInRows) return;
        if (const int next = s + kAhead; turn + next < kInRows)
          row[next % kSize] = {load_pair(near_from + next * kWidth), load_pair(far_from + next * kWidth)};
        const typename Product::Pixels pixels = Product::pixels(row[s]);
#pragma unroll
        for (int term = 0; term < Product::kTerms; ++term)
#pragma unroll
          for (int p = 0; p < kSize; ++p) Product::multiply_add(sum[(s - p + kSize) % kSize], pixels, filter[p], term);
        float(&done)[4] = sum[(s + 1) % kSize];
        if (turn + s >= kSize - 1) store(near_to + s * kOutWidth, far_to + s * kOutWidth, done);
#pragma unroll
        for (int i = 0; i < 4; ++i) done[i] = 0.0f;
      }
      near_from += kSize * kWidth, far_from += kSize * kWidth;
      near_to += kSize * kOutWidth, far_to += kSize * kOutWidth;
    }
  }

  // Several channels, one after another: the sums of the whole band stay in registers, and a channel's weights are all that is
  // needed at a time. The block's warps have the same pairs and other maps. They share the pixels through shared memory, laid
  // out as fragments, where the next channel's arrive meanwhile.
  __device__ __forceinline__ void accumulate() {
    static_assert(kMaps == kWarps * kMapsPerWarp);
    constexpr int kCopies = kWarps / 2;  // input rows that the block copies at a time, two threads for a lane's near and far
    __shared__ float4 staged[2][kInRows][kLanes];
    const int lane = threadIdx.x % kLanes;
    const int far = threadIdx.x % 2, its_lane = threadIdx.x / 2 % kLanes, first_row = threadIdx.x / (2 * kLanes);
    const float* from = pixels_of(place(its_lane / 4 + 8 * far), its_lane % 4) + first_row * kWidth;
    const auto stage = [&](int c) {
      float2* to = (float2*)&staged[c % 2][first_row][its_lane] + far;
#pragma unroll
      for (int r = 0; r < kInRows; r += kCopies) {
        if (r + kCopies > kInRows && first_row >= kInRows % kCopies) continue;
        float2* const at = to + r * 2 * kLanes;
        const float* const pair = from + (c * kHeight + r) * kWidth;
        if constexpr (kEven) cp_async<8>(at, pair);
        else cp_async<4>(&at->x, pair), cp_async<4>(&at->y, pair + 1);
      }
    };

    float sum[kRows][4] = {};
    stage(0);
    cp_async_commit();
#pragma unroll 1
    for (int c = 0; c < kChannels; ++c, weight += kSize * kSize) {
      if (c + 1 < kChannels) stage(c + 1);
      cp_async_commit();
      typename Product::Weights filter[kSize];
#pragma unroll
      for (int p = 0; p < kSize; ++p) filter[p] = weights(p);
      cp_async_wait<1>();
      __syncthreads();
#pragma unroll
      for (int r = 0; r < kInRows; ++r) {
        const float4 both = staged[c % 2][r][lane];
        const typename Product::Pixels pixels = Product::pixels({make_float2(both.x, both.y), make_float2(both.z, both.w)});
#pragma unroll
        for (int term = 0; term < Product::kTerms; ++term)
#pragma unroll
          for (int p = 0; p < kSize; ++p)
            if (0 <= r - p && r - p < kRows) Product::multiply_add(sum[r - p], pixels, filter[p], term);
      }
      __syncthreads();  // all have read this channel
    }

    float *near_to = outputs_of(place(g)), *far_to = outputs_of(place(g + 8));
#pragma unroll
    for (int i = 0; i < kRows; ++i) store(near_to + i * kOutWidth, far_to + i * kOutWidth, sum[i]);
  }
};
