// Which blocks are alive and which thread runs, for runtime.cpp and hopper.cpp.
#pragma once

#include "blocks.h"
#include "entry_points.h"

// Where a function was called, for faults that name that line.
#define EMULATOR_CALLER (reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) - 1)

namespace emulator {

constexpr unsigned most_of_cluster = 8;  // that every GPU with clusters takes

inline Block* blocks[most_of_cluster];           // by rank; null where none was needed yet
inline unsigned cluster_size = 1;                // so many of them are alive
inline unsigned long long cluster_phases;        // that the cluster's barrier has ended
inline Block* block;                             // that runs
inline unsigned thread_count;                    // of a block
inline Thread* current;                          // null while no kernel runs
inline unsigned current_number;
inline const Kernel* running;
inline std::size_t running_dynamic_bytes;
inline bool late;  // what is asynchronous is done as late as it may be, and threads run from last to first

inline void choose(Block& chosen) {
  block = &chosen;
  blockIdx = chosen.index;
}

template <class Visit> void for_each_thread(Visit visit) {
  for (unsigned rank = 0; rank < cluster_size; rank++)
    for (unsigned i = 0; i < thread_count; i++) visit(*blocks[rank]->threads[i], *blocks[rank]);
}

inline bool has_ended(const Block& of) {
  for (unsigned i = 0; i < thread_count; i++)
    if (of.threads[i]->state != State::returned) return false;
  return true;
}

/// The block of the cluster whose shared memory has an address; null if none.
inline Block* owner_of(const void* address) {
  for (unsigned rank = 0; rank < cluster_size; rank++)
    if (blocks[rank]->shared_offset(address, running_dynamic_bytes)) return blocks[rank];
  return nullptr;
}

bool make_copies();  // that the TMA has put off; false if there are none

}  // namespace emulator
