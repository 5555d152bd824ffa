// What workloads/hopper.cuh and hopper_bf16.cuh do by inline PTX, for the emulator: functions of the same names. emulator.py takes those that stand
// here out of the source; the rest of those headers is compiled as it is. Included at the end of cuda_emulator.h.
//
// Copies and products are done at once, so that a kernel that reads too early, or lacks a fence, is not caught here.
// Definitions: PTX ISA, sections 9.7.9 (cp.async.bulk.tensor), 9.7.13 (mbarrier), 9.7.15 (wgmma: fragments, descriptors), 9.7.20 (setmaxnreg).
#pragma once

#include "tensor_map.h"

typedef unsigned long long Mbarrier;

/// Where shared memory begins is 0x400 at least, as nothing lies at 0.
EMULATOR_INLINE unsigned __cvta_generic_to_shared(const void* shared) { return emulator::shared_offset(shared); }

// ---- Barriers. The runtime has them, as it knows who waits.
EMULATOR_INLINE void mbarrier_init(Mbarrier* barrier, unsigned arrivals) { emulator::barrier_init(barrier, arrivals); }
EMULATOR_INLINE void mbarrier_arrive(Mbarrier* barrier) { emulator::barrier_arrive(barrier, 0); }
EMULATOR_INLINE void mbarrier_arrive_expect(Mbarrier* barrier, unsigned bytes) { emulator::barrier_arrive(barrier, bytes); }
EMULATOR_INLINE void mbarrier_wait(Mbarrier* barrier, unsigned parity) { emulator::wait_for_phase(barrier, parity); }
inline void fence_mbarrier_init() {}
inline void fence_proxy_async() {}

// ---- The TMA.
namespace emulator {
/// The box at x, y, ... in this block's shared memory; its bytes count on the barrier, also those of elements outside the tensor.
EMULATOR_INLINE void load_box(void* shared, const TensorMap& map, const int* at, unsigned axes, Mbarrier* barrier) {
  const TensorMapWords words = checked_box(shared, map, axes);
  for_each_of_box(words, shared, at, [](float* to, const float* from) { *to = from ? *from : 0.0f; });
  barrier_complete(barrier, box_bytes(words));
}
EMULATOR_INLINE void store_box(const void* shared, const TensorMap& map, const int* at, unsigned axes) {
  const TensorMapWords words = checked_box(shared, map, axes);
  for_each_of_box(words, const_cast<void*>(shared), at, [](const float* from, float* to) {
    if (to) *to = *from;
  });
}
}  // namespace emulator

EMULATOR_INLINE void tma_load(void* shared, const TensorMap& map, int x, int y, Mbarrier* barrier) {
  const int at[] = {x, y};
  emulator::load_box(shared, map, at, 2, barrier);
}

// ---- Memory and registers.
inline void prefetch_l2(const void* global) { (void)*static_cast<const volatile char*>(global); }  // outside a buffer it is a fault here
inline void store_if(bool condition, float* to, float first, float second) {
  if (condition) *reinterpret_cast<float2*>(to) = make_float2(first, second);
}
template <int registers> void give_registers() { static_assert(registers % 8 == 0 && registers >= 24 && registers <= 256, "as setmaxnreg takes them"); }
template <int registers> void take_registers() { static_assert(registers % 8 == 0 && registers >= 24 && registers <= 256, "as setmaxnreg takes them"); }
inline void copy_register(float& to, float from) { to = from; }

// ---- wgmma. Rows of a product do not meet, so that each warp multiplies its 16 of the 64 by itself.
inline void wgmma_fence() {}
inline void wgmma_commit() {}
template <int groups> void wgmma_wait() { static_assert(groups >= 0 && groups < 8); }
template <class T, int count> void wgmma_keep(T (&)[count]) {}

namespace emulator {

/// An operand in shared memory, by its descriptor: rows along k, in groups of 8.
struct WgmmaOperand {
  std::uintptr_t start;
  unsigned swizzle_bytes, row_bytes, leading, groups;

  explicit WgmmaOperand(unsigned long long descriptor) {
    constexpr unsigned swizzles[] = {0, 128, 64, 32};
    start = reinterpret_cast<std::uintptr_t>(at_shared_offset((descriptor & 0x3fff) << 4));
    leading = (descriptor >> 16 & 0x3fff) << 4, groups = (descriptor >> 32 & 0x3fff) << 4;
    swizzle_bytes = swizzles[descriptor >> 62];
    row_bytes = swizzle_bytes ? swizzle_bytes : 16;
  }
  /// A word along k of a row.
  unsigned word(unsigned row, unsigned number) const {
    const unsigned along = swizzle_bytes ? number * 4 : number / 4 * leading + number % 4 * 4;
    return *reinterpret_cast<const unsigned*>(swizzled(start + row / 8 * groups + row % 8 * row_bytes + along, swizzle_bytes));
  }
};

struct WgmmaFragment {
  unsigned words[4];
};

/// a of the 16 rows of this warp, 8 words a row, of which this lane's sums need two rows.
struct WgmmaRowsOfA {
  unsigned words[2][8];

  explicit WgmmaRowsOfA(const unsigned* fragment) {
    const WgmmaFragment mine = {{fragment[0], fragment[1], fragment[2], fragment[3]}};
    exchange(full_mask, mine, [this](auto values) {
      // Row r, word w of a is in lane 4 (r mod 8) + w mod 4, register r / 8 + 2 (w / 4).
      for (unsigned w = 0; w < 8; w++) {
        const WgmmaFragment of = values(lane() / 4 * 4 + w % 4);
        for (unsigned half = 0; half < 2; half++) words[half][w] = of.words[half + 2 * (w / 4)];
      }
      return 0;
    });
  }
  explicit WgmmaRowsOfA(const WgmmaOperand& a) {
    const unsigned first = thread_of_block() % 128 / 32 * 16 + lane() / 4;
    for (unsigned half = 0; half < 2; half++)
      for (unsigned w = 0; w < 8; w++) words[half][w] = a.word(first + 8 * half, w);
  }
};

/// sums = (add ? sums : 0) + a * b for twice as many columns as sums; product(word of a, word of b) is what two words give.
template <int count, class Product>
void wgmma(float (&sums)[count], const WgmmaRowsOfA& a, const WgmmaOperand& b, bool add, Product product) {
  for (unsigned i = 0; i < count; i++) {
    const unsigned column = i / 4 * 8 + 2 * (lane() % 4) + i % 2;
    double sum = add ? sums[i] : 0.0f;
    for (unsigned w = 0; w < 8; w++) sum += product(a.words[i % 4 / 2][w], b.word(column, w));
    sums[i] = static_cast<float>(sum);
  }
}
inline double tf32_product(unsigned a, unsigned b) { return tf32_value(a) * tf32_value(b); }
inline double bf16_products(unsigned a, unsigned b) {
  const auto low = [](unsigned pair) -> double { return __uint_as_float(pair << 16); };
  const auto high = [](unsigned pair) -> double { return __uint_as_float(pair & 0xffff0000u); };
  return low(a) * low(b) + high(a) * high(b);
}

}  // namespace emulator

/// wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32, a in registers or by rows in shared memory.
template <int count> void wgmma_tf32(float (&sums)[count], const unsigned* a, unsigned long long b, bool add) {
  emulator::wgmma(sums, emulator::WgmmaRowsOfA(a), emulator::WgmmaOperand(b), add, emulator::tf32_product);
}
template <int count> void wgmma_tf32(float (&sums)[count], unsigned long long a, unsigned long long b, bool add) {
  emulator::wgmma(sums, emulator::WgmmaRowsOfA(emulator::WgmmaOperand(a)), emulator::WgmmaOperand(b), add, emulator::tf32_product);
}

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16, two values a word.
template <int count> void wgmma_bf16(float (&sums)[count], const unsigned* a, unsigned long long b) {
  emulator::wgmma(sums, emulator::WgmmaRowsOfA(a), emulator::WgmmaOperand(b), true, emulator::bf16_products);
}
#include "hopper_clusters.h"
