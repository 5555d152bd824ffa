// Kernels in pairs, each slow one with one flaw. SLOW = true has the flaw.

template <bool SLOW>  // ptxas gets registers for fewer values than there are
__global__ void __launch_bounds__(256, SLOW ? 8 : 2) spills(const float* __restrict__ x, float* __restrict__ y, int n) {
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

template <bool SLOW>  // 32 threads read one bank
__global__ void bank_conflicts(const float* __restrict__ x, float* __restrict__ y, int n) {
  constexpr int PITCH = SLOW ? 32 : 33;
  __shared__ float tile[32 * PITCH];
  const int column = threadIdx.x % 32, row = threadIdx.x / 32, i = blockIdx.x * 1024 + threadIdx.x;
  tile[row * PITCH + column] = x[i];
  __syncthreads();
  float sum = 0.0f;
#pragma unroll 8
  for (int k = 0; k < 256; ++k) sum += tile[column * PITCH + (row + k) % 32];
  y[i] = sum;
}

template <bool SLOW>  // an index that is known at run time keeps the array in local memory
__global__ void local_arrays(const float* __restrict__ x, float* __restrict__ y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float value = x[i];
  float sum = 0.0f;
  if (SLOW) {
    float a[32];
#pragma unroll
    for (int k = 0; k < 32; ++k) a[k] = value * (k + 1);
#pragma unroll 1
    for (int j = 0; j < 256; ++j) sum += a[(i * 7 + j * 5) & 31];
  } else {
#pragma unroll 1
    for (int j = 0; j < 256; ++j) sum += value * (((i * 7 + j * 5) & 31) + 1);
  }
  y[i] = sum;
}

template <bool SLOW>  // each address comes from the load before; the lanes of a warp read one line of the cache
__global__ void pointer_chasing(const float* __restrict__ x, float* __restrict__ y, const int* __restrict__ next, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned at = i;
  float sum = 0.0f;
#pragma unroll 4
  for (int k = 0; k < 64; ++k) {
    at = SLOW ? next[at] : (at + 12352u) & (n - 1);
    if (!SLOW) sum += x[at];
  }
  if (SLOW) sum = x[at];
  y[i] = sum;
}

__global__ void tail(const float* __restrict__ x, float* __restrict__ y, int n) {
  extern __shared__ float unused[];
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float to = x[i];
    float at = 0.0f;
#pragma unroll 16
    for (int k = 0; k < 256; ++k) at = fmaf(at, 0.5f, to);
    y[i] = at;
  }
}

template <bool SLOW>  // the bytes of a vector are read one by one
__global__ void misaligned_vectors(const unsigned char* __restrict__ bytes, float* __restrict__ y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned char* at = bytes + 16l * i;
  float4 v;
  if (SLOW) {
    unsigned word[4];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      word[k] = at[4 * k] | at[4 * k + 1] << 8 | at[4 * k + 2] << 16 | unsigned(at[4 * k + 3]) << 24;
    v = make_float4(__uint_as_float(word[0]), __uint_as_float(word[1]), __uint_as_float(word[2]), __uint_as_float(word[3]));
  } else {
    v = *reinterpret_cast<const float4*>(at);
  }
  y[i] = v.x + v.y + v.z + v.w;
}

template <bool SLOW>  // all threads store to the same 16 addresses
__global__ void same_address_stores(const float* __restrict__ x, float* __restrict__ y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (SLOW || i == 0)
#pragma unroll 1
    for (int j = 0; j < 16; ++j) y[n + j] = 1.0f + j;
  y[i] = 2.0f * x[i];
}

__device__ float work(int kind, float v) {
  switch (kind) {
    case 0: for (int j = 0; j < 300; ++j) v = fmaf(v, 0.5f, 0.1f); return v;
    case 1: for (int j = 0; j < 300; ++j) v = fmaf(v * v, 0.5f, 0.2f); return v;
    case 2: for (int j = 0; j < 300; ++j) v = fmaf(v, v, -v) + 0.3f; return v;
    case 3: for (int j = 0; j < 300; ++j) v = 0.5f - fmaf(v, 0.25f, v * v * 0.125f); return v;
    case 4: for (int j = 0; j < 300; ++j) v = fabsf(v - 0.5f); return v;
    case 5: for (int j = 0; j < 300; ++j) v = fmaxf(v * 0.9f, 0.05f); return v;
    case 6: for (int j = 0; j < 300; ++j) v = fminf(v * 1.1f, 0.95f); return v;
    default: for (int j = 0; j < 300; ++j) v = 1.0f - v * 0.75f; return v;
  }
}

template <bool SLOW>  // the lanes of a warp go eight ways
__global__ void divergence(const float* __restrict__ x, float* __restrict__ y, int n) {
  const int t = threadIdx.x, i = blockIdx.x * 256 + (SLOW ? t : (t % 32) * 8 + t / 32);
  y[i] = work(i % 8, x[i]);
}

template <bool SLOW>  // every element adds to one of eight addresses
__global__ void atomics(const float* __restrict__ x, float* __restrict__ y, float* __restrict__ bins, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, bin = min(7, int(x[i] * 8.0f));
  y[i] = bin;
  if (SLOW) {
    atomicAdd(bins + bin, 1.0f);
  } else {
    __shared__ int count[8];
    if (threadIdx.x < 8) count[threadIdx.x] = 0;
    __syncthreads();
    for (int k = 0; k < 8; ++k) {
      const unsigned lanes = __ballot_sync(0xffffffff, bin == k);
      if (threadIdx.x % 32 == 0) atomicAdd(count + k, __popc(lanes));
    }
    __syncthreads();
    if (threadIdx.x < 8) atomicAdd(bins + threadIdx.x, float(count[threadIdx.x]));
  }
}

template <bool SLOW>  // a barrier in each step, where threads share nothing
__global__ void barriers(const float* __restrict__ x, float* __restrict__ y, int n) {
  __shared__ float s[1024];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = x[i];
#pragma unroll 1
  for (int j = 0; j < 512; ++j) {
    s[threadIdx.x] = fmaf(s[threadIdx.x], 0.5f, 0.25f);
    if (SLOW) __syncthreads();
  }
  y[i] = s[threadIdx.x];
}

template <bool SLOW>  // a constant without f
__global__ void conversions(const float* __restrict__ x, float* __restrict__ y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
#pragma unroll 8
  for (int j = 0; j < 128; ++j) {
    if (SLOW) v = v * 0.7 + 0.3;
    else v = fmaf(v, 0.7f, 0.3f);
  }
  y[i] = v;
}

__global__ void too_few_blocks(const float* __restrict__ x, float* __restrict__ y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float to = x[i];
    float at = 0.0f;
#pragma unroll 16
    for (int k = 0; k < 256; ++k) at = fmaf(at, 0.5f, to);
    y[i] = at;
  }
}
