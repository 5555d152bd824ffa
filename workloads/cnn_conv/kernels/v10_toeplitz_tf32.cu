// Idea: Tensor cores, in TF32: pixels and weights rounded to 11 bits, products added up in fp32. A layer of few channels and maps
//     becomes a matrix product in which pairs of neighbouring outputs are the rows, and a filter row as a Toeplitz matrix
//     the right side, as toeplitz.cuh says: no unrolled copy of the image, and 7 of 8 products are useful. Layer 1 slides
//     down with pixels straight from global memory; layer 2 keeps the sums of half an image's height through all channels,
//     and its pixels come through shared memory, the next channel's while this one is multiplied.
// Bottleneck: Layer 1: DRAM, 1.3 GB for 10,000 images. Layer 2: 83 GFLOP with the zeros, at the 315 TFLOP/s that mma.sync reaches
//     on an H200 0.26 ms, about as long as its bytes take; whatever does not overlap adds up.
// Next: The accuracy of fp32 on the same units.
// Source: Own work; the fragments are those of PTX ISA, mma.m16n8k8.

#include "../../ptx.cuh"
#include "toeplitz.cuh"

struct Tf32 {
  static constexpr int kTerms = 1;
  struct Pixels {
    unsigned a[4];
  };
  struct Weights {
    unsigned b[2];
  };
  static __device__ __forceinline__ Pixels pixels(const PixelRow& row) {
    return {{rounded_bits(row.near.x), rounded_bits(row.far.x), rounded_bits(row.near.y), rounded_bits(row.far.y)}};
  }
  static __device__ __forceinline__ Weights weights(float even, float odd) {
    return {{rounded_bits(even), rounded_bits(odd)}};
  }
  static __device__ __forceinline__ void multiply_add(float (&sums)[4], const Pixels& pixels, const Weights& weights, int) {
    mma_m16n8k8_tf32(sums, pixels.a, weights.b);
  }
};

template <int kChannels, int kMaps, int kHeight, int kWidth, int kRows>
__global__ void __launch_bounds__(kWarps * kLanes, kChannels == 1 ? 5 : 4)
    conv_layer(const float* __restrict__ x, const float* __restrict__ k, float* __restrict__ y, int pairs) {
  Part<Tf32, kChannels, kMaps, kHeight, kWidth, kRows> part(x, k, y, pairs);
  if constexpr (kChannels == 1)
    part.slide();
  else
    part.accumulate();
}
