// The units of few images by mma.sync. The weights are the left operand, row by row as they lie, and pixels the right one.
//
// A warp has the 16 output channels of all four outputs around 2 x 4 input pixels of `per` images. Which channels of a step are terms t and
// t + 4 of a product is free, if both operands agree: lane t reads channels 4t to 4t + 3 at once, for two products. Rows of shared memory are
// 64 bytes, so that neighbours, which eight lanes read together, lie in different banks.
//
// A `Product` has
//   Weights: an operand of 16 channels, from rows g and g + 8 of term t, then of term t + 4
//   Pixels: an operand of 8 pixels, from terms t and t + 4
//   weights, pixels: make these of two terms' numbers in the order of their operand
//   add: adds a tap's products of `per` images to sums that lie 16 apart
#ifndef GAN_TCONV_FEW_IMAGES_MMA
#define GAN_TCONV_FEW_IMAGES_MMA

#include "few_images.cuh"

// The tensor cores cut off 13 bits of an operand: half of what they cut, added first, makes that the nearest value. It is to_tf32 of a finite
// number in one instruction instead of five.
__device__ __forceinline__ unsigned nearest(float x) { return __float_as_uint(x) + 0x1000u; }

template <class Product, int per_>
struct TensorCores {
  static constexpr int per = per_, depth = 16, stages = 4;

  static __device__ __forceinline__ int weight_vector(int, int n) { return n; }
  static __device__ __forceinline__ int pixel_vector(int, int n) { return n; }

  static __device__ __forceinline__ int position() { return threadIdx.x % kGroup; }

  // The pixels (p + dy, q + dx) by the weights of the outputs that they meet.
  template <int dy, int dx>
  static __device__ __forceinline__ void shifted(float (&sums)[16 * per], const float* pixels, const float* weights) {
    typename Product::Pixels b[per][2];
#pragma unroll
    for (int n = 0; n < per; ++n) {
      const float4 four = *reinterpret_cast<const float4*>(pixels + (n * kHaloPixels + dy * kHalo + dx) * depth);
      b[n][0] = Product::pixels(four.x, four.y), b[n][1] = Product::pixels(four.z, four.w);
    }
#pragma unroll
    for (int y = 0; y < 2; ++y)
#pragma unroll
      for (int x = 0; x < 2; ++x) {
        const int r = y + 1 - 2 * dy, s = x + 1 - 2 * dx;
        if (r < 0 || r >= kSize || s < 0 || s >= kSize) continue;
        const float* from = weights + (r * kSize + s) * kColumns * depth;
        const float4 upper = *reinterpret_cast<const float4*>(from), lower = *reinterpret_cast<const float4*>(from + 8 * depth);
        const typename Product::Weights a[2] = {Product::weights(upper.x, lower.x, upper.y, lower.y),
                                                Product::weights(upper.z, lower.z, upper.w, lower.w)};
        Product::add(sums + 4 * (2 * y + x), a, b);
      }
  }

  // One group has 12 taps, the other 13.
  static __device__ __forceinline__ void multiply(float (&sums)[16 * per], const float* pixels, const float* weights, bool, bool) {
    const int warp = threadIdx.x % kGroup / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    pixels += (warp / 2 * per * kHaloPixels + (warp % 2 * 2 + g / 4 + 1) * kHalo + g % 4 + 1) * depth + 4 * t;
    weights += g * depth + 4 * t;
    if (threadIdx.x < kGroup) {
      shifted<-1, -1>(sums, pixels, weights);
      shifted<-1, 0>(sums, pixels, weights);
      shifted<-1, 1>(sums, pixels, weights);
      shifted<1, -1>(sums, pixels, weights);
    } else {
      shifted<0, -1>(sums, pixels, weights);
      shifted<0, 0>(sums, pixels, weights);
      shifted<0, 1>(sums, pixels, weights);
      shifted<1, 0>(sums, pixels, weights);
      shifted<1, 1>(sums, pixels, weights);
    }
  }

  static __device__ __forceinline__ Place place(int thread, int i) {
    const int warp = thread / 32, pixel = thread % 4 * 2 + i % 2, phase = i / 4 % 4;
    return {warp / 2 * per + i / 16, 2 * (warp % 2 * 2 + pixel / 4) + phase / 2, 2 * (pixel % 4) + phase % 2,
            thread % 32 / 4 + i % 4 / 2 * 8};
  }
};

#endif
