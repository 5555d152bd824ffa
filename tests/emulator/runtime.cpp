// Runs the launches that emulator.py writes to standard input, on buffers that it left in a file.
//
// One fiber a thread; a fiber runs until it meets a barrier or returns. When none of a block, or of a cluster, can go on and some have
// not returned, that is a deadlock. Faults end the program as guarded_memory.h says.
#include "cuda_emulator.h"
#include "job.h"
#include "mbarrier.h"
#include "running.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulator {
namespace {

std::jmp_buf scheduler;
void* const* running_arguments;

// ---- Threads

// Fibers change by _setjmp and _longjmp: swapcontext asks the system for the signal mask each time, and takes ten times as long.
void yield_as(State state) {
  current->state = state;
  if (!_setjmp(current->left_at)) _longjmp(scheduler, 1);
}

void thread_main() {
  for (;;) {  // a fiber serves every block in turn
    running->call(running_arguments);
    if (const std::size_t count = current->deferred.count())
      fail("ends with %zu products of its warpgroup or stores of the TMA that it has not waited for", count);
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
  current = block->threads[number];
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
    if (block->threads[i]->state != State::returned) lanes |= 1u << (i - first);
  return lanes;
}

/// Lets lanes go on whose warp barrier all the lanes of its mask have reached.
bool release_warp(unsigned first) {
  const auto& threads = block->threads;
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

/// Lets threads go on for which a counting barrier's phase has ended.
bool release_counting() {
  bool released = false;
  for (unsigned i = 0; i < thread_count; i++) {
    Thread& thread = *block->threads[i];
    if (thread.state != State::at_counting_barrier || barrier_state(thread.barrier, thread.waits_at).phase == thread.parity) continue;
    thread.state = State::ready;
    released = true;
  }
  return released;
}

/// Lets the block go on where all its threads wait at the same barrier.
bool release_block() {
  const auto& threads = block->threads;
  for (unsigned i = 0; i < thread_count; i++)
    if (threads[i]->state != State::at_block_barrier || threads[i]->barrier_line != threads[0]->barrier_line) return false;
  for (unsigned i = 0; i < thread_count; i++) threads[i]->state = State::ready;
  return true;
}

void run_warp(unsigned first) {
  const unsigned lanes = thread_count - first < 32 ? thread_count - first : 32;
  do {
    for (unsigned k = 0; k < lanes; k++) {
      const unsigned number = first + (late ? lanes - 1 - k : k);
      if (block->threads[number]->state == State::ready) resume(number);
    }
  } while (release_warp(first));
}

// ---- Blocks and clusters

/// Runs a block until none of its threads can go on by itself; false if none could from the beginning.
bool run_until_stuck(Block& chosen) {
  choose(chosen);
  bool any_ready = false;
  release_counting();
  for (unsigned i = 0; i < thread_count; i++) any_ready = any_ready || chosen.threads[i]->state == State::ready;
  if (!any_ready) return false;
  const unsigned warps = (thread_count + 31) / 32;
  chosen.on_own_thread([&] {
    do {
      for (unsigned k = 0; k < warps; k++) run_warp((late ? warps - 1 - k : k) * 32);
    } while (release_counting() || release_block());
  });
  return true;
}

/// Lets threads go on that wait for the cluster's barrier, if all that have not returned have arrived there.
bool release_cluster() {
  bool all_arrived = true, any_waits = false;
  for_each_thread([&](const Thread& thread, const Block&) {
    if (thread.state != State::returned) all_arrived = all_arrived && thread.cluster_arrivals > cluster_phases;
    any_waits = any_waits || thread.state == State::at_cluster_barrier;
  });
  if (!any_waits) return false;
  if (all_arrived) cluster_phases++;
  bool released = false;
  for_each_thread([&](Thread& thread, const Block&) {
    if (thread.state != State::at_cluster_barrier || thread.cluster_arrivals > cluster_phases) return;
    thread.state = State::ready;
    released = true;
  });
  return released;
}

[[noreturn]] void report_deadlock() {
  unsigned returned = 0, in_warp = 0, at_block = 0, counting = 0, at_cluster = 0, elsewhere = 0;
  int line = 0;
  std::uintptr_t waits_at = 0;
  Block* shown = nullptr;  // the first that has not ended
  for_each_thread([&](const Thread& thread, Block& of) {
    if (thread.state != State::returned && !shown) shown = &of;
    if (thread.state == State::at_counting_barrier && !waits_at) waits_at = thread.waits_at, shown = &of;
    returned += thread.state == State::returned;
    in_warp += thread.state == State::at_warp_barrier;
    counting += thread.state == State::at_counting_barrier;
    at_cluster += thread.state == State::at_cluster_barrier;
    if (thread.state != State::at_block_barrier) return;
    if (!line) line = thread.barrier_line;
    (thread.barrier_line == line ? at_block : elsewhere)++;
  });
  choose(*shown);
  char of_cluster[64] = "";
  if (cluster_size > 1) std::snprintf(of_cluster, sizeof of_cluster, "%u at the barrier of the cluster, ", at_cluster);
  fault(waits_at,
        "deadlock: of %u threads, %u wait at __syncthreads() of line %d, %u at another one, %u in a warp operation, %u at a barrier that counts, "
        "%s%u have returned",
        thread_count * cluster_size, at_block, line, elsewhere, in_warp, counting, of_cluster, returned);
}

void run_cluster() {
  cluster_phases = 0;
  for_each_thread([](Thread& thread, Block&) { thread.state = State::ready, thread.cluster_arrivals = thread.cluster_waits = 0; });
  for (unsigned rank = 0; rank < cluster_size; rank++) blocks[rank]->poison_shared(), blocks[rank]->barriers.clear();
  for (bool progress = true; progress;) {
    progress = false;
    for (unsigned k = 0; k < cluster_size; k++) progress = run_until_stuck(*blocks[late ? cluster_size - 1 - k : k]) || progress;
    progress = release_cluster() || progress;
    if (!progress) progress = make_copies();
  }
  for_each_thread([](const Thread& thread, Block&) {
    if (thread.state != State::returned) report_deadlock();
  });
  for (unsigned rank = 0; rank < cluster_size; rank++) {
    choose(*blocks[rank]);
    block->check_dynamic_shared(running_dynamic_bytes);
    for (const auto* barrier : block->barriers) check_bytes_of_ended_kernel(barrier);
  }
}

void make_blocks() {
  for (unsigned rank = 0; rank < cluster_size; rank++) {
    if (!blocks[rank]) blocks[rank] = new Block(rank);
    auto& threads = blocks[rank]->threads;
    while (threads.size() < thread_count) threads.push_back(new_thread());
    for (unsigned i = 0; i < thread_count; i++)
      threads[i]->index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
  }
}

}  // namespace

void launch(const Kernel& kernel, void* const* arguments, std::size_t dynamic_shared_bytes, bool backward) {
  running = &kernel;
  running_arguments = arguments;
  running_dynamic_bytes = dynamic_shared_bytes;
  late = backward;
  cluster_size = kernel.cluster;
  if (cluster_size < 1 || cluster_size > most_of_cluster) fail("clusters have 1 to %u blocks along x, and 1 along y and z", most_of_cluster);
  if (gridDim.x % cluster_size) fail("%u blocks along x are no multiple of the cluster's %u", gridDim.x, cluster_size);
  thread_count = blockDim.x * blockDim.y * blockDim.z;
  make_blocks();
  const unsigned long long clusters = 1ull * gridDim.x / cluster_size * gridDim.y * gridDim.z;
  for (unsigned long long k = 0; k < clusters; k++) {
    const unsigned long long first = (late ? clusters - 1 - k : k) * cluster_size;
    for (unsigned rank = 0; rank < cluster_size; rank++) {
      const unsigned long long b = first + rank;
      blocks[rank]->index = {unsigned(b % gridDim.x), unsigned(b / gridDim.x % gridDim.y), unsigned(b / gridDim.x / gridDim.y)};
    }
    run_cluster();
    for (const Buffer& buffer : buffers) check_canaries(buffer);
  }
  running = nullptr;
}

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

unsigned lane() { return current_number % 32; }
unsigned thread_of_block() { return current_number; }
unsigned live_lanes() { return live_lanes_of(current_number / 32 * 32); }
void* slot(unsigned of_lane) { return block->threads[current_number / 32 * 32 + of_lane]->slot; }

void* dynamic_shared_memory() {
  if (!blocks[0]) blocks[0] = new Block(0);  // asked for before a kernel runs
  return (block ? block : blocks[0])->dynamic_shared;
}

// ---- Barriers that count, and those of clusters

void wait_for_phase(const unsigned long long* barrier, unsigned parity) {
  const auto at = EMULATOR_CALLER;
  current->barrier = barrier;
  current->parity = parity;
  current->waits_at = at;
  while (barrier_state(barrier, at).phase == parity) yield_as(State::at_counting_barrier);
}

void cluster_arrive() {
  if (current->cluster_arrivals != current->cluster_waits)
    fault(EMULATOR_CALLER, "cluster_arrive() twice without cluster_wait()");
  current->cluster_arrivals++;
}

void cluster_wait() {
  if (current->cluster_arrivals == current->cluster_waits)
    fault(EMULATOR_CALLER, "cluster_wait() without cluster_arrive()");
  current->cluster_waits++;
  yield_as(State::at_cluster_barrier);
}

}  // namespace emulator

int main(int, char** arguments) {
  emulator::catch_faults();
  emulator::run_job(arguments[1], arguments[2] == std::string("backward"));
}
