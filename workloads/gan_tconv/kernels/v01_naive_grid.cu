// Idea: The loops over the rows, columns and channels of an output become a grid of three dimensions, in blocks of 4x4x2; each
//     thread looks at all 25 taps of its output and skips those that fall between two inputs. One image after another;
//     bias, batch normalisation, ReLU and tanh are kernels of their own.
// Bottleneck: The skipping. Whether a tap meets an input depends on the parity of row and column, which differ within a warp: it walks
//     through all four kinds of output. An image alone has too few threads besides.
// Next: Step over the taps that are skipped: start from the output's parity, by twos.
// Source: S. Yi, "SHPC 2021 Fall Term Project Report", Seoul National University, 2021, section 2.2 (tconv).

#include "layers.cuh"

// in: images x side x side x channels; out: twice as many rows and columns, x out_channels; w: 5 x 5 x out_channels x channels.
// Images and output channels share the grid's third dimension.
__global__ void tconv(const float* __restrict__ in, const float* __restrict__ w, const float* __restrict__ bias,
                      float* __restrict__ out, int images, int side, int channels, int out_channels) {
  const int h_out = blockDim.x * blockIdx.x + threadIdx.x;
  const int w_out = blockDim.y * blockIdx.y + threadIdx.y;
  const int k = (blockDim.z * blockIdx.z + threadIdx.z) % out_channels;
  const int image = (blockDim.z * blockIdx.z + threadIdx.z) / out_channels;
  if (h_out >= 2 * side || w_out >= 2 * side || image >= images) return;

  float sum = bias[k];
  for (int r = 0; r < kSize; ++r) {
    for (int s = 0; s < kSize; ++s) {
      const int h_in = h_out + r - 3, w_in = w_out + s - 3;  // among zeros: input i lies at 2i
      if (h_in < 0 || h_in >= 2 * side || w_in < 0 || w_in >= 2 * side) continue;
      if (h_in % 2 == 0 && w_in % 2 == 0) {
        const float* pixel = in + ((image * side + h_in / 2) * side + w_in / 2) * channels;
        const float* weights = w + (((4 - r) * kSize + 4 - s) * out_channels + k) * channels;
        for (int c = 0; c < channels; ++c) sum += pixel[c] * weights[c];
      }
    }
  }
  out[((image * 2 * side + h_out) * 2 * side + w_out) * out_channels + k] = sum;
}
