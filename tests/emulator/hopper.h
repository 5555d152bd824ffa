// What workloads/hopper.cuh, hopper_across.cuh, hopper_bf16.cuh, hopper_low_precision.cuh and hopper_stores.cuh do by inline PTX, for the emulator: functions of the same names. emulator.py takes those that stand
// here out of the source; the rest of those headers is compiled as it is. Included at the end of cuda_emulator.h.
//
// Copies by the TMA and products are done at once where threads run from first to last, and as late as waits allow where they run from last to first:
// one of the two shows a wait that lacks. Fences are not checked.
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
EMULATOR_INLINE void tma_load(void* shared, const TensorMap& map, int x, int y, Mbarrier* barrier) {
  const int at[] = {x, y};
  emulator::load_box(shared, map, at, 2, barrier);
}
EMULATOR_INLINE void tma_load(void* shared, const TensorMap& map, int x, int y, int z, Mbarrier* barrier) {
  const int at[] = {x, y, z};
  emulator::load_box(shared, map, at, 3, barrier);
}

inline void tma_store(const TensorMap& map, int x, int y, const void* shared) {
  emulator::start_async([map, x, y, shared] {
    const int at[] = {x, y};
    emulator::store_box(map, at, 2, shared);
  });
}
inline void tma_store(const TensorMap& map, int x, int y, int z, const void* shared) {
  emulator::start_async([map, x, y, z, shared] {
    const int at[] = {x, y, z};
    emulator::store_box(map, at, 3, shared);
  });
}
EMULATOR_INLINE void tma_store_bytes(void* global, const void* shared, unsigned bytes) {
  emulator::check_bytes(global, shared, bytes);
  emulator::start_async([global, shared, bytes] { std::memcpy(global, shared, bytes); });
}
inline void tma_store_commit() { emulator::commit_async(); }
template <int groups> EMULATOR_INLINE void tma_store_wait_read() { emulator::wait_async(groups); }

// ---- Memory and registers.
inline void prefetch_map(const TensorMap&) {}
inline void prefetch_l2(const void* global) { (void)*static_cast<const volatile char*>(global); }  // outside a buffer it is a fault here
inline void store_if(bool condition, float* to, float first, float second) {
  if (condition) *reinterpret_cast<float2*>(to) = make_float2(first, second);
}
template <int registers> void give_registers() { static_assert(registers % 8 == 0 && registers >= 24 && registers <= 256, "as setmaxnreg takes them"); }
template <int registers> void take_registers() { static_assert(registers % 8 == 0 && registers >= 24 && registers <= 256, "as setmaxnreg takes them"); }
inline void copy_register(float& to, float from) { to = from; }

// ---- Launches that are early: here one ends before the next one starts.
inline void let_next_launch_start() {}
inline void wait_for_launch_before() {}

// ---- wgmma. Rows of a product do not meet, so that each warp multiplies its 16 of the 64 by itself.
inline void wgmma_fence() {}
inline void wgmma_commit() { emulator::commit_async(); }
template <int groups> EMULATOR_INLINE void wgmma_wait() { emulator::wait_async(groups); }
template <class T, int count> void wgmma_keep(T (&)[count]) {}

namespace emulator {

/// An operand in shared memory, by its descriptor: rows along k, in groups of 8; or across, in boxes of 64 rows, whose steps are lines in groups
/// of 8.
struct WgmmaOperand {
  std::uintptr_t start;
  unsigned swizzle_bytes, row_bytes, leading, groups;
  bool across;

  explicit WgmmaOperand(unsigned long long descriptor, bool is_across = false) : across(is_across) {
    constexpr unsigned swizzles[] = {0, 128, 64, 32};
    start = reinterpret_cast<std::uintptr_t>(at_shared_offset((descriptor & 0x3fff) << 4));
    leading = (descriptor >> 16 & 0x3fff) << 4, groups = (descriptor >> 32 & 0x3fff) << 4;
    swizzle_bytes = swizzles[descriptor >> 62];
    row_bytes = swizzle_bytes ? swizzle_bytes : 16;
  }
  /// A word along k of a row.
  unsigned word(unsigned row, unsigned number) const {
    if (across) return element_across(row, 2 * number) | element_across(row, 2 * number + 1) << 16;
    const unsigned along = swizzle_bytes ? number * 4 : number / 4 * leading + number % 4 * 4;
    return *reinterpret_cast<const unsigned*>(swizzled(start + row / 8 * groups + row % 8 * row_bytes + along, swizzle_bytes));
  }
  /// 16 bits of a step, with a swizzle of 128 bytes.
  unsigned element_across(unsigned row, unsigned step) const {
    const std::uintptr_t line = start + row / 64 * leading + step / 8 * groups + step % 8 * 128;
    return *reinterpret_cast<const unsigned short*>(swizzled(line + row % 64 * 2, 128));
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
void multiply(float (&sums)[count], const WgmmaRowsOfA& a, const WgmmaOperand& b, bool add, Product product) {
  const unsigned first_column = 2 * (lane() % 4);
  for (unsigned pair = 0; pair < count; pair += 4)
    for (unsigned i = pair; i < pair + 2; i++) {
      const unsigned column = i / 4 * 8 + first_column + i % 2;
      unsigned of_b[8];
      for (unsigned w = 0; w < 8; w++) of_b[w] = b.word(column, w);
      for (unsigned half = 0; half < 2; half++) {
        double sum = add ? sums[i + 2 * half] : 0.0f;
        for (unsigned w = 0; w < 8; w++) sum += product(a.words[half][w], of_b[w]);
        sums[i + 2 * half] = static_cast<float>(sum);
      }
    }
}
inline double tf32_product(unsigned a, unsigned b) { return tf32_value(a) * tf32_value(b); }
inline double bf16_products(unsigned a, unsigned b) {
  const auto low = [](unsigned pair) -> double { return __uint_as_float(pair << 16); };
  const auto high = [](unsigned pair) -> double { return __uint_as_float(pair & 0xffff0000u); };
  return low(a) * low(b) + high(a) * high(b);
}

inline double value_of_e4m3(unsigned bits) {
  const unsigned exponent = bits >> 3 & 15, fraction = bits & 7;
  if ((bits & 127) == 127) return __builtin_nan("");
  return (bits >> 7 ? -1 : 1) * std::ldexp(fraction + 8.0 * (exponent > 0), static_cast<int>(exponent ? exponent : 1) - 10);
}
/// What two words give whose elements have so many bits of fraction.
template <int fraction> double products(unsigned a, unsigned b) {
  if constexpr (fraction == 7) return bf16_products(a, b);
  double sum = 0;
  for (unsigned shift = 0; shift < 32; shift += fraction == 10 ? 16 : 8) {
    const auto value = [shift](unsigned word) -> double {
      if constexpr (fraction == 10) return bit_cast<_Float16>(static_cast<unsigned short>(word >> shift));
      return value_of_e4m3(word >> shift & 255);
    };
    sum += value(a) * value(b);
  }
  return sum;
}

/// Starts sums = (add ? sums : 0) + a * b, a in registers or by a descriptor.
template <int count, class Product>
void start_wgmma(float (&sums)[count], const unsigned* a, unsigned long long b, bool add, Product product) {
  start_async([&sums, rows = WgmmaRowsOfA(a), of_b = WgmmaOperand(b), add, product] { multiply(sums, rows, of_b, add, product); });
}
template <int count, class Product>
void start_wgmma(float (&sums)[count], unsigned long long a, unsigned long long b, bool add, Product product) {
  start_async([&sums, of_a = WgmmaOperand(a), of_b = WgmmaOperand(b), add, product] {
    multiply(sums, WgmmaRowsOfA(of_a), of_b, add, product);
  });
}

}  // namespace emulator

/// wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32, a in registers or by rows in shared memory.
template <int count> void wgmma_tf32(float (&sums)[count], const unsigned* a, unsigned long long b, bool add) {
  emulator::start_wgmma(sums, a, b, add, emulator::tf32_product);
}
template <int count> void wgmma_tf32(float (&sums)[count], unsigned long long a, unsigned long long b, bool add) {
  emulator::start_wgmma(sums, a, b, add, emulator::tf32_product);
}

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16, two values a word.
template <int count> void wgmma_bf16(float (&sums)[count], const unsigned* a, unsigned long long b) {
  emulator::start_wgmma(sums, a, b, true, emulator::bf16_products);
}
/// wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16 or .f16.f16, or m64nNk32.f32.e4m3.e4m3, both operands in shared memory. The sums have all the
/// bits of float32, as those of FP8 on Hopper have not.
template <class Element, int count> void wgmma(Element, float (&sums)[count], unsigned long long a, unsigned long long b, bool add) {
  emulator::start_wgmma(sums, a, b, add, emulator::products<Element::kFraction>);
}

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16, each operand along k or across it.
template <bool a_across, bool b_across, int count>
void wgmma_across(float (&sums)[count], unsigned long long a, unsigned long long b, bool add) {
  emulator::start_async([&sums, of_a = emulator::WgmmaOperand(a, a_across), of_b = emulator::WgmmaOperand(b, b_across), add] {
    emulator::multiply(sums, emulator::WgmmaRowsOfA(of_a), of_b, add, emulator::bf16_products);
  });
}

/// cvt.rn.bf16x2.f32 or cvt.rn.f16x2.f32.
template <class Element> unsigned rounded_pair(Element, float first, float second) {
  if constexpr (Element::kFraction == 7) return to_bf16_pair(first, second);
  return emulator::bit_cast<unsigned short>((_Float16)second) << 16 | emulator::bit_cast<unsigned short>((_Float16)first);
}
#include "hopper_clusters.h"
