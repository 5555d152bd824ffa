// Products of Hopper's warpgroups (wgmma) in BF16: 16 steps along k in the time of 8 in TF32. After hopper.cuh.
// Source: PTX ISA, sections 9.7.9 (cvt.rn.bf16x2) and 9.7.15 (wgmma).

// Two numbers rounded to BF16, `first` in the lower half.
__device__ __forceinline__ unsigned to_bf16_pair(float first, float second) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
  return bits;
}

#define WARPLADDER_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define WARPLADDER_32 WARPLADDER_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WARPLADDER_48 WARPLADDER_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define WARPLADDER_64 WARPLADDER_48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WARPLADDER_80 WARPLADDER_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define WARPLADDER_96 WARPLADDER_80 ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define WARPLADDER_112 WARPLADDER_96 ", " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define WARPLADDER_SUMS_16(i)                                                                                     \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), "+f"(sums[i + 5]),         \
      "+f"(sums[i + 6]), "+f"(sums[i + 7]), "+f"(sums[i + 8]), "+f"(sums[i + 9]), "+f"(sums[i + 10]), "+f"(sums[i + 11]), \
      "+f"(sums[i + 12]), "+f"(sums[i + 13]), "+f"(sums[i + 14]), "+f"(sums[i + 15])
#define WARPLADDER_SUMS_32(i) WARPLADDER_SUMS_16(i), WARPLADDER_SUMS_16(i + 16)
#define WARPLADDER_SUMS_48(i) WARPLADDER_SUMS_32(i), WARPLADDER_SUMS_16(i + 32)
#define WARPLADDER_SUMS_64(i) WARPLADDER_SUMS_48(i), WARPLADDER_SUMS_16(i + 48)
#define WARPLADDER_SUMS_80(i) WARPLADDER_SUMS_64(i), WARPLADDER_SUMS_16(i + 64)
#define WARPLADDER_SUMS_96(i) WARPLADDER_SUMS_80(i), WARPLADDER_SUMS_16(i + 80)
#define WARPLADDER_SUMS_112(i) WARPLADDER_SUMS_96(i), WARPLADDER_SUMS_16(i + 96)

// sums += a * b over 16 steps for twice as many columns as there are sums. a in registers: rows as those of the sums, steps 2t and 2t + 1,
// then 2t + 8 and 2t + 9 for the second pair, where t is the lane % 4. b along k in shared memory, rows of 64 values, as for TF32.
#define WARPLADDER_WGMMA_BF16(count, columns, operands)                                                                    \
  __device__ __forceinline__ void wgmma_bf16(float (&sums)[count], const unsigned* a, unsigned long long b) {              \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" columns "k16.f32.bf16.bf16 {" WARPLADDER_##count "}, " operands ", 1, 1, 1, 0;" \
                 : WARPLADDER_SUMS_##count(0)                                                                              \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                                    \
  }
WARPLADDER_WGMMA_BF16(16, "32", "{%16, %17, %18, %19}, %20")
WARPLADDER_WGMMA_BF16(32, "64", "{%32, %33, %34, %35}, %36")
WARPLADDER_WGMMA_BF16(48, "96", "{%48, %49, %50, %51}, %52")
WARPLADDER_WGMMA_BF16(64, "128", "{%64, %65, %66, %67}, %68")
WARPLADDER_WGMMA_BF16(80, "160", "{%80, %81, %82, %83}, %84")
WARPLADDER_WGMMA_BF16(96, "192", "{%96, %97, %98, %99}, %100")
WARPLADDER_WGMMA_BF16(112, "224", "{%112, %113, %114, %115}, %116")

#undef WARPLADDER_16
#undef WARPLADDER_32
#undef WARPLADDER_48
#undef WARPLADDER_64
#undef WARPLADDER_80
#undef WARPLADDER_96
#undef WARPLADDER_112
#undef WARPLADDER_SUMS_16
#undef WARPLADDER_SUMS_32
#undef WARPLADDER_SUMS_48
#undef WARPLADDER_SUMS_64
#undef WARPLADDER_SUMS_80
#undef WARPLADDER_SUMS_96
#undef WARPLADDER_SUMS_112
#undef WARPLADDER_WGMMA_BF16
