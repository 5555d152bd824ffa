// Idea: Tensor cores, at the precision of float: an operand is a TF32 part and what is left of it, which a second TF32 number holds to
//     21 bits; left x right is three products of TF32, smallest first. They are added up on the tensor cores for 32 terms, whose sum the
//     multiply-add units then add to the rest: tensor cores cut off what does not fit, always towards zero. The split is made in
//     registers, two instructions an operand that is used in four products or more.
// Bottleneck: mma.sync: a warp waits for its own operands from shared memory, and reaches about two thirds of what these tensor cores
//     can do.
// Next: One product, where 11 bits are enough; then operands that tensor cores read from shared memory by themselves (wgmma).
// Source: Own work; the split is that of NVIDIA's CUTLASS, example 27_ampere_3xtf32_fast_accurate_tensorop_gemm.

#include "v08_phases.cu"
#include "tensor_tile.cuh"

struct ThreeProducts {
  static constexpr bool kPromoted = true;

  // sum += a * b for all fragments of a warp; a smaller product first.
  template <int down, int across>
  static __device__ __forceinline__ void multiply(float (&sum)[down][across][4], const float (&a)[down][4], const float (&b)[across][2]) {
    unsigned high_a[down][4], low_a[down][4], high_b[across][2], low_b[across][2];
#pragma unroll
    for (int n = 0; n < 4 * down; ++n) split(a[n / 4][n % 4], high_a[n / 4][n % 4], low_a[n / 4][n % 4]);
#pragma unroll
    for (int n = 0; n < 2 * across; ++n) split(b[n / 2][n % 2], high_b[n / 2][n % 2], low_b[n / 2][n % 2]);
    all(sum, low_a, high_b);
    all(sum, high_a, low_b);
    all(sum, high_a, high_b);
  }

  // x = high + low, without an error; of low a tensor core sees 11 bits.
  static __device__ __forceinline__ void split(float x, unsigned& high, unsigned& low) {
    high = __float_as_uint(x) & kTf32Bits;
    low = __float_as_uint(x - __uint_as_float(high));
  }

  template <int down, int across>
  static __device__ __forceinline__ void all(float (&sum)[down][across][4], const unsigned (&a)[down][4], const unsigned (&b)[across][2]) {
#pragma unroll
    for (int i = 0; i < down; ++i)
#pragma unroll
      for (int j = 0; j < across; ++j) mma_m16n8k8_tf32(sum[i][j], a[i], b[j]);
  }
};
