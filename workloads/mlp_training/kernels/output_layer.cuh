// The output layer for blocks that each have samples of their own, one behind the other: forward, back, and its part of the gradients
// while activations and differences are in registers. Gradients of the hidden layer leave transposed, samples as neighbours, four of a
// hidden unit at a time.

constexpr int kClasses = 10;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kSamples = 4;  // at a time; fewer than that are filled up with zeros
constexpr int kSums = kClasses + 1;
constexpr unsigned kWholeWarp = 0xffffffffu;

__device__ __forceinline__ float sum_of_warp(float value) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(kWholeWarp, value, lanes);
  return value;
}

// Adds up `count` values over the lanes of a warp, an eighth of them in each quad: value[i] of quad q becomes the sum of
// value[q * count / 8 + i]. Lanes exchange what the other half keeps: nearly one shuffle a value in place of five.
template <int count, int kept = count / 2, int lanes = 16>
__device__ __forceinline__ void sums_by_quads(float (&value)[count]) {
  const bool upper = threadIdx.x & lanes;
#pragma unroll
  for (int i = 0; i < kept; ++i) {
    const float given = upper ? value[i] : value[kept + i];
    value[i] = (upper ? value[kept + i] : value[i]) + __shfl_xor_sync(kWholeWarp, given, lanes);
  }
  if constexpr (lanes > 4) {
    sums_by_quads<count, kept / 2, lanes / 2>(value);
  } else {
#pragma unroll
    for (int i = 0; i < kept; ++i) {
      value[i] += __shfl_xor_sync(kWholeWarp, value[i], 2);
      value[i] += __shfl_xor_sync(kWholeWarp, value[i], 1);
    }
  }
}

// dz1[h][n], n up to `pitch`, and parts[block][c][h]: rows c < 10 are the block's share of the gradient of w2, in the column h = hidden of
// that of b2; row 10 is that of b1. A block has the samples [blockIdx.x * chunk, (blockIdx.x + 1) * chunk), chunk a multiple of four.
template <int kUnits>
__global__ void __launch_bounds__(kThreads, 1)
    forward_output(const float* __restrict__ a1, const float* __restrict__ w2, const float* __restrict__ b2, const float* __restrict__ y,
                   float* __restrict__ dz1, float* __restrict__ parts, int batch, int hidden, int pitch, int chunk) {
  constexpr int kValues = kSamples * kClasses;
  __shared__ float of_warps[kWarps][kValues], differences[kValues];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const bool has_class = warp < kSamples && lane < kClasses;  // a warp finishes a sample, a class a lane
  const float scale = 1.0f / batch, output_bias = has_class ? b2[lane] : 0.0f;
  float weight[kUnits][kClasses], of_w2[kUnits][kClasses] = {}, of_b1[kUnits] = {}, of_b2 = 0.0f;
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const int h = threadIdx.x + kThreads * u;
#pragma unroll
    for (int c = 0; c < kClasses; ++c) weight[u][c] = h < hidden ? w2[h * kClasses + c] : 0.0f;
  }
  const int last = min((int)(blockIdx.x + 1) * chunk, pitch);
#pragma unroll 1
  for (int n = blockIdx.x * chunk; n < last; n += kSamples) {
    const int finished = n + warp;
    const float label = has_class && finished < batch ? y[(size_t)finished * kClasses + lane] : 0.0f;
    float a[kSamples][kUnits], z[kValues] = {};
#pragma unroll
    for (int s = 0; s < kSamples; ++s)
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
        const int h = threadIdx.x + kThreads * u;
        a[s][u] = n + s < batch && h < hidden ? a1[(size_t)(n + s) * hidden + h] : 0.0f;
      }
#pragma unroll
    for (int s = 0; s < kSamples; ++s)
#pragma unroll
      for (int u = 0; u < kUnits; ++u)
#pragma unroll
        for (int c = 0; c < kClasses; ++c) z[s * kClasses + c] = fmaf(a[s][u], weight[u][c], z[s * kClasses + c]);
    sums_by_quads(z);
    if (lane % 4 == 0)
#pragma unroll
      for (int i = 0; i < kValues / 8; ++i) of_warps[warp][lane / 4 * (kValues / 8) + i] = z[i];
    __syncthreads();
    if (warp < kSamples) {
      float mine = output_bias;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) mine += has_class ? of_warps[w][warp * kClasses + lane] : 0.0f;
      float largest = has_class ? mine : __uint_as_float(0xff800000u);  // minus infinity
#pragma unroll
      for (int lanes = 16; lanes > 0; lanes /= 2) largest = fmaxf(largest, __shfl_xor_sync(kWholeWarp, largest, lanes));
      const float power = has_class ? expf(mine - largest) : 0.0f;
      const float share = power / sum_of_warp(power);
      const float difference = finished < batch ? (share - label) * scale : 0.0f;
      if (has_class) differences[warp * kClasses + lane] = difference;
      of_b2 += difference;
    }
    __syncthreads();
    float back[kUnits][kSamples] = {};
#pragma unroll
    for (int s = 0; s < kSamples; ++s)
#pragma unroll
      for (int c = 0; c < kClasses; ++c) {
        const float difference = differences[s * kClasses + c];
#pragma unroll
        for (int u = 0; u < kUnits; ++u) {
          back[u][s] = fmaf(difference, weight[u][c], back[u][s]);
          of_w2[u][c] = fmaf(difference, a[s][u], of_w2[u][c]);
        }
      }
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      const int h = threadIdx.x + kThreads * u;
#pragma unroll
      for (int s = 0; s < kSamples; ++s) back[u][s] *= a[s][u] * (1.0f - a[s][u]);
      of_b1[u] += (back[u][0] + back[u][1]) + (back[u][2] + back[u][3]);
      if (h < hidden) *(float4*)(dz1 + (size_t)h * pitch + n) = make_float4(back[u][0], back[u][1], back[u][2], back[u][3]);
    }
  }
  float* part = parts + (size_t)blockIdx.x * kSums * (hidden + 1);
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const int h = threadIdx.x + kThreads * u;
    if (h >= hidden) continue;
#pragma unroll
    for (int c = 0; c < kClasses; ++c) part[c * (hidden + 1) + h] = of_w2[u][c];
    part[kClasses * (hidden + 1) + h] = of_b1[u];
  }
  if (has_class) of_warps[0][warp * kClasses + lane] = of_b2;
  __syncthreads();
  if (threadIdx.x >= kClasses) return;
  float sum = 0.0f;
#pragma unroll
  for (int s = 0; s < kSamples; ++s) sum += of_warps[0][s * kClasses + threadIdx.x];
  part[threadIdx.x * (hidden + 1) + hidden] = sum;
}

// New weights and biases but w1, from all blocks' parts; `first` and `stride` are this thread's share.
__device__ __forceinline__ void update_small(const float* __restrict__ b1, const float* __restrict__ w2, const float* __restrict__ b2,
                                             float* __restrict__ new_b1, float* __restrict__ new_w2, float* __restrict__ new_b2,
                                             const float* __restrict__ parts, int count, int hidden, float rate, float keep, int first,
                                             int stride) {
  const int width = hidden + 1;
  for (int i = first; i < kSums * width - 1; i += stride) {  // the last one, row 10 of column hidden, is nobody's
    const int c = i / width, h = i % width;
    float sum = 0.0f;
#pragma unroll 16
    for (int part = 0; part < count; ++part) sum += parts[(size_t)part * kSums * width + i];
    if (c == kClasses)
      new_b1[h] = b1[h] - rate * sum;
    else if (h == hidden)
      new_b2[c] = b2[c] - rate * sum;
    else
      new_w2[h * kClasses + c] = keep * w2[h * kClasses + c] - rate * sum;
  }
}
