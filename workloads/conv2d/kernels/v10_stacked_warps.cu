// Idea: The same strips, but a block's warps stand one above the other instead of side by side, so that strips which share
//     rows run on one multiprocessor and the second read hits L1. From L2 come (warps rows + 4) / (warps rows) times the
//     image, 1.25 at four warps of four rows, where v09_loads_first needs 2. Short strips cost little now, and short
//     strips mean many threads. Each input row is used up as it arrives: it is added into the up to five outputs that it
//     belongs to, and the output that it completes is stored.
// Bottleneck: DRAM bandwidth for large images, as the copy beside it shows; the launch and one trip to DRAM for small ones.
//     Between the two, all blocks load, compute and store at about the same time, and there is no second wave to overlap.
// Next: Fewer loads: two of the three a row fetch what neighbouring lanes hold already.
// Source: Own work.

constexpr int kSize = 5;
constexpr int kRadius = kSize / 2;
constexpr int kLanes = 32;
constexpr int kColumns = 4;                    // outputs of a thread along a row
constexpr int kSpan = kColumns + 2 * kRadius;  // pixels that they need

__constant__ float filter[kSize * kSize];

struct Row {
  float pixel[kSpan];  // columns x - 2 to x + 5
};

// The row of the image whose column x lies at `at`, zeros where there is no pixel. `inside`, whether there is such a row, is a
// predicate of each load: a branch would make the rows wait for one another.
// kVector: the width is a multiple of four, so that rows are 16-byte aligned.
template <bool kVector>
__device__ __forceinline__ Row load_row(const float* __restrict__ at, bool inside, int x, int width) {
  Row row = {};
  if constexpr (kVector) {
    float4 centre = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float2 left = make_float2(0.0f, 0.0f), right = left;
    if (inside) centre = __ldg((const float4*)at);
    if (inside && x > 0) left = __ldg((const float2*)(at - kRadius));
    if (inside && x + kColumns < width) right = __ldg((const float2*)(at + kColumns));
    row = {{left.x, left.y, centre.x, centre.y, centre.z, centre.w, right.x, right.y}};
  } else {
#pragma unroll
    for (int k = 0; k < kSpan; ++k) {
      const int column = x + k - kRadius;
      if (inside && 0 <= column && column < width) row.pixel[k] = __ldg(at + k - kRadius);
    }
  }
  return row;
}

// The 1 says that registers need not be spared for the sake of more blocks. Without it ptxas spares them all the same, by
// moving most loads down between the multiply-adds, where they wait for DRAM one after another.
template <int kRows, int kWarps, bool kVector>
__global__ void __launch_bounds__(kLanes * kWarps, 1)
    conv2d(const float* __restrict__ b, float* __restrict__ c, int height, int width) {
  const int x = (blockIdx.x * kLanes + threadIdx.x) * kColumns;
  const int top = (blockIdx.y * kWarps + threadIdx.y) * kRows;
  if (x >= width) return;

  Row strip[kRows + 2 * kRadius];
  const float* from = b + (long long)(top - kRadius) * width + x;  // may lie before the image; read only where it does not
#pragma unroll
  for (int r = 0; r < kRows + 2 * kRadius; ++r) {
    const bool inside = (unsigned)(top + r - kRadius) < (unsigned)height;
    strip[r] = load_row<kVector>(from + (long long)r * width, inside, x, width);
  }

  float sum[kRows][kColumns] = {};
#pragma unroll
  for (int r = 0; r < kRows + 2 * kRadius; ++r) {
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const int m = r - k;  // the filter row that this input row meets in output row k
      if (m < 0 || m >= kSize) continue;
#pragma unroll
      for (int n = 0; n < kSize; ++n)
#pragma unroll
        for (int column = 0; column < kColumns; ++column)
          sum[k][column] = fmaf(filter[m * kSize + n], strip[r].pixel[column + n], sum[k][column]);
    }
    const int done = r - 2 * kRadius;
    if (done < 0 || top + done >= height) continue;
    float* to = c + (size_t)(top + done) * width + x;
    if constexpr (kVector) {
      *(float4*)to = make_float4(sum[done][0], sum[done][1], sum[done][2], sum[done][3]);
    } else {
#pragma unroll
      for (int column = 0; column < kColumns; ++column)
        if (x + column < width) to[column] = sum[done][column];
    }
  }
}
