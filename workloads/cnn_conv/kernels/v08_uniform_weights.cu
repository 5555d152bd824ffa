// Idea: A warp a map. The number of a warp is the same in all its lanes, and `__shfl_sync` says so to the compiler, which then keeps
//     the map's 49 weights in uniform registers. A multiply-add thus reads two vector registers instead of three, which never
//     meet in one bank: 66 TFLOP/s instead of 50 on an H200. A thread slides down `columns` columns as in v06_sliding_rows, and
//     as it holds no weights, a multiprocessor has room for twice as many, enough to wait for DRAM without prefetching.
//     Height and width are known when compiling, so that addresses are constants.
// Bottleneck: Multiply-adds still: 25 GFLOP at 66 TFLOP/s take a fifth longer than the bytes.
// Next: Layer 2, whose 196 weights a map exceed the 63 uniform registers: a channel at a time.
// Source: Own work; the broadcast of a warp's number as in NVIDIA CUTLASS, canonical_warp_idx_sync.

constexpr int kSize = 7;
constexpr int kMaps = 4;
constexpr int kLanes = 32;

__constant__ float weights[kMaps * kSize * kSize];

template <int kHeight, int kWidth, int kColumns>
struct Strip {
  static constexpr int kSpan = kColumns + kSize - 1;  // pixels that `kColumns` outputs of a row need
  static constexpr int kOutWidth = kWidth - kSize + 1;
  // Output rows are 16-byte aligned, and so are even rows of the image; odd ones lie 8 bytes after such a place.
  static constexpr bool kAligned = kOutWidth % 4 == 0 && kHeight * kWidth % 4 == 0;

  const float* from;  // the next input row
  float* to;          // the next output row
  const float* weight;
  float sum[kSize - 1][kColumns];  // sum[i] is output row i below the oldest one in progress
  float pixel[2][kSpan];           // the input row at hand and the next one, by parity

  template <int kOdd>
  __device__ __forceinline__ void load_row() {
    float(&row)[kSpan] = pixel[kOdd];
    if constexpr (kAligned) {
      constexpr int kPair = kOdd ? 0 : kSpan - 2, kFours = kOdd ? 2 : 0;
#pragma unroll
      for (int i = kFours; i < kFours + kSpan - 2; i += 4) {
        const float4 four = __ldg((const float4*)(from + i));
        row[i] = four.x, row[i + 1] = four.y, row[i + 2] = four.z, row[i + 3] = four.w;
      }
      const float2 pair = __ldg((const float2*)(from + kPair));
      row[kPair] = pair.x, row[kPair + 1] = pair.y;
    } else {
#pragma unroll
      for (int i = 0; i < kSpan; ++i) row[i] = __ldg(from + i);
    }
    from += kWidth;
  }

  // The row at hand into the output rows kFirst to kLast below the oldest: at the top and bottom of the image there are no
  // others. The next row, if there is one, is on its way meanwhile.
  template <int kOdd, int kFirst, int kLast, bool kMore = true>
  __device__ __forceinline__ void step() {
    if constexpr (kMore) load_row<1 - kOdd>();
    float moved[kSize][kColumns];  // sums after this row: what is written elsewhere than it was read needs no move
#pragma unroll
    for (int i = kFirst; i <= kLast; ++i)
#pragma unroll
      for (int q = 0; q < kSize; ++q)
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          const float before = q > 0 ? moved[i][j] : i < kSize - 1 ? sum[i][j] : 0.0f;
          moved[i][j] = fmaf(weight[(kSize - 1 - i) * kSize + q], pixel[kOdd][j + q], before);
        }
    if constexpr (kFirst == 0) store(moved[0]);
#pragma unroll
    for (int i = kFirst > 1 ? kFirst : 1; i <= kLast; ++i)
#pragma unroll
      for (int j = 0; j < kColumns; ++j) sum[i - 1][j] = moved[i][j];
  }

  __device__ __forceinline__ void store(const float (&total)[kColumns]) {
#pragma unroll
    for (int j = 0; j < kColumns; j += 4)
      if constexpr (kAligned) {
        __stcs((float4*)(to + j), make_float4(total[j], total[j + 1], total[j + 2], total[j + 3]));
      } else {
#pragma unroll
        for (int k = j; k < j + 4; ++k) __stcs(to + k, total[k]);
      }
    to += kOutWidth;
  }
};

template <int kHeight, int kWidth, int kColumns>
__global__ void __launch_bounds__(kMaps * kLanes, kColumns > 4 ? 4 : 8)
    conv_layer(const float* __restrict__ x, float* __restrict__ y, int strips) {
  constexpr int kOutHeight = kHeight - kSize + 1, kOutWidth = kWidth - kSize + 1;
  constexpr int kAcross = (kOutWidth + kColumns - 1) / kColumns;
  const int m = __shfl_sync(~0u, threadIdx.x / kLanes, 0);
  const int strip = blockIdx.x * kLanes + threadIdx.x % kLanes;
  if (strip >= strips) return;
  const int b = strip / kAcross;
  // The last strip is moved back inside: it shares columns with its neighbour, and both write the same.
  const int left = min(strip % kAcross * kColumns, kOutWidth - kColumns);

  Strip<kHeight, kWidth, kColumns> s;
  s.from = x + (size_t)b * kHeight * kWidth + left;
  s.to = y + (size_t)(b * kMaps + m) * kOutHeight * kOutWidth + left;
  s.weight = weights + m * kSize * kSize;
#pragma unroll
  for (int i = 0; i < (kSize - 1) * kColumns; ++i) s.sum[i / kColumns][i % kColumns] = 0.0f;

  s.template load_row<0>();
  s.template step<0, 6, 6>();
  s.template step<1, 5, 6>();
  s.template step<0, 4, 6>();
  s.template step<1, 3, 6>();
  s.template step<0, 2, 6>();
  s.template step<1, 1, 6>();
#pragma unroll 1
  for (int row = kSize - 1; row + 1 < kOutHeight; row += 2) {
    s.template step<0, 0, 6>();
    s.template step<1, 0, 6>();
  }
  constexpr int kOdd = kOutHeight % 2;  // parity of the rows that follow
  if constexpr (kOdd) s.template step<0, 0, 6>();
  s.template step<kOdd, 0, 5>();
  s.template step<1 - kOdd, 0, 4>();
  s.template step<kOdd, 0, 3>();
  s.template step<1 - kOdd, 0, 2>();
  s.template step<kOdd, 0, 1>();
  s.template step<1 - kOdd, 0, 0, false>();
}
