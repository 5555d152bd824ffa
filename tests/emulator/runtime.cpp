// Runs the launches that emulator.py writes to standard input, on buffers that it left in a file.
//
// One fiber a thread; a fiber runs until it meets a barrier or returns. When none of a block, or of a cluster, can go on and some have
// not returned, that is a deadlock. Faults end the program as guarded_memory.h says.
#include "blocks.h"
#include "cuda_emulator.h"
#include "entry_points.h"
#include "guarded_memory.h"
#include "job.h"
#include "mbarrier.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

#define EMULATOR_CALLER (reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) - 1)

namespace emulator {
namespace {

constexpr unsigned most_of_cluster = 8;  // that every GPU with clusters takes

Block* blocks[most_of_cluster];  // that are alive: those of a cluster, by rank; null where none was needed yet
unsigned cluster_size = 1;
unsigned long long cluster_phases;  // that its barrier has ended
Block* block;                   // that runs
unsigned thread_count;          // of a block
Thread* current;                // null while no kernel runs
unsigned current_number;
std::jmp_buf scheduler;
const Kernel* running;
void* const* running_arguments;
std::size_t running_dynamic_bytes;

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

void run_warp(unsigned first, bool backward) {
  const unsigned lanes = thread_count - first < 32 ? thread_count - first : 32;
  do {
    for (unsigned k = 0; k < lanes; k++) {
      const unsigned number = first + (backward ? lanes - 1 - k : k);
      if (block->threads[number]->state == State::ready) resume(number);
    }
  } while (release_warp(first));
}

// ---- Blocks and clusters

void choose(Block& chosen) {
  block = &chosen;
  blockIdx = chosen.index;
}

/// Runs a block until none of its threads can go on by itself; false if none could from the beginning.
bool run_until_stuck(Block& chosen, bool backward) {
  choose(chosen);
  bool any_ready = false;
  release_counting();
  for (unsigned i = 0; i < thread_count; i++) any_ready = any_ready || chosen.threads[i]->state == State::ready;
  if (!any_ready) return false;
  const unsigned warps = (thread_count + 31) / 32;
  chosen.on_own_thread([&] {
    do {
      for (unsigned k = 0; k < warps; k++) run_warp((backward ? warps - 1 - k : k) * 32, backward);
    } while (release_counting() || release_block());
  });
  return true;
}

template <class Visit> void for_each_thread(Visit visit) {
  for (unsigned rank = 0; rank < cluster_size; rank++)
    for (unsigned i = 0; i < thread_count; i++) visit(*blocks[rank]->threads[i], *blocks[rank]);
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
  if (cluster_size > 1) std::snprintf(of_cluster, sizeof of_cluster, " of the cluster's barrier %u", at_cluster);
  fault(waits_at,
        "deadlock: of %u threads, %u wait at __syncthreads() of line %d, %u at another one, %u in a warp operation, %u at a barrier that counts, "
        "%s%u have returned",
        thread_count * cluster_size, at_block, line, elsewhere, in_warp, counting, of_cluster, returned);
}

void run_cluster(bool backward) {
  cluster_phases = 0;
  for_each_thread([](Thread& thread, Block&) { thread.state = State::ready, thread.cluster_arrivals = thread.cluster_waits = 0; });
  for (unsigned rank = 0; rank < cluster_size; rank++) blocks[rank]->poison_shared(), blocks[rank]->barriers.clear();
  for (bool progress = true; progress;) {
    progress = false;
    for (unsigned k = 0; k < cluster_size; k++) progress = run_until_stuck(*blocks[backward ? cluster_size - 1 - k : k], backward) || progress;
    progress = release_cluster() || progress;
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

/// The block of the cluster whose shared memory has an address; null if none.
Block* owner_of(const void* address) {
  for (unsigned rank = 0; rank < cluster_size; rank++)
    if (blocks[rank]->shared_offset(address, running_dynamic_bytes)) return blocks[rank];
  return nullptr;
}

}  // namespace

void launch(const Kernel& kernel, void* const* arguments, std::size_t dynamic_shared_bytes, bool backward) {
  running = &kernel;
  running_arguments = arguments;
  running_dynamic_bytes = dynamic_shared_bytes;
  cluster_size = kernel.cluster;
  if (cluster_size < 1 || cluster_size > most_of_cluster) fail("clusters have 1 to %u blocks along x, and 1 along y and z", most_of_cluster);
  if (gridDim.x % cluster_size) fail("%u blocks along x are no multiple of the cluster's %u", gridDim.x, cluster_size);
  thread_count = blockDim.x * blockDim.y * blockDim.z;
  make_blocks();
  const unsigned long long clusters = 1ull * gridDim.x / cluster_size * gridDim.y * gridDim.z;
  for (unsigned long long k = 0; k < clusters; k++) {
    const unsigned long long first = (backward ? clusters - 1 - k : k) * cluster_size;
    for (unsigned rank = 0; rank < cluster_size; rank++) {
      const unsigned long long b = first + rank;
      blocks[rank]->index = {unsigned(b % gridDim.x), unsigned(b / gridDim.x % gridDim.y), unsigned(b / gridDim.x / gridDim.y)};
    }
    run_cluster(backward);
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

// ---- Shared memory

void* dynamic_shared_memory() {
  if (!blocks[0]) blocks[0] = new Block(0);  // asked for before a kernel runs
  return (block ? block : blocks[0])->dynamic_shared;
}

unsigned shared_offset(const void* shared) {
  const std::size_t offset = block->shared_offset(shared, dynamic_shared_capacity);
  if (!offset) fault(EMULATOR_CALLER, "%p is no address of this block's shared memory", shared);
  return offset;
}

void* at_shared_offset(unsigned offset) { return block->at_offset(offset); }

TensorMapWords checked_box(const void* shared, const TensorMap& map, unsigned axes) {
  const auto at = EMULATOR_CALLER;
  const TensorMapWords words = words_of(map);
  if (words.mark != tensor_map_mark) fault(at, "this is no tensor map");
  if (words.axes != axes) fault(at, "a tensor map of %u axes is taken for a copy of %u", unsigned(words.axes), axes);
  const Block* owner = owner_of(shared);
  if (!owner) fault(at, "the TMA copies between global and shared memory; %p is in no shared memory", shared);
  if (reinterpret_cast<std::uintptr_t>(shared) % 128) fault(at, "a box begins at a multiple of 128 bytes of shared memory");
  const std::size_t has = owner->bytes_from(shared, running_dynamic_bytes);
  if (box_bytes(words) > has) fault(at, "a box of %zu bytes where shared memory has %zu", box_bytes(words), has);
  return words;
}

// ---- Counting barriers

void barrier_init(unsigned long long* barrier, unsigned arrivals) {
  const auto at = EMULATOR_CALLER;
  Block* owner = owner_of(barrier);
  if (!owner) fault(at, "an mbarrier is in no shared memory");
  if (arrivals < 1 || arrivals > most_arrivals) fault(at, "an mbarrier of %u arrivals; it takes 1 to %u", arrivals, most_arrivals);
  MbarrierState state = {};
  state.arrivals = state.missing = arrivals;
  store_barrier(barrier, state);
  owner->barriers.push_back(barrier);
}

void barrier_arrive(unsigned long long* barrier, unsigned expected_bytes) {
  const auto at = EMULATOR_CALLER;
  MbarrierState state = barrier_state(barrier, at);
  if (!state.missing)
    fault(at, "an arrival too many: all %u of this mbarrier's phase have arrived, and %lld bytes are still to come", unsigned(state.arrivals),
          (long long)state.bytes);
  expect_at(barrier, expected_bytes, at, state);
  state.missing--;
  store_barrier(barrier, state);
}

void barrier_complete(unsigned long long* barrier, std::size_t bytes) {
  const auto at = EMULATOR_CALLER;
  MbarrierState state = barrier_state(barrier, at);
  expect_at(barrier, -static_cast<long long>(bytes), at, state);
  store_barrier(barrier, state);
}

void wait_for_phase(const unsigned long long* barrier, unsigned parity) {
  const auto at = EMULATOR_CALLER;
  current->barrier = barrier;
  current->parity = parity;
  current->waits_at = at;
  while (barrier_state(barrier, at).phase == parity) yield_as(State::at_counting_barrier);
}

// ---- Clusters

unsigned cluster_rank() { return block->rank; }

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

void* of_block(const void* shared, unsigned rank) {
  const auto at = EMULATOR_CALLER;
  if (!block->shared_offset(shared, dynamic_shared_capacity)) fault(at, "of_block: %p is no address of this block's shared memory", shared);
  if (rank >= cluster_size) fault(at, "of_block: block %u of a cluster of %u", rank, cluster_size);
  for (unsigned i = 0; i < thread_count; i++)
    if (blocks[rank]->threads[i]->state != State::returned) return block->twin(shared, *blocks[rank]);
  fault(at, "block %u of the cluster has ended, and its shared memory with it", rank);
}

void check_multicast(unsigned ranks) {
  if (!ranks || ranks >> cluster_size)
    fault(EMULATOR_CALLER, "a multicast to the blocks of mask %#x in a cluster of %u", ranks, cluster_size);
}

}  // namespace emulator

int main(int, char** arguments) {
  emulator::catch_faults();
  emulator::run_job(arguments[1], arguments[2] == std::string("backward"));
}
