// Idea: Copy b into c and compute nothing: the same bytes in and out as the convolution, as wide and as independent as
//     they can be. Float4 per lane, every load of a thread issued before its first store. On an H200 the fastest at 8192 is one
//     plain load a thread, and at 2048 four that are marked as streaming, which leaves L2 to the stores: so both are configs.
// Bottleneck: DRAM bandwidth for large images; the launch and one trip to DRAM for small ones.
// Next: Nothing. No convolution can be faster than this, so every other rung is read as a percentage of it.
// Source: Own work, after the copy kernel that NVIDIA's transpose sample sets beside its transposes.

constexpr int kThreads = 256;

template <int kPerThread, bool kStreaming>
__global__ void __launch_bounds__(kThreads) copy(const float* __restrict__ b, float* __restrict__ c, long long count) {
  const long long vectors = count / 4;
  const long long first = (long long)blockIdx.x * (kThreads * kPerThread) + threadIdx.x;
  const float4* from = (const float4*)b;
  float4* to = (float4*)c;

  float4 held[kPerThread];
#pragma unroll
  for (int k = 0; k < kPerThread; ++k)
    if (first + k * kThreads < vectors) held[k] = kStreaming ? __ldcs(from + first + k * kThreads) : from[first + k * kThreads];
#pragma unroll
  for (int k = 0; k < kPerThread; ++k)
    if (first + k * kThreads < vectors) to[first + k * kThreads] = held[k];

  const long long tail = vectors * 4 + threadIdx.x;  // at most three elements that fill no vector
  if (blockIdx.x == 0 && tail < count) c[tail] = b[tail];
}
