// Idea: As v10_toeplitz_tf32, with each operand split into two TF32 numbers, high + low, that together have 22 bits. Of the
//     four products three count: low * high, high * low, high * high, the small ones first. The error is that of fp32 sums.
// Bottleneck: Layer 2: tensor cores, three times the products of v10_toeplitz_tf32, 0.8 ms at 315 TFLOP/s. They cut their sums off
//     instead of rounding them, so that the error grows with the number of products. Layer 1 is still bound by DRAM.
// Next: Both corrections are small: compute them at half the price, in BF16.
// Source: Splitting as in NVIDIA CUTLASS, "3xTF32"; own code.

#include "../../ptx.cuh"
#include "toeplitz.cuh"

struct Split {
  static constexpr int kTerms = 3;
  struct Pixels {
    unsigned high[4], low[4];
  };
  struct Weights {
    unsigned high[2], low[2];
  };
  static __device__ __forceinline__ unsigned high_bits(float x) { return rounded_bits(x) & ~0x1fffu; }
  static __device__ __forceinline__ unsigned low_bits(float x, unsigned high) { return rounded_bits(x - __uint_as_float(high)); }
  static __device__ __forceinline__ Pixels pixels(const PixelRow& row) {
    const float x[4] = {row.near.x, row.far.x, row.near.y, row.far.y};
    Pixels split;
#pragma unroll
    for (int i = 0; i < 4; ++i) split.high[i] = high_bits(x[i]), split.low[i] = low_bits(x[i], split.high[i]);
    return split;
  }
  static __device__ __forceinline__ Weights weights(float even, float odd) {
    const unsigned high[2] = {high_bits(even), high_bits(odd)};
    return {{high[0], high[1]}, {low_bits(even, high[0]), low_bits(odd, high[1])}};
  }
  static __device__ __forceinline__ void multiply_add(float (&sums)[4], const Pixels& pixels, const Weights& weights, int term) {
    mma_m16n8k8_tf32(sums, term == 0 ? pixels.low : pixels.high, term == 1 ? weights.low : weights.high);
  }
};

// Blocks a multiprocessor in layer 2: the most for which the compiler, CUDA 13.0, finds registers without spilling.
constexpr int kBlocks = __CUDA_ARCH__ == 900 ? 4 : 3;

template <int kChannels, int kMaps, int kHeight, int kWidth, int kRows>
__global__ void __launch_bounds__(kWarps * kLanes, kChannels == 1 ? 4 : kBlocks)
    conv_layer(const float* __restrict__ x, const float* __restrict__ k, float* __restrict__ y, int pairs) {
  Part<Split, kChannels, kMaps, kHeight, kWidth, kRows> part(x, k, y, pairs);
  if constexpr (kChannels == 1)
    part.slide();
  else
    part.accumulate();
}
