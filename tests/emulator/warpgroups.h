// What workloads/hopper.cuh and hopper_bf16.cuh have of warpgroups' products, for the emulator: a test puts this header in their place. Rows of a product
// do not meet, so that each warp multiplies its 16 of the 64 by itself. Copies by the TMA, registers handed over and the bytes that
// barriers count are not emulated.
// Definitions: PTX ISA, section 9.7.15 (wgmma: fragments as those of mma.m16n8k8, descriptors, 128-byte swizzle).
#pragma once

struct Mbarrier {
  unsigned arrivals, missing, phases;
};
inline void mbarrier_init(Mbarrier* barrier, unsigned arrivals) { *barrier = {arrivals, arrivals, 0}; }
inline void mbarrier_arrive(Mbarrier* barrier) {
  assert(barrier->missing > 0);
  if (--barrier->missing == 0) barrier->missing = barrier->arrivals, ++barrier->phases;
}
inline void mbarrier_wait(Mbarrier* barrier, unsigned parity) { emulator::wait_for_phase(barrier->phases, parity); }

inline void fence_proxy_async() {}
inline void prefetch_l2(const void* global) { (void)*static_cast<const volatile char*>(global); }  // outside a buffer it is a fault here
inline void copy_register(float& to, float from) { to = from; }

template <class T>
T* aligned_1024(char* shared) {
  return reinterpret_cast<T*>(shared + (1024 - reinterpret_cast<std::uintptr_t>(shared) % 1024) % 1024);
}

/// Where an operand begins, in units of 16 bytes, as in a descriptor.
inline unsigned long long wgmma_operand(const void* shared) { return reinterpret_cast<std::uintptr_t>(shared) >> 4; }
inline void wgmma_fence() {}
inline void wgmma_commit() {}
template <int groups> void wgmma_wait() {}
template <class T, int count> void wgmma_keep(T (&)[count]) {}

namespace emulator {
/// A word of an operand, by its row of 128 bytes: bits 4 to 6 of its address are exchanged by bits 7 to 9.
inline unsigned swizzled_word(unsigned long long operand, unsigned row, unsigned word) {
  const std::uintptr_t address = (operand << 4) + row * 128 + word * 4;
  return *reinterpret_cast<const unsigned*>(address ^ (address >> 7 & 7) << 4);
}
}  // namespace emulator

/// wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32 with a in registers, for twice as many columns as sums.
template <int count>
void wgmma_tf32(float (&sums)[count], const unsigned* a, unsigned long long b, bool add) {
  const unsigned (&of_a)[4] = reinterpret_cast<const unsigned (&)[4]>(*a);
  for (unsigned i = 0; i < count; i += 4) {
    const unsigned row = 2 * i + emulator::lane() / 4, word = emulator::lane() % 4;
    float (&of_columns)[4] = reinterpret_cast<float (&)[4]>(sums[i]);
    if (!add) for (float& sum : of_columns) sum = 0.0f;
    mma_m16n8k8_tf32(of_columns, of_a, {emulator::swizzled_word(b, row, word), emulator::swizzled_word(b, row, word + 4)});
  }
}

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16 with a in registers, two values a register.
template <int count>
void wgmma_bf16(float (&sums)[count], const unsigned* a, unsigned long long b) {
  const unsigned (&of_a)[4] = reinterpret_cast<const unsigned (&)[4]>(*a);
  for (unsigned i = 0; i < count; i += 4) {
    const unsigned row = 2 * i + emulator::lane() / 4, word = emulator::lane() % 4;
    mma_m16n8k16_bf16(reinterpret_cast<float (&)[4]>(sums[i]), of_a,
                      {emulator::swizzled_word(b, row, word), emulator::swizzled_word(b, row, word + 4)});
  }
}
