// Idea: Rows of a product are pixels of all images, and not images of a pixel, so that ten images fill a tile. Pixels have zeros around them: a tap
//     of 128 rows in a line is 128 rows in a line, some pixels further, which the TMA copies at once, without a look at the border. The four outputs
//     around a pixel are four products, which share no sums. Where tiles are fewer than multiprocessors, several blocks share the steps of a
//     tile, and a launch that follows adds their sums. The dense layer reads its weights as they lie, a warp an output.
// Bottleneck: Not measured yet.
// Next: -
// Source: Own work.

#include "warpgroups.cuh"
#include "last_layer.cuh"

// Pixels [y][x][image][channel] with zeros around them, as rows of a matrix. The rows of the pixels lie between `first` and `first + count`, with those
// of zeros among them.
struct Padded {
  int side, images;

  __device__ __forceinline__ int pitch() const { return (side + 2) * images; }
  __device__ __forceinline__ int first() const { return pitch() + images; }
  __device__ __forceinline__ int count() const { return (side - 1) * pitch() + side * images; }
};

// A pixel of the layer's input by its row, counted from the first pixel's; and the row of an output around it.
struct PixelOfRow {
  int p, q, image;

  __device__ __forceinline__ PixelOfRow(const Padded& of, int row)
      : p(row / of.pitch()), q(row % of.pitch() / of.images), image(row % of.images) {}
  __device__ __forceinline__ bool is_one(const Padded& of, int row) const { return row < of.count() && q < of.side; }
  // `border`: of the outputs, 1 where they have zeros around them.
  __device__ __forceinline__ size_t output(const Padded& of, int y, int x, int border) const {
    return (size_t)((2 * p + y + border) * (2 * of.side + 2 * border) + 2 * q + x + border) * of.images + image;
  }
};

// 128 rows of one of the four outputs around their pixels, `columns` channels of it, and a part of the steps along the taps and the channels.
template <int columns_>
struct RowTile {
  static constexpr int outputs = 1, columns = columns_, kinds = 1;
  static constexpr bool dense = false;
  int y, x, row, first_column, part, first_step, end_step;

  static __device__ constexpr int first_output(int) { return 0; }
  static __device__ constexpr int outputs_of(int) { return 1; }
  static __device__ __forceinline__ int steps_of_input(int words) { return OutputTile<1, columns>::steps_of_input(words); }
  __device__ __forceinline__ int steps(int, int) const { return end_step - first_step; }

  // Outputs of the most taps come first. Parts have whole pairs of steps.
  __device__ __forceinline__ RowTile(int number, const Padded& of, const Sizes& sizes, int parts) {
    const int across = (sizes.out_channels + columns - 1) / columns, down = (of.count() + kImages - 1) / kImages;
    part = number % parts, number /= parts;
    first_column = number % across * columns, number /= across;
    row = number % down * kImages, number /= down;
    y = number < 2, x = number % 2 == 0;
    const int pairs = (2 + y) * (2 + x) * steps_of_input(sizes.channels) / 2;
    first_step = pairs * part / parts * 2, end_step = pairs * (part + 1) / parts * 2;
  }
};

// One thread: asks for the steps of a tile.
template <class Tile, int stages>
__device__ __forceinline__ void fetch_rows(Stage<Tile::columns>* stage, Pipeline<stages>& pipeline, const Tile& tile, const Padded& of,
                                           const Sizes& sizes, const TensorMap& in, const TensorMap& w) {
  Ring<stages> ring;
  const int chunks = Tile::steps_of_input(sizes.channels);
  for (int step = tile.first_step; step < tile.end_step; ++step, ring.next()) {
    const int at = step / chunks, channel = step % chunks * kChannels, i = at / (2 + tile.x) - 1, j = at % (2 + tile.x) - 1;
    const int tap = (tile.y + 1 - 2 * i) * kSize + tile.x + 1 - 2 * j;
    auto& now = stage[ring.stage];
    Mbarrier* full = &pipeline.full[ring.stage];
    mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
    mbarrier_arrive_expect(full, sizeof now.pixels + sizeof now.weights);
    tma_load(now.pixels, in, channel, of.first() + tile.row + i * of.pitch() + j * of.images, full);
    tma_load(now.weights, w, channel, tap * sizes.out_channels + tile.first_column, full);
  }
}

// Where they go, as `Outputs` tells of tiles of images.
template <int columns>
struct OutputsOfRows {
  const RowTile<columns>& tile;
  const Padded& of;
  const WgmmaRows& rows;
  unsigned short* __restrict__ out;
  int channels, border;

  __device__ __forceinline__ int channel(int first) const { return first; }
  __device__ __forceinline__ unsigned short* place(int, int first, int down) const {
    const int row = tile.row + rows.row + down;
    const PixelOfRow pixel(of, row);
    if (!pixel.is_one(of, row) || first >= channels) return nullptr;
    return out + pixel.output(of, tile.y, tile.x, border) * channels + first;
  }
};

// `parts`: 1 for a block that has all steps of a tile, whose outputs go to `out`. Else sums go to `sums_of_parts`, [part][output][row][channel].
template <int columns, int stages, bool alone>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    row_product(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap w, const float* __restrict__ bn,
                const float* __restrict__ bias, unsigned short* __restrict__ out, float* __restrict__ sums_of_parts, int side, int images,
                int words, int out_channels, int border, int parts) {
  using Tile = RowTile<columns>;
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
  __shared__ Scales scales;
  const Sizes sizes = {side, images, words, out_channels, 0, 0};
  const Padded of = {side, images};
  const Tile tile(blockIdx.x, of, sizes, parts);
  if (alone) scales.load(bn, bias, out_channels);
  pipeline.init(kConsumers / 32);

  if (threadIdx.x >= kConsumers) {
    give_registers<kOfProducers>();
    if (threadIdx.x == kConsumers) fetch_rows(stage, pipeline, tile, of, sizes, in, w);
    return;
  }

  take_registers<kOfConsumers>();
  Layer<Tile, stages> layer = {stage, pipeline, WgmmaRows(threadIdx.x)};
  SumsOf<Tile> sums = {};
  layer.multiply(sums, tile, words);
  const WgmmaRows& rows = layer.rows;
  if constexpr (alone) {
    store_outputs<Tile>(sums, tile.first_column, rows, scales, OutputsOfRows<columns>{tile, of, rows, out, out_channels, border});
  } else {
    float* to = sums_of_parts + (size_t)((tile.part * 4 + 2 * tile.y + tile.x) * of.count() + tile.row + rows.row) * out_channels +
                tile.first_column + 2 * rows.step;
#pragma unroll
    for (int block = 0; block < columns / 8; ++block)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* sum = sums[8 * block / kWide<Tile>] + 8 * block % kWide<Tile> / 2 + 2 * half;
        const bool has = tile.row + rows.row + 8 * half < of.count() && tile.first_column + 8 * block < out_channels;
        store_if(has, to + (size_t)8 * half * out_channels + 8 * block, sum[0], sum[1]);
      }
  }
}

// Adds the sums of parts. A thread has 8 channels of an output of a row; blockIdx.y: which of the four outputs.
constexpr int kAdders = 256;

__global__ void __launch_bounds__(kAdders)
    add_parts(const float* __restrict__ sums_of_parts, const float* __restrict__ bn, const float* __restrict__ bias, unsigned short* __restrict__ out,
              int side, int images, int out_channels, int border, int parts) {
  __shared__ Scales scales;
  scales.load(bn, bias, out_channels);
  __syncthreads();
  const Padded of = {side, images};
  const int n = blockIdx.x * kAdders + threadIdx.x, channel = n % (out_channels / 8) * 8, row = n / (out_channels / 8);
  const PixelOfRow pixel(of, row);
  if (!pixel.is_one(of, row)) return;
  float sums[8] = {};
  for (int part = 0; part < parts; ++part) {
    const float* from = sums_of_parts + (size_t)((part * 4 + blockIdx.y) * of.count() + row) * out_channels + channel;
    const float4 low = *reinterpret_cast<const float4*>(from), high = *reinterpret_cast<const float4*>(from + 4);
    sums[0] += low.x, sums[1] += low.y, sums[2] += low.z, sums[3] += low.w;
    sums[4] += high.x, sums[5] += high.y, sums[6] += high.z, sums[7] += high.w;
  }
  unsigned words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float4 scale = scales.of_pair[channel / 2 + i];
    words[i] = rounded_pair(Bf16{}, fmaxf(fmaf(sums[2 * i], scale.x, scale.z), 0.0f), fmaxf(fmaf(sums[2 * i + 1], scale.y, scale.w), 0.0f));
  }
  *reinterpret_cast<uint4*>(out + pixel.output(of, blockIdx.y / 2, blockIdx.y % 2, border) * out_channels + channel) =
      make_uint4(words[0], words[1], words[2], words[3]);
}

// The dense layer. A warp has one output after another, for all images; a lane has four terms. The results of a block are neighbouring channels of a pixel.
constexpr int kDenseThreads = 256, kDenseOutputs = 32, kMostImages = 64, kLatent = 100;

__device__ __forceinline__ float low_of(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_of(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }

__global__ void __launch_bounds__(kDenseThreads)
    few_dense(const unsigned short* __restrict__ z, const unsigned short* __restrict__ w, const float* __restrict__ bn, unsigned short* __restrict__ out,
              int images, int channels, int side) {
  __shared__ float results[kMostImages][kDenseOutputs + 1];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = blockIdx.x * kDenseOutputs;
  const bool has = 4 * lane < kLatent;
  for (int n = warp; n < kDenseOutputs; n += kDenseThreads / 32) {
    const uint2 a = has ? *reinterpret_cast<const uint2*>(w + (size_t)(first + n) * kLatent + 4 * lane) : make_uint2(0, 0);
    for (int image = 0; image < images; ++image) {
      const uint2 b = has ? *reinterpret_cast<const uint2*>(z + image * kLatent + 4 * lane) : make_uint2(0, 0);
      float sum = low_of(a.x) * low_of(b.x) + high_of(a.x) * high_of(b.x) + low_of(a.y) * low_of(b.y) + high_of(a.y) * high_of(b.y);
      for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(~0u, sum, apart);
      if (lane == 0) results[image][n] = sum;
    }
  }
  __syncthreads();
  const int pixel = first / channels, channel = first % channels;
  const size_t at = (size_t)((pixel / side + 1) * (side + 2) + pixel % side + 1) * images;
  for (int n = threadIdx.x; n < images * kDenseOutputs / 2; n += kDenseThreads) {
    const int image = n / (kDenseOutputs / 2), k = n % (kDenseOutputs / 2) * 2;
    float values[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int of = channel + k + i;
      const float scale = bn[of] / sqrtf(bn[3 * channels + of] + kEpsilon);
      values[i] = fmaxf(fmaf(results[image][k + i], scale, bn[channels + of] - bn[2 * channels + of] * scale), 0.0f);
    }
    *reinterpret_cast<unsigned*>(out + (at + image) * channels + channel + k) = rounded_pair(Bf16{}, values[0], values[1]);
  }
}
