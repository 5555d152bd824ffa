// Idea: Tensor cores by warpgroups, in tiles of 128 images x 256 sums, as v13_warpgroups_tf32 of `gan_tconv` has them. A step brings 64 channels in
//     place of 32, in the same bytes, and takes as long on the tensor cores: half the steps. Pixels leave a layer rounded, so that layers write and
//     read half the bytes; four lanes exchange what they have, and each stores 16 bytes. Weights are taken as they come, each layer folds its own
//     batch normalisation, of fewer than 128 images the TMA brings no others, and a launch starts while the
//     one before it ends.
// Bottleneck: Of 525 us for 1000 images on an H200 the layers in the middle take 124, 142 and 173 us, at 560 to 630 TFLOP/s. By their steps they fetch 7 to
//     9 TB/s of operands from L2 then; the outputs of a tile are stored while the tensor cores wait. A tile is 128 images: fewer leave rows of the
//     products empty, so that three take 109 us and a hundred 114, where torch.compile takes 83 us for three. Launches that start late
//     would take 9 us more.
// Next: Weights that two blocks share; for few images, pixels of all images as rows of a product.
// Source: Own work; producer and consumers in the order of NVIDIA's CUTLASS 3.

#include "warpgroups.cuh"
#include "last_layer.cuh"

template <int outputs, int columns, bool dense, int stages>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    layer_product(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap w, const float* bn, const float* bias,
                  unsigned short* out, int* next, int side, int images, int words, int out_channels, int layer, int widest) {
  Layer<OutputTile<outputs, columns, dense>, stages>::run(in, w, bn, bias, out, next,
                                                         {side, images, words, out_channels, layer, widest});
}
