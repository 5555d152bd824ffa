// What follows a product whose sums along k may be cut into slices: the output layer adds up those of the way forward, the update those of
// the way back. Tiles of a product lie behind one another along k, each as `span` stages; a block has `share` stages of that line, so that
// the slices of a tile are the blocks that have a part of it.

#include "output_layer.cuh"

constexpr int kRows = 128;  // of a tile: on the way forward hidden units

struct Shares {
  int share, span;

  // The first block that has a part of a tile, and how many have.
  __device__ __forceinline__ int first_block(int tile) const { return tile * span / share; }
  __device__ __forceinline__ int slices(int tile) const { return ((tile + 1) * span - 1) / share - first_block(tile) + 1; }
};

// The division is off by two units of the last place at most; the fast exponential by less than TF32 is.
template <bool kTf32>
__device__ __forceinline__ float sigmoid(float z) {
  return __fdividef(1.0f, 1.0f + (kTf32 ? __expf(-z) : expf(-z)));
}

// The hidden layer's sigmoid, and the rest as forward_output of output_layer.cuh has it, from z1, slices of [sample][hidden unit], of tiles
// of kRows hidden units by `columns` samples; kWhole: one slice. The next samples are on their way while these are computed. kTf32: dz1[hidden unit][sample], rows of `pitch`, which is filled up with zeros;
// otherwise dz1[sample][hidden unit].
template <int kUnits, bool kTf32, bool kWhole>
__global__ void __launch_bounds__(kThreads, 1)
    output_layer(const float* __restrict__ z1, const float* __restrict__ w2, const float* __restrict__ b2,
                 const float* __restrict__ y, float* __restrict__ dz1, float* __restrict__ parts, int batch, int hidden, int pitch,
                 int chunk, int share, int span, int columns) {
  constexpr int kValues = kSamples * kClasses;
  __shared__ float of_warps[2][kWarps][kValues];         // two, as the next samples do not wait until all have read these
  __shared__ float4 differences[2][kValues / kSamples];  // of a class, for each sample
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const bool has_class = warp < kSamples && lane < kClasses;  // a warp finishes a sample, a class a lane
  const float scale = 1.0f / batch, output_bias = has_class ? b2[lane] : 0.0f;
  const size_t slice = (size_t)batch * hidden;
  const int down = (hidden + kRows - 1) / kRows;

  float next[kSamples][kUnits];
  const auto load = [&](int n) {
#pragma unroll
    for (int s = 0; s < kSamples; ++s)
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
        const int h = threadIdx.x + kThreads * u;
        next[s][u] = n + s < batch && h < hidden ? z1[(size_t)(n + s) * hidden + h] : 0.0f;
      }
    if constexpr (kWhole) return;
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      const int h = threadIdx.x + kThreads * u;
      const int slices = h < hidden ? Shares{share, span}.slices(n / columns * down + h / kRows) : 0;
#pragma unroll 4
      for (int other = 1; other < slices; ++other)
#pragma unroll
        for (int s = 0; s < kSamples; ++s)
          if (n + s < batch) next[s][u] += z1[other * slice + (size_t)(n + s) * hidden + h];
    }
  };
  const int first = blockIdx.x * chunk, last = min(first + chunk, (batch + kSamples - 1) / kSamples * kSamples);
  load(first);

  float weight[kUnits][kClasses], of_w2[kUnits][kClasses] = {}, of_b1[kUnits] = {}, of_b2 = 0.0f;
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const int h = threadIdx.x + kThreads * u;
#pragma unroll
    for (int c = 0; c < kClasses; c += 2) {
      const float2 two = h < hidden ? *(const float2*)(w2 + h * kClasses + c) : make_float2(0.0f, 0.0f);
      weight[u][c] = two.x, weight[u][c + 1] = two.y;
    }
  }
  float a[kSamples][kUnits], before[kSamples][kUnits];
  // A turn begins with samples and ends with the gradients of those before: while a warp finishes a sample, others have these to do.
#pragma unroll 1
  for (int n = first, turn = 0;; n += kSamples, turn ^= 1) {
    const int finished = n + warp;
    float label = 0.0f;
    if (n < last) {
      if (has_class && finished < batch) label = y[(size_t)finished * kClasses + lane];
#pragma unroll
      for (int s = 0; s < kSamples; ++s)
#pragma unroll
        for (int u = 0; u < kUnits; ++u) a[s][u] = sigmoid<kTf32>(next[s][u]);
      if (n + kSamples < last) load(n + kSamples);
      float z[kValues] = {};
#pragma unroll
      for (int s = 0; s < kSamples; ++s)
#pragma unroll
        for (int u = 0; u < kUnits; ++u)
#pragma unroll
          for (int c = 0; c < kClasses; ++c) z[s * kClasses + c] = fmaf(a[s][u], weight[u][c], z[s * kClasses + c]);
      sums_by_quads(z);
      if (lane % 4 == 0)
#pragma unroll
        for (int i = 0; i < kValues / 8; ++i) of_warps[turn][warp][lane / 4 * (kValues / 8) + i] = z[i];
    }
    __syncthreads();
    if (n < last && warp < kSamples) {
      float mine = output_bias;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) mine += has_class ? of_warps[turn][w][warp * kClasses + lane] : 0.0f;
      float largest = has_class ? mine : __uint_as_float(0xff800000u);  // minus infinity
#pragma unroll
      for (int lanes = 16; lanes > 0; lanes /= 2) largest = fmaxf(largest, __shfl_xor_sync(kWholeWarp, largest, lanes));
      const float power = has_class ? expf(mine - largest) : 0.0f;
      const float difference = finished < batch ? (power / sum_of_warp(power) - label) * scale : 0.0f;
      if (has_class) ((float*)differences[turn])[lane * kSamples + warp] = difference;
      of_b2 += difference;
    }
    if (n > first) {
      float back[kUnits][kSamples] = {};
#pragma unroll
      for (int c = 0; c < kClasses; ++c) {
        const float4 four = differences[turn ^ 1][c];
        const float difference[kSamples] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int u = 0; u < kUnits; ++u)
#pragma unroll
          for (int s = 0; s < kSamples; ++s) {
            back[u][s] = fmaf(difference[s], weight[u][c], back[u][s]);
            of_w2[u][c] = fmaf(difference[s], before[s][u], of_w2[u][c]);
          }
      }
      const int to = n - kSamples;
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
        const int h = threadIdx.x + kThreads * u;
#pragma unroll
        for (int s = 0; s < kSamples; ++s) back[u][s] *= before[s][u] * (1.0f - before[s][u]);
        of_b1[u] += (back[u][0] + back[u][1]) + (back[u][2] + back[u][3]);
        if constexpr (kTf32) {
          if (h < hidden) *(float4*)(dz1 + (size_t)h * pitch + to) = make_float4(back[u][0], back[u][1], back[u][2], back[u][3]);
        } else {
#pragma unroll
          for (int s = 0; s < kSamples; ++s)
            if (to + s < batch && h < hidden) dz1[(size_t)(to + s) * hidden + h] = back[u][s];
        }
      }
    }
    if (n >= last) break;
#pragma unroll
    for (int s = 0; s < kSamples; ++s)
#pragma unroll
      for (int u = 0; u < kUnits; ++u) before[s][u] = a[s][u];
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
  if (has_class) of_warps[0][0][warp * kClasses + lane] = of_b2;
  __syncthreads();
  if (threadIdx.x >= kClasses) return;
  float sum = 0.0f;
#pragma unroll
  for (int s = 0; s < kSamples; ++s) sum += of_warps[0][0][s * kClasses + threadIdx.x];
  part[threadIdx.x * (hidden + 1) + hidden] = sum;
}

// new = keep * old - rate * gradient, from slices of the gradient of w1, times the rate, and parts of the others. The first `blocks` blocks have w1, as it
// lies, the others b1, w2, b2. Tiles of the product are kInputs x kHidden; one of them lies `across` tiles behind its left neighbour, the
// next inputs, and `down` behind the one of the next hidden units.
template <int kInputs, int kHidden>
__global__ void __launch_bounds__(kThreads)
    update(const float* __restrict__ w1, const float* __restrict__ b1, const float* __restrict__ w2, const float* __restrict__ b2,
           float* __restrict__ new_w1, float* __restrict__ new_b1, float* __restrict__ new_w2, float* __restrict__ new_b2,
           const float* __restrict__ slices, const float* __restrict__ parts, int count, int inputs, int hidden, float rate, float keep,
           int share, int span, int across, int down, int blocks) {
  if (blockIdx.x >= blocks) {
    const int first = (blockIdx.x - blocks) * kThreads + threadIdx.x, stride = (gridDim.x - blocks) * kThreads;
    update_small(b1, w2, b2, new_b1, new_w2, new_b2, parts, count, hidden, rate, keep, first, stride);
    return;
  }
  const int i = blockIdx.x * kThreads + threadIdx.x, weights = inputs * hidden;
  if (i >= weights / 4) return;
  const int d = 4 * i / hidden, h = 4 * i % hidden;
  const int of_tile = Shares{share, span}.slices(d / kInputs * across + h / kHidden * down);
  const float4 old = ((const float4*)w1)[i];
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
  for (int s = 0; s < of_tile; ++s) {
    const float4 part = ((const float4*)(slices + (size_t)s * weights))[i];
    sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
  }
  ((float4*)new_w1)[i] =
      make_float4(keep * old.x - sum.x, keep * old.y - sum.y, keep * old.z - sum.z, keep * old.w - sum.w);
}
