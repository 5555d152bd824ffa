// Barriers that count arrivals and bytes, for runtime.cpp: 8 bytes of shared memory, as on the device.
// Definition: PTX ISA, section 9.7.13.15 (mbarrier: phases, pending arrivals, tx-count).
#pragma once

#include "cuda_emulator.h"
#include "guarded_memory.h"

namespace emulator {

struct MbarrierState {
  unsigned long long phase : 1;     // parity of the phase that has not ended
  unsigned long long arrivals : 20;  // of each phase
  unsigned long long missing : 20;
  long long bytes : 22;              // expected and not yet there; below 0 if they came before they were expected
  unsigned long long unused : 1;     // 0; poisoned memory has 1
};
static_assert(sizeof(MbarrierState) == sizeof(unsigned long long));

constexpr unsigned most_arrivals = (1 << 20) - 1;

inline bool is_barrier(const unsigned long long* barrier) {
  const auto state = bit_cast<MbarrierState>(*barrier);
  return !state.unused && state.arrivals && state.missing <= state.arrivals;
}

inline MbarrierState barrier_state(const unsigned long long* barrier, std::uintptr_t at) {
  if (reinterpret_cast<std::uintptr_t>(barrier) % 8 || !is_barrier(barrier)) fault(at, "an mbarrier is used that mbarrier_init has not made");
  return bit_cast<MbarrierState>(*barrier);
}

inline void store_barrier(unsigned long long* barrier, MbarrierState state, std::uintptr_t at) {
  if (state.missing == 0 && state.bytes < 0)
    fault(at, "%lld bytes more came to an mbarrier than its phase expected", -(long long)state.bytes);
  if (state.missing == 0 && state.bytes == 0) state.phase ^= 1, state.missing = state.arrivals;
  *barrier = bit_cast<unsigned long long>(state);
}

inline void expect_at(unsigned long long* barrier, long long bytes, std::uintptr_t at, MbarrierState& state) {
  const long long after = state.bytes + bytes;
  if (after > most_arrivals || after < -static_cast<long long>(most_arrivals))
    fault(at, "an mbarrier counts %lld bytes; it can count %u", after, most_arrivals);
  state.bytes = after;
}

inline void check_bytes_of_ended_kernel(const unsigned long long* barrier) {
  if (!is_barrier(barrier)) return;  // its memory has another use by now
  const auto state = bit_cast<MbarrierState>(*barrier);
  if (state.bytes < 0) fail("the kernel ends, and %lld bytes came to an mbarrier that nobody expected there", -(long long)state.bytes);
  if (state.bytes > 0) fail("the kernel ends, and %lld bytes that an mbarrier expects never came", (long long)state.bytes);
}

}  // namespace emulator
