// Kernels in pairs. Both kernels of a pair compute the same; the slow one has one known flaw.

// -- bytes: two passes over memory in place of one --
template <int PASS>
__global__ void scale_add(const float* __restrict__ x, float* __restrict__ y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float value = x[i];
    y[i] = PASS == 0 ? 2.0f * value : PASS == 1 ? value + 1.0f : 2.0f * value + 1.0f;
  }
}

// -- coalescing: the threads of a warp read and write addresses that are 128 bytes apart --
template <bool COALESCED>
__global__ void scale_add_32(const float* __restrict__ x, float* __restrict__ y, int n) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x, lane = thread % 32, first = thread / 32 * 1024;
#pragma unroll 4
  for (int k = 0; k < 32; ++k) {
    const int i = first + (COALESCED ? k * 32 + lane : lane * 32 + k);
    if (i < n) y[i] = 2.0f * x[i] + 1.0f;
  }
}

// -- conflicts: 32 threads read one bank --
template <int PITCH>
__global__ void row_sums(const float* __restrict__ x, float* __restrict__ y, int n) {
  __shared__ float tile[32 * PITCH];
  const int column = threadIdx.x % 32, row = threadIdx.x / 32, i = blockIdx.x * 1024 + threadIdx.x;
  tile[row * PITCH + column] = x[i];
  __syncthreads();
  float sum = 0.0f;
#pragma unroll 8
  for (int k = 0; k < 256; ++k) sum += tile[column * PITCH + (row + k) % 32];
  y[i] = sum;
}

// -- spills: a bound on the registers that is too low --
template <int BLOCKS>
__global__ void __launch_bounds__(256, BLOCKS) smooth(const float* __restrict__ x, float* __restrict__ y, int n) {
  const int first = blockIdx.x * 256 * 64 + threadIdx.x;
  float value[64];
#pragma unroll
  for (int j = 0; j < 64; ++j) value[j] = x[first + j * 256];
#pragma unroll 1
  for (int k = 0; k < 32; ++k) {
    const float begin = value[0];
#pragma unroll
    for (int j = 0; j < 64; ++j) value[j] = 0.5f * (value[j] + (j < 63 ? value[j + 1] : begin));
  }
#pragma unroll
  for (int j = 0; j < 64; ++j) y[first + j * 256] = value[j];
}

// -- occupancy: shared memory that nothing uses leaves room for half as many warps --
__global__ void chase(const float* __restrict__ x, float* __restrict__ y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned at = i / 32;
  float sum = 0.0f;
#pragma unroll 1
  for (int k = 0; k < 64; ++k) {
    const float value = x[at];
    sum += value;
    at = (at * 5u + (__float_as_uint(value) >> 8)) % n;
  }
  y[i] = sum;
}

// -- instructions: each power is computed beside the sum, in place of Horner's rule --
template <bool HORNER>
__global__ void polynomial(const float* __restrict__ x, float* __restrict__ y, int n) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  const float4 at = *reinterpret_cast<const float4*>(x + i);
  float4 sum = make_float4(0.5f, 0.5f, 0.5f, 0.5f), power = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
#pragma unroll 16
  for (int k = 0; k < 512; ++k) {
    if (HORNER) {
      sum.x = fmaf(sum.x, at.x, 0.5f), sum.y = fmaf(sum.y, at.y, 0.5f);
      sum.z = fmaf(sum.z, at.z, 0.5f), sum.w = fmaf(sum.w, at.w, 0.5f);
    } else {
      power.x *= at.x, power.y *= at.y, power.z *= at.z, power.w *= at.w;
      sum.x = fmaf(power.x, 0.5f, sum.x), sum.y = fmaf(power.y, 0.5f, sum.y);
      sum.z = fmaf(power.z, 0.5f, sum.z), sum.w = fmaf(power.w, 0.5f, sum.w);
    }
  }
  *reinterpret_cast<float4*>(y + i) = sum;
}

// -- tail: one block more than there are multiprocessors, of which each holds one block --
__global__ void converge(const float* __restrict__ x, float* __restrict__ y, int n) {
  extern __shared__ float unused[];
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float to = x[i];
    float at = 0.0f;
#pragma unroll 16
    for (int k = 0; k < 256; ++k) at = fmaf(at, 0.5f, to);
    y[i] = at;
  }
}

// -- latency: eight sums one after another, in place of side by side --
template <bool SIDE_BY_SIDE>
__global__ void converge_8(const float* __restrict__ x, float* __restrict__ y, int n) {
  extern __shared__ float unused[];
  const int threads = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i + 7 * threads < n; i += 8 * threads) {
    float at[8], to[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) to[j] = x[i + j * threads], at[j] = 0.0f;
    if (SIDE_BY_SIDE) {
#pragma unroll 16
      for (int k = 0; k < 1024; ++k)
#pragma unroll
        for (int j = 0; j < 8; ++j) at[j] = fmaf(at[j], 0.5f, to[j]);
    } else {
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll 128
        for (int k = 0; k < 1024; ++k) at[j] = fmaf(at[j], 0.5f, to[j]);
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) y[i + j * threads] = at[j];
  }
}
