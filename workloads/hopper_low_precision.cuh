// Products of Hopper's warpgroups (wgmma) in BF16, FP16 and FP8 (E4M3) with sums in float32, both operands along k in shared memory, and results
// rounded for their way out. After hopper.cuh.
// Source: PTX ISA, sections 9.7.9 (cvt) and 9.7.15 (wgmma).

// The types of operands. A result of FP8 operands is BF16, as from PyTorch and cuBLASLt.
struct Bf16 {
  using Bits = unsigned short;
  using Result = Bf16;
  static constexpr int kFraction = 7;  // bits of the fraction, by which the tests' emulator tells the types apart
};
struct Fp16 {
  using Bits = unsigned short;
  using Result = Fp16;
  static constexpr int kFraction = 10;
};
struct Fp8 {
  using Bits = unsigned char;
  using Result = Bf16;
  static constexpr int kFraction = 3;
};

// Two numbers rounded to the nearest of a type, ties to even, `first` in the lower half.
__device__ __forceinline__ unsigned rounded_pair(Bf16, float first, float second) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
  return bits;
}
__device__ __forceinline__ unsigned rounded_pair(Fp16, float first, float second) {
  unsigned bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
  return bits;
}

#define WARPLADDER_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15" \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WARPLADDER_64 WARPLADDER_32 \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WARPLADDER_96 WARPLADDER_64 \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define WARPLADDER_128 WARPLADDER_96 \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define WARPLADDER_SUMS_8(i)                                                                                    \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), "+f"(sums[i + 5]), \
      "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define WARPLADDER_SUMS_32(i) \
  WARPLADDER_SUMS_8(i), WARPLADDER_SUMS_8(i + 8), WARPLADDER_SUMS_8(i + 16), WARPLADDER_SUMS_8(i + 24)
#define WARPLADDER_SUMS_64(i) WARPLADDER_SUMS_32(i), WARPLADDER_SUMS_32(i + 32)
#define WARPLADDER_SUMS_96(i) WARPLADDER_SUMS_64(i), WARPLADDER_SUMS_32(i + 64)
#define WARPLADDER_SUMS_128(i) WARPLADDER_SUMS_64(i), WARPLADDER_SUMS_64(i + 64)

// sums = (add ? sums : 0) + a * b over 32 bytes along k, for twice as many columns as there are sums; 32 bytes further along k are 2 more in both
// descriptors. Thread t of the warpgroup has the sums that wgmma_tf32 gives it.
#define WARPLADDER_PRODUCT(type, count, columns, types, majors, a_place, b_place, add_place)                                        \
  __device__ __forceinline__ void wgmma(type, float (&sums)[count], unsigned long long a, unsigned long long b, bool add) {         \
    asm volatile("{.reg .pred p; setp.ne.b32 p, " add_place ", 0; wgmma.mma_async.sync.aligned.m64n" columns types                  \
                 " {" WARPLADDER_##count "}, " a_place ", " b_place ", p, 1, 1" majors ";}"                                         \
                 : WARPLADDER_SUMS_##count(0)                                                                                       \
                 : "l"(a), "l"(b), "r"((int)add));                                                                                  \
  }
WARPLADDER_PRODUCT(Bf16, 32, "64", "k16.f32.bf16.bf16", ", 0, 0", "%32", "%33", "%34")
WARPLADDER_PRODUCT(Bf16, 64, "128", "k16.f32.bf16.bf16", ", 0, 0", "%64", "%65", "%66")
WARPLADDER_PRODUCT(Bf16, 96, "192", "k16.f32.bf16.bf16", ", 0, 0", "%96", "%97", "%98")
WARPLADDER_PRODUCT(Bf16, 128, "256", "k16.f32.bf16.bf16", ", 0, 0", "%128", "%129", "%130")
WARPLADDER_PRODUCT(Fp16, 32, "64", "k16.f32.f16.f16", ", 0, 0", "%32", "%33", "%34")
WARPLADDER_PRODUCT(Fp16, 64, "128", "k16.f32.f16.f16", ", 0, 0", "%64", "%65", "%66")
WARPLADDER_PRODUCT(Fp16, 96, "192", "k16.f32.f16.f16", ", 0, 0", "%96", "%97", "%98")
WARPLADDER_PRODUCT(Fp16, 128, "256", "k16.f32.f16.f16", ", 0, 0", "%128", "%129", "%130")
WARPLADDER_PRODUCT(Fp8, 32, "64", "k32.f32.e4m3.e4m3", "", "%32", "%33", "%34")
WARPLADDER_PRODUCT(Fp8, 64, "128", "k32.f32.e4m3.e4m3", "", "%64", "%65", "%66")
WARPLADDER_PRODUCT(Fp8, 96, "192", "k32.f32.e4m3.e4m3", "", "%96", "%97", "%98")
WARPLADDER_PRODUCT(Fp8, 128, "256", "k32.f32.e4m3.e4m3", "", "%128", "%129", "%130")

#undef WARPLADDER_32
#undef WARPLADDER_64
#undef WARPLADDER_96
#undef WARPLADDER_128
#undef WARPLADDER_SUMS_8
#undef WARPLADDER_SUMS_32
#undef WARPLADDER_SUMS_64
#undef WARPLADDER_SUMS_96
#undef WARPLADDER_SUMS_128
#undef WARPLADDER_PRODUCT
