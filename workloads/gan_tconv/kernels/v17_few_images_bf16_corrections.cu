// Idea: As v15_few_images_tf32, at the precision of 3xTF32: an operand is split into its TF32 part, big, and what is left, small. Both
//     corrections, small x big and big x small, are one product of BF16 operands, as in cnn_conv's v12_bf16_corrections: two instructions for
//     a term instead of three. A warp splits an operand in registers after it has read it: weights once for up to five images, pixels once
//     for up to four taps. Weights are rounded to TF32 and pixels cut off, which costs an instruction less for each. Tensor cores
//     add everything up, and cut off what their sums have no bits for.
// Bottleneck: Latency and the tensor cores. On an H100 ten images take 87 us with an error of 1.2e-6, and 70 us without the corrections. With
//     sums of 16 channels of a tap that the multiply-add units add to the rest, they take 97 us, with half the error and with spills.
// Next: -
// Source: Own work; splitting as in NVIDIA CUTLASS, "3xTF32".

#include "../../ptx_bf16.cuh"
#include "few_images_mma.cuh"

// The bits of x that a TF32 operand has.
__device__ __forceinline__ float tf32_part(unsigned bits) { return __uint_as_float(bits & ~0x1fffu); }

struct Corrected {
  struct Weights {
    unsigned big[4], small_and_all[4];
  };
  struct Pixels {
    unsigned big[2], all_and_small[2];
  };

  static __device__ __forceinline__ Weights weights(float x0, float x1, float x2, float x3) {
    const unsigned big[4] = {nearest(x0), nearest(x1), nearest(x2), nearest(x3)};
    return {{big[0], big[1], big[2], big[3]},
            {to_bf16_pair(x0 - tf32_part(big[0]), x2 - tf32_part(big[2])), to_bf16_pair(x1 - tf32_part(big[1]), x3 - tf32_part(big[3])),
             to_bf16_pair(x0, x2), to_bf16_pair(x1, x3)}};
  }
  static __device__ __forceinline__ Pixels pixels(float x0, float x1) {
    const unsigned big[2] = {__float_as_uint(x0), __float_as_uint(x1)};
    return {{big[0], big[1]}, {to_bf16_pair(x0, x1), to_bf16_pair(x0 - tf32_part(big[0]), x1 - tf32_part(big[1]))}};
  }

  // The corrections come first, because they are small.
  template <int per>
  static __device__ __forceinline__ void add(float* sums, const Weights (&a)[2], const Pixels (&b)[per][2]) {
    const auto of = [sums](int n) -> float (&)[4] { return *reinterpret_cast<float(*)[4]>(sums + 16 * n); };
#pragma unroll
    for (int step = 0; step < 2; ++step)
#pragma unroll
      for (int n = 0; n < per; ++n) mma_m16n8k16_bf16(of(n), a[step].small_and_all, b[n][step].all_and_small);
#pragma unroll
    for (int step = 0; step < 2; ++step)
#pragma unroll
      for (int n = 0; n < per; ++n) mma_m16n8k8_tf32(of(n), a[step].big, b[n][step].big);
  }
};

template <int per, int slices>
__global__ void __cluster_dims__(slices, 1, 1) __launch_bounds__(kThreads, 1)
    layer(const float* __restrict__ in, const float* __restrict__ w, const float* __restrict__ bias, const float* __restrict__ bn,
          float* __restrict__ out, const float* __restrict__ next, int next_floats, int side, int images, int channels, int out_channels,
          int slice) {
  Layer<TensorCores<Corrected, per>, slices, false>::run(in, w, bias, bn, out, next, next_floats,
                                                        {side, images, channels, out_channels, slice});
}
