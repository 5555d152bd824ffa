// Products of Hopper's warpgroups with 32 columns, as hopper_low_precision.cuh has them with more. After it.

#define WARPLADDER_SUMS_8(i)                                                                                    \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), "+f"(sums[i + 5]), \
      "+f"(sums[i + 6]), "+f"(sums[i + 7])

#define WARPLADDER_NARROW_PRODUCT(type, types, majors)                                                                                \
  __device__ __forceinline__ void wgmma(type, float (&sums)[16], unsigned long long a, unsigned long long b, bool add) {            \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %18, 0; wgmma.mma_async.sync.aligned.m64n32" types                                  \
                 " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, p, 1, 1" majors ";}"           \
                 : WARPLADDER_SUMS_8(0), WARPLADDER_SUMS_8(8)                                                                       \
                 : "l"(a), "l"(b), "r"((int)add));                                                                                  \
  }
WARPLADDER_NARROW_PRODUCT(Bf16, "k16.f32.bf16.bf16", ", 0, 0")
WARPLADDER_NARROW_PRODUCT(Fp16, "k16.f32.f16.f16", ", 0, 0")
WARPLADDER_NARROW_PRODUCT(Fp8, "k32.f32.e4m3.e4m3", "")

#undef WARPLADDER_SUMS_8
#undef WARPLADDER_NARROW_PRODUCT
