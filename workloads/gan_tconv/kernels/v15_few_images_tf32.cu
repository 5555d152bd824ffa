// Idea: The units of few images on tensor cores. The weights are the left operand of mma.sync, row by row as they lie, and pixels the right one,
//     so that neither is rearranged. A warp has all four outputs around its pixels: it reads a pixel once for up to four taps. Weights are
//     rounded in registers, by one addition, pixels at the end of the layer before. The dense and the last layer stay in float32: ten images
//     then have an error of 2.1e-4 instead of 3.2e-4, by a calculation of these roundings in float64.
// Bottleneck: Latency. With ten images a block of the first layer fetches 292 kB for 6.1 million multiply-adds, and begins when a sixth of
//     them is there; on an H200 its warps issue an instruction in 22 to 26 % of the cycles. Five kernels for ten images also begin and end
//     five times.
// Next: -
// Source: Own work.

#include "few_images.cuh"

// The tensor cores cut off 13 bits of an operand: half of what they cut, added first, makes that the nearest value. It is to_tf32 of a finite
// number in one instruction instead of five.
__device__ __forceinline__ unsigned nearest(float x) { return __float_as_uint(x) + 0x1000u; }

// A warp has the 16 output channels of all four outputs around 2 x 4 input pixels of `per` images. The weights are the left operand, as they
// lie; the columns of the right one are pixels. Which channels of a step are terms t and t + 4 of a product is free, if both operands agree:
// lane t reads channels 4t to 4t + 3 at once, for two products. Rows of shared memory are 64 bytes, so that neighbours, which eight lanes
// read together, lie in different banks.
template <int per_>
struct TensorCores {
  static constexpr int per = per_, depth = 16, stages = 4;

  static __device__ __forceinline__ int weight_vector(int, int n) { return n; }
  static __device__ __forceinline__ int pixel_vector(int, int n) { return n; }

  static __device__ __forceinline__ int position() { return threadIdx.x % kGroup; }

  // The pixels (p + dy, q + dx) by the weights of the outputs that they meet.
  template <int dy, int dx>
  static __device__ __forceinline__ void shifted(float (&sums)[16 * per], const float* pixels, const float* weights) {
    unsigned b[per][4];
#pragma unroll
    for (int n = 0; n < per; ++n) {
      const float4 four = *reinterpret_cast<const float4*>(pixels + (n * kHaloPixels + dy * kHalo + dx) * depth);
      b[n][0] = __float_as_uint(four.x), b[n][1] = __float_as_uint(four.y);
      b[n][2] = __float_as_uint(four.z), b[n][3] = __float_as_uint(four.w);
    }
#pragma unroll
    for (int y = 0; y < 2; ++y)
#pragma unroll
      for (int x = 0; x < 2; ++x) {
        const int r = y + 1 - 2 * dy, s = x + 1 - 2 * dx;
        if (r < 0 || r >= kSize || s < 0 || s >= kSize) continue;
        const float* from = weights + (r * kSize + s) * kColumns * depth;
        const float4 upper = *reinterpret_cast<const float4*>(from), lower = *reinterpret_cast<const float4*>(from + 8 * depth);
        const unsigned a[2][4] = {{nearest(upper.x), nearest(lower.x), nearest(upper.y), nearest(lower.y)},
                                  {nearest(upper.z), nearest(lower.z), nearest(upper.w), nearest(lower.w)}};
#pragma unroll
        for (int step = 0; step < 2; ++step)
#pragma unroll
          for (int n = 0; n < per; ++n) {
            float(&sum)[4] = reinterpret_cast<float(&)[4]>(sums[16 * n + 4 * (2 * y + x)]);
            mma_m16n8k8_tf32(sum, a[step], {b[n][2 * step], b[n][2 * step + 1]});
          }
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

template <int per, int slices, bool round>
__global__ void __cluster_dims__(slices, 1, 1) __launch_bounds__(kThreads, 1)
    layer(const float* __restrict__ in, const float* __restrict__ w, const float* __restrict__ bias, const float* __restrict__ bn,
          float* __restrict__ out, const float* __restrict__ next, int next_floats, int side, int images, int channels, int out_channels,
          int slice) {
  Layer<TensorCores<per>, slices, round>::run(in, w, bias, bn, out, next, next_floats, {side, images, channels, out_channels, slice});
}
