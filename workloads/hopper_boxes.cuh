// Copies by the TMA of boxes of three axes: (x, y, z), x along the innermost. After hopper_stores.cuh.

__device__ __forceinline__ void tma_load(void* shared, const TensorMap& map, int x, int y, int z, Mbarrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(
          shared_address(shared)),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(barrier))
      : "memory");
}

__device__ __forceinline__ void tma_store(const TensorMap& map, int x, int y, int z, const void* shared) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map), "r"(x), "r"(y), "r"(z),
               "r"(shared_address(shared))
               : "memory");
}
