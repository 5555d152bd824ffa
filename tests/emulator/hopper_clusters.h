// What workloads/hopper_clusters.cuh and hopper_cluster_stores.cuh do by inline PTX, for the emulator: functions of the same names. Included at the end of hopper.h.
#pragma once

EMULATOR_INLINE unsigned cluster_rank() { return emulator::cluster_rank(); }
EMULATOR_INLINE void cluster_arrive() { emulator::cluster_arrive(); }
EMULATOR_INLINE void cluster_wait() { emulator::cluster_wait(); }
EMULATOR_INLINE void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

/// Of a block that has ended it is a fault, as on the device.
template <class T> EMULATOR_INLINE T* of_block(T* shared, unsigned rank) {
  return static_cast<T*>(const_cast<void*>(emulator::of_block(const_cast<const std::remove_cv_t<T>*>(shared), rank)));
}

EMULATOR_INLINE void mbarrier_arrive_remote(Mbarrier* barrier, unsigned rank) { emulator::barrier_arrive(of_block(barrier, rank), 0); }

EMULATOR_INLINE void cluster_arrive_relaxed() { emulator::cluster_arrive(); }
EMULATOR_INLINE void store_remote(float4* shared, float4 four, Mbarrier* barrier, unsigned rank) {
  *of_block(shared, rank) = four;
  emulator::barrier_complete(of_block(barrier, rank), sizeof four);
}
EMULATOR_INLINE void mbarrier_wait_of_cluster(Mbarrier* barrier, unsigned parity) { emulator::wait_for_phase(barrier, parity); }

EMULATOR_INLINE void tma_load_multicast(void* shared, const TensorMap& map, int x, int y, Mbarrier* barrier, unsigned short mask) {
  const int at[] = {x, y};
  emulator::check_multicast(mask);
  for (unsigned rank = 0; rank < 8; rank++)
    if (mask >> rank & 1) emulator::load_box(of_block(static_cast<char*>(shared), rank), map, at, 2, of_block(barrier, rank));
}
