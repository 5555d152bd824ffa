// What Hopper (sm_90a) has besides: products of warpgroups (wgmma), copies by the tensor memory accelerator (TMA), barriers that count
// bytes (mbarrier), registers handed over between warpgroups.
// Source: PTX ISA, sections 9.7.9 (cp.async.bulk.tensor), 9.7.13 (mbarrier), 9.7.15 (wgmma: fragments, descriptors), 9.7.20 (setmaxnreg).

typedef unsigned long long Mbarrier;

// A tensor map, as `workloads.api.TensorMap` declares it; parameters are `const __grid_constant__ TensorMap`.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

__device__ __forceinline__ unsigned shared_address(const void* shared) { return __cvta_generic_to_shared(shared); }

// -- Barriers: a phase ends when `arrivals` have arrived and all expected bytes are there ----------------------------------------

__device__ __forceinline__ void mbarrier_init(Mbarrier* barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to the TMA; then __syncthreads().
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(Mbarrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Arrives, and tells how many bytes the phase waits for besides.
__device__ __forceinline__ void mbarrier_arrive_expect(Mbarrier* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

// Waits for the end of the phase of this parity: 0 for the first; 1 returns at once on a new barrier.
__device__ __forceinline__ void mbarrier_wait(Mbarrier* barrier, unsigned parity) {
  unsigned done = 0;
  while (!done)
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(done)
                 : "r"(shared_address(barrier)), "r"(parity)
                 : "memory");
}

// -- TMA: a box at element (x, y), x along the innermost axis, whose bytes count on a barrier ------------------------------------------

__device__ __forceinline__ void tma_load(void* shared, const TensorMap& map, int x, int y, Mbarrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          shared_address(shared)),
      "l"(&map), "r"(x), "r"(y), "r"(shared_address(barrier))
      : "memory");
}

// Orders a thread's own reads and writes of shared memory before those that wgmma and the TMA make after it.
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// -- Registers of a warpgroup ---------------------------------------------------------------------------------------------------

template <int registers>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

template <int registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

// -- wgmma: sums of 64 rows += a * b, 8 steps along k ------------------------------------------------------------------------------

// Shared memory as wgmma reads an operand: rows of 32 floats along k, 128 bytes swizzled, groups of 8 rows behind one another, starting
// at a multiple of 1024 bytes. Eight floats further along k are 2 more.
__device__ __forceinline__ unsigned long long wgmma_operand(const void* shared) {
  const unsigned long long start = (shared_address(shared) & 0x3ffff) >> 4;
  return start | 1ull << 16 | 64ull << 32 | 1ull << 62;  // leading offset unused; 1024 bytes between groups; 128-byte swizzle
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits for all groups but the last `groups`.
template <int groups>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
}

// Keeps uses of the sums behind the wait before it.
template <int count>
__device__ __forceinline__ void wgmma_keep(float (&sums)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

#define WARPLADDER_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WARPLADDER_64 \
  WARPLADDER_32 ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WARPLADDER_128 \
  WARPLADDER_64 ", " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define WARPLADDER_SUMS_8(i)                                                                                    \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), "+f"(sums[i + 5]), \
      "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define WARPLADDER_SUMS_32(i) \
  WARPLADDER_SUMS_8(i), WARPLADDER_SUMS_8(i + 8), WARPLADDER_SUMS_8(i + 16), WARPLADDER_SUMS_8(i + 24)
#define WARPLADDER_WGMMA(columns, sums, operands, predicate)                                              \
  "{.reg .pred p; setp.ne.b32 p, " predicate ", 0; wgmma.mma_async.sync.aligned.m64n" columns             \
  "k8.f32.tf32.tf32 {" sums "}, " operands ", p, 1, 1;}"

// The columns are twice as many as the sums of a thread. `add` false starts the sums anew.
// Of the sums, thread t of the warpgroup has row 16 (t / 32) + t % 32 / 4 (+ 8 for i % 4 >= 2), column 8 (i / 4) + 2 (t % 4) + i % 2.

// a by rows in shared memory.
__device__ __forceinline__ void wgmma_tf32(float (&sums)[32], unsigned long long a, unsigned long long b, bool add) {
  asm volatile(WARPLADDER_WGMMA("64", WARPLADDER_32, "%32, %33", "%34")
               : WARPLADDER_SUMS_32(0)
               : "l"(a), "l"(b), "r"((int)add));
}
__device__ __forceinline__ void wgmma_tf32(float (&sums)[64], unsigned long long a, unsigned long long b, bool add) {
  asm volatile(WARPLADDER_WGMMA("128", WARPLADDER_64, "%64, %65", "%66")
               : WARPLADDER_SUMS_32(0), WARPLADDER_SUMS_32(32)
               : "l"(a), "l"(b), "r"((int)add));
}
__device__ __forceinline__ void wgmma_tf32(float (&sums)[128], unsigned long long a, unsigned long long b, bool add) {
  asm volatile(WARPLADDER_WGMMA("256", WARPLADDER_128, "%128, %129", "%130")
               : WARPLADDER_SUMS_32(0), WARPLADDER_SUMS_32(32), WARPLADDER_SUMS_32(64), WARPLADDER_SUMS_32(96)
               : "l"(a), "l"(b), "r"((int)add));
}

// a in registers: rows as those of the sums, step t % 4 (+ 4 for the second pair) along k.
__device__ __forceinline__ void wgmma_tf32(float (&sums)[32], const unsigned* a, unsigned long long b, bool add) {
  asm volatile(WARPLADDER_WGMMA("64", WARPLADDER_32, "{%32, %33, %34, %35}, %36", "%37")
               : WARPLADDER_SUMS_32(0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
}
__device__ __forceinline__ void wgmma_tf32(float (&sums)[64], const unsigned* a, unsigned long long b, bool add) {
  asm volatile(WARPLADDER_WGMMA("128", WARPLADDER_64, "{%64, %65, %66, %67}, %68", "%69")
               : WARPLADDER_SUMS_32(0), WARPLADDER_SUMS_32(32)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
}
__device__ __forceinline__ void wgmma_tf32(float (&sums)[128], const unsigned* a, unsigned long long b, bool add) {
  asm volatile(WARPLADDER_WGMMA("256", WARPLADDER_128, "{%128, %129, %130, %131}, %132", "%133")
               : WARPLADDER_SUMS_32(0), WARPLADDER_SUMS_32(32), WARPLADDER_SUMS_32(64), WARPLADDER_SUMS_32(96)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
}

#undef WARPLADDER_32
#undef WARPLADDER_64
#undef WARPLADDER_128
#undef WARPLADDER_SUMS_8
#undef WARPLADDER_SUMS_32
#undef WARPLADDER_WGMMA
