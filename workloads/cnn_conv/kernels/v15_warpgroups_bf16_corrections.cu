// Idea: v14_warpgroups_3xtf32 with both corrections in one product of BF16 operands, as in v12_bf16_corrections: 16 steps in the time of 8,
//     low pixels with weights and pixels with low weights side by side. Two instructions in place of three.
// Bottleneck: The tensor cores: 0.53 ms for 10,000 images of layer 2 on an H200; if a BF16 product counts as one in TF32 they are 178 GFLOP, 0.49 ms
//     at the 366 TFLOP/s that wgmma reaches in the matrix product.
//     Sums are cut off 56 times an output, not 84.
// Next: -
// Source: Own work; splitting as in NVIDIA CUTLASS, "3xTF32".

#include "../../ptx.cuh"
#include "../../hopper.cuh"
#include "../../hopper_bf16.cuh"
#include "toeplitz.cuh"
#include "toeplitz_warpgroups.cuh"

struct Corrected {
  static constexpr int kTerms = 2, kParts = 2;
  static constexpr int kShapes = 2;  // of wgmma
  static constexpr bool kEarly = false;
  struct Pixels {
    unsigned word[kParts][4];  // TF32; BF16, for the corrections: low pixels, then pixels
  };
  struct Weights {
    unsigned word[kParts][2];  // TF32; BF16: weights, then low weights
  };
  static __device__ __forceinline__ unsigned high_bits(float x) { return rounded_bits(x) & ~0x1fffu; }
  static __device__ __forceinline__ unsigned low_pair(float first, unsigned first_high, float second, unsigned second_high) {
    return to_bf16_pair(first - __uint_as_float(first_high), second - __uint_as_float(second_high));
  }
  static __device__ __forceinline__ Pixels pixels(const PixelRow& row) {
    const float2 near = row.near, far = row.far;
    const unsigned high[4] = {high_bits(near.x), high_bits(far.x), high_bits(near.y), high_bits(far.y)};
    return {{{high[0], high[1], high[2], high[3]},
             {low_pair(near.x, high[0], near.y, high[2]), low_pair(far.x, high[1], far.y, high[3]),
              to_bf16_pair(near.x, near.y), to_bf16_pair(far.x, far.y)}}};
  }
  static __device__ __forceinline__ Weights weights(float even, float odd) {
    const unsigned high[2] = {high_bits(even), high_bits(odd)};
    return {{{high[0], high[1]}, {to_bf16_pair(even, odd), low_pair(even, high[0], odd, high[1])}}};
  }
  template <int count>
  static __device__ __forceinline__ void multiply_add(float (&sums)[count], const Pixels& pixels, unsigned long long weights,
                                                      int to_corrections, int term) {
    if (term == 0)
      wgmma_bf16(sums, pixels.word[1], weights + to_corrections);
    else
      wgmma_tf32(sums, pixels.word[0], weights, true);
  }
};

template <int kHeight, int kWidth, int kRows, int kImages>
__global__ void __launch_bounds__(kWarpgroups * 128, 1)
    conv_layer(const float* __restrict__ x, const float* __restrict__ k, float* __restrict__ y, int images) {
  convolve<Corrected, kHeight, kWidth, kRows, kImages>(x, k, y, images);
}
