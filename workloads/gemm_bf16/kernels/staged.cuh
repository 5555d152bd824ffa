// The product whose results leave by way of shared memory and the TMA, for one block or a cluster. After tiles.cuh.

template <int columns, int stages, int buffers>
struct Memory {
  Stage<columns> stage[stages];
  Boxes<buffers> boxes;
};

// `boxed`: D has a pitch that the TMA takes. Otherwise registers go to `values`.
template <class Element, int columns, int stages, int buffers, int down, int across, bool boxed>
__global__ void __cluster_dims__(down* across, 1, 1) __launch_bounds__(kProducers + kConsumers, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap d, unsigned short* values,
         int m, int n, int k, int band) {
  constexpr int kBlocks = down * across;
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<Memory<columns, stages, buffers>>(dynamic);
  __shared__ Pipeline<stages> pipeline;
  if (threadIdx.x == kConsumers) prefetch_map(a), prefetch_map(b), prefetch_map(d);
  pipeline.init(Place<down, across>::kReleases);
  if constexpr (kBlocks > 1) cluster_meet();

  const int tiles = tiles_of<columns, down, across>(m, n), steps = steps_of<Element>(k), clusters = gridDim.x / kBlocks;
  const Place<down, across> place;
  int row, column;
  Ring<stages> ring;

  if (threadIdx.x >= kConsumers) {
    give_registers<40>();
    for (int tile = blockIdx.x / kBlocks; threadIdx.x < kConsumers + 32 && tile < tiles; tile += clusters) {
      place.template tile<columns>(tile, band, m, n, row, column);
      for (int step = 0; step < steps; ++step, ring.next()) {
        mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
        if (threadIdx.x == kConsumers)
          place.fetch(memory.stage[ring.stage], a, b, row, column, step * kDepth<Element>, &pipeline.full[ring.stage]);
      }
    }
  } else {
    take_registers<232>();
    const auto release = [&](int of) { place.release(pipeline, of); };
    for (int tile = blockIdx.x / kBlocks; tile < tiles; tile += clusters) {
      float sums[columns / 2];
      multiply_tile<Element, columns>(sums, steps, memory.stage, pipeline, ring, threadIdx.x / 128, release);
      place.template tile<columns>(tile, band, m, n, row, column);
      if constexpr (boxed)
        stage_tile<typename Element::Result>(sums, memory.boxes, d, row, column, m, n);
      else
        store_tile<typename Element::Result>(sums, values, row, column, m, n);
    }
    if (boxed && threadIdx.x % 32 == 0) tma_store_wait_read<0>();  // shared memory is there until the TMA has read it
  }
  if constexpr (kBlocks > 1) cluster_meet();  // before a block ends, no other writes to its shared memory any more
}
