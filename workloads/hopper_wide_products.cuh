// Products of Hopper's warpgroups with 160 columns, as hopper_low_precision.cuh has them with others. After it.

#define WARPLADDER_SUMS_8(i)                                                                                    \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), "+f"(sums[i + 5]), \
      "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define WARPLADDER_SUMS_40(i) \
  WARPLADDER_SUMS_8(i), WARPLADDER_SUMS_8(i + 8), WARPLADDER_SUMS_8(i + 16), WARPLADDER_SUMS_8(i + 24), WARPLADDER_SUMS_8(i + 32)
#define WARPLADDER_80 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, " \
  "%28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, " \
  "%54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"

#define WARPLADDER_WIDE_PRODUCT(type, types, majors)                                                                                \
  __device__ __forceinline__ void wgmma(type, float (&sums)[80], unsigned long long a, unsigned long long b, bool add) {            \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %82, 0; wgmma.mma_async.sync.aligned.m64n160" types " {" WARPLADDER_80              \
                 "}, %80, %81, p, 1, 1" majors ";}"                                                                                 \
                 : WARPLADDER_SUMS_40(0), WARPLADDER_SUMS_40(40)                                                                    \
                 : "l"(a), "l"(b), "r"((int)add));                                                                                  \
  }
WARPLADDER_WIDE_PRODUCT(Bf16, "k16.f32.bf16.bf16", ", 0, 0")
WARPLADDER_WIDE_PRODUCT(Fp16, "k16.f32.f16.f16", ", 0, 0")
WARPLADDER_WIDE_PRODUCT(Fp8, "k32.f32.e4m3.e4m3", "")

#undef WARPLADDER_80
#undef WARPLADDER_SUMS_8
#undef WARPLADDER_SUMS_40
#undef WARPLADDER_WIDE_PRODUCT
