// The job that emulator.py writes to standard input: buffers, constants and launches, on bytes that it left in a file.
#pragma once

#include "entry_points.h"
#include "guarded_memory.h"
#include "tensor_map.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace emulator {

void launch(const Kernel& kernel, void* const* arguments, std::size_t dynamic_shared_bytes, bool backward);

inline void read_tensor_map(unsigned char* to, unsigned buffer_number) {
  TensorMapWords map = {};
  map.address = reinterpret_cast<std::uintptr_t>(buffers[buffer_number].data);
  map.mark = tensor_map_mark;
  bool read = std::scanf("%llu %llu %llu %llu", &map.swizzle_bytes, &map.tf32, &map.element_bytes, &map.axes) == 4 && map.axes <= most_axes;
  for (unsigned axis = 0; read && axis < map.axes; axis++) read = std::scanf("%llu %llu", &map.extents[axis], &map.box[axis]) == 2;
  if (!read) fail("the job has a tensor map that cannot be read");
  std::memcpy(to, &map, sizeof map);
}

/// What a kernel takes as `const __grid_constant__ PeerMemory` of peer_memory.cuh. The words are "rank+buffer+buffer...", a buffer for each rank.
inline void read_peer_memory(unsigned char* to, const char* words) {
  struct { void* of[8]; int rank, ranks; } peers = {};
  char* next;
  for (peers.rank = std::strtoul(words, &next, 10); *next == '+' && peers.ranks < 8; peers.ranks++)
    peers.of[peers.ranks] = buffers[std::strtoul(next + 1, &next, 10)].data;
  std::memcpy(to, &peers, sizeof peers);
}

inline void read_launch(bool backward) {
  unsigned kernel_number, argument_count;
  std::size_t dynamic_shared_bytes;
  if (std::scanf("%u %u %u %u %u %u %u %zu %u", &kernel_number, &gridDim.x, &gridDim.y, &gridDim.z, &blockDim.x, &blockDim.y,
                 &blockDim.z, &dynamic_shared_bytes, &argument_count) != 9)
    fail("the job has a launch that cannot be read");
  const Kernel& kernel = kernels[kernel_number];
  if (argument_count != unsigned(kernel.parameter_count))
    fail("%s takes %d arguments; the launch has %u", kernel.name, kernel.parameter_count, argument_count);
  struct alignas(64) Value { unsigned char bytes[256]; };
  std::vector<Value> values(argument_count);
  std::vector<void*> arguments;
  for (unsigned i = 0; i < argument_count; i++) {
    const Parameter& parameter = kernel.parameters[i];
    char kind;
    std::size_t bytes;
    char digits[513];
    if (std::scanf(" %c %zu %512s", &kind, &bytes, digits) != 3) fail("the job has an argument that cannot be read");
    const bool is_map = kind == 't', is_peer_memory = kind == 'm';
    if (is_map || is_peer_memory) kind = char(Kind::structure);
    if (kind != char(parameter.kind) || bytes != parameter.bytes)
      fail("%s: argument %u is '%c' of %zu bytes; the parameter is '%c' of %zu (p pointer, i integer, f floating, s structure)",
           kernel.name, i, kind, bytes, char(parameter.kind), parameter.bytes);
    if (is_map) {
      read_tensor_map(values[i].bytes, std::strtoul(digits, nullptr, 10));
    } else if (is_peer_memory) {
      read_peer_memory(values[i].bytes, digits);
    } else if (kind == 'p') {
      char* offset;  // number+bytes
      const auto* data = (const char*)buffers[std::strtoul(digits, &offset, 10)].data + std::strtoul(offset, nullptr, 10);
      std::memcpy(values[i].bytes, &data, sizeof(void*));
    } else {
      for (std::size_t k = 0; k < bytes; k++)
        values[i].bytes[k] = std::strtoul(std::string(digits + 2 * k, 2).c_str(), nullptr, 16);
    }
    arguments.push_back(values[i].bytes);
  }
  launch(kernel, arguments.data(), dynamic_shared_bytes, backward);
}

inline void fill_constant(unsigned number, unsigned buffer_number) {
  const Constant& constant = constants[number];
  const Buffer& buffer = buffers[buffer_number];
  if (buffer.bytes > constant.bytes)
    fail("constant %s has %zu bytes; input %s has %zu", constant.name, constant.bytes, buffer.name.c_str(), buffer.bytes);
  std::memset(constant.address, poison, constant.bytes);
  std::memcpy(constant.address, buffer.data, buffer.bytes);
}

inline void run_job(const char* buffers_file, bool backward) {
  std::FILE* file = std::fopen(buffers_file, "r+b");
  if (!file) fail("the emulator cannot open its buffers");
  char word[16];
  while (std::scanf("%15s", word) == 1) {
    const std::string command = word;
    if (command == "buffer") {
      char name[256];
      int is_input;
      std::size_t bytes;
      if (std::scanf("%255s %d %zu", name, &is_input, &bytes) != 3) fail("the job has a buffer that cannot be read");
      buffers.push_back(allocate(name, is_input, bytes));
      if (std::fread(buffers.back().data, 1, bytes, file) != bytes) fail("the buffers' file is too short");
    } else if (command == "constant") {
      unsigned number, buffer_number;
      if (std::scanf("%u %u", &number, &buffer_number) != 2) fail("the job has a constant that cannot be read");
      fill_constant(number, buffer_number);
    } else {
      protect_inputs(PROT_READ);
      read_launch(backward);
      protect_inputs(PROT_READ | PROT_WRITE);
    }
  }
  std::rewind(file);
  for (const Buffer& buffer : buffers) std::fwrite(buffer.data, 1, buffer.bytes, file);
  if (std::fclose(file)) fail("the emulator cannot write its buffers");
}

}  // namespace emulator
