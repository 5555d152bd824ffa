// Idea: Float32 on tensor cores. Each operand is split into TF32 and what TF32 leaves of it, of which TF32 keeps all but
//     2^-22 of the whole: x = big + small. Of (big + small) * (big + small) three products are kept; small * small, at most
//     2^-22, is not. The three of a step are added up on the tensor cores, the small ones first, and their sum to the others by
//     the float32 units: tensor cores cut sums off instead of rounding them, which at k = 4096 left an error of 2.9e-5.
// Bottleneck: The tensor cores do three times the work, 105 TFLOP/s at most by mma.sync on an H200; splitting costs three
//     instructions an operand, for each warp that reads it, beside the loads.
// Next: Hopper's warpgroups, which read both halves of B from shared memory by themselves.
// Source: Own work; the scheme is that of H. Ootomo and R. Yokota, "Recovering single precision accuracy from tensor cores",
//     IJHPCA 2022, without its scaling of the small parts, which float32's exponent makes unnecessary in TF32.

#include "v09_tensor_cores_tf32.cu"

// What TF32 keeps of x, and what it leaves. The tensor cores cut the latter off after 10 bits of fraction, 2^-22 of x.
__device__ __forceinline__ void split(float x, unsigned& big, unsigned& small) {
  big = rounded(x);
  small = __float_as_uint(x - __uint_as_float(big));
}

// sums += values * weights in three products.
struct ThreefoldProduct {
  static constexpr int kWarpColumns = 32;  // half as many: the split operands take the registers
  using Operands = Fragments<kWarpColumns>;

  __device__ __forceinline__ static void add(Operands::Sums& sums, const Operands& of) {
    unsigned big[kRowBlocks][4], small[kRowBlocks][4];
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) split(of.values[i][e], big[i][e], small[i][e]);
#pragma unroll
    for (int j = 0; j < Operands::kColumnBlocks; ++j) {
      unsigned big_weights[2], small_weights[2];
      split(of.weights[j][0], big_weights[0], small_weights[0]);
      split(of.weights[j][1], big_weights[1], small_weights[1]);
#pragma unroll
      for (int i = 0; i < kRowBlocks; i += 2) {
        float step[2][4] = {};
        mma_m16n8k8_tf32(step[0], small[i], big_weights);
        mma_m16n8k8_tf32(step[1], small[i + 1], big_weights);
        mma_m16n8k8_tf32(step[0], big[i], small_weights);
        mma_m16n8k8_tf32(step[1], big[i + 1], small_weights);
        mma_m16n8k8_tf32(step[0], big[i], big_weights);
        mma_m16n8k8_tf32(step[1], big[i + 1], big_weights);
#pragma unroll
        for (int e = 0; e < 8; ++e) sums[i + e / 4][j][e % 4] += step[e / 4][e % 4];
      }
    }
  }
};

template <int kRows, int kColumns, int kDepth, int kStages, bool kWhole>
__global__ void __launch_bounds__(kRows / kWarpRows * (kColumns / ThreefoldProduct::kWarpColumns) * kWarp)
    gemm_threefold(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c,
                   float* __restrict__ d, int m, int n, int k, float alpha, float beta) {
  multiply<ThreefoldProduct, kRows, kColumns, kDepth, kStages, kWhole>(a, b, c, d, m, n, k, alpha, beta);
}
