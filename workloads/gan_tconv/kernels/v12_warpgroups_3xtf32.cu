// Idea: Warpgroups (wgmma), which read weights out of shared memory by themselves, as the TMA brings them, untransposed: 32 channels of
//     the tap that comes next, for an output pixel of 128 images. Pixels go through registers, where they are split into two TF32
//     parts; of the weights the tensor cores cut off the first part themselves, and three warps beside the producer write the rest into
//     shared memory. Three products, the smallest first, are added up every 32 channels in float.
// Bottleneck: The tensor cores, three products for one; 64 columns at a time in the third layer, whose channels are no more. A tile is
//     128 images: fewer than that leave rows of the products empty.
// Next: One product, where 11 bits are enough, in tiles four times as wide.
// Source: Own work; producer and consumers in the order of NVIDIA's CUTLASS 3.

#include "v08_phases.cu"
#include "warpgroups.cuh"

constexpr int kSplitters = 96, kImages = 128;

template <int columns>
struct Stage {
  float pixels[kImages * kDepthOfStage];
  float weights[columns * kDepthOfStage];
  unsigned rest[columns * kDepthOfStage];  // of the weights
};

template <int columns, int stages>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    warpgroup_product(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap w, const float* folded, float* out, int side,
                      int stride, int channels, int out_channels, int layer, int widest) {
  using Tile = PixelTile<kImages, columns, false>;
  const Sizes sizes = {side, stride, channels, out_channels, layer, widest};
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
  pipeline.init(kConsumers / 32, kSplitters);
  const int tiles = Tile::count(sizes);
  Ring<stages> ring;

  if (threadIdx.x < kProducers) {
    give_registers<40>();
    if (threadIdx.x >= kProducers - kSplitters) {
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x)
        for (int step = Tile(tile, sizes).steps(sizes); step > 0; --step, ring.next()) {
          auto& now = stage[ring.stage];
          mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
          split_tile<columns * kDepthOfStage, kSplitters>(now.weights, now.rest, threadIdx.x - (kProducers - kSplitters));
          mbarrier_arrive(&pipeline.split[ring.stage]);
        }
    } else if (threadIdx.x == 0) {
      for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
        const Tile tile(number, sizes);
        tile.walk(sizes, [&](int row, int row_of_weights, int channel) {
          auto& now = stage[ring.stage];
          mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
          mbarrier_arrive_expect(&pipeline.full[ring.stage], sizeof now.pixels + sizeof now.weights);
          for (int box = 0; box < kImages / kBox; ++box)
            tma_load(now.pixels + box * kBox * kDepthOfStage, in, tile.first_image + box * kBox, row, &pipeline.full[ring.stage]);
          tma_load(now.weights, w, channel, row_of_weights, &pipeline.full[ring.stage]);
          ring.next();
        });
      }
    }
    return;
  }

  take_registers<232>();
  const int thread = threadIdx.x - kProducers;
  const WgmmaFragments fragments(thread);
  for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
    const Tile tile(number, sizes);
    float sums[columns / 2] = {}, partial[columns / 2];
#pragma unroll 1
    for (int step = tile.steps(sizes); step > 0; --step, ring.next()) {
      auto& now = stage[ring.stage];
      mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
      const SplitFragments split_pixels(fragments, now.pixels);
      mbarrier_wait(&pipeline.split[ring.stage], ring.parity);
      wgmma_3xtf32(partial, split_pixels, now.weights, now.rest);
      pipeline.release(ring.stage);
#pragma unroll
      for (int i = 0; i < columns / 2; ++i) sums[i] += partial[i];
    }
    store_pixel(sums, folded, out, sizes, fragments, tile.output_pixel(sizes), tile.first_image, tile.first_column);
  }
}
