// Idea: One product of TF32, which is so quick that what counts is how often an operand is fetched into shared memory: tiles of
//     128 x 256 sums. The second layer has 128 output channels, so that its tile is two output pixels of a row, the third 64 and four pixels;
//     they need the same inputs, which are fetched once and meet the weights of all of them side by side. Both operands are rounded before
//     they are stored, weights once an operation and pixels as they leave a layer. The dense layer is such a product too.
// Bottleneck: The tensor cores, and nearly as much the bytes a clock of shared memory: of 0.95 ms for 1000 images on an H200 the layers in the
//     middle take 0.81 ms, at 357, 340 and 292 TFLOP/s. In the third, inputs that meet fewer outputs make narrow products. 11 bits of each
//     operand: an error of 3e-4, not to be compared with what is exact to float.
// Next: -
// Source: Own work; producer and consumers in the order of NVIDIA's CUTLASS 3.

#include "warpgroups.cuh"
#include "last_layer_wgmma.cuh"

struct OneProduct {
  static constexpr int parts = 1;
  static constexpr bool rounded = true;

  // Of the first kind, which most are of, one step is under way while the next is waited for; with two under way in the others too, ptxas
  // has too few registers and lets none overlap.
  template <class Tile, int kind, int stages>
  static __device__ __forceinline__ void multiply(float (&sums)[Tile::outputs][Tile::columns / 2], int steps,
                                                  Stage<Tile::outputs * Tile::columns, parts>* stage, Pipeline<stages>& pipeline,
                                                  Ring<stages>& ring, const WgmmaRows& rows) {
    constexpr int kNext = Tile::columns * kDepth * sizeof(float) / 16;  // the weights of the next output, in the unit of wgmma's operands
    unsigned values[2][16];                                             // of two steps, taking turns
    int previous = -1;
#pragma unroll 1
    for (; steps > 0; steps -= 2) {
#pragma unroll
      for (int turn = 0; turn < 2; ++turn) {
        auto& now = stage[ring.stage];
        mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
#pragma unroll
        for (int i = 0; i < 16; ++i) values[turn][i] = __float_as_uint(rows.load(now.pixels, i / 4, i % 4));
        const unsigned long long weights = wgmma_operand(now.weights[0]);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < kDepth / 8; ++i)
#pragma unroll
          for (int n = 0; n < Tile::outputs_of(kind); ++n)
            wgmma_tf32(sums[Tile::first_output(kind) + n], values[turn] + 4 * i, weights + n * kNext + 2 * i, true);
        wgmma_commit();
        wgmma_wait<kind == 0 ? 1 : 0>();
        if (previous >= 0) pipeline.release(previous);
        previous = ring.stage;
        ring.next();
      }
    }
    wgmma_wait<0>();
#pragma unroll
    for (int n = 0; n < Tile::outputs_of(kind); ++n) wgmma_keep(sums[Tile::first_output(kind) + n]);
    if (previous >= 0) pipeline.release(previous);
  }
};

template <int outputs, int columns, bool dense, int stages>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    layer_product(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap w, const float* folded, float* out, int* next,
                  int side, int images, int channels, int out_channels, int layer, int widest) {
  Layer<OneProduct, OutputTile<outputs, columns, dense>, stages>::run(in, w, w, folded, out, next,
                                                                      {side, images, channels, out_channels, layer, widest});
}
