// Instructions of compute capability 9.0 that store from shared memory by the TMA, as functions. After hopper.cuh.

// A box in shared memory to where it belongs; elements outside the buffer are left out. A group is what a thread has asked for since its last
// tma_store_commit().
__device__ __forceinline__ void tma_store(const TensorMap& map, int x, int y, const void* shared) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x), "r"(y),
               "r"(shared_address(shared))
               : "memory");
}

// Contiguous bytes of shared memory. Both addresses and the number are multiples of 16.
__device__ __forceinline__ void tma_store_bytes(void* global, const void* shared, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global), "r"(shared_address(shared)), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until the shared memory of all of this thread's groups but the last `groups` has been read.
template <int groups>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(groups) : "memory");
}
