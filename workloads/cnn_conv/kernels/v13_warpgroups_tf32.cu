// Idea: The products of v10_toeplitz_tf32 by warpgroups (wgmma): 64 pairs of outputs by 224 columns at once, which are all filter rows
//     of all maps. Pixels go from global memory to registers to the tensor cores; the filters lie in shared memory from the first tile
//     to the last; and the sums of seven output rows stay in registers while the image slides by. Nothing is unrolled, an
//     input row is loaded once, and 7 of 8 products are useful, up to the image's edges. While the tensor cores have an input row, the
//     warpgroup loads the next and writes outputs, by way of shared memory: in whole lines, from whole images. Two warpgroups take turns.
// Bottleneck: Nothing alone: 0.37 ms for 10,000 images of layer 2 on an H200, where 1 GB of DRAM is 0.24 ms at 4.3 TB/s and 89 GFLOP, with the zeros
//     and the 9 of 128 pairs that are no image's, are 0.24 ms at the 366 TFLOP/s that wgmma reaches in the matrix product. Of what bounds L2
//     68 % is used, of DRAM 54 % (Nsight Compute). Where outputs left from registers it took 0.56 ms: 31 million sectors of 32 bytes, half of
//     them written in part; now there are 23 million. 1429 tiles of seven images are 10.8 for each of 132 multiprocessors.
// Next: The accuracy of fp32 on the same units.
// Source: Own work; fragments and operands are those of PTX ISA, wgmma; warpgroups that take turns, J. Shah et al., "FlashAttention-3", 2024.

#include "../../ptx.cuh"
#include "../../hopper.cuh"
#include "toeplitz.cuh"
#include "toeplitz_warpgroups.cuh"

struct Tf32 {
  static constexpr int kTerms = 1, kParts = 1;
  static constexpr int kShapes = 1;  // of wgmma
  static constexpr bool kEarly = true;
  struct Pixels {
    unsigned word[1][4];  // fragments
  };
  struct Weights {
    unsigned word[kParts][2];
  };
  static __device__ __forceinline__ Pixels pixels(const PixelRow& row) {
    return {{{rounded_bits(row.near.x), rounded_bits(row.far.x), rounded_bits(row.near.y), rounded_bits(row.far.y)}}};
  }
  static __device__ __forceinline__ Weights weights(float even, float odd) {
    return {{{rounded_bits(even), rounded_bits(odd)}}};
  }
  template <int count>
  static __device__ __forceinline__ void multiply_add(float (&sums)[count], const Pixels& pixels, unsigned long long weights,
                                                      int, int) {
    wgmma_tf32(sums, pixels.word[0], weights, true);
  }
};

template <int kHeight, int kWidth, int kRows, int kImages>
__global__ void __launch_bounds__(kWarpgroups * 128, 1)
    conv_layer(const float* __restrict__ x, const float* __restrict__ k, float* __restrict__ y, int images) {
  convolve<Tf32, kHeight, kWidth, kRows, kImages>(x, k, y, images);
}
