// The last layer on warpgroups, as the rungs in TF32 have it: a unit is 128 images of two rows p and p + 1 of input pixels, which become four
// rows of outputs. It walks along its four rows of inputs, p - 1 to p + 2, column by column. An input meets three columns of output pixels by twos, whose
// 3 x 12 sums, each 12 padded to 16, move on by one with each column of inputs. The weights that join a row of inputs to the outputs of a row, of
// which it is the upper neighbour, the row itself or the lower one, are three small matrices in shared memory.
#ifndef GAN_TCONV_BF16_LAST_LAYER
#define GAN_TCONV_BF16_LAST_LAYER

#include "warpgroups.cuh"

constexpr int kBlock = 16, kColumns = 3 * kBlock;  // sums of one column of outputs by twos; of the three
constexpr int kRelations = 3, kRowsOfInputs = 4;
constexpr int kWarpImages = 16, kColumnsStaged = 8;  // whose outputs leave together
constexpr int kStaged = kColumnsStaged * 2 * kColours;  // elements of a row of them
constexpr int kMatrix = kColumns * kChannels;           // elements of the weights of one relation and 64 channels

// sums = (add ? sums : 0) + a * b for 48 columns, as for more of them.
__device__ __forceinline__ void wgmma(Bf16, float (&sums)[kColumns / 2], unsigned long long a, unsigned long long b, bool add) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %26, 0; wgmma.mma_async.sync.aligned.m64n48k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, "
      "%10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23}, %24, %25, p, 1, 1, 0, 0;}"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]), "+f"(sums[6]), "+f"(sums[7]),
        "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]), "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]),
        "+f"(sums[16]), "+f"(sums[17]), "+f"(sums[18]), "+f"(sums[19]), "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23])
      : "l"(a), "l"(b), "r"((int)add));
}

// Weight that joins an input of relation `i` (-1: the row above, to 1) to a sum, of channel c; 0 for sums without one.
__device__ __forceinline__ unsigned short weight_of(const unsigned short* __restrict__ w, int i, int column, int c, int channels) {
  const int j = 1 - column / kBlock, of = column % kBlock;  // the input lies right of the outputs of the first block
  const int y = of / (2 * kColours), x = of % (2 * kColours) / kColours;
  const int r = y + 1 - 2 * i, s = x + 1 - 2 * j;
  const bool has = of < 4 * kColours && r >= 0 && s >= 0 && r < kSize && s < kSize && c < channels;
  return has ? w[((r * kSize + s) * kColours + of % kColours) * channels + c] : 0;
}

// Matrices as wgmma reads them, [relation][64 channels][column][channel], 16-byte pieces of a row swizzled.
__device__ __forceinline__ void fill_matrices(unsigned short* matrices, const unsigned short* __restrict__ w, int channels, int chunks) {
#pragma unroll 8  // so that as many loads are under way
  for (int n = threadIdx.x; n < kRelations * chunks * kMatrix; n += blockDim.x) {
    const int matrix = n / kMatrix, column = n % kMatrix / kChannels, c = n % kChannels;
    matrices[matrix * kMatrix + column * kChannels + (c / 8 ^ column % 8) * 8 + c % 8] =
        weight_of(w, matrix / chunks - 1, column, matrix % chunks * kChannels + c, channels);
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

// 1 - 2 / (exp(2 x) + 1): right to some 1e-7 of one, and without a branch.
__device__ __forceinline__ float quick_tanh(float x) { return 1.0f - __fdividef(2.0f, __expf(2.0f * x) + 1.0f); }

using StagedRow = unsigned short[kStaged];

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
  __device__ __forceinline__ void put(const WgmmaRows& rows, StagedRow (*to)[kWarpImages], int q) const {
#pragma unroll
    for (int i = 0; i < kBlock / 2; i += 2) {
      const int at = rows.across(i), image = rows.row % kWarpImages + rows.down(i);
      if (at < 4 * kColours)
        *reinterpret_cast<unsigned*>(to[at / (2 * kColours)][image] + q % kColumnsStaged * 2 * kColours + at % (2 * kColours)) =
            rounded_pair(Bf16{}, quick_tanh(of[i]), quick_tanh(of[i + 1]));
    }
  }
};

// A warp's outputs of rows 2p to 2p + 3 and eight columns of inputs, from the q-th on: 96 bytes in a row, three whole sectors of memory.
__device__ __forceinline__ void write_staged(const StagedRow (*staged)[kWarpImages], unsigned short* __restrict__ images, int first_image,
                                             int count, int p, int q, int side) {
  constexpr int kVectors = kStaged / 8;
#pragma unroll
  for (int n = threadIdx.x % 32; n < 4 * kWarpImages * kVectors; n += 32) {
    const int row = n / kVectors / kWarpImages, image = n / kVectors % kWarpImages, at = n % kVectors * 8;
    unsigned short* to = images + (((size_t)(first_image + image) * 2 * side + 2 * p + row) * 2 * side + 2 * q) * kColours + at;
    if (first_image + image < count) *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(staged[row][image] + at);
  }
}

template <int stages>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    last_layer_wgmma(const __grid_constant__ TensorMap in, const unsigned short* __restrict__ w, const float* __restrict__ bias,
                     unsigned short* __restrict__ images, int* next, int layers, int side, int channels, int count, int width) {
  extern __shared__ char memory[];
  auto* stage = aligned_1024<unsigned char[kImages * kRowBytes]>(memory);
  auto* matrices = reinterpret_cast<unsigned short*>(stage[stages]);
  __shared__ Pipeline<stages> pipeline;
  const int chunks = (channels + kChannels - 1) / kChannels, units = Unit::count(side, count, width);
  fill_matrices(matrices, w, channels, chunks);
  pipeline.init(kConsumers / 32);
  wait_for_launch_before();
  // The counters of the layers before, for the next operation.
  if (blockIdx.x == 0 && threadIdx.x < layers) next[threadIdx.x] = 0;
  Ring<stages> ring;

  if (threadIdx.x >= kConsumers) {
    give_registers<kOfProducers>();
    if (threadIdx.x > kConsumers) return;
    for (int number = blockIdx.x; number < units; number += gridDim.x) {
      const Unit unit(number, side, count, width);
      for (int j = unit.first_input(); j <= unit.last_input(side); ++j)
        for (int row = unit.p - 1; row < unit.p - 1 + kRowsOfInputs; ++row)  // above and below the pixels the TMA reads zeros
          for (int chunk = 0; chunk < chunks; ++chunk, ring.next()) {
            mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
            mbarrier_arrive_expect(&pipeline.full[ring.stage], rows_of(count) * kRowBytes);
            tma_load(stage[ring.stage], in, chunk * kChannels, (row * side + j) * count + unit.first_image, &pipeline.full[ring.stage]);
          }
    }
    return;
  }

  take_registers<kOfConsumers>();
  const WgmmaRows rows(threadIdx.x);
  Sums sums[2] = {Sums(rows, bias), Sums(rows, bias)};  // of rows p and p + 1
  const int warp = threadIdx.x / 32, of_warpgroup = threadIdx.x / 128 * (64 * kRowBytes);
  auto* staged = reinterpret_cast<StagedRow(*)[kWarpImages]>(matrices + kRelations * chunks * kMatrix) + 4 * warp;
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
            const unsigned long long pixels = wgmma_operand(stage[ring.stage] + of_warpgroup);
            wgmma_fence();
#pragma unroll
            for (int n = 0; n < 2; ++n) {
              const int relation = row - n;  // the row is p - 1 + row
              if (relation < 0 || relation >= kRelations) continue;
              const unsigned long long weights = wgmma_operand(matrices + (relation * chunks + chunk) * kMatrix);
#pragma unroll
              for (int i = 0; i < kRowBytes / 32; ++i) wgmma(Bf16{}, sums[n].of, pixels + 2 * i, weights + 2 * i, true);
            }
            wgmma_commit();
            wgmma_wait<0>();
            wgmma_keep(sums[0].of), wgmma_keep(sums[1].of);
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
