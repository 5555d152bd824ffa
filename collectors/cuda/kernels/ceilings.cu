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

// 128 multiply-adds a step and thread in fp64, 32 chains of 4.
extern "C" __global__ void __launch_bounds__(THREADS) ceiling_fma_fp64(
    const double* __restrict__ in, double* __restrict__ never, int steps) {
    double x[8], y[4], sums[32] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = in[threadIdx.x + 256 * i];
#pragma unroll
    for (int i = 0; i < 4; ++i) y[i] = in[threadIdx.x + 2048 + 256 * i];
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int r = 0; r < 4; ++r) {
#pragma unroll
            for (int i = 0; i < 32; ++i) sums[i] = fma(x[(i + r) & 7], y[i >> 3], sums[i]);
        }
    }
    double sum = 0.0;
#pragma unroll
    for (int i = 0; i < 32; ++i) sum += sums[i];
    if (sum == 1.0e300) never[threadIdx.x] = sum;
}
