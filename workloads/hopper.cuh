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

// Asks L2 for the line of an address.
__device__ __forceinline__ void prefetch_l2(const void* global) { asm volatile("prefetch.global.L2 [%0];" ::"l"(global)); }

// Two neighbouring floats to global memory, without a branch, so that what comes after need not wait.
__device__ __forceinline__ void store_if(bool condition, float* to, float first, float second) {
  asm volatile("{.reg .pred p; setp.ne.b32 p, %0, 0; @p st.global.v2.f32 [%1], {%2, %3};}" ::"r"((int)condition), "l"(to), "f"(first),
               "f"(second)
               : "memory");
}

// -- Registers of a warpgroup ---------------------------------------------------------------------------------------------------

template <int registers>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

template <int registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

// Which stage of a pipeline is next, and the parity of its barriers' phase.
template <int stages>
struct Ring {
  int stage = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void next() {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
};

// Barriers of a pipeline of stages: `full` when the TMA's bytes are there, `split` when splitters have written the rests, `empty` when all
// warps of the consumers are done with a stage.
template <int stages>
struct Pipeline {
  Mbarrier full[stages], split[stages], empty[stages];

  // By all threads of a block.
  __device__ __forceinline__ void init(int consumer_warps, int splitters = 1) {
    if (threadIdx.x == 0) {
      for (int s = 0; s < stages; ++s) {
        mbarrier_init(&full[s], 1);
        mbarrier_init(&split[s], splitters);
        mbarrier_init(&empty[s], consumer_warps);
      }
      fence_mbarrier_init();
    }
    __syncthreads();
  }

  // By all lanes of a consumer's warp, when none waits any more for what it read: the arrival does not.
  __device__ __forceinline__ void release(int stage) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(&empty[stage]);
  }
};

// Dynamic shared memory from a multiple of 1024 bytes on, as 128-byte swizzles want it; ask for 1024 bytes more.
template <class T>
__device__ __forceinline__ T* aligned_1024(char* shared) {
  return reinterpret_cast<T*>(shared + (1024 - shared_address(shared) % 1024) % 1024);
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

// A copy that is one: the compiler neither leaves it out nor takes another register for the old one.
__device__ __forceinline__ void copy_register(float& to, float from) { asm volatile("mov.b32 %0, %1;" : "=f"(to) : "f"(from)); }

// Keeps what makes fragments before the fence after it.
template <int count>
__device__ __forceinline__ void wgmma_keep(unsigned (&a)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+r"(a[i])::"memory");
}

#define WARPLADDER_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define WARPLADDER_24 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23"
#define WARPLADDER_32 WARPLADDER_24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define WARPLADDER_64 \
  WARPLADDER_32 ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WARPLADDER_48 WARPLADDER_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define WARPLADDER_80 WARPLADDER_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define WARPLADDER_96 WARPLADDER_80 ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define WARPLADDER_112 WARPLADDER_96 ", " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define WARPLADDER_128 \
  WARPLADDER_64 ", " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define WARPLADDER_SUMS_8(i)                                                                                    \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), "+f"(sums[i + 5]), \
      "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define WARPLADDER_SUMS_16(i) WARPLADDER_SUMS_8(i), WARPLADDER_SUMS_8(i + 8)
#define WARPLADDER_SUMS_32(i) \
  WARPLADDER_SUMS_8(i), WARPLADDER_SUMS_8(i + 8), WARPLADDER_SUMS_8(i + 16), WARPLADDER_SUMS_8(i + 24)
#define WARPLADDER_WGMMA(columns, sums, operands, predicate)                                              \
  "{.reg .pred p; setp.ne.b32 p, " predicate ", 0; wgmma.mma_async.sync.aligned.m64n" columns             \
  "k8.f32.tf32.tf32 {" sums "}, " operands ", p, 1, 1;}"

// The columns are twice as many as the sums of a thread. `add` false starts the sums anew.
// Of the sums, thread t of the warpgroup has row 16 (t / 32) + t % 32 / 4 (+ 8 for i % 4 >= 2), column 8 (i / 4) + 2 (t % 4) + i % 2.

// a by rows in shared memory.
__device__ __forceinline__ void wgmma_tf32(float (&sums)[128], unsigned long long a, unsigned long long b, bool add) {
  asm volatile(WARPLADDER_WGMMA("256", WARPLADDER_128, "%128, %129", "%130")
               : WARPLADDER_SUMS_32(0), WARPLADDER_SUMS_32(32), WARPLADDER_SUMS_32(64), WARPLADDER_SUMS_32(96)
               : "l"(a), "l"(b), "r"((int)add));
}

// a in registers: rows as those of the sums, step t % 4 (+ 4 for the second pair) along k.
__device__ __forceinline__ void wgmma_tf32(float (&sums)[24], const unsigned* a, unsigned long long b, bool add) {
  asm volatile(WARPLADDER_WGMMA("48", WARPLADDER_24, "{%24, %25, %26, %27}, %28", "%29")
               : WARPLADDER_SUMS_8(0), WARPLADDER_SUMS_8(8), WARPLADDER_SUMS_8(16)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
}
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
__device__ __forceinline__ void wgmma_tf32(float (&sums)[16], const unsigned* a, unsigned long long b, bool add) {
  asm volatile(WARPLADDER_WGMMA("32", WARPLADDER_16, "{%16, %17, %18, %19}, %20", "%21")
               : WARPLADDER_SUMS_16(0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
}
__device__ __forceinline__ void wgmma_tf32(float (&sums)[48], const unsigned* a, unsigned long long b, bool add) {
  asm volatile(WARPLADDER_WGMMA("96", WARPLADDER_48, "{%48, %49, %50, %51}, %52", "%53")
               : WARPLADDER_SUMS_32(0), WARPLADDER_SUMS_16(32)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
}
__device__ __forceinline__ void wgmma_tf32(float (&sums)[80], const unsigned* a, unsigned long long b, bool add) {
  asm volatile(WARPLADDER_WGMMA("160", WARPLADDER_80, "{%80, %81, %82, %83}, %84", "%85")
               : WARPLADDER_SUMS_32(0), WARPLADDER_SUMS_32(32), WARPLADDER_SUMS_16(64)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
}
__device__ __forceinline__ void wgmma_tf32(float (&sums)[96], const unsigned* a, unsigned long long b, bool add) {
  asm volatile(WARPLADDER_WGMMA("192", WARPLADDER_96, "{%96, %97, %98, %99}, %100", "%101")
               : WARPLADDER_SUMS_32(0), WARPLADDER_SUMS_32(32), WARPLADDER_SUMS_32(64)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
}
__device__ __forceinline__ void wgmma_tf32(float (&sums)[112], const unsigned* a, unsigned long long b, bool add) {
  asm volatile(WARPLADDER_WGMMA("224", WARPLADDER_112, "{%112, %113, %114, %115}, %116", "%117")
               : WARPLADDER_SUMS_32(0), WARPLADDER_SUMS_32(32), WARPLADDER_SUMS_32(64), WARPLADDER_SUMS_16(96)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
}

#undef WARPLADDER_16
#undef WARPLADDER_24
#undef WARPLADDER_32
#undef WARPLADDER_48
#undef WARPLADDER_64
#undef WARPLADDER_80
#undef WARPLADDER_96
#undef WARPLADDER_112
#undef WARPLADDER_128
#undef WARPLADDER_SUMS_8
#undef WARPLADDER_SUMS_16
#undef WARPLADDER_SUMS_32
#undef WARPLADDER_WGMMA

// A thread's share of an operand a whose rows, not steps, are neighbours in memory: boxes of 32 steps by 32 rows, copied by the TMA with
// a 128-byte swizzle, one behind the other. wgmma does not mind which rows of a stand for its 64: a thread takes such that the lanes
// of a warp, 4 steps of 8 rows, meet all banks.
struct WgmmaFragments {
  int first;     // float of step t % 4 of the thread's box
  int piece[2];  // 16-byte piece of its row, for its first and its second row
  int step;      // t % 4
  int row;       // first of its two rows; the second is 4 below

  // Threads of two warpgroups: 128 rows, 4 boxes.
  __device__ __forceinline__ explicit WgmmaFragments(int thread) {
    const int warp = thread / 32, group = thread % 32 / 4;
    step = thread % 4;
    piece[0] = 4 * (group / 4) + 2 * (warp % 2);
    piece[1] = piece[0] + 1;
    first = warp / 2 * 1024 + step * 32 + group % 4;
    row = warp / 2 * 32 + 4 * piece[0] + group % 4;
  }

  // Fragment i of 0 to 3, of the k-th 8 steps.
  __device__ __forceinline__ float load(const float* a, int k, int i) const {
    const int half = i / 2;
    return a[first + (8 * k + 4 * half) * 32 + 4 * (piece[i % 2] ^ (4 * half + step))];
  }

  // How many rows below `row`, and columns to the right, the i-th of the thread's sums lies.
  static __device__ __forceinline__ int down(int i) { return i % 4 / 2 * 4; }
  __device__ __forceinline__ int across(int i) const { return i / 4 * 8 + 2 * step + i % 2; }
};

// A thread's share of an operand a by rows, as the TMA copies a box of 32 steps by 128 rows with a 128-byte swizzle; threads of two
// warpgroups.
struct WgmmaRows {
  int row;    // first of the thread's two rows; the second is 8 below
  int first;  // float of the thread in its first row, of the first 4 steps
  int step;   // lane % 4

  __device__ __forceinline__ explicit WgmmaRows(int thread) {
    const int group = thread % 32 / 4;
    step = thread % 4;
    row = thread / 32 * 16 + group;
    first = row * 32 + 4 * group + step;
  }

  // Fragment i of 0 to 3, of the k-th 8 steps.
  __device__ __forceinline__ float load(const float* a, int k, int i) const {
    return a[(first ^ 4 * (2 * k + i / 2)) + i % 2 * 8 * 32];
  }

  static __device__ __forceinline__ int down(int i) { return i % 4 / 2 * 8; }
  __device__ __forceinline__ int across(int i) const { return i / 4 * 8 + 2 * step + i % 2; }
};

// 3xTF32: the part of a float that tensor cores look at, and the rest, half a unit up: they cut that off, which then rounds.
constexpr unsigned kTf32Part = 0xffffe000u;
constexpr unsigned kTf32Half = 0x1000u;
__device__ __forceinline__ unsigned tf32_part(float x) { return (__float_as_uint(x) + kTf32Half) & kTf32Part; }
__device__ __forceinline__ unsigned tf32_rest(float x, unsigned part) {
  return __float_as_uint(x - __uint_as_float(part)) + kTf32Half;
}

// The rests of a tile of `floats` whose parts tensor cores cut off by themselves, by `threads` threads; then what wgmma reads.
template <int floats, int threads>
__device__ __forceinline__ void split_tile(const float* tile, unsigned* rest, int thread) {
  auto rest_of = [](float x) { return tf32_rest(x, __float_as_uint(x) & kTf32Part); };
#pragma unroll 4
  for (int i = thread; i < floats / 4; i += threads) {
    const float4 x = reinterpret_cast<const float4*>(tile)[i];
    reinterpret_cast<uint4*>(rest)[i] = make_uint4(rest_of(x.x), rest_of(x.y), rest_of(x.z), rest_of(x.w));
  }
  fence_proxy_async();
}

// A thread's 16 fragments of 32 steps of a, in two parts.
struct SplitFragments {
  unsigned part[16], rest[16];

  template <class Fragments>  // WgmmaFragments or WgmmaRows
  __device__ __forceinline__ SplitFragments(const Fragments& fragments, const float* a) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const float x = fragments.load(a, i / 4, i % 4);
      part[i] = tf32_part(x);
      rest[i] = tf32_rest(x, part[i]);
    }
  }
};

// sums = a * b over 32 steps in three products, the smallest first; `rest` is what split_tile made of b. Waits until it is done.
template <int count>
__device__ __forceinline__ void wgmma_3xtf32(float (&sums)[count], const SplitFragments& a, const float* b, const unsigned* rest) {
  const unsigned long long of_b = wgmma_operand(b), of_rest = wgmma_operand(rest);
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < 4; ++i) wgmma_tf32(sums, a.rest + 4 * i, of_b + 2 * i, i > 0);
#pragma unroll
  for (int i = 0; i < 4; ++i) wgmma_tf32(sums, a.part + 4 * i, of_rest + 2 * i, true);
#pragma unroll
  for (int i = 0; i < 4; ++i) wgmma_tf32(sums, a.part + 4 * i, of_b + 2 * i, true);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_keep(sums);
}
