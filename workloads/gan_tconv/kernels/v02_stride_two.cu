// Idea: The loops over taps start at the first that meets an input and go by twos: no test of parity is left. The report measured
//     1.5 times the speed.
// Bottleneck: Loads. Each product takes an input and a weight from memory for one multiply-add, and neighbouring threads read weights
//     a whole row of channels apart.
// Next: A matrix product, whose tiles are read once and used many times.
// Source: S. Yi, "SHPC 2021 Fall Term Project Report", Seoul National University, 2021, section 2.2.1.

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
  for (int r = (h_out + 1) % 2; r < kSize; r += 2) {
    const int h_in = (h_out + r - 3) / 2;  // even above the bar, -2 or more
    if (h_in < 0 || h_in >= side) continue;
    for (int s = (w_out + 1) % 2; s < kSize; s += 2) {
      const int w_in = (w_out + s - 3) / 2;
      if (w_in < 0 || w_in >= side) continue;
      const float* pixel = in + ((image * side + h_in) * side + w_in) * channels;
      const float* weights = w + (((4 - r) * kSize + 4 - s) * out_channels + k) * channels;
      for (int c = 0; c < channels; ++c) sum += pixel[c] * weights[c];
    }
  }
  out[((image * 2 * side + h_out) * 2 * side + w_out) * out_channels + k] = sum;
}
