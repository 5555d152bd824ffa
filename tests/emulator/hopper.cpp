// What the functions of hopper.h and hopper_clusters.h need of the runtime: addresses of shared memory, copies by the TMA, barriers that count.
#include "mbarrier.h"
#include "running.h"

#include <algorithm>

namespace emulator {
namespace {

struct Copy {  // to shared memory
  TensorMapWords map;
  unsigned char* shared;
  int at[most_axes];
  unsigned long long* barrier;
};
std::vector<Copy> copies;  // that are put off

void make_copy(const Copy& copy) {
  for_each_of_box(copy.map, copy.shared, copy.at, [&](char* to, const char* from) { load_element(copy.map, to, from); });
  barrier_complete(copy.barrier, box_bytes(copy.map));
}

TensorMapWords checked_box(const void* shared, const TensorMap& map, unsigned axes, std::uintptr_t at) {
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

}  // namespace

// ---- Shared memory

unsigned shared_offset(const void* shared) {
  const std::size_t offset = block->shared_offset(shared, dynamic_shared_capacity);
  if (!offset) fault(EMULATOR_CALLER, "%p is no address of this block's shared memory", shared);
  return offset;
}

void* at_shared_offset(unsigned offset) { return block->at_offset(offset); }

// ---- What is asynchronous

void load_box(void* shared, const TensorMap& map, const int* at, unsigned axes, unsigned long long* barrier) {
  const auto caller = EMULATOR_CALLER;
  Copy copy = {checked_box(shared, map, axes, caller), static_cast<unsigned char*>(shared), {}, barrier};
  barrier_state(barrier, caller);
  std::copy(at, at + axes, copy.at);
  if (!late) return make_copy(copy);
  std::memset(shared, poison, box_bytes(copy.map));
  copies.push_back(copy);
}

void store_box(const TensorMap& map, const int* at, unsigned axes, const void* shared) {
  const TensorMapWords words = checked_box(shared, map, axes, EMULATOR_CALLER);
  for_each_of_box(words, const_cast<void*>(shared), at, [&](const char* from, char* to) {
    if (to) std::memcpy(to, from, words.element_bytes);
  });
}

void check_bytes(const void* global, const void* shared, std::size_t bytes) {
  const auto at = EMULATOR_CALLER;
  const Block* owner = owner_of(shared);
  if (!owner) fault(at, "the TMA copies between global and shared memory; %p is in no shared memory", shared);
  const auto together = reinterpret_cast<std::uintptr_t>(global) | reinterpret_cast<std::uintptr_t>(shared) | bytes;
  if (together % 16) fault(at, "the TMA copies multiples of 16 bytes, from and to multiples of 16");
  const std::size_t has = owner->bytes_from(shared, running_dynamic_bytes);
  if (bytes > has) fault(at, "a copy of %zu bytes where shared memory has %zu", bytes, has);
}

/// Makes the copies that were put off; false if there are none.
bool make_copies() {
  for (const Copy& copy : copies) {
    choose(*owner_of(copy.shared));
    if (has_ended(*block)) fail("the block ends while the TMA copies to its shared memory");
    make_copy(copy);
  }
  const bool any = !copies.empty();
  copies.clear();
  return any;
}

void start_async(std::function<void()> work) {
  if (!late) work(), work = nullptr;
  current->deferred.open.push_back(std::move(work));
}

void commit_async() {
  Deferred& deferred = current->deferred;
  deferred.groups.push_back(std::move(deferred.open));
  deferred.open.clear();
}

void wait_async(unsigned groups) { current->deferred.wait(groups); }

// ---- Counting barriers

void barrier_init(unsigned long long* barrier, unsigned arrivals) {
  const auto at = EMULATOR_CALLER;
  Block* owner = owner_of(barrier);
  if (!owner) fault(at, "an mbarrier is in no shared memory");
  if (arrivals < 1 || arrivals > most_arrivals) fault(at, "an mbarrier of %u arrivals; it takes 1 to %u", arrivals, most_arrivals);
  MbarrierState state = {};
  state.arrivals = state.missing = arrivals;
  store_barrier(barrier, state, at);
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
  store_barrier(barrier, state, at);
}

void barrier_complete(unsigned long long* barrier, std::size_t bytes) {
  const auto at = EMULATOR_CALLER;
  MbarrierState state = barrier_state(barrier, at);
  expect_at(barrier, -static_cast<long long>(bytes), at, state);
  store_barrier(barrier, state, at);
}

// ---- Clusters

unsigned cluster_rank() { return block->rank; }

void* of_block(const void* shared, unsigned rank) {
  const auto at = EMULATOR_CALLER;
  if (!block->shared_offset(shared, dynamic_shared_capacity)) fault(at, "of_block: %p is no address of this block's shared memory", shared);
  if (rank >= cluster_size) fault(at, "of_block: block %u of a cluster of %u", rank, cluster_size);
  if (!has_ended(*blocks[rank])) return block->twin(shared, *blocks[rank]);
  fault(at, "block %u of the cluster has ended, and its shared memory with it", rank);
}

void check_multicast(unsigned ranks) {
  if (!ranks || ranks >> cluster_size)
    fault(EMULATOR_CALLER, "a multicast to the blocks of mask %#x in a cluster of %u", ranks, cluster_size);
}

}  // namespace emulator
