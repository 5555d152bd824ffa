// Idea: Two pairs of tiles in shared memory. The loads of the next step start before the multiply-adds of this one and wait
//     in registers meanwhile; then they are stored into the pair that nobody reads. One barrier a step instead of two, and
//     memory's latency passes behind 512 multiply-adds a thread.
// Bottleneck: Shared memory and instructions beside the multiply-adds: a warp's tile is 128 x 16, for which it reads 144
//     floats a step; the fragments of a step are only asked for when those of the last are used up; and what is staged passes
//     through registers.
// Next: Warps of squarer tiles, fragments loaded a step ahead, copies that pass the registers by.
// Source: Own work; double buffering as in V. Volkov and J. Demmel, "Benchmarking GPUs to tune dense linear algebra", SC
//     2008.

constexpr int kTile = 128;  // rows and columns of D a block
constexpr int kDepth = 8;
constexpr int kThreads = 256;
constexpr int kPitch = kTile + 4;
constexpr int kPart = 4;    // a thread's 8 rows are twice 4 that follow one another, 64 apart; its columns alike
constexpr int kApart = 64;

// Up to four floats at `from` that are consecutive in memory; zeros for those from the `count`-th on.
// kVector: columns of A, B, C and D are multiples of four floats long, so that fours are whole and aligned.
template <bool kVector>
__device__ __forceinline__ float4 load4(const float* from, int count) {
  float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if constexpr (kVector) {
    if (count > 0) four = *(const float4*)from;
  } else {
    if (count > 0) four.x = from[0];
    if (count > 1) four.y = from[1];
    if (count > 2) four.z = from[2];
    if (count > 3) four.w = from[3];
  }
  return four;
}

// d = alpha * sums + beta * c for up to `count` floats.
template <bool kVector>
__device__ __forceinline__ void store4(float* d, const float* c, float4 sums, int count, float alpha, float beta) {
  const float4 old = load4<kVector>(c, count);
  const float4 four = make_float4(alpha * sums.x + beta * old.x, alpha * sums.y + beta * old.y,
                                  alpha * sums.z + beta * old.z, alpha * sums.w + beta * old.w);
  if constexpr (kVector) {
    if (count > 0) *(float4*)d = four;
  } else {
    if (count > 0) d[0] = four.x;
    if (count > 1) d[1] = four.y;
    if (count > 2) d[2] = four.z;
    if (count > 3) d[3] = four.w;
  }
}

template <bool kVector>
__global__ void __launch_bounds__(kThreads, 2)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ d,
         int m, int n, int k, float alpha, float beta) {
  __shared__ __align__(16) float a_tile[2][kDepth][kPitch];  // [buffer][step along k][row]
  __shared__ __align__(16) float b_tile[2][kDepth][kPitch];  // [buffer][step along k][column]
  const int thread = threadIdx.x;
  const int first_row = blockIdx.x * kTile, first_column = blockIdx.y * kTile;

  // What this thread loads of each tile: four rows of A, four steps of a column of B.
  const int a_step = thread / 32, a_row = thread % 32 * 4;
  const int b_step = thread % 2 * 4, b_column = thread / 2;
  const int rows_left = m - first_row - a_row;
  const float* from_a = a + (size_t)a_step * m + first_row + a_row;
  const float* from_b = b + (size_t)(first_column + b_column) * k + b_step;
  const bool column_exists = first_column + b_column < n;
  // What it computes.
  const int row = thread % 16 * kPart, column = thread / 16 * kPart;

  float4 of_a, of_b;
  const auto load = [&](int first) {
    of_a = load4<kVector>(from_a, first + a_step < k ? rows_left : 0);
    of_b = load4<kVector>(from_b, column_exists ? k - first - b_step : 0);
    from_a += (size_t)kDepth * m;
    from_b += kDepth;
  };
  const auto store = [&](int buffer) {
    *(float4*)&a_tile[buffer][a_step][a_row] = of_a;
    b_tile[buffer][b_step + 0][b_column] = of_b.x;
    b_tile[buffer][b_step + 1][b_column] = of_b.y;
    b_tile[buffer][b_step + 2][b_column] = of_b.z;
    b_tile[buffer][b_step + 3][b_column] = of_b.w;
  };

  float sums[2 * kPart][2 * kPart] = {};  // [column][row]
  load(0);
  store(0);
  __syncthreads();
  int buffer = 0;
  for (int first = 0; first < k; first += kDepth) {
    const bool more = first + kDepth < k;
    if (more) load(first + kDepth);
#pragma unroll 2  // unrolled whole, it takes more than the 128 registers that two blocks leave a thread
    for (int p = 0; p < kDepth; ++p) {
      float values[2 * kPart], weights[2 * kPart];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        *(float4*)&values[half * kPart] = *(const float4*)&a_tile[buffer][p][row + half * kApart];
        *(float4*)&weights[half * kPart] = *(const float4*)&b_tile[buffer][p][column + half * kApart];
      }
#pragma unroll
      for (int j = 0; j < 2 * kPart; ++j)
#pragma unroll
        for (int i = 0; i < 2 * kPart; ++i) sums[j][i] = fmaf(values[i], weights[j], sums[j][i]);
    }
    buffer ^= 1;
    if (more) store(buffer);  // its readers passed the barrier of the last step
    __syncthreads();
  }

#pragma unroll
  for (int j = 0; j < 2 * kPart; ++j) {
    const int of = first_column + column + j % kPart + j / kPart * kApart;
    if (of >= n) continue;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at_row = first_row + row + half * kApart;
      const size_t at = (size_t)of * m + at_row;
      const float* four = &sums[j][half * kPart];
      store4<kVector>(d + at, c + at, make_float4(four[0], four[1], four[2], four[3]), m - at_row, alpha, beta);
    }
  }
}
