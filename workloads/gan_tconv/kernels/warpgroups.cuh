// What the rungs on Hopper's warpgroups share: what is fetched for a tile, and the way out.
//
// Pixels lie as [y][x][image][channel] and weights as they come, [tap][output channel][channel]: both are matrices whose rows the TMA copies 32
// channels of, as wgmma reads its operands. An input of a tile is fetched once, and meets the weights of all its outputs side by side.
#ifndef GAN_TCONV_WARPGROUPS
#define GAN_TCONV_WARPGROUPS

#include "output_tiles.cuh"
#include "../../hopper.cuh"

constexpr int kProducers = 128, kConsumers = 256;
constexpr int kMostChannels = 512;

// Registers as warpgroups hand them over, of the 168 that each thread of the three begins with: a kernel that takes more waits for ever.
// Tiles of two outputs leave consumers fewest, and their producers need fewest.
__device__ constexpr int registers_of_producers(int outputs) { return outputs == 2 ? 40 : 56; }
__device__ constexpr int registers_of_consumers(int outputs) { return (3 * 168 - registers_of_producers(outputs)) / 2; }

// parts: 1, weights rounded to TF32; or 2, weights and what tensor cores cut off them.
template <int columns, int parts>
struct Stage {
  float pixels[kImages * kDepth];
  float weights[parts][columns * kDepth];
};

// One thread: asks for the steps of one tile after another, which blocks take as they become free. `tiles` names the tile of each stage;
// -1 ends.
template <class Tile, int parts, int stages>
__device__ __forceinline__ void fetch_tiles(Stage<Tile::outputs * Tile::columns, parts>* stage, Pipeline<stages>& pipeline, int* tiles,
                                            const Sizes& of, const TensorMap& in, const TensorMap& w, const TensorMap& rest, int* next) {
  Ring<stages> ring;
  for (int number = atomicAdd(next, 1); number < Tile::count(of); number = atomicAdd(next, 1)) {
    const Tile tile(number, of);
    for (int kind = 0; kind < Tile::kinds; ++kind) {
      const Span rows = tile.rows(kind), across = tile.across(kind);
      for (int i = rows.low; i <= rows.high; ++i)
        for (int j = across.low; j <= across.high; ++j)
          for (int c = 0; c < Tile::steps_of_input(of.channels) * kDepth; c += kDepth, ring.next()) {
            auto& now = stage[ring.stage];
            Mbarrier* full = &pipeline.full[ring.stage];
            mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
            tiles[ring.stage] = number;
            const int bytes_of_output = Tile::columns * kDepth * sizeof(float);
            mbarrier_arrive_expect(full, sizeof now.pixels + parts * Tile::outputs_of(kind) * bytes_of_output);
            const int pixel = (tile.p + i) * of.side + tile.q + j;
            tma_load(now.pixels, in, c, pixel * of.images + tile.first_image, full);
            for (int n = 0; n < Tile::outputs_of(kind); ++n) {
              const int row = tile.tap(Tile::first_output(kind) + n, i, j) * of.out_channels + tile.first_column;
              tma_load(now.weights[0] + n * Tile::columns * kDepth, w, c, row, full);
              if (parts == 2) tma_load(now.weights[parts - 1] + n * Tile::columns * kDepth, rest, c, row, full);
            }
          }
    }
  }
  mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
  tiles[ring.stage] = -1;
  mbarrier_arrive(&pipeline.full[ring.stage]);
}

// Scale and shift of a layer's channels, in shared memory.
struct Scales {
  float scale[kMostChannels], shift[kMostChannels];

  // By all threads of a block, before they meet.
  __device__ __forceinline__ void load(const float* __restrict__ folded, const Sizes& of) {
    for (int k = threadIdx.x; k < min(of.out_channels, of.widest); k += blockDim.x) {
      scale[k] = folded[2 * of.layer * of.widest + k];
      shift[k] = folded[(2 * of.layer + 1) * of.widest + k];
    }
  }
};

// relu(sum * scale + shift) of a tile's outputs from one on; rounded to TF32 where the next layer wants that.
template <bool rounded, int output = 0, class Tile>
__device__ __forceinline__ void store_outputs(const float (&sums)[Tile::outputs][Tile::columns / 2], const Tile& tile, const Sizes& of,
                                              const WgmmaRows& rows, const Scales& scales, float* __restrict__ out) {
  const int image = tile.first_image + rows.row, first = tile.first_column + rows.across(0);
  const bool inside[2] = {image < of.images, image + rows.down(2) < of.images};
  const int channels = Tile::dense ? of.widest : of.out_channels;
  float* row = out + ((size_t)tile.pixel(output) * of.images + image) * channels;
#pragma unroll
  for (int i = 0; i < Tile::columns / 2; i += 4) {
    const int k = first + 2 * i;
    float* to = row + first + 2 * i;
    int channel = k;
    if constexpr (Tile::dense) channel = k % channels, to = row + (size_t)(k / channels) * of.images * channels + channel;
    const float2 scale = *reinterpret_cast<const float2*>(scales.scale + channel);
    const float2 shift = *reinterpret_cast<const float2*>(scales.shift + channel);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float* sum = sums[output] + i + 2 * half;
      store_if(k < of.out_channels && inside[half], to + rows.down(2 * half) * channels,
               rounded_if(rounded, fmaxf(fmaf(sum[0], scale.x, shift.x), 0.0f)),
               rounded_if(rounded, fmaxf(fmaf(sum[1], scale.y, shift.y), 0.0f)));
    }
  }
  if constexpr (output + 1 < Tile::outputs) store_outputs<rounded, output + 1>(sums, tile, of, rows, scales, out);
}

// What a block of a layer does: tile after tile. A Product has `parts` of weights, whether what leaves is `rounded`, and
// multiply<Tile, kind>(), all steps of a kind of inputs.
template <class Product, class Tile, int stages>
struct Layer {
  using StageOfTile = Stage<Tile::outputs * Tile::columns, Product::parts>;
  using Sums = float[Tile::outputs][Tile::columns / 2];

  StageOfTile* stage;
  Pipeline<stages>& pipeline;
  const WgmmaRows rows;
  Ring<stages> ring;

  template <int kind = 0>
  __device__ __forceinline__ void multiply(Sums& sums, const Tile& tile, int channels) {
    Product::template multiply<Tile, kind>(sums, tile.steps(kind, channels), stage, pipeline, ring, rows);
    if constexpr (kind + 1 < Tile::kinds) multiply<kind + 1>(sums, tile, channels);
  }

  static __device__ __forceinline__ void run(const TensorMap& in, const TensorMap& w, const TensorMap& rest, const float* folded, float* out,
                                             int* next, const Sizes& sizes) {
    extern __shared__ char memory[];
    auto* stage = aligned_1024<StageOfTile>(memory);
    __shared__ Pipeline<stages> pipeline;
    __shared__ int tiles[stages];
    __shared__ Scales scales;
    scales.load(folded, sizes);
    pipeline.init(kConsumers / 32);

    if (threadIdx.x < kProducers) {
      give_registers<registers_of_producers(Tile::outputs)>();
      if (threadIdx.x == 0) fetch_tiles<Tile>(stage, pipeline, tiles, sizes, in, w, rest, next + sizes.layer);
      return;
    }

    take_registers<registers_of_consumers(Tile::outputs)>();
    Layer layer = {stage, pipeline, WgmmaRows(threadIdx.x - kProducers)};
    for (;;) {
      mbarrier_wait(&pipeline.full[layer.ring.stage], layer.ring.parity);
      const int of_warp = threadIdx.x % 32 == 0 ? tiles[layer.ring.stage] : 0;  // read by the lane that says when the stage is free
      const int number = __shfl_sync(~0u, of_warp, 0);
      if (number < 0) break;
      const Tile tile(number, sizes);
      Sums sums = {};
      layer.multiply(sums, tile, sizes.channels);
      store_outputs<Product::rounded>(sums, tile, sizes, layer.rows, scales, out);
    }
  }
};

// Weights of layer n before its product, whose counter of tiles starts anew: rounded to TF32, or, `rest`, what tensor cores cut off them.
template <bool rest>
__global__ void prepare(const float4* __restrict__ w, float4* __restrict__ to, int count, int* next, int n) {
  const int at = blockDim.x * blockIdx.x + threadIdx.x;
  if (at == 0) next[n] = 0;
  if (at >= count) return;
  auto of = [](float x) { return __uint_as_float(rest ? tf32_rest(x, __float_as_uint(x) & kTf32Part) : to_tf32(x)); };
  const float4 x = w[at];
  to[at] = make_float4(of(x.x), of(x.y), of(x.z), of(x.w));
}

#endif
