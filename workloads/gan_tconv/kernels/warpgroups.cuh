// What the rungs on Hopper's warpgroups share: which outputs a block computes, what it asks the TMA for, and the way out.
//
// Pixels lie as [y][x][channel][image], as in phases.cuh, and weights as they come, [tap][output channel][channel]: to the TMA both are
// matrices, of a row for each pixel and channel, and of a row for each tap and output channel. A tile is one output pixel of some images,
// so that it has the taps of that pixel and no others; the blocks walk over the tiles, those with most taps first.
#ifndef GAN_TCONV_WARPGROUPS
#define GAN_TCONV_WARPGROUPS

#include "../../hopper.cuh"

constexpr int kDepthOfStage = 32;  // channels: 128 bytes, the span of the swizzle
constexpr int kBox = 32;           // images of one of the boxes that a tile of pixels consists of
constexpr int kProducers = 128, kConsumers = 256;

// Sizes of a layer, as the kernels take them. A dense layer is one pixel with one tap.
struct Sizes {
  int side, stride, channels, out_channels, layer, widest;
};

// Output pixel 2p + y, 2q + x of `images` images from the first on, and `columns` of its channels.
template <int images, int columns, bool dense>
struct PixelTile {
  int y, x, p, q, first_image, first_column;
  int lowest_a, highest_a, lowest_b, highest_b;  // tap a meets input row p + y - a

  static __device__ __forceinline__ int count(const Sizes& of) {
    const int across = (of.out_channels + columns - 1) / columns, down = (of.stride + images - 1) / images;
    return across * down * (dense ? 1 : 4 * of.side * of.side);
  }

  __device__ __forceinline__ PixelTile(int tile, const Sizes& of) {
    const int across = (of.out_channels + columns - 1) / columns, down = (of.stride + images - 1) / images;
    first_column = tile % across * columns, first_image = tile / across % down * images;
    const int pixel = tile / across / down, phase = pixel / (of.side * of.side);
    p = pixel / of.side % of.side, q = pixel % of.side;
    y = phase < 2, x = phase % 2 == 0;
    lowest_a = max(0, p + y - of.side + 1), highest_a = min(1 + y, p + y);
    lowest_b = max(0, q + x - of.side + 1), highest_b = min(1 + x, q + x);
    if (dense) y = x = lowest_a = highest_a = lowest_b = highest_b = 0;
  }

  // Calls do_step(row of the pixels' matrix, row of the weights' matrix, channel) for each step of the product.
  template <class Step>
  __device__ __forceinline__ void walk(const Sizes& of, Step do_step) const {
    for (int a = lowest_a; a <= highest_a; ++a)
      for (int b = lowest_b; b <= highest_b; ++b) {
        const int pixel = (p + y - a) * of.side + q + x - b, tap = dense ? 0 : (1 - y + 2 * a) * 5 + 1 - x + 2 * b;
        for (int c = 0; c < of.channels; c += kDepthOfStage)
          do_step(pixel * of.channels + c, tap * of.out_channels + first_column, c);
      }
  }

  __device__ __forceinline__ int steps(const Sizes& of) const {
    return (highest_a - lowest_a + 1) * (highest_b - lowest_b + 1) * ((of.channels + kDepthOfStage - 1) / kDepthOfStage);
  }

  __device__ __forceinline__ int output_pixel(const Sizes& of) const {
    return dense ? 0 : (2 * p + y) * 2 * of.side + 2 * q + x;
  }
};

// relu(sum * scale + shift) of a thread's sums of one output pixel, for the images from `image` and channels from `column` on.
template <int count>
__device__ __forceinline__ void store_pixel(const float (&sums)[count], const float* __restrict__ folded, float* __restrict__ out,
                                            const Sizes& of, const WgmmaFragments& fragments, int pixel, int image, int column) {
  const float* scales = folded + 2 * of.layer * of.widest;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int to = image + fragments.row + fragments.down(i), k = column + fragments.across(i);
    if (to >= of.stride || k >= of.out_channels) continue;
    const float scale = scales[k % of.widest], shift = scales[of.widest + k % of.widest];
    out[((size_t)pixel * of.out_channels + k) * of.stride + to] = fmaxf(fmaf(sums[i], scale, shift), 0.0f);
  }
}

#endif
