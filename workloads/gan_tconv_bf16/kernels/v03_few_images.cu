// Idea: Rows of a product are pixels of all images, and not images of a pixel, so that ten images fill a tile. Pixels have zeros around them: a tap
//     of 128 rows in a line is 128 rows in a line, some pixels further, which the TMA copies at once, without a look at the border. The four outputs
//     around a pixel are four products, which share no sums. Where tiles are fewer than multiprocessors, the blocks of a cluster share the steps of
//     a tile, and add their sums through each other's shared memory. Each launch starts early and fetches weights while the one before it
//     ends. The first and the last layer are products of warps, which read their operands as they lie.
// Bottleneck: What a launch and its latencies cost: ten images take 45 us on an H200, in five launches, of which tensor cores could do each of the three
//     products in 2.4 us. Launches that start late take 10 us more in all. With eight blocks in a cluster, not all clusters of a launch run
//     at once, which takes 6 us more. A hundred images take 159 us, and 114 in tiles of images, as v02_warpgroups has them.
// Next: -
// Source: Own work.

#include "warpgroups.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "../../hopper_clusters.cuh"

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

#include "../../hopper_maps.cuh"

// One thread: asks for the steps of a tile. Weights of the first stages are under way before the launch before has written the pixels.
template <class Tile, int stages>
__device__ __forceinline__ void fetch_rows(Stage<Tile::columns>* stage, Pipeline<stages>& pipeline, const Tile& tile, const Padded& of,
                                           const Sizes& sizes, const TensorMap& in, const TensorMap& w) {
  const int chunks = Tile::steps_of_input(sizes.channels);
  Ring<stages> ring;
  auto fetch = [&](int step, bool weights, bool pixels) {
    const int at = step / chunks, channel = step % chunks * kChannels, i = at / (2 + tile.x) - 1, j = at % (2 + tile.x) - 1;
    auto& now = stage[ring.stage];
    Mbarrier* full = &pipeline.full[ring.stage];
    if (weights) {
      const int tap = (tile.y + 1 - 2 * i) * kSize + tile.x + 1 - 2 * j;
      mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
      mbarrier_arrive_expect(full, sizeof now.pixels + sizeof now.weights);
      tma_load(now.weights, w, channel, tap * sizes.out_channels + tile.first_column, full);
    }
    if (pixels) tma_load(now.pixels, in, channel, of.first() + tile.row + i * of.pitch() + j * of.images, full);
    ring.next();
  };
  const int ahead = min(tile.first_step + stages, tile.end_step);
  for (int step = tile.first_step; step < ahead; ++step) fetch(step, true, false);
  prefetch_map(in);
  wait_for_launch_before();
  ring = {};
  for (int step = tile.first_step; step < tile.end_step; ++step) fetch(step, step >= ahead, true);
}

// Where the outputs of a tile's rows go, as `Outputs` tells of tiles of images.
template <int columns>
struct OutputsOfRows {
  const RowTile<columns>& tile;
  const Padded& of;
  const WgmmaRows& rows;
  unsigned short* __restrict__ out;
  int channels, border;

  __device__ __forceinline__ int channel(int first) const { return first; }
  __device__ __forceinline__ unsigned short* place(int, int first, int down) const { return at(rows.row + down, first); }
  __device__ __forceinline__ unsigned short* at(int row_of_tile, int first) const {
    const int row = tile.row + row_of_tile;
    const PixelOfRow pixel(of, row);
    if (!pixel.is_one(of, row) || first >= channels) return nullptr;
    return out + pixel.output(of, tile.y, tile.x, border) * channels + first;
  }
};

// Sums of a tile that the blocks of a cluster share. Eight more floats in a line, so that lanes of a warp meet different banks.
template <int columns>
using SharedSums = float[kImages][columns + 8];

// By all consumers of the cluster: each block adds the sums of all, of its share of the rows.
template <int columns, int parts>
__device__ __forceinline__ void add_and_store(SharedSums<columns>& shared, const SumsOf<RowTile<columns>>& sums, const Scales& scales,
                                              const OutputsOfRows<columns>& outputs) {
  constexpr int kRows = kImages / parts, kEights = columns / 8;
  const RowTile<columns>& tile = outputs.tile;
  const WgmmaRows& rows = outputs.rows;
#pragma unroll
  for (int block = 0; block < kEights; ++block)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float* sum = sums[8 * block / kWide<RowTile<columns>>] + 8 * block % kWide<RowTile<columns>> / 2 + 2 * half;
      *reinterpret_cast<float2*>(&shared[rows.row + 8 * half][8 * block + 2 * rows.step]) = make_float2(sum[0], sum[1]);
    }
  cluster_sync();
  for (int n = threadIdx.x; n < kRows * kEights; n += kConsumers) {
    const int row = tile.part * kRows + n / kEights, column = n % kEights * 8;
    float total[8] = {};
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      const float4* from = reinterpret_cast<const float4*>(of_block(&shared[row][column], part));
      const float4 low = from[0], high = from[1];
      total[0] += low.x, total[1] += low.y, total[2] += low.z, total[3] += low.w;
      total[4] += high.x, total[5] += high.y, total[6] += high.z, total[7] += high.w;
    }
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 scale = scales.of_pair[(tile.first_column + column) / 2 + i];
      words[i] =
          rounded_pair(Bf16{}, fmaxf(fmaf(total[2 * i], scale.x, scale.z), 0.0f), fmaxf(fmaf(total[2 * i + 1], scale.y, scale.w), 0.0f));
    }
    if (unsigned short* to = outputs.at(row, tile.first_column + column))
      *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
  }
  cluster_arrive_relaxed();  // no block ends while others read its sums
  cluster_wait();
}

// Both operands come from shared memory.
template <class Tile, int stages>
__device__ __forceinline__ void multiply_rows(SumsOf<Tile>& sums, Stage<Tile::columns>* stage, Pipeline<stages>& pipeline, int steps) {
  Ring<stages> ring;
  int previous = -1;
#pragma unroll 1
  do {  // a part has steps: with none, ptxas would let one product wait for the other
    auto& now = stage[ring.stage];
    mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
    const unsigned long long pixels = wgmma_operand(now.pixels + threadIdx.x / 128 * (64 * kDepth)), weights = wgmma_operand(now.weights);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < kRowBytes / 32; ++i) wgmma(Bf16{}, sums[0], pixels + 2 * i, weights + 2 * i, true);
    wgmma_commit();
    wgmma_wait<1>();
    if (previous >= 0) pipeline.release(previous);
    previous = ring.stage;
    ring.next();
  } while (--steps > 0);
  wgmma_wait<0>();
  wgmma_keep(sums[0]);
}

constexpr int kRowThreads = kConsumers + 32;  // with a warp that fetches

// A layer in the middle. `parts`: blocks of a cluster, which share the steps of a tile.
template <int columns, int stages, int parts>
__global__ void __cluster_dims__(parts, 1, 1) __launch_bounds__(kRowThreads, 1)
    row_product(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap w, const float* __restrict__ bn,
                const float* __restrict__ bias, unsigned short* __restrict__ out, int side, int images, int words, int out_channels, int border) {
  using Tile = RowTile<columns>;
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
  __shared__ Mbarrier done;  // all warps have read all stages
  __shared__ Scales scales;
  let_next_launch_start();
  const Sizes sizes = {side, images, words, out_channels, 0, 0};
  const Padded of = {side, images};
  const Tile tile(blockIdx.x, of, sizes, parts);
  scales.load(bn, bias, out_channels);
  if (threadIdx.x == 0) mbarrier_init(&done, kConsumers / 32);
  pipeline.init(kConsumers / 32);

  if (threadIdx.x >= kConsumers) {
    if (threadIdx.x == kConsumers) fetch_rows(stage, pipeline, tile, of, sizes, in, w);
    return;
  }

  wait_for_launch_before();  // as the pixels do, and without a warp that asks for them all the time
  SumsOf<Tile> sums = {};
  multiply_rows<Tile>(sums, stage, pipeline, tile.end_step - tile.first_step);
  const WgmmaRows rows(threadIdx.x);
  const OutputsOfRows<columns> outputs = {tile, of, rows, out, out_channels, border};
  if constexpr (parts == 1) {
    store_outputs<Tile>(sums, tile.first_column, rows, scales, outputs);
  } else {
    auto& shared = *reinterpret_cast<SharedSums<columns>*>(stage);
    static_assert(sizeof shared <= stages * sizeof(Stage<columns>), "sums take the place of the stages");
    if (threadIdx.x % 32 == 0) mbarrier_arrive(&done);
    mbarrier_wait(&done, 0);
    add_and_store<columns, parts>(shared, sums, scales, outputs);
  }
}

// sums += a * b as mma_m16n8k16_bf16 of ptx_bf16.cuh, which cannot stand beside hopper_bf16.cuh. The tests' emulator has its own function of this name.
#ifndef WARPLADDER_EMULATOR
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

// The dense layer: a warp has 16 outputs of all images, 16 images at a time. A lane's four neighbours along k are its fragments of a step of 16:
// which number stands where along k is all the same, if it does in both operands.
constexpr int kDenseThreads = 128, kDenseOutputs = 16, kMostImages = 64, kLatent = 100, kDenseSteps = (kLatent + 15) / 16;

__device__ __forceinline__ uint2 four_of(const unsigned short* __restrict__ rows, int row, int count, int k) {
  return row < count && k < kLatent ? *reinterpret_cast<const uint2*>(rows + (size_t)row * kLatent + k) : make_uint2(0, 0);
}

__global__ void __launch_bounds__(kDenseThreads)
    few_dense(const unsigned short* __restrict__ z, const unsigned short* __restrict__ w, const float* __restrict__ bn, unsigned short* __restrict__ out,
              int images, int channels, int side) {
  let_next_launch_start();
  const int group = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int first = (blockIdx.x * (kDenseThreads / 32) + threadIdx.x / 32) * kDenseOutputs, pixel = first / channels;
  uint2 weights[2][kDenseSteps];
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int step = 0; step < kDenseSteps; ++step)
      weights[n][step] = four_of(w, first + 8 * n + group, side * side * channels, 16 * step + 4 * t);
  float scale[2][2], shift[2][2];
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int of = first % channels + 8 * n + 2 * t + i;
      scale[n][i] = bn[of] / sqrtf(bn[3 * channels + of] + kEpsilon);
      shift[n][i] = bn[channels + of] - bn[2 * channels + of] * scale[n][i];
    }
  const size_t at = (size_t)((pixel / side + 1) * (side + 2) + pixel % side + 1) * images;
  for (int image = group; image < images + group; image += 16) {
    float sums[2][4] = {};
#pragma unroll
    for (int step = 0; step < kDenseSteps; ++step) {
      const uint2 upper = four_of(z, image, images, 16 * step + 4 * t), lower = four_of(z, image + 8, images, 16 * step + 4 * t);
#pragma unroll
      for (int n = 0; n < 2; ++n)
        mma_m16n8k16_bf16(sums[n], {upper.x, lower.x, upper.y, lower.y}, {weights[n][step].x, weights[n][step].y});
    }
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (image + 8 * half >= images) continue;
        unsigned short* to = out + (at + image + 8 * half) * channels + first % channels + 8 * n + 2 * t;
        *reinterpret_cast<unsigned*>(to) = rounded_pair(Bf16{}, fmaxf(fmaf(sums[n][2 * half], scale[n][0], shift[n][0]), 0.0f),
                                                        fmaxf(fmaf(sums[n][2 * half + 1], scale[n][1], shift[n][1]), 0.0f));
      }
  }
}

// The last layer: a warp has the four outputs around each of 16 pixels, 12 columns of [y][x][colour] and four that stay empty. A lane's eight
// neighbouring channels are its fragments of two steps.
constexpr int kLastThreads = 256, kLastPixels = kLastThreads / 32 * 16, kNeighbours = 9, kOutputs = 4 * kColours;

// Eight weights that join channels of a pixel's neighbour (i, j) to a column.
__device__ __forceinline__ uint4 weights_of(const unsigned short* __restrict__ w, int i, int j, int column, int channel, int channels) {
  const int r = column / (2 * kColours) + 1 - 2 * i, s = column % (2 * kColours) / kColours + 1 - 2 * j;
  const bool has = column < kOutputs && r >= 0 && s >= 0 && channel < channels;
  const unsigned short* from = w + (size_t)((r * kSize + s) * kColours + column % kColours) * channels + channel;
  return has ? *reinterpret_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
}

// 1 - 2 / (exp(2 x) + 1): right to some 1e-7 of one, and without a branch.
__device__ __forceinline__ float quick_tanh(float x) { return 1.0f - __fdividef(2.0f, __expf(2.0f * x) + 1.0f); }

__global__ void __launch_bounds__(kLastThreads)
    few_colours(const unsigned short* __restrict__ in, const unsigned short* __restrict__ w, const float* __restrict__ bias,
                unsigned short* __restrict__ out, int side, int images, int channels) {
  extern __shared__ char memory[];
  auto* weights = reinterpret_cast<uint4*>(memory);  // [chunk of 32 channels][neighbour][eight columns][lane]
  const int lane = threadIdx.x % 32, group = lane / 4, t = lane % 4, chunks = (channels + 31) / 32;
  for (int n = threadIdx.x; n < chunks * kNeighbours * 64; n += kLastThreads) {
    const int neighbour = n / 64 % kNeighbours, chunk = n / 64 / kNeighbours, column = n / 32 % 2 * 8 + group;
    weights[n] = weights_of(w, neighbour / 3 - 1, neighbour % 3 - 1, column, 32 * chunk + 8 * t, channels);
  }
  __syncthreads();
  wait_for_launch_before();

  int image[2], p[2], q[2];
  bool is_one[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = blockIdx.x * kLastPixels + threadIdx.x / 32 * 16 + group + 8 * half, pixel = row / images;
    image[half] = row % images, p[half] = pixel / side, q[half] = pixel % side;
    is_one[half] = p[half] < side;
  }
  float sums[2][4] = {};
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const int channel = 32 * chunk + 8 * t;
#pragma unroll
    for (int neighbour = 0; neighbour < kNeighbours; ++neighbour) {
      uint4 rows[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int y = p[half] + neighbour / 3 - 1, x = q[half] + neighbour % 3 - 1;
        const bool has = y >= 0 && y < side && x >= 0 && x < side && channel < channels;
        const unsigned short* from = in + ((size_t)(y * side + x) * images + image[half]) * channels + channel;
        rows[half] = has ? *reinterpret_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
      }
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const uint4 column = weights[((chunk * kNeighbours + neighbour) * 2 + n) * 32 + lane];
        mma_m16n8k16_bf16(sums[n], {rows[0].x, rows[1].x, rows[0].y, rows[1].y}, {column.x, column.y});
        mma_m16n8k16_bf16(sums[n], {rows[0].z, rows[1].z, rows[0].w, rows[1].w}, {column.z, column.w});
      }
    }
  }
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int column = 8 * n + 2 * t, y = column / (2 * kColours), at = column % (2 * kColours);
      if (!is_one[half] || column >= kOutputs) continue;
      unsigned short* to = out + (((size_t)image[half] * 2 * side + 2 * p[half] + y) * 2 * side + 2 * q[half]) * kColours + at;
      *reinterpret_cast<unsigned*>(to) = rounded_pair(Bf16{}, quick_tanh(sums[n][2 * half] + bias[column % kColours]),
                                                      quick_tanh(sums[n][2 * half + 1] + bias[(column + 1) % kColours]));
    }
}
