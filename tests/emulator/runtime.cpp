// Runs the launches that emulator.py writes to standard input, on buffers that it left in a file.
//
// One fiber a thread; a fiber runs until it meets a barrier or returns. When none of a block can go on and some have not
// returned, that is a deadlock. Faults end the program as guarded_memory.h says.
#include "cuda_emulator.h"
#include "entry_points.h"
#include "guarded_memory.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <link.h>
#include <string>
#include <ucontext.h>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulator {
namespace {

constexpr std::size_t stack_bytes = 64 << 10;
constexpr std::size_t dynamic_shared_capacity = 232448;  // 227 KiB, the most of any device
constexpr std::size_t dynamic_shared_canary = 4096;

enum class State { ready, at_block_barrier, at_warp_barrier, at_counting_barrier, returned };

struct Thread {
  ucontext_t start;      // on a stack of its own
  bool started = false;
  std::jmp_buf left_at;  // where it last yielded
  uint3 index;
  State state;
  int barrier_line;
  unsigned barrier_mask;
  const unsigned* phases;  // that a counting barrier has ended, and the parity of the one waited for
  unsigned parity;
  alignas(16) unsigned char slot[slot_bytes];
};

std::vector<Thread*> threads;
unsigned thread_count;                    // of the block that runs
Thread* current;                          // null while no kernel runs
unsigned current_number;
std::jmp_buf scheduler;
const Kernel* running;
void* const* running_arguments;
alignas(1024) unsigned char dynamic_shared[dynamic_shared_capacity + dynamic_shared_canary];

// ---- Shared memory

int poison_own_segment(dl_phdr_info* info, std::size_t, void*) {  // the first object listed is this program
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_TLS) std::memset(info->dlpi_tls_data, poison, info->dlpi_phdr[i].p_memsz);
  return 1;
}

void poison_shared_memory() {
  dl_iterate_phdr(poison_own_segment, nullptr);
  std::memset(dynamic_shared, poison, sizeof dynamic_shared);
}

void check_dynamic_shared(std::size_t bytes) {
  for (std::size_t i = bytes; i < bytes + dynamic_shared_canary; i++)
    if (dynamic_shared[i] != poison) fail("write %zu bytes past the end of dynamic shared memory", i - bytes);
}

// ---- Threads

// Fibers change by _setjmp and _longjmp: swapcontext asks the system for the signal mask each time, and takes ten times as long.
void yield_as(State state) {
  current->state = state;
  if (!_setjmp(current->left_at)) _longjmp(scheduler, 1);
}

void thread_main() {
  for (;;) {  // a fiber serves every block in turn
    running->call(running_arguments);
    yield_as(State::returned);
  }
}

Thread* new_thread() {
  auto* thread = new Thread;
  auto* stack = static_cast<unsigned char*>(map(page + stack_bytes, PROT_READ | PROT_WRITE));
  mprotect(stack, page, PROT_NONE);
  getcontext(&thread->start);
  thread->start.uc_stack.ss_sp = stack + page;
  thread->start.uc_stack.ss_size = stack_bytes;
  thread->start.uc_link = nullptr;
  makecontext(&thread->start, thread_main, 0);
  return thread;
}

void resume(unsigned number) {
  current = threads[number];
  current_number = number;
  threadIdx = current->index;
  if (!_setjmp(scheduler)) {
    if (current->started) _longjmp(current->left_at, 1);
    current->started = true;
    setcontext(&current->start);
  }
  current = nullptr;
}

unsigned live_lanes_of(unsigned first) {
  unsigned lanes = 0;
  for (unsigned i = first; i < thread_count && i < first + 32; i++)
    if (threads[i]->state != State::returned) lanes |= 1u << (i - first);
  return lanes;
}

/// Lets lanes go on whose warp barrier all the lanes of its mask have reached.
bool release_warp(unsigned first) {
  unsigned waiting = 0;
  for (unsigned i = first; i < thread_count && i < first + 32; i++)
    if (threads[i]->state == State::at_warp_barrier) waiting |= 1u << (i - first);
  const unsigned live = live_lanes_of(first);
  bool released = false;
  for (unsigned i = first; i < thread_count && i < first + 32; i++) {
    if (!(waiting >> (i - first) & 1)) continue;
    const unsigned wanted = threads[i]->barrier_mask & live;
    bool together = (wanted & waiting) == wanted;
    for (unsigned lane = 0; lane < 32; lane++)
      if (wanted >> lane & 1) together = together && threads[first + lane]->barrier_mask == threads[i]->barrier_mask;
    if (!together) continue;
    for (unsigned lane = 0; lane < 32; lane++)
      if (wanted >> lane & 1) threads[first + lane]->state = State::ready;
    waiting &= ~wanted;
    released = true;
  }
  return released;
}

[[noreturn]] void report_deadlock() {
  unsigned returned = 0, in_warp = 0, at_block = 0, counting = 0, elsewhere = 0;
  int line = 0;
  for (unsigned i = 0; i < thread_count; i++) {
    const Thread& thread = *threads[i];
    returned += thread.state == State::returned;
    in_warp += thread.state == State::at_warp_barrier;
    counting += thread.state == State::at_counting_barrier;
    if (thread.state != State::at_block_barrier) continue;
    if (!line) line = thread.barrier_line;
    (thread.barrier_line == line ? at_block : elsewhere)++;
  }
  fail("deadlock: of %u threads, %u wait at __syncthreads() of line %d, %u at another one, %u in a warp operation, %u at a barrier that counts, "
       "%u have returned",
       thread_count, at_block, line, elsewhere, in_warp, counting, returned);
}

/// Lets threads go on for which a counting barrier's phase has ended.
bool release_counting() {
  bool released = false;
  for (unsigned i = 0; i < thread_count; i++) {
    if (threads[i]->state != State::at_counting_barrier || *threads[i]->phases % 2 == threads[i]->parity) continue;
    threads[i]->state = State::ready;
    released = true;
  }
  return released;
}

/// Lets the block go on where all its threads wait at the same barrier; false when all have returned.
bool release_block() {
  bool all_returned = true, all_waiting = true;
  for (unsigned i = 0; i < thread_count; i++) {
    all_returned = all_returned && threads[i]->state == State::returned;
    all_waiting = all_waiting && threads[i]->state == State::at_block_barrier && threads[i]->barrier_line == threads[0]->barrier_line;
  }
  if (all_returned) return false;
  if (!all_waiting) report_deadlock();
  for (unsigned i = 0; i < thread_count; i++) threads[i]->state = State::ready;
  return true;
}

void run_warp(unsigned first, bool backward) {
  const unsigned lanes = thread_count - first < 32 ? thread_count - first : 32;
  do {
    for (unsigned k = 0; k < lanes; k++) {
      const unsigned number = first + (backward ? lanes - 1 - k : k);
      if (threads[number]->state == State::ready) resume(number);
    }
  } while (release_warp(first));
}

void run_block(bool backward) {
  poison_shared_memory();
  for (unsigned i = 0; i < thread_count; i++) threads[i]->state = State::ready;
  const unsigned warps = (thread_count + 31) / 32;
  do {
    for (unsigned k = 0; k < warps; k++) run_warp((backward ? warps - 1 - k : k) * 32, backward);
  } while (release_counting() || release_block());
}

void launch(const Kernel& kernel, void* const* arguments, std::size_t dynamic_shared_bytes, bool backward) {
  running = &kernel;
  running_arguments = arguments;
  thread_count = blockDim.x * blockDim.y * blockDim.z;
  while (threads.size() < thread_count) threads.push_back(new_thread());
  for (unsigned i = 0; i < thread_count; i++)
    threads[i]->index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
  const unsigned long long blocks = 1ull * gridDim.x * gridDim.y * gridDim.z;
  for (unsigned long long k = 0; k < blocks; k++) {
    const unsigned long long b = backward ? blocks - 1 - k : k;
    blockIdx = {unsigned(b % gridDim.x), unsigned(b / gridDim.x % gridDim.y), unsigned(b / gridDim.x / gridDim.y)};
    run_block(backward);
    check_dynamic_shared(dynamic_shared_bytes);
    for (const Buffer& buffer : buffers) check_canaries(buffer);
  }
  running = nullptr;
}

// ---- The job

void read_launch(bool backward) {
  unsigned kernel_number, argument_count;
  std::size_t dynamic_shared_bytes;
  if (std::scanf("%u %u %u %u %u %u %u %zu %u", &kernel_number, &gridDim.x, &gridDim.y, &gridDim.z, &blockDim.x, &blockDim.y,
                 &blockDim.z, &dynamic_shared_bytes, &argument_count) != 9)
    fail("the job has a launch that cannot be read");
  const Kernel& kernel = kernels[kernel_number];
  if (argument_count != unsigned(kernel.parameter_count))
    fail("%s takes %d arguments; the launch has %u", kernel.name, kernel.parameter_count, argument_count);
  struct alignas(16) Value { unsigned char bytes[256]; };
  std::vector<Value> values(argument_count);
  std::vector<void*> arguments;
  for (unsigned i = 0; i < argument_count; i++) {
    const Parameter& parameter = kernel.parameters[i];
    char kind;
    std::size_t bytes;
    char digits[513];
    if (std::scanf(" %c %zu %512s", &kind, &bytes, digits) != 3) fail("the job has an argument that cannot be read");
    if (kind != char(parameter.kind) || bytes != parameter.bytes)
      fail("%s: argument %u is '%c' of %zu bytes; the parameter is '%c' of %zu (p pointer, i integer, f floating, s structure)",
           kernel.name, i, kind, bytes, char(parameter.kind), parameter.bytes);
    if (kind == 'p') {
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

void fill_constant(unsigned number, unsigned buffer_number) {
  const Constant& constant = constants[number];
  const Buffer& buffer = buffers[buffer_number];
  if (buffer.bytes > constant.bytes)
    fail("constant %s has %zu bytes; input %s has %zu", constant.name, constant.bytes, buffer.name.c_str(), buffer.bytes);
  std::memset(constant.address, poison, constant.bytes);
  std::memcpy(constant.address, buffer.data, buffer.bytes);
}

void run_job(const char* buffers_file, bool backward) {
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

}  // namespace

std::string place() {
  char text[160] = "";
  if (running)
    std::snprintf(text, sizeof text, "%s, block (%u, %u, %u)", running->name, blockIdx.x, blockIdx.y, blockIdx.z);
  std::string where = text;
  if (current) {
    std::snprintf(text, sizeof text, ", thread (%u, %u, %u)", threadIdx.x, threadIdx.y, threadIdx.z);
    where += text;
  }
  return where.empty() ? where : where + ": ";
}

void block_barrier(int line) {
  current->barrier_line = line;
  yield_as(State::at_block_barrier);
}

void warp_barrier(unsigned mask) {
  if (!(mask >> lane() & 1)) fail("a warp operation with mask %#x is called by lane %u, which is not in it", mask, lane());
  current->barrier_mask = mask;
  yield_as(State::at_warp_barrier);
}

void wait_for_phase(const unsigned& phases, unsigned parity) {
  current->phases = &phases;
  current->parity = parity;
  while (phases % 2 == parity) yield_as(State::at_counting_barrier);
}

unsigned lane() { return current_number % 32; }
unsigned live_lanes() { return live_lanes_of(current_number / 32 * 32); }
void* slot(unsigned of_lane) { return threads[current_number / 32 * 32 + of_lane]->slot; }
void* dynamic_shared_memory() { return dynamic_shared; }

}  // namespace emulator

int main(int, char** arguments) {
  emulator::catch_faults();
  emulator::run_job(arguments[1], arguments[2] == std::string("backward"));
}
