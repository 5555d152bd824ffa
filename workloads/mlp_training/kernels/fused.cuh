// The step in four launches. The two large products are cut into slices of their sums, so that there are blocks enough for the GPU; the
// kernel that needs a product adds its slices up, and does what else belongs to an element. `product_tile`, which writes a tile of one
// slice, is the including file's: template <bool kVector, bool kAcross> product_tile(operands, top, left, to, memory).

constexpr int kClasses = 10;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kWholeWarp = 0xffffffffu;

__device__ __forceinline__ float sum_of_warp(float value) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(kWholeWarp, value, lanes);
  return value;
}

// slices[s] = x w1 over the inputs [s * depth, (s + 1) * depth). Blocks: tiles across, tiles down, slices.
template <bool kVector>
__global__ void __launch_bounds__(kTileThreads, kVector ? kTileBlocks : kTileBlocks - 1)
    forward_hidden(const float* __restrict__ x, const float* __restrict__ w1, float* __restrict__ slices, int batch, int inputs, int hidden,
                   int depth) {
  __shared__ float4 memory[kTileMemory];
  const int first = blockIdx.z * depth;
  const Operands operands = {x, w1, inputs, batch, hidden, first, min(first + depth, inputs)};
  product_tile<kVector, false>(operands, blockIdx.y * kRows, blockIdx.x * kColumns, slices + (size_t)blockIdx.z * batch * hidden, memory);
}

// The hidden layer's bias and sigmoid, the output layer, softmax, its difference from the labels, and the gradient before the hidden
// layer's sigmoid. A block a sample at a time; a thread keeps the weights of its kUnits hidden units in registers for all of them.
template <int kUnits>
__global__ void __launch_bounds__(kThreads)
    forward_output(const float* __restrict__ slices, int count, const float* __restrict__ b1, const float* __restrict__ w2,
                   const float* __restrict__ b2, const float* __restrict__ y, float* __restrict__ a1, float* __restrict__ dz2,
                   float* __restrict__ dz1, int batch, int hidden) {
  __shared__ float of_warps[2][kWarps][kClasses];  // two, so that the next sample need not wait until all have read this one's
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const bool has_class = lane < kClasses;
  const float scale = 1.0f / batch, output_bias = has_class ? b2[lane] : 0.0f;
  float weight[kUnits][kClasses], bias[kUnits];
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const int h = threadIdx.x + kThreads * u;
    bias[u] = h < hidden ? b1[h] : 0.0f;
#pragma unroll
    for (int c = 0; c < kClasses; ++c) weight[u][c] = h < hidden ? w2[h * kClasses + c] : 0.0f;
  }
  for (int n = blockIdx.x, turn = 0; n < batch; n += gridDim.x, turn ^= 1) {
    float a[kUnits], z[kClasses] = {};
#pragma unroll
    for (int u = 0; u < kUnits; ++u) a[u] = bias[u];
#pragma unroll 4
    for (int s = 0; s < count; ++s)
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
        const int h = threadIdx.x + kThreads * u;
        if (h < hidden) a[u] += slices[((size_t)s * batch + n) * hidden + h];
      }
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      const int h = threadIdx.x + kThreads * u;
      a[u] = 1.0f / (1.0f + expf(-a[u]));
      if (h < hidden) a1[(size_t)n * hidden + h] = a[u];
#pragma unroll
      for (int c = 0; c < kClasses; ++c) z[c] = fmaf(a[u], weight[u][c], z[c]);
    }
#pragma unroll
    for (int c = 0; c < kClasses; ++c) {
      z[c] = sum_of_warp(z[c]);
      if (lane == 0) of_warps[turn][warp][c] = z[c];
    }
    __syncthreads();
    // Every warp finishes the sample for itself, a class a lane.
    float mine = output_bias;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) mine += has_class ? of_warps[turn][w][lane] : 0.0f;
    float largest = has_class ? mine : __uint_as_float(0xff800000u);  // minus infinity
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) largest = fmaxf(largest, __shfl_xor_sync(kWholeWarp, largest, lanes));
    const float power = has_class ? expf(mine - largest) : 0.0f;
    const float share = power / sum_of_warp(power);
    const float difference = has_class ? (share - y[(size_t)n * kClasses + lane]) * scale : 0.0f;
    if (warp == 0 && has_class) dz2[(size_t)n * kClasses + lane] = difference;
    float back[kUnits] = {};
#pragma unroll
    for (int c = 0; c < kClasses; ++c) {
      const float of_class = __shfl_sync(kWholeWarp, difference, c);
#pragma unroll
      for (int u = 0; u < kUnits; ++u) back[u] = fmaf(of_class, weight[u][c], back[u]);
    }
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      const int h = threadIdx.x + kThreads * u;
      if (h < hidden) dz1[(size_t)n * hidden + h] = back[u] * a[u] * (1.0f - a[u]);
    }
  }
}

// One block's part of the gradients of w2, b2 and b1: 32 hidden units and `chunk` samples. In parts[number][c][h], rows c < 10 are those of
// w2, in the column h = hidden, whose activation is 1, of b2; row 10 is that of b1.
__device__ __forceinline__ void output_gradient(const float* __restrict__ a1, const float* __restrict__ dz2, const float* __restrict__ dz1,
                                                float* __restrict__ parts, int batch, int hidden, int chunk, int block, float* memory) {
  constexpr int kSums = kClasses + 1, kTileWarps = kTileThreads / 32;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, across = hidden / 32 + 1;
  const int h = block % across * 32 + lane, number = block / across;
  const int first = number * chunk, last = min(first + chunk, batch);
  if (first >= batch) return;
  float sum[kSums] = {};
#pragma unroll 4
  for (int n = first + warp; n < last; n += kTileWarps) {
    const float a = h < hidden ? a1[(size_t)n * hidden + h] : 1.0f;
    if (h < hidden) sum[kClasses] += dz1[(size_t)n * hidden + h];
    const float2* from = (const float2*)(dz2 + (size_t)n * kClasses);
#pragma unroll
    for (int c = 0; c < kClasses; c += 2) {
      const float2 d = from[c / 2];
      sum[c] = fmaf(a, d.x, sum[c]), sum[c + 1] = fmaf(a, d.y, sum[c + 1]);
    }
  }
#pragma unroll
  for (int c = 0; c < kSums; ++c) memory[(warp * kSums + c) * 32 + lane] = sum[c];
  __syncthreads();
  for (int i = threadIdx.x; i < kSums * 32; i += kTileThreads) {
    float total = 0.0f;
#pragma unroll
    for (int w = 0; w < kTileWarps; ++w) total += memory[w * kSums * 32 + i];
    const int unit = block % across * 32 + i % 32;
    if (unit <= hidden) parts[((size_t)number * kSums + i / 32) * (hidden + 1) + unit] = total;
  }
}

// slices[s] = x^T dz1 over the samples [s * depth, (s + 1) * depth). Blocks: tiles across, tiles down, slices; before these come `layers` of
// the same number of blocks, which have the other gradients.
template <bool kVector>
__global__ void __launch_bounds__(kTileThreads, kVector ? kTileBlocks : kTileBlocks - 1)
    backward_weights(const float* __restrict__ x, const float* __restrict__ dz1, const float* __restrict__ a1, const float* __restrict__ dz2,
                     float* __restrict__ slices, float* __restrict__ parts, int batch, int inputs, int hidden, int depth, int chunk,
                     int layers) {
  __shared__ float4 memory[kTileMemory];
  if (blockIdx.z < layers) {
    const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    output_gradient(a1, dz2, dz1, parts, batch, hidden, chunk, block, (float*)memory);
    return;
  }
  const int slice = blockIdx.z - layers, first = slice * depth;
  const Operands operands = {x, dz1, inputs, inputs, hidden, first, min(first + depth, batch)};
  product_tile<kVector, true>(operands, blockIdx.y * kRows, blockIdx.x * kColumns, slices + (size_t)slice * inputs * hidden, memory);
}

// new = keep * old - rate * gradient, the gradient's parts added up on the way. The first blocks have w1, as it lies, the others b1, w2, b2.
template <bool kVector>
__global__ void __launch_bounds__(kThreads)
    update(const float* __restrict__ w1, const float* __restrict__ b1, const float* __restrict__ w2, const float* __restrict__ b2,
           float* __restrict__ new_w1, float* __restrict__ new_b1, float* __restrict__ new_w2, float* __restrict__ new_b2,
           const float* __restrict__ slices, const float* __restrict__ parts, int slice_count, int chunks, int inputs, int hidden, float rate,
           float keep) {
  constexpr int kWidth = kVector ? 4 : 1, kSums = kClasses + 1;
  const int weights = inputs * hidden, blocks = (weights / kWidth + kThreads - 1) / kThreads;
  int i = blockIdx.x * kThreads + threadIdx.x;
  if (blockIdx.x < blocks) {
    if (i >= weights / kWidth) return;
    if constexpr (kVector) {
      float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
      for (int s = 0; s < slice_count; ++s) {
        const float4 part = ((const float4*)(slices + (size_t)s * weights))[i];
        sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
      }
      const float4 old = ((const float4*)w1)[i];
      ((float4*)new_w1)[i] = make_float4(keep * old.x - rate * sum.x, keep * old.y - rate * sum.y, keep * old.z - rate * sum.z,
                                         keep * old.w - rate * sum.w);
    } else {
      float sum = 0.0f;
      for (int s = 0; s < slice_count; ++s) sum += slices[(size_t)s * weights + i];
      new_w1[i] = keep * w1[i] - rate * sum;
    }
    return;
  }
  i -= blocks * kThreads;
  const int c = i / (hidden + 1), h = i % (hidden + 1);
  if (c >= kSums || (c == kClasses && h == hidden)) return;
  float sum = 0.0f;
#pragma unroll 4
  for (int chunk = 0; chunk < chunks; ++chunk) sum += parts[((size_t)chunk * kSums + c) * (hidden + 1) + h];
  if (c == kClasses)
    new_b1[h] = b1[h] - rate * sum;
  else if (h == hidden)
    new_b2[c] = b2[c] - rate * sum;
  else
    new_w2[h * kClasses + c] = keep * w2[h * kClasses + c] - rate * sum;
}
