// Idea: One load instruction a row instead of three: the two pixels on either side come from the neighbouring lanes by
//     shuffle, and only a warp's first and last lane load theirs. A third of the requests to L1, and fewer registers to hold
//     what they bring; made for images that fill the GPU about once.
// Bottleneck: Shuffles use the pipe that loads use, four a row where two loads were saved, so that large images lose by
//     it. For small ones the launch and one trip to DRAM remain, which nothing inside the kernel can shorten.
// Next: None known. What is left lies outside the kernel: several images a launch, or a graph of launches.
// Source: Own work.

constexpr int kSize = 5;
constexpr int kRadius = kSize / 2;
constexpr int kLanes = 32;
constexpr int kColumns = 4;                    // outputs of a thread along a row
constexpr int kSpan = kColumns + 2 * kRadius;  // pixels that they need
constexpr unsigned kWholeWarp = 0xffffffffu;

__constant__ float filter[kSize * kSize];

// The 1 says that registers need not be spared for the sake of more blocks. Without it ptxas spares them all the same, by
// moving most loads down between the multiply-adds, where they wait for DRAM one after another.
template <int kRows, int kWarps, bool kVector>
__global__ void __launch_bounds__(kLanes * kWarps, 1)
    conv2d(const float* __restrict__ b, float* __restrict__ c, int height, int width) {
  const int lane = threadIdx.x;
  const int x = (blockIdx.x * kLanes + lane) * kColumns;
  const int top = (blockIdx.y * kWarps + threadIdx.y) * kRows;
  const int side = lane == 0 ? -kRadius : kColumns;  // where an outermost lane's two further pixels lie
  const bool outermost = lane == 0 ? 0 < x && x < width : lane == kLanes - 1 && x + kColumns < width;

  float4 centre[kRows + 2 * kRadius];  // columns x to x + 3
  float2 edge[kRows + 2 * kRadius];    // columns x + side and x + side + 1, of an outermost lane
  const float* from = b + (long long)(top - kRadius) * width + x;  // may lie before the image; read only where it does not
#pragma unroll
  for (int r = 0; r < kRows + 2 * kRadius; ++r) {
    // A predicate of each load: a branch would make the rows wait for one another.
    const bool inside = (unsigned)(top + r - kRadius) < (unsigned)height;
    const float* at = from + (long long)r * width;
    centre[r] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    edge[r] = make_float2(0.0f, 0.0f);
    if constexpr (kVector) {  // the width is a multiple of four, so rows are 16-byte aligned
      if (inside && x < width) centre[r] = __ldg((const float4*)at);
      if (inside && outermost) edge[r] = __ldg((const float2*)(at + side));
    } else {
      if (inside && x < width) centre[r].x = __ldg(at);
      if (inside && x + 1 < width) centre[r].y = __ldg(at + 1);
      if (inside && x + 2 < width) centre[r].z = __ldg(at + 2);
      if (inside && x + 3 < width) centre[r].w = __ldg(at + 3);
      if (inside && outermost) edge[r].x = __ldg(at + side);
      if (inside && outermost && x + side + 1 < width) edge[r].y = __ldg(at + side + 1);
    }
  }

  float sum[kRows][kColumns] = {};
#pragma unroll
  for (int r = 0; r < kRows + 2 * kRadius; ++r) {
    // Every lane takes part in the shuffles, those beyond the image too: none has returned.
    float pixel[kSpan] = {0.0f, 0.0f, centre[r].x, centre[r].y, centre[r].z, centre[r].w, 0.0f, 0.0f};
    pixel[0] = __shfl_up_sync(kWholeWarp, centre[r].z, 1);
    pixel[1] = __shfl_up_sync(kWholeWarp, centre[r].w, 1);
    pixel[6] = __shfl_down_sync(kWholeWarp, centre[r].x, 1);
    pixel[7] = __shfl_down_sync(kWholeWarp, centre[r].y, 1);
    if (lane == 0) pixel[0] = edge[r].x, pixel[1] = edge[r].y;
    if (lane == kLanes - 1) pixel[6] = edge[r].x, pixel[7] = edge[r].y;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const int m = r - k;  // the filter row that this input row meets in output row k
      if (m < 0 || m >= kSize) continue;
#pragma unroll
      for (int n = 0; n < kSize; ++n)
#pragma unroll
        for (int column = 0; column < kColumns; ++column)
          sum[k][column] = fmaf(filter[m * kSize + n], pixel[column + n], sum[k][column]);
    }
    const int done = r - 2 * kRadius;
    if (done < 0 || top + done >= height || x >= width) continue;
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
