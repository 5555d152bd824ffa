// The last layer on Hopper's warpgroups. Three colours are few columns, so that what counts is how often pixels are fetched. A unit is 128
// images of two rows p and p + 1 of input pixels, which become four rows of outputs: it walks along its four rows of inputs, p - 1 to
// p + 2, column by column. An input meets three columns of output pixels by twos, (2q, 2q + 1) for q before, of and after its own: 3 x 12
// sums, each 12 padded to 16, in registers, which move on by one with each column of inputs. The weights that join a row of inputs to
// the outputs of a row, of which it is the upper neighbour, the row itself or the lower one, are three small matrices, and stay in shared memory.
#ifndef GAN_TCONV_LAST_LAYER_WGMMA
#define GAN_TCONV_LAST_LAYER_WGMMA

#include "warpgroups.cuh"

constexpr int kBlock = 16, kColumns = 3 * kBlock;       // sums of one column of outputs by twos; of the three
constexpr int kRelations = 3, kRowsOfInputs = 4;
constexpr int kWarpImages = 16, kColumnsStaged = 4;      // whose outputs leave together
constexpr int kStaged = kColumnsStaged * 2 * kColours;   // floats of a row of them
constexpr int kMatrix = kColumns * kDepth;              // floats of the weights of one relation and 32 channels

// Weight that joins an input of relation `i` (-1: the row above, to 1) to a sum, of channel c; 0 for sums without one.
__device__ __forceinline__ float weight_of(const float* __restrict__ w, int i, int column, int c, int channels) {
  const int j = 1 - column / kBlock, of = column % kBlock;  // the input lies right of the outputs of the first block
  const int y = of / (2 * kColours), x = of % (2 * kColours) / kColours;
  const int r = y + 1 - 2 * i, s = x + 1 - 2 * j;
  const bool has = of < 4 * kColours && r >= 0 && s >= 0 && r < kSize && s < kSize && c < channels;
  return has ? w[((r * kSize + s) * kColours + of % kColours) * channels + c] : 0.0f;
}

// Matrices as wgmma reads them, [relation][32 channels][column][channel], 16-byte pieces of a row swizzled; and, for two parts, their rests.
template <int parts>
__device__ __forceinline__ void fill_matrices(float* matrices, const float* __restrict__ w, int channels, int chunks) {
  const int all = kRelations * chunks * kMatrix;
  for (int n = threadIdx.x; n < all; n += blockDim.x) {
    const int matrix = n / kMatrix, column = n % kMatrix / kDepth, c = n % kDepth;
    const float x = weight_of(w, matrix / chunks - 1, column, matrix % chunks * kDepth + c, channels);
    const int to = matrix * kMatrix + column * kDepth + (c / 4 ^ column % 8) * 4 + c % 4;
    matrices[to] = rounded_if(parts == 1, x);
    if (parts == 2) matrices[all + to] = __uint_as_float(tf32_rest(x, __float_as_uint(x) & kTf32Part));
  }
  fence_proxy_async();
}

// Which images, rows and columns a unit has.
struct Unit {
  int first_image, p, from, to;

  __device__ __forceinline__ Unit(int number, int side, int images, int width) {
    const int across = (side + width - 1) / width, down = (images + kImages - 1) / kImages;
    from = number % across * width, to = min(from + width, side), number /= across;
    first_image = number % down * kImages, p = number / down * 2;
  }
  static __device__ __forceinline__ int count(int side, int images, int width) {
    return (side + width - 1) / width * ((images + kImages - 1) / kImages) * (side / 2);
  }
  // Columns of inputs: one more at either end, where there is one.
  __device__ __forceinline__ int first_input() const { return max(from - 1, 0); }
  __device__ __forceinline__ int last_input(int side) const { return min(to, side - 1); }
};

// 1 - 2 / (exp(2 x) + 1): right to some 1e-7 of one, where sums err by as much, and without a branch.
__device__ __forceinline__ float quick_tanh(float x) { return 1.0f - __fdividef(2.0f, __expf(2.0f * x) + 1.0f); }

// Sums of a row of outputs by twos, 16 for each of the three columns that an input meets: [y][x][colour] and four that stay empty.
struct Sums {
  float of[kColumns / 2];
  float bias[kBlock / 2];  // from which they start

  __device__ __forceinline__ Sums(const WgmmaRows& rows, const float* __restrict__ biases) {
#pragma unroll
    for (int i = 0; i < kBlock / 2; ++i) bias[i] = biases[rows.across(i) % kColours];
  }
  __device__ __forceinline__ void start() {
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i) of[i] = bias[i % (kBlock / 2)];
  }
  // The columns after become those of before.
  __device__ __forceinline__ void move_on() {
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i) of[i] = i < kBlock ? of[i + kBlock / 2] : bias[i % (kBlock / 2)];
  }
  // The first column's outputs, [y][image][x, colour], to those of a warp's images.
  __device__ __forceinline__ void put(const WgmmaRows& rows, float (*to)[kWarpImages][kStaged], int q) const {
#pragma unroll
    for (int i = 0; i < kBlock / 2; i += 2) {
      const int at = rows.across(i), image = rows.row % kWarpImages + rows.down(i);
      if (at < 4 * kColours)
        *reinterpret_cast<float2*>(to[at / (2 * kColours)][image] + q % kColumnsStaged * 2 * kColours + at % (2 * kColours)) =
            make_float2(quick_tanh(of[i]), quick_tanh(of[i + 1]));
    }
  }
};

// A warp's outputs of rows 2p to 2p + 3 and four columns of inputs, from the q-th on: 96 bytes in a row, three whole sectors of memory. Written as
// they are made, by 24 bytes, they keep L2 busier than all that is read.
__device__ __forceinline__ void write_staged(const float (*staged)[kWarpImages][kStaged], float* __restrict__ images, int first_image,
                                             int count, int p, int q, int side) {
  constexpr int kVectors = kStaged / 4;
#pragma unroll
  for (int n = threadIdx.x % 32; n < 4 * kWarpImages * kVectors; n += 32) {
    const int row = n / kVectors / kWarpImages, image = n / kVectors % kWarpImages, at = n % kVectors * 4;
    float* to = images + (((size_t)(first_image + image) * 2 * side + 2 * p + row) * 2 * side + 2 * q) * kColours + at;
    if (first_image + image < count) *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(staged[row][image] + at);
  }
}

// A thread's share of 32 channels of its pixels, which are rounded to TF32.
struct RoundedFragments {
  unsigned value[16];

  __device__ __forceinline__ RoundedFragments(const WgmmaRows& rows, const float* pixels) {
#pragma unroll
    for (int i = 0; i < 16; ++i) value[i] = __float_as_uint(rows.load(pixels, i / 4, i % 4));
  }
};
template <int parts>
struct FragmentsOf {
  using Type = SplitFragments;
};
template <>
struct FragmentsOf<1> {
  using Type = RoundedFragments;
};

// sums += pixels * weights over 32 channels, in one product of TF32 or in three.
__device__ __forceinline__ void multiply(float (&sums)[kColumns / 2], const RoundedFragments& pixels, const float* weights,
                                         const unsigned*) {
  const unsigned long long operand = wgmma_operand(weights);
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < kDepth / 8; ++i) wgmma_tf32(sums, pixels.value + 4 * i, operand + 2 * i, true);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_keep(sums);
}
__device__ __forceinline__ void multiply(float (&sums)[kColumns / 2], const SplitFragments& pixels, const float* weights,
                                         const unsigned* rests) {
  float partial[kColumns / 2];
  wgmma_3xtf32(partial, pixels, weights, rests);
#pragma unroll
  for (int i = 0; i < kColumns / 2; ++i) sums[i] += partial[i];
}

// parts: 1, one product of TF32; 2, three.
template <int parts, int stages>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    last_layer_wgmma(const __grid_constant__ TensorMap in, const float* __restrict__ w, const float* __restrict__ bias,
                     float* __restrict__ images, int* next, int layers, int side, int channels, int count, int width) {
  // The counters of the layers before, for another share of the images.
  if (blockIdx.x == 0 && threadIdx.x < layers) next[threadIdx.x] = 0;
  extern __shared__ char memory[];
  auto* stage = aligned_1024<float[kImages * kDepth]>(memory);
  float* matrices = stage[stages];
  __shared__ Pipeline<stages> pipeline;
  const int chunks = (channels + kDepth - 1) / kDepth, units = Unit::count(side, count, width);
  fill_matrices<parts>(matrices, w, channels, chunks);
  pipeline.init(kConsumers / 32);
  Ring<stages> ring;

  if (threadIdx.x < kProducers) {
    give_registers<40>();
    if (threadIdx.x > 0) return;
    for (int number = blockIdx.x; number < units; number += gridDim.x) {
      const Unit unit(number, side, count, width);
      for (int j = unit.first_input(); j <= unit.last_input(side); ++j)
        for (int row = unit.p - 1; row < unit.p - 1 + kRowsOfInputs; ++row)  // above and below the pixels the TMA reads zeros
          for (int chunk = 0; chunk < chunks; ++chunk, ring.next()) {
            mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
            mbarrier_arrive_expect(&pipeline.full[ring.stage], sizeof stage[0]);
            tma_load(stage[ring.stage], in, chunk * kDepth, (row * side + j) * count + unit.first_image, &pipeline.full[ring.stage]);
          }
    }
    return;
  }

  take_registers<232>();
  const WgmmaRows rows(threadIdx.x - kProducers);
  Sums sums[2] = {Sums(rows, bias), Sums(rows, bias)};  // of rows p and p + 1
  const unsigned* rests = reinterpret_cast<const unsigned*>(matrices) + kRelations * chunks * kMatrix;
  const int warp = (threadIdx.x - kProducers) / 32;
  auto* staged = reinterpret_cast<float(*)[kWarpImages][kStaged]>(matrices + parts * kRelations * chunks * kMatrix) + 4 * warp;
  for (int number = blockIdx.x; number < units; number += gridDim.x) {
    const Unit unit(number, side, count, width);
    sums[0].start(), sums[1].start();
    for (int j = unit.first_input(); j <= unit.to; ++j) {
      if (j < side) {
#pragma unroll
        for (int row = 0; row < kRowsOfInputs; ++row)
#pragma unroll 1
          for (int chunk = 0; chunk < chunks; ++chunk, ring.next()) {
            mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
            const typename FragmentsOf<parts>::Type pixels(rows, stage[ring.stage]);
#pragma unroll
            for (int n = 0; n < 2; ++n) {
              const int relation = row - n;  // the row is p - 1 + row
              if (relation < 0 || relation >= kRelations) continue;
              const int matrix = (relation * chunks + chunk) * kMatrix;
              multiply(sums[n].of, pixels, matrices + matrix, rests + matrix);
            }
            pipeline.release(ring.stage);
          }
      }
      const int q = j - 1;  // which has all its inputs now
      if (q >= unit.from) {
        sums[0].put(rows, staged, q), sums[1].put(rows, staged + 2, q);
        if (q % kColumnsStaged == kColumnsStaged - 1) {
          __syncwarp();
          write_staged(staged, images, unit.first_image + warp * kWarpImages, count, unit.p, q + 1 - kColumnsStaged, side);
          __syncwarp();
        }
      }
      sums[0].move_on(), sums[1].move_on();
    }
  }
}

#endif
