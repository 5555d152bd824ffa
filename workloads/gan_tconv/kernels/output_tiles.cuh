// Tiles of the rungs on Hopper's warpgroups: 128 images of the outputs around one input pixel (p, q), `outputs` of the four (2p + y, 2q + x),
// y and x 0 or 1, and `columns` channels of each. They need the inputs (p + i, q + j), i and j -1, 0 or 1, by the weights of row
// y + 1 - 2i and column x + 1 - 2j; for i = 1 only outputs of y = 1 have one, for j = 1 those of x = 1. Inputs that meet the same outputs are of
// one kind.
#ifndef GAN_TCONV_OUTPUT_TILES
#define GAN_TCONV_OUTPUT_TILES

#include "phases.cuh"

constexpr int kDepth = 32;  // channels of a step: 128 bytes, the span of the swizzle
constexpr int kImages = 128;

// Sizes of a layer, as the kernels take them. A dense layer is one pixel with one tap, whose output channels are all pixels' channels.
struct Sizes {
  int side, images, channels, out_channels, layer, widest;
};

struct Span {
  int low, high;
  __device__ __forceinline__ Span(int low, int high, int at, int side) : low(max(low, -at)), high(min(high, side - 1 - at)) {}
  __device__ __forceinline__ int count() const { return max(0, high - low + 1); }
};

// outputs: 1; 2, those of one row; or 4, in the order (0, 0), (0, 1), (1, 1), (1, 0), in which each kind's are neighbours.
template <int outputs_, int columns_, bool dense_ = false>
struct OutputTile {
  static constexpr int outputs = outputs_, columns = columns_, kinds = outputs_;
  static constexpr bool dense = dense_;
  int y, x, p, q, first_image, first_column, side;

  // Kind 0 are inputs of j < 1, and for four outputs i < 1; odd kinds are those of j = 1, kinds 2 and 3 those of i = 1.
  static __device__ constexpr int first_output(int kind) { return outputs == 4 ? (kind == 3 ? 2 : kind) : kind; }
  static __device__ constexpr int outputs_of(int kind) { return outputs == 4 ? (kind == 0 ? 4 : kind == 3 ? 1 : 2) : outputs - kind; }

  static __device__ __forceinline__ int count(const Sizes& of) {
    const int across = (of.out_channels + columns - 1) / columns, down = (of.images + kImages - 1) / kImages;
    return across * down * of.side * of.side * (dense ? 1 : 4 / outputs);
  }

  // Neighbouring numbers share inputs; those with most taps, of odd y and x, come first.
  __device__ __forceinline__ OutputTile(int number, const Sizes& of) : side(of.side) {
    const int across = (of.out_channels + columns - 1) / columns, down = (of.images + kImages - 1) / kImages;
    first_column = number % across * columns, number /= across;
    q = number % side, number /= side;
    p = number % side, number /= side;
    first_image = number % down * kImages, number /= down;
    y = outputs == 1 ? number < 2 : number == 0, x = number % 2 == 0;
    if (dense) y = x = 0;
  }

  __device__ __forceinline__ Span rows(int kind) const {
    if (outputs == 4) return kind >= 2 ? Span(1, 1, p, side) : Span(-1, 0, p, side);
    return Span(-1, y, p, side);
  }
  __device__ __forceinline__ Span across(int kind) const {
    if (outputs == 1) return Span(-1, x, q, side);
    return kind % 2 ? Span(1, 1, q, side) : Span(-1, 0, q, side);
  }
  static __device__ __forceinline__ int steps_of_input(int channels) { return (channels + 2 * kDepth - 1) / (2 * kDepth) * 2; }  // even
  __device__ __forceinline__ int steps(int kind, int channels) const {
    return rows(kind).count() * across(kind).count() * steps_of_input(channels);
  }

  __device__ __forceinline__ int y_of(int output) const { return outputs == 4 ? output / 2 : y; }
  __device__ __forceinline__ int x_of(int output) const {
    return outputs == 1 ? x : outputs == 2 ? output : output == 1 || output == 2;
  }
  __device__ __forceinline__ int tap(int output, int i, int j) const {
    return dense ? 0 : (y_of(output) + 1 - 2 * i) * kSize + x_of(output) + 1 - 2 * j;
  }
  __device__ __forceinline__ int pixel(int output) const {
    return dense ? 0 : (2 * p + y_of(output)) * 2 * side + 2 * q + x_of(output);
  }
};

#endif
