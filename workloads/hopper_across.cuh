// Products of Hopper's warpgroups (wgmma) in BF16 with sums in float32, of operands in shared memory that lie along k, or across it: the rows of
// one step are neighbours, as those of a transposed matrix are. After hopper.cuh.
// Source: PTX ISA, section 9.7.15 (wgmma: strides of MN-major operands, imm-trans-a, imm-trans-b).

// Shared memory as wgmma reads an operand across: boxes of 64 rows, each a step a line of 128 bytes, swizzled, from a multiple of 1024 bytes on.
// Boxes of the next 64 rows are `box_bytes` behind one another. 16 steps further along k are 128 more.
__device__ __forceinline__ unsigned long long wgmma_operand_across(const void* shared, unsigned box_bytes) {
  const unsigned long long start = (shared_address(shared) & 0x3ffff) >> 4;
  return start | (unsigned long long)(box_bytes >> 4) << 16 | 64ull << 32 | 1ull << 62;  // 1024 bytes between eights of steps
}

#define WARPLADDER_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define WARPLADDER_32 WARPLADDER_8 \
  ", %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WARPLADDER_64 WARPLADDER_32 \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WARPLADDER_128 WARPLADDER_64 \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95" \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define WARPLADDER_SUMS_8(i)                                                                                    \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), "+f"(sums[i + 5]), \
      "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define WARPLADDER_SUMS_32(i) \
  WARPLADDER_SUMS_8(i), WARPLADDER_SUMS_8(i + 8), WARPLADDER_SUMS_8(i + 16), WARPLADDER_SUMS_8(i + 24)
#define WARPLADDER_SUMS_64(i) WARPLADDER_SUMS_32(i), WARPLADDER_SUMS_32(i + 32)
#define WARPLADDER_SUMS_128(i) WARPLADDER_SUMS_64(i), WARPLADDER_SUMS_64(i + 64)

// sums = (add ? sums : 0) + a * b over 16 steps, 64 rows of a by twice as many columns as there are sums. Thread t of the warpgroup has the sums
// that wgmma_tf32 gives it.
#define WARPLADDER_PRODUCT(count, columns, a_place, b_place, add_place, a_major, b_major)                                          \
  template <bool a_across, bool b_across>                                                                                          \
  __device__ __forceinline__ void wgmma_across(float (&sums)[count], unsigned long long a, unsigned long long b, bool add) {       \
    asm volatile("{.reg .pred p; setp.ne.b32 p, " add_place ", 0; wgmma.mma_async.sync.aligned.m64n" columns "k16.f32.bf16.bf16 {" \
                 WARPLADDER_##count "}, " a_place ", " b_place ", p, 1, 1, " a_major ", " b_major ";}"                             \
                 : WARPLADDER_SUMS_##count(0)                                                                                      \
                 : "l"(a), "l"(b), "r"((int)add), "n"((int)a_across), "n"((int)b_across));                                         \
  }
WARPLADDER_PRODUCT(8, "16", "%8", "%9", "%10", "%11", "%12")
WARPLADDER_PRODUCT(32, "64", "%32", "%33", "%34", "%35", "%36")
WARPLADDER_PRODUCT(64, "128", "%64", "%65", "%66", "%67", "%68")
WARPLADDER_PRODUCT(128, "256", "%128", "%129", "%130", "%131", "%132")

#undef WARPLADDER_8
#undef WARPLADDER_32
#undef WARPLADDER_64
#undef WARPLADDER_128
#undef WARPLADDER_SUMS_8
#undef WARPLADDER_SUMS_32
#undef WARPLADDER_SUMS_64
#undef WARPLADDER_SUMS_128
#undef WARPLADDER_PRODUCT
