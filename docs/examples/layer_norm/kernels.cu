// Layer normalisation of each row of x: (x - mean) / sqrt(variance + epsilon) * weight + bias. Three kernels that read x three times,
// twice and once. Measured by bench.py; explained in docs/own-kernel.md.

constexpr float kEpsilon = 1e-5f;
constexpr unsigned kAllLanes = 0xffffffffu;

__global__ void thread_a_row(const float* x, const float* weight, const float* bias, float* out, int rows, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  x += (size_t)row * n, out += (size_t)row * n;
  float sum = 0.0f, squares = 0.0f;
  for (int k = 0; k < n; ++k) sum += x[k];
  const float mean = sum / n;
  for (int k = 0; k < n; ++k) squares += (x[k] - mean) * (x[k] - mean);
  const float scale = rsqrtf(squares / n + kEpsilon);
  for (int k = 0; k < n; ++k) out[k] = (x[k] - mean) * scale * weight[k] + bias[k];
}

// The sum of a value over all threads of a block, in every thread.
template <int kThreads> __device__ float block_sum(float value) {
  __shared__ float of_warps[kThreads / 32];
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(kAllLanes, value, lanes);
  __syncthreads();  // the sums of an earlier call have been read
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0.0f;
  for (int warp = 0; warp < kThreads / 32; ++warp) value += of_warps[warp];
  return value;
}

template <int kThreads>
__global__ void block_a_row(const float* x, const float* weight, const float* bias, float* out, int n) {
  x += (size_t)blockIdx.x * n, out += (size_t)blockIdx.x * n;
  float sum = 0.0f, squares = 0.0f;
  for (int k = threadIdx.x; k < n; k += kThreads) sum += x[k];
  const float mean = block_sum<kThreads>(sum) / n;
  for (int k = threadIdx.x; k < n; k += kThreads) squares += (x[k] - mean) * (x[k] - mean);
  const float scale = rsqrtf(block_sum<kThreads>(squares) / n + kEpsilon);
  for (int k = threadIdx.x; k < n; k += kThreads) out[k] = (x[k] - mean) * scale * weight[k] + bias[k];
}

// A thread keeps kColumns / kThreads / 4 vectors of the row in registers; n is no parameter, so that all loops are unrolled.
template <int kThreads, int kColumns>
__global__ void row_in_registers(const float4* x, const float4* weight, const float4* bias, float4* out) {
  constexpr int kVectors = kColumns / kThreads / 4;
  static_assert(kVectors * kThreads * 4 == kColumns, "a thread takes whole vectors of the row");
  x += (size_t)blockIdx.x * (kColumns / 4), out += (size_t)blockIdx.x * (kColumns / 4);
  float4 row[kVectors];
  float sum = 0.0f, squares = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    row[v] = x[threadIdx.x + v * kThreads];
    sum += (row[v].x + row[v].y) + (row[v].z + row[v].w);
  }
  const float mean = block_sum<kThreads>(sum) / kColumns;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    row[v] = make_float4(row[v].x - mean, row[v].y - mean, row[v].z - mean, row[v].w - mean);
    squares += (row[v].x * row[v].x + row[v].y * row[v].y) + (row[v].z * row[v].z + row[v].w * row[v].w);
  }
  const float scale = rsqrtf(block_sum<kThreads>(squares) / kColumns + kEpsilon);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int k = threadIdx.x + v * kThreads;
    const float4 w = weight[k], b = bias[k];
    out[k] = make_float4(row[v].x * scale * w.x + b.x, row[v].y * scale * w.y + b.y, row[v].z * scale * w.z + b.z,
                         row[v].w * scale * w.w + b.w);
  }
}
