// What emulator.py lists in the program that it generates: the kernels by number, with their parameter types as the compiler
// deduces them, and the constant symbols.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace emulator {

enum class Kind : char { pointer = 'p', integer = 'i', floating = 'f', structure = 's' };

struct Parameter {
  Kind kind;
  std::size_t bytes;
};

struct Kernel {
  const char* name;
  void (*call)(void* const* arguments);
  const Parameter* parameters;
  int parameter_count;
  unsigned cluster;  // blocks of a cluster
};

struct Constant {
  const char* name;
  void* address;
  std::size_t bytes;
};

extern const Kernel kernels[];     // defined by the generated program; each list ends with a null name
extern const Constant constants[];

template <class T>
constexpr Parameter parameter_of() {
  return {std::is_pointer_v<T> ? Kind::pointer
          : std::is_integral_v<T> ? Kind::integer
          : std::is_floating_point_v<T> ? Kind::floating
                                        : Kind::structure,
          sizeof(T)};
}

template <auto kernel>
struct EntryPoint;

template <class... P, void (*kernel)(P...)>
struct EntryPoint<kernel> {
  static constexpr int count = sizeof...(P);
  static constexpr Parameter parameters[count + 1] = {parameter_of<P>()..., {}};

  static void call(void* const* arguments) { unpack(arguments, std::index_sequence_for<P...>{}); }

  template <std::size_t... i>
  static void unpack([[maybe_unused]] void* const* arguments, std::index_sequence<i...>) {
    kernel(*static_cast<std::remove_reference_t<P>*>(arguments[i])...);
  }
};

template <auto kernel>
constexpr Kernel entry_point(const char* name, unsigned cluster) {
  return {name, EntryPoint<kernel>::call, EntryPoint<kernel>::parameters, EntryPoint<kernel>::count, cluster};
}

/// Blocks of a cluster of `__cluster_dims__`; 0 for those that the emulator does not have.
constexpr unsigned cluster_of(unsigned x, unsigned y = 1, unsigned z = 1) { return y == 1 && z == 1 ? x : 0; }

}  // namespace emulator
