// Tensor maps before their first use. After hopper.cuh.

// Asks for the descriptor of a tensor map, which the TMA reads from memory the first time.
__device__ __forceinline__ void prefetch_map(const TensorMap& map) { asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory"); }
