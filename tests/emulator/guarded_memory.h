// Buffers that end at inaccessible pages, and the one line that a fault leaves.
//
// Inputs are read-only while a kernel runs. The bytes between a buffer and its inaccessible pages are canaries: NaN beside inputs, and
// another pattern beside what a kernel may write, so that it shows where a NaN from past an input is written past an output. The first
// fault ends the program: `<program counter>\t<what>` on standard error, where the counter is 0 if no instruction is to blame.
#pragma once

#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

namespace emulator {

constexpr std::size_t page = 4096;
constexpr std::size_t buffer_alignment = 256;                    // of cudaMalloc
constexpr std::size_t no_access_bytes = std::size_t(256) << 20;  // on each side of a buffer
constexpr unsigned char poison = 0xff;                           // a float or double of these bytes is NaN

constexpr unsigned char written_poison = 0xfe;                   // beside what may be written: as a float -1.7e38

std::string place();  // kernel, block and thread that run, as the head of a message; the runtime knows

struct Buffer {
  std::string name;
  bool is_input;
  std::size_t bytes;
  unsigned char* data;
  unsigned char* first_page;   // accessible pages hold the buffer and its canaries
  std::size_t page_bytes;

  unsigned char canary() const { return is_input ? poison : written_poison; }
};

inline std::vector<Buffer> buffers;

// ---- Faults

[[noreturn]] inline void fail_at(std::uintptr_t program_counter, const char* format, va_list values) {
  char what[512];
  std::vsnprintf(what, sizeof what, format, values);
  std::fprintf(stderr, "%#llx\t%s%s\n", static_cast<unsigned long long>(program_counter), place().c_str(), what);
  std::fflush(stderr);
  _exit(1);
}

[[noreturn]] inline void fail(const char* format, ...) {
  va_list values;
  va_start(values, format);
  fail_at(0, format, values);
}

[[noreturn]] inline void fault(std::uintptr_t program_counter, const char* format, ...) {
  va_list values;
  va_start(values, format);
  fail_at(program_counter, format, values);
}

inline void* map(std::size_t bytes, int protection) {
  void* address = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) fail("the emulator cannot map %zu bytes", bytes);
  return address;
}

inline void on_signal(int signal, siginfo_t* info, void* context) {
  [[maybe_unused]] auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  std::uintptr_t program_counter = 0;
  const char* access = "access";
#if defined(__x86_64__)
  program_counter = machine.gregs[REG_RIP];
  access = machine.gregs[REG_ERR] & 2 ? "write" : "read";
#elif defined(__aarch64__)
  program_counter = machine.pc;
#endif
  if (signal != SIGSEGV && signal != SIGBUS)  // a check that the compiler put in
    fault(program_counter, "index outside an array, misaligned access, or undefined arithmetic");
  const auto* address = static_cast<unsigned char*>(info->si_addr);
  for (const Buffer& buffer : buffers) {
    if (address + no_access_bytes < buffer.data || address >= buffer.data + buffer.bytes + no_access_bytes) continue;
    if (address >= buffer.data && address < buffer.data + buffer.bytes)
      fault(program_counter, "%s of input %s, byte %td", access, buffer.name.c_str(), address - buffer.data);
    if (address < buffer.data)
      fault(program_counter, "%s %td bytes before %s", access, buffer.data - address, buffer.name.c_str());
    fault(program_counter, "%s %td bytes past the end of %s", access, address - buffer.data - buffer.bytes, buffer.name.c_str());
  }
  fault(program_counter, "%s of memory that is no buffer's, at %p", access, info->si_addr);
}

inline void use_signal_stack() {  // by each system thread
  constexpr std::size_t bytes = 64 << 10;
  stack_t alternative = {};
  alternative.ss_sp = map(bytes, PROT_READ | PROT_WRITE);
  alternative.ss_size = bytes;
  sigaltstack(&alternative, nullptr);
}

inline void catch_faults() {
  use_signal_stack();
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE}) sigaction(signal, &action, nullptr);
}

// ---- Buffers

inline Buffer allocate(const std::string& name, bool is_input, std::size_t bytes) {
  const std::size_t rounded = (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
  const std::size_t pages = (rounded + page - 1) / page * page;
  auto* reserved = static_cast<unsigned char*>(map(no_access_bytes + pages + no_access_bytes, PROT_NONE));
  unsigned char* first_page = reserved + no_access_bytes;
  mprotect(first_page, pages, PROT_READ | PROT_WRITE);
  const Buffer buffer = {name, is_input, bytes, first_page + pages - rounded, first_page, pages};
  std::memset(first_page, buffer.canary(), pages);
  return buffer;
}

inline void check_canaries(const Buffer& buffer) {
  for (const unsigned char* byte = buffer.first_page; byte < buffer.first_page + buffer.page_bytes; byte++) {
    if (byte == buffer.data) byte += buffer.bytes;
    if (byte == buffer.first_page + buffer.page_bytes) return;
    if (*byte == buffer.canary()) continue;
    if (byte < buffer.data) fail("write %td bytes before %s", buffer.data - byte, buffer.name.c_str());
    fail("write %td bytes past the end of %s", byte - buffer.data - buffer.bytes, buffer.name.c_str());
  }
}

inline void protect_inputs(int protection) {
  for (const Buffer& buffer : buffers)
    if (buffer.is_input) mprotect(buffer.first_page, buffer.page_bytes, protection);
}

}  // namespace emulator
