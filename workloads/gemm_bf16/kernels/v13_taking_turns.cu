// Idea: The warpgroups of a block have a tile each, of 128 x 160, and take turns: while one rounds and stores, the other multiplies, and the tensor
//     cores never wait for both. Such tiles also make whole waves where those of 128 x 256 do not: the product of 4096x4096x14336 has 13.6 waves
//     of these, which take as long as 14, and 21.8 of those, which take as long as 22: 1.8 % less.
// Bottleneck: L2, it seems: a tile needs a third more rows of the operands for as many products. On an H200 4096x4096x14336 takes 586 us, where
//     v06_clusters takes 593 and cuBLASLt 572; n = 4096, of whole waves of 128 x 256, takes 189 and 173.
// Next: The shape of the tile by the shape of the product.
// Source: "Pingpong" kernels of NVIDIA CUTLASS 3. On an H200 cuBLASLt takes such a kernel for 4096x4096x14336, with tiles of 176 x 128.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "../../hopper_stores.cuh"
#include "../../hopper_low_precision.cuh"
#include "../../hopper_wide_products.cuh"
#include "tiles.cuh"
#include "pad.cuh"

constexpr int kHalves = 2;           // products of 64 rows in a tile
constexpr int kTurns = 2;            // warpgroups
constexpr int kTurnBoxColumns = 32;  // of D that a warp hands to the TMA: rows of 64 bytes

template <int columns, int stages, int buffers>
struct Memory {
  Stage<columns> stage[stages];
  unsigned boxes[kConsumers / 32][buffers][kBoxRows * kTurnBoxColumns / 2];
};

// Passes over `count` stages, which the other warpgroup takes.
template <int stages>
__device__ __forceinline__ void skip(Ring<stages>& ring, int count) {
  const int to = ring.stage + count;
  ring.stage = to % stages;
  ring.parity ^= to / stages & 1;
}

// sums = a * b of the stages that come next, by one warpgroup. release(stage) is called when a stage has been read, while the one after it is
// multiplied, and hand_over() when the last product is under way.
template <class Element, int columns, int stages, class Release, class HandOver>
__device__ __forceinline__ void multiply_whole_tile(float (&sums)[kHalves][columns / 2], int steps, const Stage<columns>* stage,
                                                    Pipeline<stages>& pipeline, Ring<stages>& ring, Release release, HandOver hand_over) {
  int previous = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const auto& now = stage[ring.stage];
    mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
    const unsigned long long a = wgmma_operand(now.a), b = wgmma_operand(now.b);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int half = 0; half < kHalves; ++half)
        wgmma(Element{}, sums[half], a + half * (64 * kRowBytes / 16) + 2 * i, b + 2 * i, step + i > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (step > 0) release(previous);
    previous = ring.stage;
    ring.next();
  }
  hand_over();
  wgmma_wait<0>();
#pragma unroll
  for (int half = 0; half < kHalves; ++half) wgmma_keep(sums[half]);
  release(previous);
}

// A warp's 16 rows and 32 columns of D at a time, from row `top` and column `left` on. D is a tensor map of such boxes, if it is `boxed`.
template <class Result, bool boxed, int count, int buffers>
__device__ __forceinline__ void store_half(const float (&sums)[count], unsigned (&boxes)[buffers][kBoxRows * kTurnBoxColumns / 2],
                                           const TensorMap& d, unsigned short* values, int top, int left, int m, int n) {
  const int lane = threadIdx.x % 32, group = lane / 4;
#pragma unroll
  for (int part = 0; part < count / 16; ++part, left += kTurnBoxColumns) {
    const float* of = sums + 16 * part;
    if constexpr (boxed) {
      unsigned* box = boxes[part % buffers];
      if (lane == 0) tma_store_wait_read<buffers - 1>();
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 16; i += 2)
        box[(group + i % 4 / 2 * 8) * (kTurnBoxColumns / 2) + (i / 4 ^ group / 2) * 4 + lane % 4] = rounded_pair(Result{}, of[i], of[i + 1]);
      fence_proxy_async();
      __syncwarp();
      if (lane == 0) {
        if (left < n && top < m) tma_store(d, left, top, box);
        tma_store_commit();
      }
    } else {
#pragma unroll
      for (int i = 0; i < 16; i += 2)
        store_pair(values, top + group + i % 4 / 2 * 8, left + i / 4 * 8 + lane % 4 * 2, m, n, rounded_pair(Result{}, of[i], of[i + 1]));
    }
  }
}

template <class Element, int columns, int stages, int buffers, int down, int across, bool boxed>
__global__ void __cluster_dims__(down* across, 1, 1) __launch_bounds__(kProducers + kConsumers, 1)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap d, unsigned short* values,
         int m, int n, int k, int band) {
  constexpr int kBlocks = down * across;
  static_assert(columns / kTurnBoxColumns % buffers == 0, "a half begins with the box that is free first");
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<Memory<columns, stages, buffers>>(dynamic);
  __shared__ Pipeline<stages> pipeline;
  __shared__ Mbarrier turns[kTurns];  // the warpgroup before has begun its last product
  if (threadIdx.x == 0)
    for (int turn = 0; turn < kTurns; ++turn) mbarrier_init(&turns[turn], kConsumers / 32 / kTurns);
  if (threadIdx.x == kConsumers) prefetch_map(a), prefetch_map(b), prefetch_map(d);
  pipeline.init(Place<down, across>::kReleases / kTurns);  // one warpgroup reads a stage
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
    const int turn = threadIdx.x / 128, warp = threadIdx.x / 32;
    const auto release = [&](int of) { place.release(pipeline, of); };
    const auto hand_over = [&] {
      __syncwarp();
      if (threadIdx.x % 32 == 0) mbarrier_arrive(&turns[turn ^ 1]);
    };
    unsigned parity = turn ^ 1;  // the first waits for nobody
    if (turn > 0) skip(ring, steps);
    for (int tile = blockIdx.x / kBlocks + turn * clusters; tile < tiles; tile += kTurns * clusters) {
      float sums[kHalves][columns / 2];
      mbarrier_wait(&turns[turn], parity);
      parity ^= 1;
      multiply_whole_tile<Element, columns>(sums, steps, memory.stage, pipeline, ring, release, hand_over);
      skip(ring, steps);
      place.template tile<columns>(tile, band, m, n, row, column);
#pragma unroll
      for (int half = 0; half < kHalves; ++half)
        store_half<typename Element::Result, boxed>(sums[half], memory.boxes[warp], d, values, row + half * 64 + warp % 4 * kBoxRows, column, m, n);
    }
    if (boxed && threadIdx.x % 32 == 0) tma_store_wait_read<0>();  // shared memory is there until the TMA has read it
  }
  if constexpr (kBlocks > 1) cluster_meet();  // before a block ends, no other writes to its shared memory any more
}
