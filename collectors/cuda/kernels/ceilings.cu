// Idea: the most multiply-adds that this device does.
// Bottleneck: each kernel has exactly one, and that is its purpose.
// Next: nothing.
// Source: ours.

constexpr int THREADS = 256;

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
