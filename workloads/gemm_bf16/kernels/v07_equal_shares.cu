// Idea: After the full waves of v06_clusters, the tiles left over lie behind one another along k, as one line of steps, and each cluster has an equal
//     share of it. A block leaves its sums of a part of a tile in scratch memory, and a second kernel adds the parts of each tile, rounds and
//     stores. Where shares would save less than they cost nothing is cut, and this is v06_clusters.
// Bottleneck: Sums of 128 KB a part, which go through L2 twice, and the second launch: they cost as much as a dozen steps along k.
// Next: Few tiles are left with their fixed cost: nothing before the first loads.
// Source: Own work; shares of a line of tiles are the "stream-K" of M. Osama et al., 2023.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "../../hopper_stores.cuh"
#include "../../hopper_low_precision.cuh"
#include "tiles.cuh"
#include "pad.cuh"
#include "../../mlp_gemm/kernels/line.cuh"

constexpr int kFour = 4;

template <int columns, int stages, int buffers>
struct Memory {
  Stage<columns> stage[stages];
  Boxes<buffers> boxes;
};

template <class Element, int columns, int stages, int buffers, int down, int across, bool boxed>
__global__ void __cluster_dims__(down* across, 1, 1) __launch_bounds__(kProducers + kConsumers, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap d, unsigned short* values,
         float4* parts, int m, int n, int k, int band, int whole, int share, int span) {
  constexpr int kBlocks = down * across;
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<Memory<columns, stages, buffers>>(dynamic);
  __shared__ Pipeline<stages> pipeline;
  if (threadIdx.x == kConsumers) prefetch_map(a), prefetch_map(b), prefetch_map(d);
  pipeline.init(Place<down, across>::kReleases);
  if constexpr (kBlocks > 1) cluster_meet();

  const int cluster = blockIdx.x / kBlocks, rank = blockIdx.x % kBlocks;
  const Place<down, across> place;
  const Line line{whole, share, span};
  Pieces pieces(line, tiles_of<columns, down, across>(m, n), steps_of<Element>(k), cluster, gridDim.x / kBlocks);
  Piece piece;
  int row, column;
  Ring<stages> ring;

  if (threadIdx.x >= kConsumers) {
    give_registers<40>();
    while (threadIdx.x < kConsumers + 32 && pieces.next(piece)) {
      place.template tile<columns>(piece.tile, band, m, n, row, column);
      for (int step = piece.begin; step < piece.end; ++step, ring.next()) {
        mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
        if (threadIdx.x == kConsumers)
          place.fetch(memory.stage[ring.stage], a, b, row, column, step * kDepth<Element>, &pipeline.full[ring.stage]);
      }
    }
  } else {
    take_registers<232>();
    const auto release = [&](int of) { place.release(pipeline, of); };
    while (pieces.next(piece)) {
      float sums[columns / 2];
      multiply_tile<Element, columns>(sums, piece.end - piece.begin, memory.stage, pipeline, ring, threadIdx.x / 128, release);
      place.template tile<columns>(piece.tile, band, m, n, row, column);
      if (piece.tile >= whole) {  // a thread's fours lie apart, so that a warp writes 512 bytes in one go
        float4* to = parts + (size_t)(line.place(cluster, piece.tile) * kBlocks + rank) * (kRows * columns / kFour) + threadIdx.x;
#pragma unroll
        for (int i = 0; i < columns / 2; i += kFour) to[i / kFour * kConsumers] = make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]);
      } else if constexpr (boxed) {
        stage_tile<typename Element::Result>(sums, memory.boxes, d, row, column, m, n);
      } else {
        store_tile<typename Element::Result>(sums, values, row, column, m, n);
      }
    }
    if (boxed && threadIdx.x % 32 == 0) tma_store_wait_read<0>();  // shared memory is there until the TMA has read it
  }
  if constexpr (kBlocks > 1) cluster_meet();  // before a block ends, no other writes to its shared memory any more
}

// D = sum of the parts, for the tiles of the line: blockIdx.x a block's tile, blockIdx.y one of the fours of each thread.
template <class Element, int columns, int down, int across>
__global__ void __launch_bounds__(kConsumers)
    add_parts(const float4* __restrict__ parts, unsigned short* d, int m, int n, int band, int whole, int share, int span) {
  constexpr int kBlocks = down * across, kFours = kRows * columns / kFour;  // of a part
  const Line line{whole, share, span};
  const int tile = whole + blockIdx.x / kBlocks, rank = blockIdx.x % kBlocks, count = line.parts(tile);
  int row, column;
  Place<down, across>(rank).template tile<columns>(tile, band, m, n, row, column);
  row += threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column += blockIdx.y * 8 + threadIdx.x % 4 * 2;
  if (row >= m || column >= n) return;

  const int first = line.place(line.first_block(tile), tile) * kBlocks + rank;
  const float4* from = parts + (size_t)first * kFours + blockIdx.y * kConsumers + threadIdx.x;
  float4 sum = *from;
#pragma unroll 4
  for (int part = 1; part < count; ++part) {
    const float4 value = from[(size_t)part * kBlocks * kFours];
    sum = make_float4(sum.x + value.x, sum.y + value.y, sum.z + value.z, sum.w + value.w);
  }
  store_pair(d, row, column, m, n, rounded_pair(typename Element::Result{}, sum.x, sum.y));
  store_pair(d, row + 8, column, m, n, rounded_pair(typename Element::Result{}, sum.z, sum.w));
}
