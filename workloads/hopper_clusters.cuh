// Thread block clusters of Hopper (sm_90a): the blocks of a cluster run at the same time and reach each other's shared memory. Copies by the TMA to
// several blocks. After hopper.cuh.
//
// A kernel of clusters is `__global__ void __cluster_dims__(n, 1, 1) ...`, its grid a multiple of n. Before a block touches another's
// shared memory, both are at a cluster_sync() after they have prepared it; a block ends after a cluster_sync() behind the last such access.
// Source: PTX ISA, sections 9.7.8 (mapa), 9.7.9 (cp.async.bulk.tensor, multicast), 9.7.13 (barrier.cluster, mbarrier). The tests' emulator has
// its own functions of these names and types.
#ifndef WARPLADDER_EMULATOR

// -- The cluster ----------------------------------------------------------------------------------------------------------------

// Number of this block in its cluster.
__device__ __forceinline__ unsigned cluster_rank() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// A barrier of all threads of the cluster. What a thread wrote before it arrives is seen by all after they have waited.
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

// A variable of this block's shared memory -> the same variable of another block of the cluster, for ordinary loads and stores.
template <class T>
__device__ __forceinline__ T* of_block(T* shared, unsigned rank) {
  unsigned long long address;
  asm("mapa.u64 %0, %1, %2;" : "=l"(address) : "l"(shared), "r"(rank));
  return reinterpret_cast<T*>(address);
}

// -- Barriers of other blocks -----------------------------------------------------------------------------------------------------

// Arrives at the barrier of a block of the cluster that lies where `barrier` lies in this one. Tells that block that this thread has read; what
// the thread has written it need not see: `.release.cluster` would be a fence of the whole GPU (MEMBAR.ALL.GPU), with which the matrix
// product of n = 4096 took 517 us in place of 378 on an H200.
__device__ __forceinline__ void mbarrier_arrive_remote(Mbarrier* barrier, unsigned rank) {
  asm volatile("{.reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [remote];}" ::"r"(
                   shared_address(barrier)),
               "r"(rank)
               : "memory");
}

// -- TMA --------------------------------------------------------------------------------------------------------------------------

// The box comes to where `shared` lies, in each block of the mask (bit r: the block of rank r), and its bytes count on each one's barrier.
__device__ __forceinline__ void tma_load_multicast(void* shared, const TensorMap& map, int x, int y, Mbarrier* barrier,
                                                   unsigned short mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(shared)),
      "l"(&map), "r"(x), "r"(y), "r"(shared_address(barrier)), "h"(mask)
      : "memory");
}

#endif
