// Idea: One trip to memory, 16 bytes a load. A column is held in the registers of one warp (up to 1024 rows) or of a few, all its
//     loads in flight at once; largest value and sum come by shuffles, and the softmax reads each element once and writes it once. The
//     transposition turns 4x4 elements around in registers, so that shared memory is written and read by vectors too. Where extents
//     are no multiples of four, it writes whole sectors: 2777 x 6011 takes 35 us on an H200, and v02_coalesced 46.
// Bottleneck: Memory bandwidth at 8192 x 8192. At 1000 x 1000 the launch and one round trip to memory.
// Next: No kernel at all: these steps in the epilogue of the product before them (workload mlp_training).
// Source: Own work; shuffles after J. Luitjens, "Faster Parallel Reductions on Kepler", NVIDIA.

constexpr int kThreads = 256;
constexpr int kLanes = 32;
constexpr unsigned kWholeWarp = 0xffffffffu;

// ---- Element-wise: the matrix as it lies, whatever its shape. At most three elements fill no vector; the first threads have them.

struct Subtract {
  static __device__ float of(float a, float b) { return a - b; }
};
struct Multiply {
  static __device__ float of(float a, float b) { return a * b; }
};

template <class Of>
__device__ void combine(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, long long count) {
  const long long i = (long long)blockIdx.x * kThreads + threadIdx.x, whole = count / 4;
  if (i < whole) {
    const float4 a = ((const float4*)x)[i], b = ((const float4*)w)[i];
    ((float4*)y)[i] = make_float4(Of::of(a.x, b.x), Of::of(a.y, b.y), Of::of(a.z, b.z), Of::of(a.w, b.w));
  }
  const long long rest = 4 * whole + i;
  if (rest < count) y[rest] = Of::of(x[rest], w[rest]);
}

__global__ void __launch_bounds__(kThreads) subtract(const float* x, const float* w, float* y, long long count) {
  combine<Subtract>(x, w, y, count);
}

__global__ void __launch_bounds__(kThreads) multiply(const float* x, const float* w, float* y, long long count) {
  combine<Multiply>(x, w, y, count);
}

__device__ __forceinline__ float sigmoid_of(float x) { return 1.0f / (1.0f + expf(-x)); }

__global__ void __launch_bounds__(kThreads) sigmoid(const float* __restrict__ x, float* __restrict__ y, long long count) {
  const long long i = (long long)blockIdx.x * kThreads + threadIdx.x, whole = count / 4;
  if (i < whole) {
    const float4 a = ((const float4*)x)[i];
    ((float4*)y)[i] = make_float4(sigmoid_of(a.x), sigmoid_of(a.y), sigmoid_of(a.z), sigmoid_of(a.w));
  }
  const long long rest = 4 * whole + i;
  if (rest < count) y[rest] = sigmoid_of(x[rest]);
}

// ---- Transposition: tiles of 64 x 64, by vectors where rows and columns are multiples of four.

__global__ void __launch_bounds__(kThreads) transpose_vectors(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  constexpr int kTile = 64, kVectors = kTile / 4;
  __shared__ float4 tile[kTile][kVectors];  // vector v of line r lies at v ^ (r / 4), so that eight lanes always meet 32 banks
  const int top = blockIdx.x * kTile, left = blockIdx.y * kTile;
  const int across = threadIdx.x % kVectors, down = threadIdx.x / kVectors;
  const int row = top + 4 * across, column = left + 4 * down;
  if (row < rows && column < columns) {
    const float4* from = (const float4*)(x + (size_t)column * rows + row);
    const int pitch = rows / 4;
    const float4 a = from[0], b = from[pitch], c = from[2 * pitch], d = from[3 * pitch];
    const int at = down ^ across;
    tile[4 * across][at] = make_float4(a.x, b.x, c.x, d.x);
    tile[4 * across + 1][at] = make_float4(a.y, b.y, c.y, d.y);
    tile[4 * across + 2][at] = make_float4(a.z, b.z, c.z, d.z);
    tile[4 * across + 3][at] = make_float4(a.w, b.w, c.w, d.w);
  }
  __syncthreads();
  if (left + 4 * across >= columns) return;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int line = down + kVectors * k;
    if (top + line < rows) *(float4*)(y + (size_t)(top + line) * columns + left + 4 * across) = tile[line][across ^ (line / 4)];
  }
}

// Lines of y that begin within a sector of 32 bytes are written from the beginning of a sector to the end of one all the same: kShifted
// shifts them by up to seven elements against one another, and leaves eight columns of the tile to the next one. Else two blocks would
// write a part of a sector each.
template <bool kShifted>
__global__ void __launch_bounds__(kThreads, 4)
    transpose_elements(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  constexpr int kWidth = 64, kHeight = 64, kSector = 8;  // elements
  constexpr int kWritten = kShifted ? kHeight - kSector : kHeight, kLargestShift = kShifted ? kSector - 1 : 0;
  constexpr int kAcross = kWidth / kLanes, kDown = kHeight / kLanes, kWarps = kThreads / kLanes;
  constexpr int kLoads = kHeight * kAcross / kWarps, kStores = kWidth * kDown / kWarps;
  __shared__ float tile[kWidth][kHeight + 1];
  const int top = blockIdx.x * kWidth, left = blockIdx.y * kWritten - kLargestShift;
  const int warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;

  const int in_width = warp % kAcross * kLanes + lane, row = top + in_width;
  float value[kLoads];
#pragma unroll
  for (int k = 0; k < kLoads; ++k) {
    const int column = left + warp / kAcross + k * (kWarps / kAcross);
    if (row < rows && column >= 0 && column < columns) value[k] = x[(size_t)column * rows + row];
  }
#pragma unroll
  for (int k = 0; k < kLoads; ++k) tile[in_width][warp / kAcross + k * (kWarps / kAcross)] = value[k];
  __syncthreads();

  const int in_height = warp % kDown * kLanes + lane;
  if (in_height >= kWritten) return;
#pragma unroll
  for (int k = 0; k < kStores; ++k) {
    const int in_tile = warp / kDown + k * (kWarps / kDown), line = top + in_tile;
    const size_t start = (size_t)line * columns;
    const int at = in_height + kLargestShift - (kShifted ? start % kSector : 0), column = left + at;
    if (line < rows && column >= 0 && column < columns) y[start + column] = tile[in_tile][at];
  }
}

// ---- Columns.

struct Add {
  static __device__ float of(float a, float b) { return a + b; }
};
struct Largest {
  static __device__ float of(float a, float b) { return fmaxf(a, b); }
};

template <class Of>
__device__ __forceinline__ float of_warp(float value) {
#pragma unroll
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) value = Of::of(value, __shfl_xor_sync(kWholeWarp, value, lanes));
  return value;
}

// Every warp of the block gets the same value. `of_warps` has one place a warp, and is not used again.
template <class Of, int kWarps>
__device__ __forceinline__ float of_block(float value, float* of_warps) {
  value = of_warp<Of>(value);
  if constexpr (kWarps > 1) {
    if (threadIdx.x % kLanes == 0) of_warps[threadIdx.x / kLanes] = value;
    __syncthreads();
    value = of_warps[0];
#pragma unroll
    for (int warp = 1; warp < kWarps; ++warp) value = Of::of(value, of_warps[warp]);
  }
  return value;
}

// A warp a column, four partial sums a lane.
template <bool kVector>
__global__ void __launch_bounds__(128) column_sum(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  const int column = blockIdx.x * blockDim.y + threadIdx.y;
  if (column >= columns) return;
  const float* from = x + (size_t)column * rows;
  float sum[4] = {};
  if constexpr (kVector) {
    const float4* from4 = (const float4*)from;
#pragma unroll 4
    for (int i = threadIdx.x; i < rows / 4; i += kLanes) {
      const float4 a = from4[i];
      sum[0] += a.x, sum[1] += a.y, sum[2] += a.z, sum[3] += a.w;
    }
  } else {
#pragma unroll 2
    for (int first = threadIdx.x; first < rows; first += 4 * kLanes)
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (first + k * kLanes < rows) sum[k] += from[first + k * kLanes];
  }
  const float total = of_warp<Add>((sum[0] + sum[1]) + (sum[2] + sum[3]));
  if (threadIdx.x == 0) y[column] = total;
}

// A block of kWarps warps a column of at most 1024 * kWarps rows: 32 elements a thread. Beyond the column's end stands what adds
// nothing: exp of minus infinity.
template <int kWarps, bool kVector>
__global__ void __launch_bounds__(kLanes* kWarps) softmax(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  constexpr int kElements = 32, kWidth = kVector ? 4 : 1, kStep = kLanes * kWarps;
  __shared__ float largest_of_warps[kWarps], sum_of_warps[kWarps];
  const float* from = x + (size_t)blockIdx.x * rows;
  float* to = y + (size_t)blockIdx.x * rows;
  const float nothing = __uint_as_float(0xff800000u);  // minus infinity
  float value[kElements];
#pragma unroll
  for (int k = 0; k < kElements / kWidth; ++k) {
    const int row = (threadIdx.x + k * kStep) * kWidth;
    if constexpr (kVector) {
      float4 v = make_float4(nothing, nothing, nothing, nothing);
      if (row < rows) v = *(const float4*)(from + row);
      value[4 * k] = v.x, value[4 * k + 1] = v.y, value[4 * k + 2] = v.z, value[4 * k + 3] = v.w;
    } else {
      value[k] = row < rows ? from[row] : nothing;
    }
  }
  float largest = value[0];
#pragma unroll
  for (int k = 1; k < kElements; ++k) largest = fmaxf(largest, value[k]);
  largest = of_block<Largest, kWarps>(largest, largest_of_warps);
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < kElements; ++k) sum += value[k] = expf(value[k] - largest);
  const float scale = 1.0f / of_block<Add, kWarps>(sum, sum_of_warps);
#pragma unroll
  for (int k = 0; k < kElements / kWidth; ++k) {
    const int row = (threadIdx.x + k * kStep) * kWidth;
    if (row >= rows) continue;
    if constexpr (kVector)
      *(float4*)(to + row) =
          make_float4(value[4 * k] * scale, value[4 * k + 1] * scale, value[4 * k + 2] * scale, value[4 * k + 3] * scale);
    else
      to[row] = value[k] * scale;
  }
}
