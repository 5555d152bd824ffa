// Stores to the shared memory of another block of the cluster (sm_90a) that count on a barrier of that block. After hopper_clusters.cuh.
//
// A block stores after the other one has made its barrier: all call cluster_arrive_relaxed() after fence_mbarrier_init(), and cluster_wait()
// before the first store. The other block does not end before it has waited for the bytes with mbarrier_wait_of_cluster().
// Source: PTX ISA, sections 9.7.9 (st.async) and 9.7.13 (barrier.cluster).

// As cluster_arrive(), without its fence of the whole GPU: other blocks see what this thread wrote only where a fence makes it visible.
__device__ __forceinline__ void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }

// Four floats to where `shared` lies, in the block of that rank; their 16 bytes count on its barrier that lies where `barrier` does.
__device__ __forceinline__ void store_remote(float4* shared, float4 four, Mbarrier* barrier, unsigned rank) {
  asm volatile(
      "{.reg .b32 to, counts; mapa.shared::cluster.u32 to, %0, %2; mapa.shared::cluster.u32 counts, %1, %2; "
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [to], {%3, %4, %5, %6}, [counts];}" ::"r"(shared_address(shared)),
      "r"(shared_address(barrier)), "r"(rank), "r"(__float_as_uint(four.x)), "r"(__float_as_uint(four.y)), "r"(__float_as_uint(four.z)),
      "r"(__float_as_uint(four.w))
      : "memory");
}

// As mbarrier_wait(), for a barrier on which other blocks' stores count: what they stored is there.
__device__ __forceinline__ void mbarrier_wait_of_cluster(Mbarrier* barrier, unsigned parity) {
  unsigned done = 0;
  while (!done)
    asm volatile(
        "{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
}
