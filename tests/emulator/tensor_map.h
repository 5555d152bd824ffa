// Tensor maps, as emulator.py writes them for the TMA: what a kernel takes as `const __grid_constant__ TensorMap`, and copies by it.
// Definition: CUDA driver API, cuTensorMapEncodeTiled; PTX ISA, section 5.5 (tensors: tiled mode, swizzling modes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

struct alignas(64) TensorMap {
  unsigned long long words[16];
};

namespace emulator {

constexpr unsigned most_axes = 5;

/// What the words of a TensorMap hold here. The innermost axis comes first.
struct TensorMapWords {
  unsigned long long address, axes, swizzle_bytes, tf32, element_bytes, extents[most_axes], box[most_axes], mark;
};
constexpr unsigned long long tensor_map_mark = 0x70614d726f736e65ull;
static_assert(sizeof(TensorMapWords) <= sizeof(TensorMap));

inline TensorMapWords words_of(const TensorMap& map) {
  TensorMapWords words;
  std::memcpy(&words, &map, sizeof words);
  return words;
}

// The runtime copies, as it knows shared memory.
void load_box(void* shared, const TensorMap& map, const int* at, unsigned axes, unsigned long long* barrier);
void store_box(const TensorMap& map, const int* at, unsigned axes, const void* shared);
/// Faults where the TMA would not store so many bytes there.
void check_bytes(const void* global, const void* shared, std::size_t bytes);

inline std::size_t box_bytes(const TensorMapWords& map) {
  std::size_t bytes = map.element_bytes;
  for (unsigned axis = 0; axis < map.axes; axis++) bytes *= map.box[axis];
  return bytes;
}

/// Writes what the TMA leaves in shared memory of an element: floats rounded to 10 bits of fraction, ties to even, if the map says so; zeros outside.
inline void load_element(const TensorMapWords& map, char* to, const char* from) {
  if (!from) return (void)std::memset(to, 0, map.element_bytes);
  std::memcpy(to, from, map.element_bytes);
  if (!map.tf32) return;
  std::uint32_t bits;
  std::memcpy(&bits, to, sizeof bits);
  if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu;
  std::memcpy(to, &bits, sizeof bits);
}

/// Where a byte lies that would lie at an address without swizzle: its 16-byte pieces are exchanged by the bits from the 7th on.
inline std::uintptr_t swizzled(std::uintptr_t address, unsigned swizzle_bytes) {
  const std::uintptr_t pieces = swizzle_bytes ? swizzle_bytes / 16 - 1 : 0;
  return address ^ (address >> 7 & pieces) << 4;
}

/// Calls element(its place in shared memory, its place in the tensor or null outside) for all elements of the box at these coordinates.
template <class Element>
void for_each_of_box(const TensorMapWords& map, void* shared, const int* at, Element element) {
  const std::size_t count = box_bytes(map) / map.element_bytes;
  for (std::size_t i = 0; i < count; i++) {
    std::size_t rest = i, offset = 0, stride = 1;
    bool inside = true;
    for (unsigned axis = 0; axis < map.axes; axis++) {
      const long long place = at[axis] + static_cast<long long>(rest % map.box[axis]);
      rest /= map.box[axis];
      inside = inside && place >= 0 && place < static_cast<long long>(map.extents[axis]);
      offset += place * stride, stride *= map.extents[axis];
    }
    const std::uintptr_t to = swizzled(reinterpret_cast<std::uintptr_t>(shared) + i * map.element_bytes, map.swizzle_bytes);
    element(reinterpret_cast<char*>(to), inside ? reinterpret_cast<char*>(map.address) + offset * map.element_bytes : nullptr);
  }
}

}  // namespace emulator
