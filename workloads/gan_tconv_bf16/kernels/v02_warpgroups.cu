// Idea: Tensor cores by warpgroups, in tiles of 128 images x 256 sums, as v13_warpgroups_tf32 of `gan_tconv` has them. A step brings 64 channels in
//     place of 32, in the same bytes, and takes as long on the tensor cores: half the steps. Pixels leave a layer rounded, so that layers write and
//     read half the bytes; four lanes exchange what they have, and each stores 16 bytes. Weights are taken as they come.
// Bottleneck: Not measured yet. The tensor cores wait while a tile's outputs are stored, and a tile has half the steps.
// Next: -
// Source: Own work; producer and consumers in the order of NVIDIA's CUTLASS 3.

#include "warpgroups.cuh"
#include "last_layer.cuh"

template <int outputs, int columns, bool dense, int stages>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    layer_product(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap w, const float* folded, unsigned short* out,
                  int* next, int side, int images, int words, int out_channels, int layer, int widest) {
  Layer<OutputTile<outputs, columns, dense>, stages>::run(in, w, folded, out, next, {side, images, words, out_channels, layer, widest});
}
