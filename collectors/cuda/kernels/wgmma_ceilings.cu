// Idea: the most that the tensor cores of Hopper do in each precision: both operands stand in shared memory, and two warpgroups of a block
//     multiply them again and again.
// Bottleneck: the tensor cores, and that is its purpose.
// Next: nothing.
// Source: ours; the shape is that of the rungs, 64 x 256 sums a warpgroup.

#include "../../../workloads/hopper.cuh"

constexpr int kRows = 64, kColumns = 256, kBytes = 128;

struct Operands {
  unsigned char a[2][kRows * kBytes];
  unsigned char b[kColumns * kBytes];
};

// Products m64n256 whose rows hold 32 bytes along k. `factors` are the operands after the descriptors.
#define WARPLADDER_ALL_SUMS \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, " \
  "%72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, " \
  "%120, %121, %122, %123, %124, %125, %126, %127"
#define WARPLADDER_SUMS_4(i, kind) kind(sums[i]), kind(sums[i + 1]), kind(sums[i + 2]), kind(sums[i + 3])
#define WARPLADDER_SUMS_16(i, kind) \
  WARPLADDER_SUMS_4(i, kind), WARPLADDER_SUMS_4(i + 4, kind), WARPLADDER_SUMS_4(i + 8, kind), WARPLADDER_SUMS_4(i + 12, kind)
#define WARPLADDER_SUMS_64(i, kind) \
  WARPLADDER_SUMS_16(i, kind), WARPLADDER_SUMS_16(i + 16, kind), WARPLADDER_SUMS_16(i + 32, kind), WARPLADDER_SUMS_16(i + 48, kind)
#define WARPLADDER_WGMMA(name, shape_and_types, factors, sum, kind)                                                    \
  struct name {                                                                                                        \
    using Sum = sum;                                                                                                   \
    static __device__ __forceinline__ void multiply(Sum (&sums)[128], unsigned long long a, unsigned long long b) {    \
      asm volatile("wgmma.mma_async.sync.aligned." shape_and_types " {" WARPLADDER_ALL_SUMS "}, %128, %129, 1" factors ";" \
                   : WARPLADDER_SUMS_64(0, kind), WARPLADDER_SUMS_64(64, kind)                                         \
                   : "l"(a), "l"(b));                                                                                  \
    }                                                                                                                  \
    static __device__ __forceinline__ void keep(Sum (&sums)[128]) {                                                     \
      _Pragma("unroll") for (int i = 0; i < 128; ++i) asm volatile("" : kind(sums[i])::"memory");                                        \
    }                                                                                                                  \
  };

WARPLADDER_WGMMA(Tf32, "m64n256k8.f32.tf32.tf32", ", 1, 1", float, "+f")
WARPLADDER_WGMMA(Fp16, "m64n256k16.f32.f16.f16", ", 1, 1, 0, 0", float, "+f")
WARPLADDER_WGMMA(Bf16, "m64n256k16.f32.bf16.bf16", ", 1, 1, 0, 0", float, "+f")
WARPLADDER_WGMMA(Fp8, "m64n256k32.f32.e4m3.e4m3", ", 1, 1", float, "+f")
WARPLADDER_WGMMA(Int8, "m64n256k32.s32.s8.s8", "", int, "+r")

// Four products a step and warpgroup.
template <class Product>
__global__ void __launch_bounds__(256, 1)
    ceiling_wgmma(const unsigned char* __restrict__ in, typename Product::Sum* __restrict__ never, int steps) {
  using Sum = typename Product::Sum;
  extern __shared__ char memory[];
  auto& operands = *aligned_1024<Operands>(memory);
  for (int i = threadIdx.x; i < sizeof(Operands); i += blockDim.x) operands.a[0][i] = in[i];
  fence_proxy_async();
  __syncthreads();
  const unsigned long long a = wgmma_operand(operands.a[threadIdx.x / 128]), b = wgmma_operand(operands.b);
  Sum sums[kColumns / 2] = {};
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < kBytes / 32; ++i) Product::multiply(sums, a + 2 * i, b + 2 * i);
    wgmma_commit();
    wgmma_wait<1>();
  }
  wgmma_wait<0>();
  Product::keep(sums);
  Sum sum = 0;
#pragma unroll
  for (int i = 0; i < kColumns / 2; ++i) sum += sums[i];
  if (sum == Sum(1000000007)) never[threadIdx.x] = sum;
}
