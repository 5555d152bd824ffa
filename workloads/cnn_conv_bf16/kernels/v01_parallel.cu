// Idea: One thread an output. Images, maps and 16x16 tiles of the output are the grid's three dimensions. Operands are BF16 in memory, products and
//     sums float32.
// Bottleneck: Instructions: two loads of 2 bytes for each multiply-add, with their addresses. The tensor cores do nothing.
// Next: Tensor cores, on images that are fetched once.
// Source: Own work; the grid is that of v02_parallel of `cnn_conv`.

constexpr int kSize = 7;
constexpr int kTile = 16;

__device__ __forceinline__ float value_of(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }

__global__ void __launch_bounds__(kTile* kTile) conv_layer(const unsigned short* __restrict__ x, const unsigned short* __restrict__ k,
                                                          unsigned short* __restrict__ y, int channels, int maps, int height, int width) {
  const int out_height = height - kSize + 1, out_width = width - kSize + 1;
  const int tiles_across = (out_width + kTile - 1) / kTile;
  const int b = blockIdx.x, m = blockIdx.y;
  const int h = blockIdx.z / tiles_across * kTile + threadIdx.y;
  const int w = blockIdx.z % tiles_across * kTile + threadIdx.x;
  if (h >= out_height || w >= out_width) return;

  float sum = 0.0f;
  for (int c = 0; c < channels; ++c)
    for (int p = 0; p < kSize; ++p)
      for (int q = 0; q < kSize; ++q)
        sum += value_of(x[((size_t)(b * channels + c) * height + h + p) * width + w + q]) *
               value_of(k[((m * channels + c) * kSize + p) * kSize + q]);
  const unsigned bits = __float_as_uint(sum);
  y[((size_t)(b * maps + m) * out_height + h) * out_width + w] = (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);  // ties to even
}
