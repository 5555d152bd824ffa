// Idea: Pairs of blocks, a cluster, have the same outputs of 128 images each, and so the same weights. Each fetches half of them, and the TMA writes
//     what comes into the shared memory of both: a step asks L2 for 32 KB a block in place of 48. The first block takes the number of a tile from the
//     counter and stores it in the second. A producer tells the other one when its own consumers have read a stage, so that consumers are those of
//     v02_warpgroups.
// Bottleneck: Not measured yet.
// Next: -
// Source: Own work; PTX ISA, cp.async.bulk.tensor with .multicast::cluster, st.async.

#include "warpgroups.cuh"
#include "last_layer.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"

constexpr int kOfFetchers = 72, kOfMultipliers = (3 * 168 - kOfFetchers) / 2;  // registers: who fetches has more to remember than in a block alone

// What the first block tells the second: numbers of tiles, as bits of the first float of each. A tile has two steps at least, so that of as many numbers
// as there are stages the oldest has been read.
template <int stages>
struct Told {
  float4 number[stages];
  Mbarrier there[stages];
};

// The block's tile of a pair. A pair has 256 images, so that the numbers are those of half as many images.
template <class Tile>
struct Pairs {
  const Sizes& of;
  const Sizes half;
  const int rank;

  __device__ __forceinline__ explicit Pairs(const Sizes& of)
      : of(of), half{of.side, (of.images + 1) / 2, of.channels, of.out_channels, of.layer, of.widest}, rank(cluster_rank()) {}
  __device__ __forceinline__ int count() const { return Tile::count(half); }
  __device__ __forceinline__ Tile tile(int number) const {
    Tile tile(number, half);
    tile.first_image = 2 * tile.first_image + rank * kImages;
    return tile;
  }
};

// One thread of each block: asks for a step of a tile, its own images and half of the weights of both.
template <class Tile, int stages>
__device__ __forceinline__ void fetch_step(Stage<Tile::outputs * Tile::columns>& now, Pipeline<stages>& pipeline, const Ring<stages>& ring,
                                           const Pairs<Tile>& pairs, const Tile& tile, int kind, int i, int j, int channel,
                                           const TensorMap& in, const TensorMap& w) {
  constexpr int kHalf = Tile::columns / 2;
  const Sizes& of = pairs.of;
  Mbarrier* full = &pipeline.full[ring.stage];
  mbarrier_arrive_expect(full, sizeof now.pixels + Tile::outputs_of(kind) * Tile::columns * kRowBytes);
  mbarrier_arrive_remote(&pipeline.split[ring.stage], 1 - pairs.rank);
  tma_load(now.pixels, in, channel, ((tile.p + i) * of.side + tile.q + j) * of.images + tile.first_image, full);
  mbarrier_wait(&pipeline.split[ring.stage], ring.parity);  // the other block has read the stage too
  for (int n = 0; n < Tile::outputs_of(kind); ++n) {
    const int row = tile.tap(Tile::first_output(kind) + n, i, j) * of.out_channels + tile.first_column + pairs.rank * kHalf;
    tma_load_multicast(now.weights + (n * Tile::columns + pairs.rank * kHalf) * kRowBytes, w, channel, row, full, 3);
  }
}

// One thread of each block: asks for the steps of one tile after another. `tiles` names the tile of each stage; -1 ends.
template <class Tile, int stages>
__device__ __forceinline__ void fetch_pairs(Stage<Tile::outputs * Tile::columns>* stage, Pipeline<stages>& pipeline, int* tiles,
                                            Told<stages>& told, const Sizes& of, const TensorMap& in, const TensorMap& w, int* next) {
  const Pairs<Tile> pairs(of);
  Ring<stages> ring, slot;
  int following = pairs.rank == 0 ? atomicAdd(next, 1) : 0;
  for (;; slot.next()) {
    int number = following < pairs.count() ? following : -1;
    if (pairs.rank == 0) {
      store_remote(&told.number[slot.stage], make_float4(__int_as_float(number), 0.0f, 0.0f, 0.0f), &told.there[slot.stage], 1);
      following = atomicAdd(next, 1);
    } else {
      mbarrier_arrive_expect(&told.there[slot.stage], sizeof(float4));
      mbarrier_wait_of_cluster(&told.there[slot.stage], slot.parity);
      number = __float_as_int(*(volatile float*)&told.number[slot.stage].x);
    }
    if (number < 0) break;
    const Tile tile = pairs.tile(number);
    for (int kind = 0; kind < Tile::kinds; ++kind) {
      const Span rows = tile.rows(kind), across = tile.across(kind);
      for (int i = rows.low; i <= rows.high; ++i)
        for (int j = across.low; j <= across.high; ++j)
          for (int step = 0; step < Tile::steps_of_input(of.channels); ++step, ring.next()) {
            mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
            tiles[ring.stage] = number;
            fetch_step(stage[ring.stage], pipeline, ring, pairs, tile, kind, i, j, step * kChannels, in, w);
          }
    }
  }
  mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
  tiles[ring.stage] = -1;
  mbarrier_arrive(&pipeline.full[ring.stage]);
}

template <int outputs, int columns, bool dense, int stages>
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(kProducers + kConsumers, 1)
    pair_product(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap w, const float* bn, const float* bias,
                 unsigned short* out, int* next, int side, int images, int words, int out_channels, int layer_number, int widest) {
  using Tile = OutputTile<outputs, columns, dense>;
  const Sizes sizes = {side, images, words, out_channels, layer_number, widest};
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<outputs * columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
  __shared__ Told<stages> told;
  __shared__ int tiles[stages];
  __shared__ Scales scales;
  scales.load(bn, dense ? nullptr : bias, min(out_channels, widest));
  if (threadIdx.x < stages) mbarrier_init(&told.there[threadIdx.x], 1);
  if (threadIdx.x < stages) fence_mbarrier_init();
  pipeline.init(kConsumers / 32);
  cluster_sync();

  if (threadIdx.x >= kConsumers) {
    give_registers<kOfFetchers>();
    if (threadIdx.x == kConsumers) fetch_pairs<Tile>(stage, pipeline, tiles, told, sizes, in, w, next + layer_number);
    __syncwarp();  // a warp waits for the cluster as a whole
  } else {
    take_registers<kOfMultipliers>();
    const Pairs<Tile> pairs(sizes);
    Layer<Tile, stages> layer = {stage, pipeline, WgmmaRows(threadIdx.x)};
    for (;;) {
      mbarrier_wait(&pipeline.full[layer.ring.stage], layer.ring.parity);
      const int of_warp = threadIdx.x % 32 == 0 ? tiles[layer.ring.stage] : 0;  // read by the lane that tells when the stage is free
      const int number = __shfl_sync(~0u, of_warp, 0);
      if (number < 0) break;
      const Tile tile = pairs.tile(number);
      SumsOf<Tile> sums = {};
      layer.multiply(sums, tile, words);
      store_outputs<Tile>(sums, tile.first_column, layer.rows, scales, Outputs<Tile>{tile, sizes, layer.rows, out});
    }
  }
  cluster_sync();  // before a block ends, no other writes to its shared memory any more
}
