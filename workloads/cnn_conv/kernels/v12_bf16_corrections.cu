// Idea: As v11_toeplitz_3xtf32, with both corrections in one product of BF16 operands. Tensor cores take 16 of those in the time of
//     8 TF32 ones, so that low pixels with weights and pixels with low weights stand side by side: two instructions instead
//     of three. Corrections are some 2^-11 of the products, so that the 8 bits of BF16 leave an error of 6e-7 of an output, where
//     3xTF32 leaves 2e-7; to either comes what tensor cores cut off their sums. BF16 has the exponents of fp32: nothing overflows.
// Bottleneck: Tensor cores in layer 2: 0.53 ms at the rate that mma.sync reaches, two thirds of v11_toeplitz_3xtf32. Layer 1 is
//     bound by DRAM as before.
// Next: wgmma, which multiplies faster than mma.sync, but takes at least one of its operands from shared memory.
// Source: Own work; splitting as in NVIDIA CUTLASS, "3xTF32".

#include "../../ptx.cuh"
#include "toeplitz.cuh"
#include "../../ptx_bf16.cuh"

struct Corrected {
  static constexpr int kTerms = 2;
  struct Pixels {
    unsigned high[4];          // TF32
    unsigned low_and_high[4];  // BF16, for the corrections: low pixels, then pixels
  };
  struct Weights {
    unsigned high[2];
    unsigned high_and_low[2];
  };
  static __device__ __forceinline__ unsigned high_bits(float x) { return rounded_bits(x) & ~0x1fffu; }
  static __device__ __forceinline__ unsigned low_pair(float first, unsigned first_high, float second, unsigned second_high) {
    return to_bf16_pair(first - __uint_as_float(first_high), second - __uint_as_float(second_high));
  }
  static __device__ __forceinline__ Pixels pixels(const PixelRow& row) {
    const float2 near = row.near, far = row.far;
    const unsigned high[4] = {high_bits(near.x), high_bits(far.x), high_bits(near.y), high_bits(far.y)};
    return {{high[0], high[1], high[2], high[3]},
            {low_pair(near.x, high[0], near.y, high[2]), low_pair(far.x, high[1], far.y, high[3]),
             to_bf16_pair(near.x, near.y), to_bf16_pair(far.x, far.y)}};
  }
  static __device__ __forceinline__ Weights weights(float even, float odd) {
    const unsigned high[2] = {high_bits(even), high_bits(odd)};
    return {{high[0], high[1]}, {to_bf16_pair(even, odd), low_pair(even, high[0], odd, high[1])}};
  }
  static __device__ __forceinline__ void multiply_add(float (&sums)[4], const Pixels& pixels, const Weights& weights, int term) {
    if (term == 0)
      mma_m16n8k16_bf16(sums, pixels.low_and_high, weights.high_and_low);
    else
      mma_m16n8k8_tf32(sums, pixels.high, weights.high);
  }
};

// Blocks a multiprocessor in layer 2: the most for which the compiler, CUDA 13.0, finds registers without spilling.
constexpr int kBlocks = __CUDA_ARCH__ == 900 ? 4 : __CUDA_ARCH__ >= 1000 ? 3 : 2;

template <int kChannels, int kMaps, int kHeight, int kWidth, int kRows>
__global__ void __launch_bounds__(kWarps * kLanes, kChannels == 1 ? 4 : kBlocks)
    conv_layer(const float* __restrict__ x, const float* __restrict__ k, float* __restrict__ y, int pairs) {
  Part<Corrected, kChannels, kMaps, kHeight, kWidth, kRows> part(x, k, y, pairs);
  if constexpr (kChannels == 1)
    part.slide();
  else
    part.accumulate();
}
