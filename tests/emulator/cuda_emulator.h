// The CUDA C++ that kernels are written in, for a C++17 compiler of the host: qualifiers, index variables, vector types,
// barriers, shuffles, cached loads and stores, atomics. One thread of the block runs at a time, as a fiber of runtime.cpp.
//
// A kernel with inline PTX (mma.sync, cp.async, ...) keeps the assembly in a `__device__` function of its own, between
// `#ifndef WARPLADDER_EMULATOR` and `#endif`; its emulation, a function of the same name built on `emulator::exchange`, goes
// into a header beside this one that is included at the end of this file.
#pragma once

#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#define WARPLADDER_EMULATOR 1

// ---- Qualifiers. Shared memory is thread-local storage, because the program holds nothing else there: so the runtime
// finds all of it, templates included, and poisons it before each block. `extern __shared__` is rewritten by emulator.py.
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static thread_local
#define __forceinline__ inline
#define EMULATOR_INLINE inline __attribute__((always_inline))  // so that a fault names the line of the kernel that calls
#define __launch_bounds__(...)
#define __grid_constant__
#define __cluster_dims__(...)  // emulator.py reads it
#define __align__(bytes) __attribute__((aligned(bytes)))

// ---- Vector types, aligned as on the device: a misaligned access is reported.
#define EMULATOR_VECTOR_TYPES(name, scalar, align2, align4)                                                             \
  struct name##1 { scalar x; };                                                                                         \
  struct alignas(align2) name##2 { scalar x, y; };                                                                      \
  struct name##3 { scalar x, y, z; };                                                                                   \
  struct alignas(align4) name##4 { scalar x, y, z, w; };                                                                \
  inline name##1 make_##name##1(scalar x) { return {x}; }                                                               \
  inline name##2 make_##name##2(scalar x, scalar y) { return {x, y}; }                                                  \
  inline name##3 make_##name##3(scalar x, scalar y, scalar z) { return {x, y, z}; }                                     \
  inline name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; }
EMULATOR_VECTOR_TYPES(uchar, unsigned char, 2, 4)
EMULATOR_VECTOR_TYPES(int, int, 8, 16)
EMULATOR_VECTOR_TYPES(uint, unsigned, 8, 16)
EMULATOR_VECTOR_TYPES(float, float, 8, 16)
EMULATOR_VECTOR_TYPES(double, double, 16, 16)
#undef EMULATOR_VECTOR_TYPES

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

extern uint3 threadIdx;  // set by the runtime whenever it switches threads
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;
constexpr int warpSize = 32;

// ---- What the runtime does for a kernel.
namespace emulator {

constexpr unsigned full_mask = 0xffffffffu;
constexpr std::size_t slot_bytes = 64;

void block_barrier(int line);
void warp_barrier(unsigned mask);
unsigned lane();
unsigned thread_of_block();
unsigned live_lanes();                  // lanes of this warp that exist and have not returned
void* slot(unsigned of_lane);           // scratch through which lanes of a warp exchange values
void* dynamic_shared_memory();
unsigned shared_offset(const void* shared);  // a shared address of 32 bits
void* at_shared_offset(unsigned offset);

// Barriers that count arrivals and bytes (mbarrier), in shared memory of any block of the cluster.
void barrier_init(unsigned long long* barrier, unsigned arrivals);
void barrier_arrive(unsigned long long* barrier, unsigned expected_bytes);
void barrier_complete(unsigned long long* barrier, std::size_t bytes);
void wait_for_phase(const unsigned long long* barrier, unsigned parity);  // until the phase of this parity has ended

// What a thread starts and waits for by groups: products of warpgroups. It is done at once where threads run from first to last, and as late as
// it may be where they run from last to first.
void start_async(std::function<void()> work);
void commit_async();
void wait_async(unsigned groups);  // for all groups but the last ones

// Clusters.
unsigned cluster_rank();
void cluster_arrive();
void cluster_wait();
void* of_block(const void* shared, unsigned rank);
void check_multicast(unsigned ranks);

/// Every lane of `mask` gives a value; `read(values)` then sees those of the whole warp, as `values(lane)`. The base of all
/// warp-wide operations. A lane that does not take part reads as NaN bits.
template <class T, class Read>
auto exchange(unsigned mask, const T& mine, Read read) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= slot_bytes);
  std::memcpy(slot(lane()), &mine, sizeof(T));
  warp_barrier(mask);
  const unsigned present = mask & live_lanes();
  auto result = read([present](unsigned of_lane) {
    T value;
    if (of_lane < 32 && (present >> of_lane & 1)) std::memcpy(&value, slot(of_lane), sizeof(T));
    else std::memset(&value, 0xff, sizeof(T));
    return value;
  });
  warp_barrier(mask);
  return result;
}

/// Shuffle within groups of `width` lanes; a source outside the group gives the lane its own value back.
template <class T>
T shuffle(unsigned mask, const T& mine, int source, int width) {
  const int first = static_cast<int>(lane()) / width * width;
  const bool inside = source >= first && source < first + width;
  return exchange(mask, mine, [&](auto values) { return inside ? values(source) : mine; });
}

}  // namespace emulator

// ---- Barriers and warp-wide operations. The line tells barriers apart: half a block at another barrier is an error.
#define __syncthreads() emulator::block_barrier(__LINE__)
inline void __syncwarp(unsigned mask = emulator::full_mask) { emulator::warp_barrier(mask); }
inline unsigned __activemask() { return emulator::live_lanes(); }
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const int first = static_cast<int>(emulator::lane()) / width * width;
  return emulator::shuffle(mask, value, first + (source & (width - 1)), width);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return emulator::shuffle(mask, value, static_cast<int>(emulator::lane() - delta), width);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return emulator::shuffle(mask, value, static_cast<int>(emulator::lane() + delta), width);
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
  return emulator::shuffle(mask, value, static_cast<int>(emulator::lane()) ^ lanes, width);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return emulator::exchange(mask, predicate, [mask](auto values) {
    unsigned ballot = 0;
    for (unsigned of_lane = 0; of_lane < 32; of_lane++)
      if ((mask & emulator::live_lanes()) >> of_lane & 1) ballot |= unsigned(values(of_lane) != 0) << of_lane;
    return ballot;
  });
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

// ---- Memory.
template <class T> T __ldg(const T* address) { return *address; }
template <class T> T __ldca(const T* address) { return *address; }
template <class T> T __ldcg(const T* address) { return *address; }
template <class T> T __ldcs(const T* address) { return *address; }
template <class T> T __ldlu(const T* address) { return *address; }
template <class T> T __ldcv(const T* address) { return *address; }
template <class T> void __stwb(T* address, std::common_type_t<T> value) { *address = value; }
template <class T> void __stcg(T* address, std::common_type_t<T> value) { *address = value; }
template <class T> void __stcs(T* address, std::common_type_t<T> value) { *address = value; }
template <class T> void __stwt(T* address, std::common_type_t<T> value) { *address = value; }

namespace emulator {
template <class T, class Update> T atomic(T* address, Update update) {  // threads are not preempted
  const T old = *address;
  *address = update(old);
  return old;
}
}  // namespace emulator
template <class T> T atomicAdd(T* address, std::common_type_t<T> value) {
  return emulator::atomic(address, [=](T old) { return old + value; });
}
template <class T> T atomicMax(T* address, std::common_type_t<T> value) {
  return emulator::atomic(address, [=](T old) { return old < value ? value : old; });
}
template <class T> T atomicMin(T* address, std::common_type_t<T> value) {
  return emulator::atomic(address, [=](T old) { return value < old ? value : old; });
}
template <class T> T atomicExch(T* address, std::common_type_t<T> value) {
  return emulator::atomic(address, [=](T) { return value; });
}
template <class T> T atomicCAS(T* address, std::common_type_t<T> expected, std::common_type_t<T> value) {
  return emulator::atomic(address, [=](T old) { return old == expected ? value : old; });
}

// ---- Arithmetic.
template <class A, class B> constexpr std::common_type_t<A, B> min(A a, B b) { return b < a ? b : a; }
template <class A, class B> constexpr std::common_type_t<A, B> max(A a, B b) { return a < b ? b : a; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return std::exp(x); }
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __clz(int bits) { return bits ? __builtin_clz(bits) : 32; }
inline int __ffs(int bits) { return __builtin_ffs(bits); }

namespace emulator {
template <class To, class From> To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}
}  // namespace emulator
inline unsigned __float_as_uint(float x) { return emulator::bit_cast<unsigned>(x); }
inline int __float_as_int(float x) { return emulator::bit_cast<int>(x); }
inline long long __double_as_longlong(double x) { return emulator::bit_cast<long long>(x); }
inline float __uint_as_float(unsigned x) { return emulator::bit_cast<float>(x); }
inline float __int_as_float(int x) { return emulator::bit_cast<float>(x); }
#include "ptx.h"
#include "hopper.h"
