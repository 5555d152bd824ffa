// Instructions of compute capability 9.0 that store boxes by the TMA, as functions. After hopper.cuh.

// A box in shared memory to where it belongs; elements outside the buffer are left out. A group of boxes is what a thread has asked for since
// its last tma_store_commit().
__device__ __forceinline__ void tma_store(const TensorMap& map, int x, int y, const void* shared) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x), "r"(y),
               "r"(shared_address(shared))
               : "memory");
}
__device__ __forceinline__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until the shared memory of all of this thread's groups but the last `groups` has been read.
template <int groups>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(groups) : "memory");
}
