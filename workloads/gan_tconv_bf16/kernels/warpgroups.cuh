// What the rungs on Hopper's warpgroups share: what is fetched for a tile, its products, and the way out.
//
// Pixels lie as [y][x][image][channel] and weights as they come, [tap][output channel][channel]: both are matrices whose rows the TMA copies 64
// channels of, 128 bytes, and both operands of wgmma are in shared memory. Tiles are those of the rungs in TF32, whose step is 32 words of a
// row: a word is two channels here.
#ifndef GAN_TCONV_BF16_WARPGROUPS
#define GAN_TCONV_BF16_WARPGROUPS

#include "../../hopper.cuh"
#include "../../hopper_bf16.cuh"
#include "../../hopper_early.cuh"
#include "../../hopper_low_precision.cuh"
#include "../../gan_tconv/kernels/output_tiles.cuh"
#include "../../gemm_bf16/kernels/pad.cuh"

constexpr int kProducers = 128, kConsumers = 256;
constexpr int kMostChannels = 512;
constexpr int kRowBytes = 128;         // of an operand in a stage
constexpr int kChannels = 2 * kDepth;  // of a step

// Registers as warpgroups hand them over, of the 168 that each thread of the three begins with: a kernel that takes more waits for ever.
constexpr int kOfProducers = 56, kOfConsumers = (3 * 168 - kOfProducers) / 2;

// Images that the TMA brings for a tile: all of it, or of fewer images those that there are, in eights. The others of a product are what shared memory
// holds, and no output is made of them.
__device__ __forceinline__ int rows_of(int images) { return min(kImages, (images + 7) / 8 * 8); }

template <int columns>
struct Stage {
  float pixels[kImages * kDepth];  // words, each of two channels
  unsigned char weights[columns * kRowBytes];
};

// Columns of a product, products of an output, and where the weights of the next product lie, in the unit of wgmma's operands.
template <class Tile>
constexpr int kWide = Tile::columns < 128 ? Tile::columns : 128;
template <class Tile>
constexpr int kParts = Tile::columns / kWide<Tile>;
template <class Tile>
constexpr int kNext = kWide<Tile>* kRowBytes / 16;

template <class Tile>
using SumsOf = float[Tile::outputs * kParts<Tile>][kWide<Tile> / 2];

// One thread: asks for the steps of one tile after another, which blocks take as they become free. `tiles` names the tile of each stage;
// -1 ends. The number of the next tile is on its way while this one is fetched.
template <class Tile, int stages>
__device__ __forceinline__ void fetch_tiles(Stage<Tile::outputs * Tile::columns>* stage, Pipeline<stages>& pipeline, int* tiles,
                                            const Sizes& of, const TensorMap& in, const TensorMap& w, int* next) {
  Ring<stages> ring;
  int following;
  for (int number = atomicAdd(next, 1); number < Tile::count(of); number = following) {
    following = atomicAdd(next, 1);
    const Tile tile(number, of);
    for (int kind = 0; kind < Tile::kinds; ++kind) {
      const Span rows = tile.rows(kind), across = tile.across(kind);
      for (int i = rows.low; i <= rows.high; ++i)
        for (int j = across.low; j <= across.high; ++j)
          for (int step = 0; step < Tile::steps_of_input(of.channels); ++step, ring.next()) {
            auto& now = stage[ring.stage];
            Mbarrier* full = &pipeline.full[ring.stage];
            mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
            tiles[ring.stage] = number;
            mbarrier_arrive_expect(full, rows_of(of.images) * kRowBytes + Tile::outputs_of(kind) * Tile::columns * kRowBytes);
            const int pixel = (tile.p + i) * of.side + tile.q + j;
            tma_load(now.pixels, in, step * kChannels, pixel * of.images + tile.first_image, full);
            for (int n = 0; n < Tile::outputs_of(kind); ++n) {
              const int row = tile.tap(Tile::first_output(kind) + n, i, j) * of.out_channels + tile.first_column;
              tma_load(now.weights + n * Tile::columns * kRowBytes, w, step * kChannels, row, full);
            }
          }
    }
  }
  mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
  tiles[ring.stage] = -1;
  mbarrier_arrive(&pipeline.full[ring.stage]);
}

// Bias and batch normalisation of a layer's channels as x * scale + shift in shared memory, of two neighbours together. `bn`: scale, shift, mean and
// variance of all channels; no bias: a null pointer.
struct Scales {
  float4 of_pair[kMostChannels / 2];

  // By all threads of a block, before they meet.
  __device__ __forceinline__ void load(const float* __restrict__ bn, const float* __restrict__ bias, int channels) {
    for (int k = threadIdx.x; k < channels; k += blockDim.x) {
      const float scale = bn[k] / sqrtf(bn[3 * channels + k] + kEpsilon);
      float* to = reinterpret_cast<float*>(of_pair + k / 2) + k % 2;
      to[0] = scale, to[2] = ((bias ? bias[k] : 0.0f) - bn[2 * channels + k]) * scale + bn[channels + k];
    }
  }
};

// Words of the four lanes 4g to 4g + 3: word i of lane t goes to word t of lane i.
__device__ __forceinline__ void exchange(unsigned (&words)[4], int t) {
#pragma unroll
  for (int apart = 1; apart <= 2; apart *= 2) {
    const bool high = t & apart;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i & apart) continue;
      const unsigned other = __shfl_xor_sync(~0u, high ? words[i] : words[i + apart], apart);
      if (high)
        words[i] = other;
      else
        words[i + apart] = other;
    }
  }
}

// Where the outputs of a tile go: 8 channels of an output, from the column `first` on, of the thread's image or the one that lies `down`. A null
// pointer where there is none.
template <class Tile>
struct Outputs {
  const Tile& tile;
  const Sizes& of;
  const WgmmaRows& rows;
  unsigned short* __restrict__ out;

  __device__ __forceinline__ int channels() const { return Tile::dense ? of.widest : of.out_channels; }
  __device__ __forceinline__ int channel(int first) const { return Tile::dense ? first % channels() : first; }
  __device__ __forceinline__ unsigned short* place(int output, int first, int down) const {
    const int image = tile.first_image + rows.row + down, pixel = Tile::dense ? first / channels() : tile.pixel(output);
    const bool is_one = image < of.images && first < of.out_channels;
    return is_one ? out + ((size_t)pixel * of.images + image) * channels() + channel(first) : nullptr;
  }
};

// relu(sum * scale + shift) of a tile's outputs, rounded. Four blocks of 8 columns at a time, of which a thread has two columns each, become 8
// neighbouring channels: 16 bytes.
template <class Tile, class Outputs>
__device__ __forceinline__ void store_outputs(const SumsOf<Tile>& sums, int first_column, const WgmmaRows& rows, const Scales& scales,
                                              const Outputs& outputs) {
  constexpr int kGroup = 32;  // columns
#pragma unroll
  for (int group = 0; group < Tile::outputs * Tile::columns / kGroup; ++group) {
    const int output = group * kGroup / Tile::columns, first = first_column + group * kGroup % Tile::columns;
    const int channel = outputs.channel(first);
    unsigned words[2][4];
#pragma unroll
    for (int block = 0; block < 4; ++block) {
      const float4 scale = scales.of_pair[channel / 2 + 4 * block + rows.step];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* sum = sums[group * kGroup / kWide<Tile>] + (group * kGroup % kWide<Tile> + 8 * block) / 2 + 2 * half;
        words[half][block] =
            rounded_pair(Bf16{}, fmaxf(fmaf(sum[0], scale.x, scale.z), 0.0f), fmaxf(fmaf(sum[1], scale.y, scale.w), 0.0f));
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      exchange(words[half], rows.step);
      if (unsigned short* to = outputs.place(output, first + 8 * rows.step, rows.down(2 * half)))
        *reinterpret_cast<uint4*>(to) = make_uint4(words[half][0], words[half][1], words[half][2], words[half][3]);
    }
  }
}

// What a block of a layer does: tile after tile.
template <class Tile, int stages>
struct Layer {
  using StageOfTile = Stage<Tile::outputs * Tile::columns>;

  StageOfTile* stage;
  Pipeline<stages>& pipeline;
  const WgmmaRows rows;
  Ring<stages> ring;

  // Adds all steps of the inputs of a kind, and of those after. Of the first kind, which most are of, one step is under way while the next is waited
  // for; with two under way in the others too, ptxas has too few registers and lets none overlap.
  template <int kind = 0>
  __device__ __forceinline__ void multiply(SumsOf<Tile>& sums, const Tile& tile, int words) {
    constexpr int kFirst = Tile::first_output(kind) * kParts<Tile>, kCount = Tile::outputs_of(kind) * kParts<Tile>;
    unsigned pixels[2][16];  // of two steps, taking turns
    int previous = -1;
#pragma unroll 1
    for (int steps = tile.steps(kind, words); steps > 0; steps -= 2) {
#pragma unroll
      for (int turn = 0; turn < 2; ++turn) {
        auto& now = stage[ring.stage];
        mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
#pragma unroll
        for (int i = 0; i < 16; ++i) pixels[turn][i] = __float_as_uint(rows.load(now.pixels, i / 4, i % 4));
        const unsigned long long weights = wgmma_operand(now.weights);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < kDepth / 8; ++i)
#pragma unroll
          for (int n = 0; n < kCount; ++n) wgmma_bf16(sums[kFirst + n], pixels[turn] + 4 * i, weights + n * kNext<Tile> + 2 * i);
        wgmma_commit();
        wgmma_wait<kind == 0 ? 1 : 0>();
        if (previous >= 0) pipeline.release(previous);
        previous = ring.stage;
        ring.next();
      }
    }
    wgmma_wait<0>();
#pragma unroll
    for (int n = 0; n < kCount; ++n) wgmma_keep(sums[kFirst + n]);
    if (previous >= 0) pipeline.release(previous);
    if constexpr (kind + 1 < Tile::kinds) multiply<kind + 1>(sums, tile, words);
  }

  static __device__ __forceinline__ void run(const TensorMap& in, const TensorMap& w, const float* bn, const float* bias, unsigned short* out,
                                             int* next, const Sizes& sizes) {
    extern __shared__ char memory[];
    auto* stage = aligned_1024<StageOfTile>(memory);
    __shared__ Pipeline<stages> pipeline;
    __shared__ int tiles[stages];
    __shared__ Scales scales;
    let_next_launch_start();
    scales.load(bn, Tile::dense ? nullptr : bias, min(sizes.out_channels, sizes.widest));
    pipeline.init(kConsumers / 32);
    wait_for_launch_before();

    if (threadIdx.x >= kConsumers) {
      give_registers<kOfProducers>();
      if (threadIdx.x == kConsumers) fetch_tiles<Tile>(stage, pipeline, tiles, sizes, in, w, next + sizes.layer);
      return;
    }

    take_registers<kOfConsumers>();
    Layer layer = {stage, pipeline, WgmmaRows(threadIdx.x)};
    for (;;) {
      mbarrier_wait(&pipeline.full[layer.ring.stage], layer.ring.parity);
      const int of_warp = threadIdx.x % 32 == 0 ? tiles[layer.ring.stage] : 0;  // read by the lane that tells when the stage is free
      const int number = __shfl_sync(~0u, of_warp, 0);
      if (number < 0) break;
      const Tile tile(number, sizes);
      SumsOf<Tile> sums = {};
      layer.multiply(sums, tile, sizes.channels);
      store_outputs<Tile>(sums, tile.first_column, layer.rows, scales, Outputs<Tile>{tile, sizes, layer.rows, out});
    }
  }
};

#endif
