// Idea: Few images are few tiles of a matrix product: the first layer of ten has 48 of 64 x 64, for 132 multiprocessors. A block here has 16 input
//     pixels, 16 output channels, 64 to 128 input channels and all 25 taps, so that each of three layers is 96 or 128 blocks. The
//     blocks that share the input channels are a thread block cluster and add up their sums through distributed shared memory. Weights are
//     read where they lie, each once, and no kernel rearranges them: an operation is five kernels instead of twelve. A thread holds the 25
//     weights of four channels for the 4 x 4 pixels of up to five images, each of which it reads once.
// Bottleneck: The multiply-add units: 2000 of the 2130 instructions of the loop are theirs, and on an H200 they are busy for 49 to 54 % of a
//     layer's time at two warps a scheduler. Of the products with pixels outside the image only those of whole rows are left out.
// Next: Tensor cores.
// Source: Own work. On an H200, ten images take 119 us by clusters of 6, 2 and 2. Clusters of 8 take 154, for 15 of them run at once, so
//     that 16 take two rounds. Slices that leave their sums in L2 for the last one to add up take 148.

#include "few_images.cuh"

// A thread has one output channel of the 4 x 4 outputs around a quad, 2 x 2 input pixels, of `per` images. It holds the 25 weights of four
// channels while it reads each of the 4 x 4 pixels in and around the quad once.
template <int per_>
struct Fma {
  static constexpr int per = per_, depth = 16, stages = 4;

  static __device__ __forceinline__ int weight_vector(int row, int n) { return n ^ row / 2 % 4; }
  static __device__ __forceinline__ int pixel_vector(int, int n) { return n; }

  // Of the two warps of a scheduler one has upper quads and the other lower ones, which are at different edges of the image.
  static __device__ __forceinline__ int position() { return threadIdx.x % kGroup ^ threadIdx.x / kGroup * 32; }

  static __device__ __forceinline__ void multiply(float (&sums)[16 * per], const float* pixels, const float* weights, bool above,
                                                  bool below) {
    const int thread = position(), column = thread % kColumns, quad = thread / kColumns % 4, images = thread / kColumns / 4 * per;
    const int share = threadIdx.x / kGroup * (depth / 2);  // the first of the group's channels
    pixels += (images * kHaloPixels + quad / 2 * 2 * kHalo + quad % 2 * 2) * depth + share;
    weights += column * depth;
#pragma unroll 1
    for (int c = 0; c < depth / 2; c += 4) {
      float4 by[kTaps];
      const float* from = weights + 4 * weight_vector(column, (share + c) / 4);
#pragma unroll
      for (int tap = 0; tap < kTaps; ++tap) by[tap] = *reinterpret_cast<const float4*>(from + tap * kColumns * depth);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if ((i == 0 && !(above || quad / 2)) || (i == 3 && !(below || quad / 2 == 0))) continue;
#pragma unroll
        for (int n = 0; n < per; ++n)
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            const float4 x = *reinterpret_cast<const float4*>(pixels + (n * kHaloPixels + i * kHalo + j) * depth + c);
            const auto multiply_by = [&](float of, float float4::*channel) {
#pragma unroll
              for (int r = 0; r < kSize; ++r)
#pragma unroll
                for (int s = 0; s < kSize; ++s) {
                  // Input i - 1 of the quad and weight r meet in output 2 (i - 1) + r - 1, of 0 to 3.
                  const int to_y = 2 * i + r - 3, to_x = 2 * j + s - 3;
                  if (to_y < 0 || to_y > 3 || to_x < 0 || to_x > 3) continue;
                  float& sum = sums[16 * n + 4 * to_y + to_x];
                  sum = fmaf(of, by[r * kSize + s].*channel, sum);
                }
            };
            multiply_by(x.x, &float4::x), multiply_by(x.y, &float4::y), multiply_by(x.z, &float4::z), multiply_by(x.w, &float4::w);
          }
      }
    }
  }

  static __device__ __forceinline__ Place place(int thread, int i) {
    const int quad = thread / kColumns % 4;
    return {thread / kColumns / 4 * per + i / 16, quad / 2 * 4 + i / 4 % 4, quad % 2 * 4 + i % 4, thread % kColumns};
  }
};

template <int per, int slices>
__global__ void __cluster_dims__(slices, 1, 1) __launch_bounds__(kThreads, 1)
    layer(const float* __restrict__ in, const float* __restrict__ w, const float* __restrict__ bias, const float* __restrict__ bn,
          float* __restrict__ out, const float* __restrict__ next, int next_floats, int side, int images, int channels, int out_channels,
          int slice) {
  Layer<Fma<per>, slices, false>::run(in, w, bias, bn, out, next, next_floats, {side, images, channels, out_channels, slice});
}
