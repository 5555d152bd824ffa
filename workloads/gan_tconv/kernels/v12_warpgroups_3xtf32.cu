// Idea: Warpgroups (wgmma), which read weights out of shared memory by themselves, as the TMA brings them: a row for each output channel,
//     of 32 channels of the tap that comes next. Pixels lie likewise, [y][x][image][channel], so that a row of products is an image of one
//     output pixel, with the taps of that pixel and no others. A producer fetches four steps ahead, into the next tile, which
//     it takes from a counter: tiles differ in their taps. Three products for one, the smallest first, added up in float every 32 channels:
//     pixels are split in the registers that they go through; of the weights the tensor cores cut off the first part
//     themselves, the rests are made once an operation. In the third layer two output pixels share what they fetch. The last layer
//     keeps its weights in shared memory and walks along rows of pixels, with the sums of three output columns in registers.
// Bottleneck: The tensor cores: of 2.2 ms for 1000 images on an H200 the layers in the middle take 2.0 ms, at 125 to 136 TFLOP/s, where this
//     scheme reaches 127 in a large matrix product. A tile is 128 images: fewer than that leave rows of the products empty, and three
//     images take as long as a hundred.
// Next: One product, where 11 bits are enough, in tiles twice as wide.
// Source: Own work; producer and consumers in the order of NVIDIA's CUTLASS 3.

#include "warpgroups.cuh"
#include "last_layer_wgmma.cuh"

struct ThreeProducts {
  static constexpr int parts = 2;
  static constexpr bool rounded = false;

  template <class Tile, int kind, int stages>
  static __device__ __forceinline__ void multiply(float (&sums)[Tile::outputs][Tile::columns / 2], int steps,
                                                  Stage<Tile::outputs * Tile::columns, parts>* stage, Pipeline<stages>& pipeline,
                                                  Ring<stages>& ring, const WgmmaRows& rows) {
    constexpr int kSums = Tile::columns / 2, kAll = Tile::outputs_of(kind) * kSums;
#pragma unroll 1
    for (; steps > 0; --steps, ring.next()) {
      auto& now = stage[ring.stage];
      mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
      const SplitFragments split(rows, now.pixels);
      float partial[kAll];
      wgmma_3xtf32(partial, split, now.weights[0], reinterpret_cast<const unsigned*>(now.weights[1]));
      pipeline.release(ring.stage);
#pragma unroll
      for (int i = 0; i < kAll; ++i) sums[Tile::first_output(kind) + i / kSums][i % kSums] += partial[i];
    }
  }
};

template <int outputs, int columns, bool dense, int stages>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    layer_product(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap w, const __grid_constant__ TensorMap rest,
                  const float* folded, float* out, int* next, int side, int images, int channels, int out_channels, int layer,
                  int widest) {
  Layer<ThreeProducts, OutputTile<outputs, columns, dense>, stages>::run(in, w, rest, folded, out, next,
                                                                         {side, images, channels, out_channels, layer, widest});
}
