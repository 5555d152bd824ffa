// Idea: The units of few images on tensor cores. The weights are the left operand of mma.sync, row by row as they lie, and pixels the right one,
//     so that neither is rearranged. A warp has all four outputs around its pixels: it reads a pixel once for up to four taps. Weights are
//     rounded in registers, by one addition, pixels at the end of the layer before. The dense and the last layer stay in float32: ten images
//     then have an error of 2.1e-4 instead of 3.2e-4, by a calculation of these roundings in float64.
// Bottleneck: Latency. With ten images a block of the first layer fetches 292 kB for 6.1 million multiply-adds, and begins when a sixth of
//     them is there; on an H200 its warps issue an instruction in 22 to 26 % of the cycles. Five kernels for ten images also begin and end
//     five times.
// Next: -
// Source: Own work.

#include "few_images_mma.cuh"

struct OneProduct {
  static constexpr bool ordered = false;

  struct Weights {
    unsigned of[4];
  };
  struct Pixels {
    unsigned of[2];
  };

  static __device__ __forceinline__ Weights weights(float x0, float x1, float x2, float x3) {
    return {{nearest(x0), nearest(x1), nearest(x2), nearest(x3)}};
  }
  static __device__ __forceinline__ Pixels pixels(float x0, float x1) { return {{__float_as_uint(x0), __float_as_uint(x1)}}; }

  template <int per>
  static __device__ __forceinline__ void add(float* sums, const Weights (&a)[2], const Pixels (&b)[per][2]) {
#pragma unroll
    for (int step = 0; step < 2; ++step)
#pragma unroll
      for (int n = 0; n < per; ++n) mma_m16n8k8_tf32(reinterpret_cast<float(&)[4]>(sums[16 * n]), a[step].of, b[n][step].of);
  }
};

template <int per, int slices, bool round>
__global__ void __cluster_dims__(slices, 1, 1) __launch_bounds__(kThreads, 1)
    layer(const float* __restrict__ in, const float* __restrict__ w, const float* __restrict__ bias, const float* __restrict__ bn,
          float* __restrict__ out, const float* __restrict__ next, int next_floats, int side, int images, int channels, int out_channels,
          int slice) {
  Layer<TensorCores<OneProduct, per>, slices, round>::run(in, w, bias, bn, out, next, next_floats, {side, images, channels, out_channels, slice});
}
