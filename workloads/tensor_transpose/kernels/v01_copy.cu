// Idea: Copy the tensor as it lies, 16 bytes a load, with every load of a thread in flight before its first store. It computes
//     no transposition: it is what one can hope for, since a transposition moves the same bytes.
// Bottleneck: Memory bandwidth, shared by reads and writes. On small tensors the latency of one round trip to memory and the launch.
// Next: The same through shared memory, to see what that detour costs.
// Source: Kernel A of E. Sgarbanti, Advanced Computer Architectures report, table 1; widened to float4. Streaming hints (__ldcs,
//     __stcs) made it 0.3 to 8 % slower on an H200, and one access a thread is faster than four at 512 x 512 x 512.

constexpr int THREADS = 256;

template <int PER_THREAD>
__global__ void __launch_bounds__(THREADS) copy(const float* __restrict__ in, float* __restrict__ out, int count) {
  const float4* in4 = reinterpret_cast<const float4*>(in);
  float4* out4 = reinterpret_cast<float4*>(out);
  const int first = blockIdx.x * THREADS * PER_THREAD + threadIdx.x;
  const int count4 = count / 4;
  float4 value[PER_THREAD];
#pragma unroll
  for (int k = 0; k < PER_THREAD; k++)
    if (first + k * THREADS < count4) value[k] = in4[first + k * THREADS];
#pragma unroll
  for (int k = 0; k < PER_THREAD; k++)
    if (first + k * THREADS < count4) out4[first + k * THREADS] = value[k];

  const int rest = count4 * 4 + first;  // at most three elements are left, for the first threads
  if (rest < count) out[rest] = in[rest];
}
