// Idea: Warpgroups (wgmma), which read weights out of shared memory by themselves, as the TMA brings them: a row for each output channel,
//     of 32 channels of the tap that comes next. Pixels lie likewise, [y][x][image][channel], so that a row of products is an image of one
//     output pixel, with the taps of that pixel and no others. A producer fetches four steps ahead, into the next tile, which
//     it takes from a counter: tiles differ in their taps. Three products for one, the smallest first, added up in float every 32 channels:
//     pixels are split in the registers that they go through; of the weights the tensor cores cut off the first part
//     themselves, the rests are made once an operation. In the third layer two output pixels share what they fetch. The last layer
//     keeps its weights in shared memory and walks along rows of pixels, with the sums of three output columns in registers.
// Bottleneck: By count, the tensor cores. A tile is 128 images: fewer than that leave rows of the products empty.
// Next: One product, where 11 bits are enough, in tiles twice as wide.
// Source: Own work; producer and consumers in the order of NVIDIA's CUTLASS 3.

#include "warpgroups.cuh"
#include "last_layer_wgmma.cuh"

// All steps of a kind of inputs and of those after it.
template <class Tile, int kind, int stages>
__device__ __forceinline__ void multiply(float (&sums)[Tile::outputs][Tile::columns / 2], const Tile& tile, int channels,
                                         Stage<Tile::outputs * Tile::columns, 2>* stage, Pipeline<stages>& pipeline, Ring<stages>& ring,
                                         const WgmmaRows& rows) {
  constexpr int kOutputs = Tile::outputs_of(kind), kSums = Tile::columns / 2;
#pragma unroll 1
  for (int step = tile.steps(kind, channels); step > 0; --step, ring.next()) {
    auto& now = stage[ring.stage];
    mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
    const SplitFragments split(rows, now.pixels);
    float partial[kOutputs * kSums];
    wgmma_3xtf32(partial, split, now.weights[0], reinterpret_cast<const unsigned*>(now.weights[1]));
    pipeline.release(ring.stage);
#pragma unroll
    for (int i = 0; i < kOutputs * kSums; ++i) sums[Tile::first_output(kind) + i / kSums][i % kSums] += partial[i];
  }
  if constexpr (kind + 1 < Tile::kinds) multiply<Tile, kind + 1>(sums, tile, channels, stage, pipeline, ring, rows);
}

template <int outputs, int columns, bool dense, int stages>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    layer_product(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap w, const __grid_constant__ TensorMap rest,
                  const float* folded, float* out, int* next, int side, int images, int channels, int out_channels, int layer,
                  int widest) {
  using Tile = OutputTile<outputs, columns, dense>;
  const Sizes sizes = {side, images, channels, out_channels, layer, widest};
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<outputs * columns, 2>>(memory);
  __shared__ Pipeline<stages> pipeline;
  __shared__ int tiles[stages];
  __shared__ Scales scales;
  scales.load(folded, sizes);
  pipeline.init(kConsumers / 32);

  if (threadIdx.x < kProducers) {
    give_registers<registers_of_producers(outputs)>();
    if (threadIdx.x == 0) fetch_tiles<Tile>(stage, pipeline, tiles, sizes, in, w, rest, next + layer);
    return;
  }

  take_registers<registers_of_consumers(outputs)>();
  const WgmmaRows rows(threadIdx.x - kProducers);
  Ring<stages> ring;
  for (;;) {
    mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
    const int number = tiles[ring.stage];
    if (number < 0) break;
    const Tile tile(number, sizes);
    float sums[outputs][columns / 2] = {};
    multiply<Tile, 0>(sums, tile, channels, stage, pipeline, ring, rows);
    store_outputs<false>(sums, tile, sizes, rows, scales, out);
  }
}
