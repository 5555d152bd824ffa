// Idea: For a few dozen tiles, smaller ones: 64 rows and 32 or 64 columns, a warpgroup each, so that two to four times as many multiprocessors fetch.
//     All threads ask for their pieces at once by plain copies (cp.async), and leave them as the TMA would: no tensor map comes from memory before
//     the first bytes, nobody makes barriers first, and results go straight to memory. Where tiles are still few, the blocks of a cluster share
//     one: each multiplies a part of k, and adds up a share of the columns.
// Bottleneck: What every launch costs. On an H200 n = 256 takes 2.7 us and n = 512 3.6, where v08_early_loads takes 3.8 and 5.0; to copy 256 KB
//     takes 1.7. At n = 1024 it takes 10 us: so small a tile asks L2 for each row too often. What plain copies gain without smaller tiles was
//     not measured at these sizes; at n = 1024 tiles of 64 x 128 take 8.7 us so, and 6.3 by the TMA.
// Next: At n = 1024 tiles as large as before, by the TMA, and a warpgroup each too.
// Source: Own work; sums of a cluster are those of `mlp_gemm` v18_cluster_sums_tf32.

#include "../../ptx.cuh"
#include "../../hopper_plain_copies.cuh"
#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "../../hopper_cluster_sums.cuh"
#include "../../hopper_stores.cuh"
#include "../../hopper_low_precision.cuh"
#include "../../hopper_narrow_products.cuh"
#include "tiles.cuh"
#include "small_tiles.cuh"
#include "pad.cuh"

// sums = a * b of `steps` steps from `first` on.
template <class Element, int columns, int stages>
__device__ __forceinline__ void multiply_part(float (&sums)[columns / 2], SmallStage<columns>* stage, const Pieces<kThreads>& a,
                                              const Pieces<kThreads>& b, int first, int steps) {
  const auto copy = [&](int step) {
    if (step < steps) {
      auto& to = stage[step % stages];
      a.copy<kSmallRows>(to.a, 0, (first + step) * kRowBytes);
      b.copy<columns>(to.b, 0, (first + step) * kRowBytes);
    }
    cp_async_commit();
  };
#pragma unroll
  for (int step = 0; step < stages; ++step) copy(step);

#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    if (step == 0)
      cp_async_wait<stages - 1>();
    else if (step == 1)
      cp_async_wait<stages - 2>();
    else
      cp_async_wait<stages - 3>();
    fence_proxy_async();
    __syncthreads();  // all pieces of the stage are there, and the stage before the last has been read by all
    if (step >= 2) copy(step - 2 + stages);
    start_product<Element, columns>(sums, stage[step % stages], step > 0);
    wgmma_wait<1>();
  }
  wgmma_wait<0>();
  wgmma_keep(sums);
}

// A block a tile. `pitch`: elements from a row of A or B to the next.
template <class Element, int columns, int stages>
__global__ void __launch_bounds__(kThreads)
    gemm(const typename Element::Bits* a, const typename Element::Bits* b, unsigned short* d, int m, int n, int k, int pitch) {
  extern __shared__ char dynamic[];
  auto* stage = aligned_1024<SmallStage<columns>>(dynamic);
  const int row = blockIdx.y * kSmallRows, column = blockIdx.x * columns;
  const unsigned bytes = pitch * sizeof(typename Element::Bits);
  const Pieces<kThreads> of_a(a, row, m, bytes), of_b(b, column, n, bytes);
  float sums[columns / 2];
  multiply_part<Element, columns, stages>(sums, stage, of_a, of_b, 0, steps_of<Element>(k));
  store_tile<typename Element::Result>(sums, d, row, column, m, n);
}

template <int columns, int stages, int parts>
struct Memory {
  SmallStage<columns> stage[stages];
  OthersSums<parts, columns / 2 / parts, kThreads> others;
};

// A cluster a tile.
template <class Element, int columns, int stages, int parts>
__global__ void __cluster_dims__(parts, 1, 1) __launch_bounds__(kThreads)
    gemm_parts(const typename Element::Bits* a, const typename Element::Bits* b, unsigned short* d, int m, int n, int k, int pitch) {
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<Memory<columns, stages, parts>>(dynamic);
  __shared__ Mbarrier there;
  if (threadIdx.x == 0) memory.others.expect(&there);
  cluster_arrive_relaxed();

  const int part = cluster_rank(), steps = (steps_of<Element>(k) + parts - 1) / parts;
  const int row = blockIdx.y * kSmallRows, column = blockIdx.x / parts * columns;
  const unsigned bytes = pitch * sizeof(typename Element::Bits);
  const Pieces<kThreads> of_a(a, row, m, bytes), of_b(b, column, n, bytes);
  float sums[columns / 2], mine[columns / 2 / parts];
  multiply_part<Element, columns, stages>(sums, memory.stage, of_a, of_b, part * steps, steps);
  memory.others.add(sums, mine, &there, part);
  store_tile<typename Element::Result>(mine, d, row, column + part * (columns / parts), m, n);
}
