// Idea: the most this device does of one thing at a time: copy, read, write, multiply-add, and launch.
// Bottleneck: each kernel has exactly one, and that is its purpose.
// Next: nothing.
// Source: ours; accesses of 16 bytes, ACCESSES in flight a thread, as in STREAM. Cache hints made a copy slower on an H200.

constexpr int THREADS = 256;

template <int ACCESSES>
__global__ void __launch_bounds__(THREADS) ceiling_copy(
    const float4* __restrict__ in, float4* __restrict__ out, unsigned long long count) {
    const unsigned long long first = (unsigned long long)blockIdx.x * (THREADS * ACCESSES) + threadIdx.x;
    float4 values[ACCESSES];
#pragma unroll
    for (int k = 0; k < ACCESSES; ++k) {
        if (first + k * THREADS < count) values[k] = in[first + k * THREADS];
    }
#pragma unroll
    for (int k = 0; k < ACCESSES; ++k) {
        if (first + k * THREADS < count) out[first + k * THREADS] = values[k];
    }
}

template <int ACCESSES>
__global__ void __launch_bounds__(THREADS) ceiling_read(
    const float4* __restrict__ in, float4* __restrict__ never, unsigned long long count) {
    const unsigned long long stride = (unsigned long long)gridDim.x * (THREADS * ACCESSES);
    float sum = 0.0f;
    for (unsigned long long i = (unsigned long long)blockIdx.x * (THREADS * ACCESSES) + threadIdx.x;
         i + (ACCESSES - 1) * THREADS < count; i += stride) {
        float4 values[ACCESSES];
#pragma unroll
        for (int k = 0; k < ACCESSES; ++k) values[k] = in[i + k * THREADS];
#pragma unroll
        for (int k = 0; k < ACCESSES; ++k) sum += values[k].x + values[k].y + values[k].z + values[k].w;
    }
    if (sum == 1.0e30f) never->x = sum;
}

template <int ACCESSES>
__global__ void __launch_bounds__(THREADS) ceiling_write(
    const float4* __restrict__, float4* __restrict__ out, unsigned long long count) {
    const unsigned long long first = (unsigned long long)blockIdx.x * (THREADS * ACCESSES) + threadIdx.x;
#pragma unroll
    for (int k = 0; k < ACCESSES; ++k) {
        if (first + k * THREADS < count) out[first + k * THREADS] = make_float4(1.0f, 2.0f, 3.0f, float(k));
    }
}

__constant__ float multipliers[25];

// 256 independent multiply-adds a step and thread, 32 chains of 8; one operand from the constant bank, which the compiler
// moves to uniform registers, so that the register file's ports do not limit the rate.
extern "C" __global__ void __launch_bounds__(THREADS) ceiling_fma_uniform(
    const float* __restrict__ in, float* __restrict__ never, int steps) {
    float x[8], sums[32] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = in[threadIdx.x + 32 * i];
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int r = 0; r < 8; ++r) {
#pragma unroll
            for (int i = 0; i < 32; ++i) sums[i] = fmaf(x[(i + r) & 7], multipliers[(5 * i + r) % 25], sums[i]);
        }
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 32; ++i) sum += sums[i];
    if (sum == 1.0e30f) never[threadIdx.x] = sum;
}

// The same work with every operand in an ordinary register, as in a matrix product.
extern "C" __global__ void __launch_bounds__(THREADS) ceiling_fma_registers(
    const float* __restrict__ in, float* __restrict__ never, int steps) {
    float x[8], y[8], sums[64] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        x[i] = in[threadIdx.x + 32 * i];
        y[i] = in[threadIdx.x + 256 + 32 * i];
    }
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int r = 0; r < 4; ++r) {
#pragma unroll
            for (int i = 0; i < 64; ++i) sums[i] = fmaf(x[(i + r) & 7], y[i >> 3], sums[i]);
        }
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 64; ++i) sum += sums[i];
    if (sum == 1.0e30f) never[threadIdx.x] = sum;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// 32 tensor products m16n8k8 a step and warp, in 8 independent chains: 2 * 16 * 8 * 8 operations each.
extern "C" __global__ void __launch_bounds__(128) ceiling_mma_tf32(
    const unsigned* __restrict__ in, float* __restrict__ never, int steps) {
    unsigned a[4], b[8][2];
    float c[8][4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] = in[threadIdx.x + 128 * i];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        b[i][0] = in[threadIdx.x + 64 * i];
        b[i][1] = in[threadIdx.x + 512 + 64 * i];
    }
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            asm volatile(
                "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                : "+f"(c[i & 7][0]), "+f"(c[i & 7][1]), "+f"(c[i & 7][2]), "+f"(c[i & 7][3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[i & 7][0]), "r"(b[i & 7][1]));
        }
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += c[i][0] + c[i][1] + c[i][2] + c[i][3];
    if (sum == 1.0e30f) never[threadIdx.x] = sum;
}
#endif
