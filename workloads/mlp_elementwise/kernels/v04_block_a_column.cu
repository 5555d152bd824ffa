// Idea: The column sum again, with a block of as many threads as the column has work for: 32 for a column of 1000, 256 and more for
//     longer ones. Each thread has all loads of a pass in flight, two to eight vectors of 16 bytes, also where columns begin within a vector.
//     `bring` is how many bytes around it a load asks the L2 for. With 256 the next warp's bytes are on their way before it asks.
// Bottleneck: Memory at 8192 x 8192: 4.5 TB/s on an H200. At 1000 x 1000 the launch and one round trip to memory.
// Next: No kernel at all: the sum in the epilogue of the product before it (workload mlp_training).
// Source: Own work; shuffles after J. Luitjens, "Faster Parallel Reductions on Kepler", NVIDIA.

constexpr int kLanes = 32;
constexpr unsigned kWholeWarp = 0xffffffffu;

// A load that also brings the aligned kBring bytes around it into the L2, from sm_80 on. Source: PTX ISA, ld.global.nc.L2::256B.
template <int kBring>
__device__ __forceinline__ float4 load(const float4* from) {
#if !defined(WARPLADDER_EMULATOR) && __CUDA_ARCH__ >= 800
  if constexpr (kBring == 256) {
    float4 value;
    asm("ld.global.nc.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w) : "l"(from));
    return value;
  }
#endif
  return __ldg(from);
}

__device__ __forceinline__ float of_warp(float value) {
#pragma unroll
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) value += __shfl_xor_sync(kWholeWarp, value, lanes);
  return value;
}

// Blocks of a multiprocessor that leave a thread registers for all its loads at a time.
__host__ __device__ constexpr int blocks_of(int threads, int loads) {
  const int registers = (30 + 4 * loads) / 8 * 8, fit = 65536 / (threads * registers), most = 2048 / threads;
  return fit < most ? fit : most;
}

// Columns of `rows` elements, one after another. Those that are not kAligned may begin and end within a vector: the first threads add
// the elements before the first whole vector and behind the last one, at most three each.
template <bool kAligned, int kThreads, int kLoads, int kBring>
__global__ void __launch_bounds__(kThreads, blocks_of(kThreads, kLoads))
    column_sum(const float* __restrict__ x, float* __restrict__ y, int rows) {
  constexpr int kWarps = kThreads / kLanes;
  __shared__ float of_warps[kWarps];
  const size_t start = (size_t)blockIdx.x * rows;
  const int before = kAligned ? 0 : (4 - start % 4) % 4, count = (rows - before) / 4;
  const float4* from = (const float4*)(x + start + before);
  float4 sum = {};
  float edge = 0.0f;
  if constexpr (!kAligned) {
    const int row = threadIdx.x < before ? threadIdx.x : threadIdx.x + 4 * count;
    if (row < rows) edge = x[start + row];
  }
#pragma unroll 1  // an iteration's loads are enough
  for (int first = threadIdx.x; first < count; first += kThreads * kLoads) {
    float4 value[kLoads] = {};
#pragma unroll
    for (int k = 0; k < kLoads; ++k)
      if (first + k * kThreads < count) value[k] = load<kBring>(from + first + k * kThreads);
#pragma unroll
    for (int k = 0; k < kLoads; ++k) sum.x += value[k].x, sum.y += value[k].y, sum.z += value[k].z, sum.w += value[k].w;
  }
  float total = of_warp((sum.x + sum.y) + (sum.z + sum.w) + edge);
  if constexpr (kWarps > 1) {
    if (threadIdx.x % kLanes == 0) of_warps[threadIdx.x / kLanes] = total;
    __syncthreads();
    if (threadIdx.x >= kLanes) return;
    total = of_warp(threadIdx.x < kWarps ? of_warps[threadIdx.x] : 0.0f);
  }
  if (threadIdx.x == 0) y[blockIdx.x] = total;
}
