// Idea: One product of TF32 for each term: a third of the work. Operands are rounded to nearest where they are made, weights when they
//     are transposed and pixels at the end of the layer before, so that nothing is left to do on the way to the tensor cores. Wider tiles,
//     128 x 128 with 64 x 64 a warp, as the products are no longer what takes longest. The last layer is such a product too; the dense one
//     stays in float.
// Bottleneck: Shared memory and mma.sync, as before. An error of 2e-4 at three images, not to be compared with what is exact to float.
// Next: wgmma, which reads its operands from shared memory by itself.
// Source: Own work.

#include "v08_phases.cu"
#include "tensor_tile.cuh"
#include "last_layer_tf32.cuh"

struct OneProduct {
  static constexpr bool kPromoted = false;

  // sum += a * b for all fragments of a warp.
  template <int down, int across>
  static __device__ __forceinline__ void multiply(float (&sum)[down][across][4], const float (&a)[down][4], const float (&b)[across][2]) {
#pragma unroll
    for (int i = 0; i < down; ++i) {
      const unsigned left[4] = {__float_as_uint(a[i][0]), __float_as_uint(a[i][1]), __float_as_uint(a[i][2]), __float_as_uint(a[i][3])};
#pragma unroll
      for (int j = 0; j < across; ++j) {
        const unsigned right[2] = {__float_as_uint(b[j][0]), __float_as_uint(b[j][1])};
        mma_m16n8k8_tf32(sum[i][j], left, right);
      }
    }
  }
};
