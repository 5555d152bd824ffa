// Idea: the most that tensor cores do by `mma.sync` in each precision: 32 products a step and warp, in 8 independent chains, operands in registers.
// Bottleneck: the tensor cores, and that is its purpose.
// Next: products of warpgroups (`wgmma_ceilings.cu`), which are faster on Hopper.
// Source: ours; PTX ISA, section 9.7.14 (mma).

constexpr int THREADS = 128, CHAINS = 8, PRODUCTS = 32;

// m16n8 products whose rows hold 32 bytes along k, in registers of 32 bits.
#define WARPLADDER_MMA(name, shape_and_types, sum, constraint)                                                              \
    struct name {                                                                                                           \
        using Sum = sum;                                                                                                    \
        static __device__ __forceinline__ void multiply(Sum (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {      \
            asm volatile("mma.sync.aligned." shape_and_types " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"      \
                         : constraint(c[0]), constraint(c[1]), constraint(c[2]), constraint(c[3])                           \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                               \
        }                                                                                                                   \
    };

WARPLADDER_MMA(Tf32, "m16n8k8.row.col.f32.tf32.tf32.f32", float, "+f")
WARPLADDER_MMA(Fp16, "m16n8k16.row.col.f32.f16.f16.f32", float, "+f")
WARPLADDER_MMA(Bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", float, "+f")
WARPLADDER_MMA(Fp8, "m16n8k32.row.col.f32.e4m3.e4m3.f32", float, "+f")
WARPLADDER_MMA(Int8, "m16n8k32.row.col.s32.s8.s8.s32", int, "+r")

template <class Product>
__global__ void __launch_bounds__(THREADS)
    ceiling_mma(const unsigned* __restrict__ in, typename Product::Sum* __restrict__ never, int steps) {
    using Sum = typename Product::Sum;
    unsigned a[4], b[CHAINS][2];
    Sum c[CHAINS][4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] = in[threadIdx.x + THREADS * i];
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) {
        b[i][0] = in[threadIdx.x + 64 * i];
        b[i][1] = in[threadIdx.x + 512 + 64 * i];
    }
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int i = 0; i < PRODUCTS; ++i) Product::multiply(c[i % CHAINS], a, b[i % CHAINS]);
    }
    Sum sum = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) sum += c[i][0] + c[i][1] + c[i][2] + c[i][3];
    if (sum == Sum(1000000007)) never[threadIdx.x] = sum;
}

// In fp64: m16n8k16 from Hopper on, m8n8k4 before.
#if __CUDA_ARCH__ >= 900
constexpr int A = 8, B = 4, C = 4;
__device__ __forceinline__ void multiply_fp64(double (&c)[C], const double (&a)[A], const double (&b)[B]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, "
        "{%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]),
          "d"(b[3]));
}
#else
constexpr int A = 1, B = 1, C = 2;
__device__ __forceinline__ void multiply_fp64(double (&c)[C], const double (&a)[A], const double (&b)[B]) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(c[0]), "+d"(c[1])
                 : "d"(a[0]), "d"(b[0]));
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    ceiling_mma_fp64(const double* __restrict__ in, double* __restrict__ never, int steps) {
    double a[A], b[B], c[CHAINS][C] = {};
#pragma unroll
    for (int i = 0; i < A; ++i) a[i] = in[threadIdx.x + THREADS * i];
#pragma unroll
    for (int i = 0; i < B; ++i) b[i] = in[threadIdx.x + THREADS * (A + i)];
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int i = 0; i < PRODUCTS; ++i) multiply_fp64(c[i % CHAINS], a, b);
    }
    double sum = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; ++i)
#pragma unroll
        for (int j = 0; j < C; ++j) sum += c[i][j];
    if (sum == 1.0e300) never[threadIdx.x] = sum;
}
