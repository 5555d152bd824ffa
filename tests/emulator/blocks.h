// The threads and the shared memory of the blocks that are alive, for runtime.cpp: one block, or those of a cluster. Each block of a cluster
// has a system thread of its own, so that each has shared memory of its own at addresses of its own. One of them runs at a time.
#pragma once

#include "cuda_emulator.h"
#include "guarded_memory.h"

#include <condition_variable>
#include <csetjmp>
#include <functional>
#include <link.h>
#include <mutex>
#include <thread>
#include <ucontext.h>
#include <vector>

namespace emulator {

constexpr std::size_t stack_bytes = 64 << 10;
constexpr std::size_t dynamic_shared_capacity = 232448;  // 227 KiB, the most of any device
constexpr std::size_t dynamic_shared_canary = 4096;
constexpr std::size_t shared_alignment = 1024;           // what no swizzle looks beyond
constexpr std::size_t shared_window = 1 << 18;           // bytes that the descriptor of an operand can name

enum class State { ready, at_block_barrier, at_warp_barrier, at_counting_barrier, at_cluster_barrier, returned };

/// What a thread has started and not waited for: groups, and what is in none yet.
struct Deferred {
  using Works = std::vector<std::function<void()>>;
  std::vector<Works> groups;
  Works open;

  void wait(std::size_t last) {
    while (groups.size() > last) {
      for (const auto& work : groups.front()) if (work) work();
      groups.erase(groups.begin());
    }
  }
  std::size_t count() const {
    std::size_t found = open.size();
    for (const Works& group : groups) found += group.size();
    return found;
  }
  void clear() { groups.clear(), open.clear(); }
};

struct Thread {
  ucontext_t start;      // on a stack of its own
  bool started = false;
  std::jmp_buf left_at;  // where it last yielded
  uint3 index;
  State state;
  int barrier_line;
  unsigned barrier_mask;
  const unsigned long long* barrier;  // an mbarrier, the parity of the phase that is waited for, and where in the program
  unsigned parity;
  std::uintptr_t waits_at;
  unsigned cluster_arrivals;          // at the cluster's barrier, and waits for it
  unsigned cluster_waits;
  Deferred deferred;
  alignas(16) unsigned char slot[slot_bytes];
};

/// A system thread that runs what it is given, one function at a time, while whoever gives it waits.
class Worker {
 public:
  Worker() {
    std::thread([this] {
      use_signal_stack();
      for (std::unique_lock<std::mutex> lock(mutex_);;) {
        changed_.wait(lock, [this] { return bool(work_); });
        work_();
        work_ = nullptr;
        changed_.notify_all();
      }
    }).detach();
  }

  void run(std::function<void()> work) {
    std::unique_lock<std::mutex> lock(mutex_);
    work_ = std::move(work);
    changed_.notify_all();
    changed_.wait(lock, [this] { return !work_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
};

struct Block {
  unsigned rank;                 // in its cluster
  uint3 index;
  std::vector<Thread*> threads;  // the first `thread_count` belong to the block that runs
  Worker* worker = nullptr;      // null: the main thread
  unsigned char* static_shared = nullptr;
  std::size_t static_bytes = 0;
  unsigned char* dynamic_shared;
  std::vector<unsigned long long*> barriers;  // that were initialised

  explicit Block(unsigned rank) : rank(rank) {
    dynamic_shared = static_cast<unsigned char*>(map(dynamic_shared_capacity + dynamic_shared_canary, PROT_READ | PROT_WRITE));
    if (rank > 0) worker = new Worker;
    on_own_thread([this] { dl_iterate_phdr(find_static_shared, this); });
  }

  template <class Work> void on_own_thread(Work work) {
    if (worker) worker->run(work);
    else work();
  }

  void poison_shared() {
    std::memset(static_shared, poison, static_bytes);
    std::memset(dynamic_shared, poison, dynamic_shared_capacity + dynamic_shared_canary);
  }

  void check_dynamic_shared(std::size_t bytes) const {
    for (std::size_t i = bytes; i < bytes + dynamic_shared_canary; i++)
      if (dynamic_shared[i] != poison) fail("write %zu bytes past the end of dynamic shared memory", i - bytes);
  }

  // Static shared memory is the thread-local storage of this program, which is the first object listed.
  static int find_static_shared(dl_phdr_info* info, std::size_t, void* of) {
    for (int i = 0; i < info->dlpi_phnum; i++)
      if (info->dlpi_phdr[i].p_type == PT_TLS) {
        static_cast<Block*>(of)->static_shared = static_cast<unsigned char*>(info->dlpi_tls_data);
        static_cast<Block*>(of)->static_bytes = info->dlpi_phdr[i].p_memsz;
      }
    return 1;
  }

  // Shared memory as addresses of 32 bits: static, then dynamic, as on the device. The lowest 10 bits are those of the true address.
  std::uintptr_t static_start() const { return reinterpret_cast<std::uintptr_t>(static_shared) / shared_alignment * shared_alignment; }
  std::size_t dynamic_offset() const {
    const std::size_t end = reinterpret_cast<std::uintptr_t>(static_shared) + static_bytes - static_start();
    return shared_alignment + (end + shared_alignment - 1) / shared_alignment * shared_alignment;
  }
  /// The 32-bit address; 0 for what is not the block's shared memory.
  std::size_t shared_offset(const void* address, std::size_t dynamic_bytes) const {
    const auto* byte = static_cast<const unsigned char*>(address);
    if (byte >= dynamic_shared && byte < dynamic_shared + dynamic_bytes) return dynamic_offset() + (byte - dynamic_shared);
    if (byte < static_shared || byte >= static_shared + static_bytes) return 0;
    return shared_alignment + (reinterpret_cast<std::uintptr_t>(byte) - static_start());
  }
  unsigned char* at_offset(std::size_t offset) const {
    if (offset >= dynamic_offset()) return dynamic_shared + (offset - dynamic_offset());
    return reinterpret_cast<unsigned char*>(static_start()) + (offset - shared_alignment);
  }
  /// The same variable of another block, whose thread-local storage may begin at another multiple of less than 1024 bytes.
  void* twin(const void* address, const Block& other) const {
    const auto* byte = static_cast<const unsigned char*>(address);
    if (byte >= dynamic_shared && byte < dynamic_shared + dynamic_shared_capacity) return other.dynamic_shared + (byte - dynamic_shared);
    return other.static_shared + (byte - static_shared);
  }
  /// How many bytes of shared memory there are from an address on.
  std::size_t bytes_from(const void* address, std::size_t dynamic_bytes) const {
    const auto* byte = static_cast<const unsigned char*>(address);
    if (byte >= dynamic_shared && byte < dynamic_shared + dynamic_bytes) return dynamic_shared + dynamic_bytes - byte;
    return static_shared + static_bytes - byte;
  }
};

}  // namespace emulator
