// Idea: A thread an output, which goes along the taps that meet an input. Operands are BF16 in memory, products and sums float32. Pixels lie as
//     [y][x][image][channel]; each leaves its layer with batch normalisation and ReLU done, rounded.
// Bottleneck: The load pipe: each multiply-add wants two loads of 2 bytes. The tensor cores do nothing.
// Next: Tensor cores, on tiles that are fetched once.
// Source: Own work; the taps are those of v02_stride_two of `gan_tconv`.

#include "../../gan_tconv/kernels/phases.cuh"

__device__ __forceinline__ float value_of(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }

// To the nearest, ties to even.
__device__ __forceinline__ unsigned short to_bf16(float x) {
  const unsigned bits = __float_as_uint(x);
  return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

__device__ __forceinline__ float normalised(float sum, const float* __restrict__ folded, int layer, int k, int widest) {
  return fmaxf(fmaf(sum, folded[2 * layer * widest + k], folded[(2 * layer + 1) * widest + k]), 0.0f);
}

// `outputs`: channels of all pixels. Output n of an image goes to pixel n / widest.
__global__ void dense(const unsigned short* __restrict__ z, const unsigned short* __restrict__ w, const float* __restrict__ folded,
                      unsigned short* __restrict__ out, int images, int latent, int outputs, int widest) {
  const int at = blockDim.x * blockIdx.x + threadIdx.x, n = at % outputs, image = at / outputs;
  if (image >= images) return;
  float sum = 0.0f;
  for (int c = 0; c < latent; ++c) sum += value_of(z[image * latent + c]) * value_of(w[n * latent + c]);
  const int pixel = n / widest, k = n % widest;
  out[((size_t)pixel * images + image) * widest + k] = to_bf16(normalised(sum, folded, 0, k, widest));
}

// The sum of an output pixel (y, x) of an image, in channel k.
__device__ __forceinline__ float sum_of(const unsigned short* __restrict__ in, const unsigned short* __restrict__ w, int y, int x, int image,
                                        int k, int side, int images, int channels, int out_channels) {
  float sum = 0.0f;
  for (int r = (y + 1) % 2; r < kSize; r += 2)
    for (int s = (x + 1) % 2; s < kSize; s += 2) {
      const int i = (y + 1 - r) / 2, j = (x + 1 - s) / 2;  // of a negative number 0 or below, too
      if (y + 1 < r || x + 1 < s || i >= side || j >= side) continue;
      const unsigned short* from = in + ((size_t)(i * side + j) * images + image) * channels;
      const unsigned short* by = w + (size_t)((r * kSize + s) * out_channels + k) * channels;
      for (int c = 0; c < channels; ++c) sum += value_of(from[c]) * value_of(by[c]);
    }
  return sum;
}

// blockIdx.y: the output pixel.
__global__ void tconv(const unsigned short* __restrict__ in, const unsigned short* __restrict__ w, const float* __restrict__ folded,
                      unsigned short* __restrict__ out, int side, int images, int channels, int out_channels, int layer, int widest) {
  const int at = blockDim.x * blockIdx.x + threadIdx.x, k = at % out_channels, image = at / out_channels, pixel = blockIdx.y;
  if (image >= images) return;
  const float sum = sum_of(in, w, pixel / (2 * side), pixel % (2 * side), image, k, side, images, channels, out_channels);
  out[((size_t)pixel * images + image) * out_channels + k] = to_bf16(normalised(sum, folded, layer, k, widest));
}

// The last layer, [image][pixel][colour].
__global__ void colours(const unsigned short* __restrict__ in, const unsigned short* __restrict__ w, const float* __restrict__ bias,
                        unsigned short* __restrict__ out, int side, int images, int channels) {
  const int at = blockDim.x * blockIdx.x + threadIdx.x, k = at % kColours, image = at / kColours, pixel = blockIdx.y;
  if (image >= images) return;
  const float sum = sum_of(in, w, pixel / (2 * side), pixel % (2 * side), image, k, side, images, channels, kColours);
  out[((size_t)image * 4 * side * side + pixel) * kColours + k] = to_bf16(tanhf(sum + bias[k]));
}
