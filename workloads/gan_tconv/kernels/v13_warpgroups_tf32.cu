// Idea: One product of TF32, which is so quick that what counts is how often an operand is fetched into shared memory: tiles of
//     128 x 256 sums, in the second layer 256 x 128. The third has 64 output channels only: its tile is the four output pixels around one
//     input pixel, which need the same nine inputs; an input of 32 channels is fetched once and meets the weights of one, two or four of
//     them side by side. Weights are rounded to nearest once an operation, pixels in the registers that they go through. The dense layer
//     is such a product too.
// Bottleneck: By count, the tensor cores in the first layers, and loads in the last, whose warps ask for each pixel four times. 11 bits of
//     each operand: an error of 2e-4 at three images, not to be compared with what is exact to float.
// Next: -
// Source: Own work; producer and consumers in the order of NVIDIA's CUTLASS 3.

#include "v08_phases.cu"
#include "warpgroups.cuh"
#include "last_layer_tf32.cuh"

__global__ void round_weights(const float4* __restrict__ w, float4* __restrict__ rounded, int count) {
  const int n = blockDim.x * blockIdx.x + threadIdx.x;
  if (n >= count) return;
  const float4 x = w[n];
  rounded[n] = make_float4(rounded_if(true, x.x), rounded_if(true, x.y), rounded_if(true, x.z), rounded_if(true, x.w));
}

template <int images, int columns>
struct Stage {
  float pixels[images * kDepthOfStage];
  float weights[columns * kDepthOfStage];
};

__device__ __forceinline__ void load_pixels(float* to, int boxes, const TensorMap& in, int image, int row, Mbarrier* barrier) {
  for (int box = 0; box < boxes; ++box) tma_load(to + box * kBox * kDepthOfStage, in, image + box * kBox, row, barrier);
}

// 128 images a block of rows; a consumer has one half of each.
template <int blocks, int columns, bool dense, int stages>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    warpgroup_product(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap w, const float* folded, float* out, int side,
                      int stride, int channels, int out_channels, int layer, int widest) {
  constexpr int kImages = 128 * blocks;
  using Tile = PixelTile<kImages, columns, dense>;
  const Sizes sizes = {side, stride, channels, out_channels, layer, widest};
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<kImages, columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
  pipeline.init(kConsumers / 32);
  const int tiles = Tile::count(sizes);
  Ring<stages> ring;

  if (threadIdx.x < kProducers) {
    give_registers<40>();
    if (threadIdx.x > 0) return;
    for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
      const Tile tile(number, sizes);
      tile.walk(sizes, [&](int row, int row_of_weights, int channel) {
        Mbarrier* full = &pipeline.full[ring.stage];
        mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
        mbarrier_arrive_expect(full, sizeof stage[0]);
        load_pixels(stage[ring.stage].pixels, kImages / kBox, in, tile.first_image, row, full);
        tma_load(stage[ring.stage].weights, w, channel, row_of_weights, full);
        ring.next();
      });
    }
    return;
  }

  take_registers<232>();
  const WgmmaFragments fragments(threadIdx.x - kProducers);
  for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
    const Tile tile(number, sizes);
    float sums[blocks][columns / 2] = {};
    unsigned values[2][blocks][16];  // of two steps, taking turns
    int previous = -1;
    const int steps = tile.steps(sizes);  // even
#pragma unroll 1
    for (int step = 0; step < steps; step += 2) {
#pragma unroll
      for (int turn = 0; turn < 2; ++turn) {
        mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
        const float* pixels = stage[ring.stage].pixels;
#pragma unroll
        for (int n = 0; n < blocks; ++n)
#pragma unroll
          for (int i = 0; i < 16; ++i)
            values[turn][n][i] = to_tf32(fragments.load(pixels + n * 128 * kDepthOfStage, i / 4, i % 4));
        const unsigned long long weights = wgmma_operand(stage[ring.stage].weights);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int n = 0; n < blocks; ++n) wgmma_tf32(sums[n], values[turn][n] + 4 * i, weights + 2 * i, true);
        wgmma_commit();
        wgmma_wait<1>();
        if (previous >= 0) pipeline.release(previous);
        previous = ring.stage;
        ring.next();
      }
    }
    wgmma_wait<0>();
#pragma unroll
    for (int n = 0; n < blocks; ++n) wgmma_keep(sums[n]);
    pipeline.release(previous);
#pragma unroll
    for (int n = 0; n < blocks; ++n)
      store_pixel(sums[n], folded, out, sizes, fragments, tile.output_pixel(sizes), tile.first_image + 128 * n, tile.first_column);
  }
}

// -- Four output pixels at a time ---------------------------------------------------------------------------------------------------

constexpr int kQuarter = 64;  // output channels of each of the four
constexpr int kQuarterTile = kQuarter * kDepthOfStage;

// The output pixels 2p + y, 2q + x, y and x 0 or 1, of 128 images, and 64 of their channels. They need the inputs p + i, q + j, i and j
// -1, 0 or 1, by the weights of row y + 1 - 2i and column x + 1 - 2j: for i = 1 only those of y = 1 have one, for j = 1 only those of x = 1.
// In the order (0, 0), (0, 1), (1, 1), (1, 0) of (y, x) the outputs that an input meets are neighbours: kind 0 of inputs, i and j < 1,
// meets all four; kind 1, j = 1, the second and third; kind 2, i = 1, the third and fourth; kind 3 the third.
struct QuadTile {
  int p, q, first_image, first_column, side;

  static __device__ __forceinline__ int count(const Sizes& of) {
    return of.side * of.side * ((of.stride + 127) / 128) * ((of.out_channels + kQuarter - 1) / kQuarter);
  }

  __device__ __forceinline__ QuadTile(int tile, const Sizes& of) : side(of.side) {
    const int across = (of.out_channels + kQuarter - 1) / kQuarter, down = (of.stride + 127) / 128;
    first_column = tile % across * kQuarter, first_image = tile / across % down * 128;
    p = tile / across / down / side, q = tile / across / down % side;
  }

  static __device__ __forceinline__ int y(int output) { return output / 2; }
  static __device__ __forceinline__ int x(int output) { return output == 1 || output == 2; }
  static __device__ __forceinline__ int first_output(int kind) { return kind == 0 ? 0 : kind == 1 ? 1 : 2; }
  static __device__ __forceinline__ int outputs(int kind) { return kind == 0 ? 4 : kind == 3 ? 1 : 2; }

  // Inputs of a kind inside the image, along one direction: i or j from `low` to `high`.
  __device__ __forceinline__ static int low(bool one, int at) { return one ? 1 : at > 0 ? -1 : 0; }
  __device__ __forceinline__ static int high(bool one, int at, int side) { return one && at + 1 < side ? 1 : 0; }  // below `low` for none

  __device__ __forceinline__ int inputs(int kind) const {
    const bool below = kind >= 2, right = kind % 2;
    return (high(below, p, side) - low(below, p) + 1) * (high(right, q, side) - low(right, q) + 1);
  }
};

template <int stages>
struct QuadConsumer {
  Stage<128, 4 * kQuarter>* stage;
  Pipeline<stages>& pipeline;
  WgmmaFragments fragments;
  Ring<stages> ring;
  float sums[4][kQuarter / 2];

  // All inputs that meet `count` outputs from `first` on, two steps at a time.
  template <int first, int count>
  __device__ __forceinline__ void multiply(int steps) {
    constexpr int kNext = kQuarterTile * sizeof(float) / 16;  // the weights of the next output, in the unit of wgmma's operands
    constexpr int kInFlight = count == 4 ? 1 : 0;  // groups; with one for the others too, ptxas has too few registers and lets none overlap
    unsigned values[2][16];
    int previous = -1;
#pragma unroll 1
    for (int step = 0; step < steps; step += 2) {
#pragma unroll
      for (int turn = 0; turn < 2; ++turn) {
        mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
#pragma unroll
        for (int i = 0; i < 16; ++i) values[turn][i] = to_tf32(fragments.load(stage[ring.stage].pixels, i / 4, i % 4));
        const unsigned long long weights = wgmma_operand(stage[ring.stage].weights);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int n = 0; n < count; ++n) wgmma_tf32(sums[first + n], values[turn] + 4 * i, weights + n * kNext + 2 * i, true);
        wgmma_commit();
        wgmma_wait<kInFlight>();
        if (previous >= 0) pipeline.release(previous);
        previous = ring.stage;
        ring.next();
      }
    }
    wgmma_wait<0>();
#pragma unroll
    for (int n = 0; n < count; ++n) wgmma_keep(sums[first + n]);
    if (previous >= 0) pipeline.release(previous);
  }
};

template <int stages>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    quad_product(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap w, const float* folded, float* out, int side,
                 int stride, int channels, int out_channels, int layer, int widest) {
  const Sizes sizes = {side, stride, channels, out_channels, layer, widest};
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<128, 4 * kQuarter>>(memory);
  __shared__ Pipeline<stages> pipeline;
  pipeline.init(kConsumers / 32);
  const int tiles = QuadTile::count(sizes);

  if (threadIdx.x < kProducers) {
    give_registers<40>();
    if (threadIdx.x > 0) return;
    Ring<stages> ring;
    for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
      const QuadTile tile(number, sizes);
      for (int kind = 0; kind < 4; ++kind)
        for (int n = 0; n < tile.inputs(kind); ++n) {
          const int rows = tile.low(kind >= 2, tile.p), columns = tile.low(kind % 2, tile.q);
          const int across = tile.high(kind % 2, tile.q, side) - columns + 1;
          const int i = rows + n / across, j = columns + n % across;
          for (int c = 0; c < channels; c += kDepthOfStage, ring.next()) {
            auto& now = stage[ring.stage];
            Mbarrier* full = &pipeline.full[ring.stage];
            mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
            mbarrier_arrive_expect(full, sizeof now.pixels + tile.outputs(kind) * kQuarterTile * sizeof(float));
            load_pixels(now.pixels, 128 / kBox, in, tile.first_image, ((tile.p + i) * side + tile.q + j) * channels + c, full);
            for (int m = 0; m < tile.outputs(kind); ++m) {
              const int output = tile.first_output(kind) + m, tap = (tile.y(output) + 1 - 2 * i) * kSize + tile.x(output) + 1 - 2 * j;
              tma_load(now.weights + m * kQuarterTile, w, c, tap * out_channels + tile.first_column, full);
            }
          }
        }
    }
    return;
  }

  take_registers<232>();
  QuadConsumer<stages> consumer = {stage, pipeline, WgmmaFragments(threadIdx.x - kProducers)};
  const int steps = channels / kDepthOfStage;  // of an input; even
  for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
    const QuadTile tile(number, sizes);
#pragma unroll
    for (int n = 0; n < 4 * kQuarter / 2; ++n) consumer.sums[n / (kQuarter / 2)][n % (kQuarter / 2)] = 0.0f;
    consumer.template multiply<0, 4>(tile.inputs(0) * steps);
    consumer.template multiply<1, 2>(tile.inputs(1) * steps);
    consumer.template multiply<2, 2>(tile.inputs(2) * steps);
    consumer.template multiply<2, 1>(tile.inputs(3) * steps);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int pixel = (2 * tile.p + tile.y(n)) * 2 * side + 2 * tile.q + tile.x(n);
      store_pixel(consumer.sums[n], folded, out, sizes, consumer.fragments, pixel, tile.first_image, tile.first_column);
    }
  }
}
