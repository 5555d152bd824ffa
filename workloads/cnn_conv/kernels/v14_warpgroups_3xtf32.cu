// Idea: v13_warpgroups_tf32 with operands in two parts, high and low, as in v11_toeplitz_3xtf32: low * high, high * low, high * high of an
//     input row, in this order, into the same sums. Pixels are split in the registers that they go through anyway, filters once a block.
// Bottleneck: The tensor cores: 0.68 ms for 10,000 images of layer 2 on an H200, 268 GFLOP with the zeros and the pairs that are no image's: 395
//     TFLOP/s, where wgmma reaches 366 in the matrix product.
//     They cut sums off instead of rounding them, 84 times an output as in v11_toeplitz_3xtf32.
// Next: Both corrections at half the price, in BF16.
// Source: Own work; splitting as in NVIDIA CUTLASS, "3xTF32".

#include "../../ptx.cuh"
#include "../../hopper.cuh"
#include "toeplitz.cuh"
#include "toeplitz_warpgroups.cuh"

struct Split {
  static constexpr int kTerms = 3, kParts = 2;
  static constexpr int kShapes = 1;  // of wgmma
  static constexpr bool kEarly = false;
  struct Pixels {
    unsigned word[kParts][4];  // high, low
  };
  struct Weights {
    unsigned word[kParts][2];
  };
  static __device__ __forceinline__ unsigned high_bits(float x) { return rounded_bits(x) & ~0x1fffu; }
  static __device__ __forceinline__ unsigned low_bits(float x, unsigned high) { return rounded_bits(x - __uint_as_float(high)); }
  static __device__ __forceinline__ Pixels pixels(const PixelRow& row) {
    const float x[4] = {row.near.x, row.far.x, row.near.y, row.far.y};
    Pixels split;
#pragma unroll
    for (int i = 0; i < 4; ++i) split.word[0][i] = high_bits(x[i]), split.word[1][i] = low_bits(x[i], split.word[0][i]);
    return split;
  }
  static __device__ __forceinline__ Weights weights(float even, float odd) {
    const unsigned high[2] = {high_bits(even), high_bits(odd)};
    return {{{high[0], high[1]}, {low_bits(even, high[0]), low_bits(odd, high[1])}}};
  }
  template <int count>
  static __device__ __forceinline__ void multiply_add(float (&sums)[count], const Pixels& pixels, unsigned long long weights,
                                                      int to_low, int term) {
    wgmma_tf32(sums, pixels.word[term == 0], weights + (term == 1 ? to_low : 0), true);
  }
};

template <int kHeight, int kWidth, int kRows, int kImages>
__global__ void __launch_bounds__(kWarpgroups * 128, 1)
    conv_layer(const float* __restrict__ x, const float* __restrict__ k, float* __restrict__ y, int images) {
  convolve<Split, kHeight, kWidth, kRows, kImages>(x, k, y, images);
}
