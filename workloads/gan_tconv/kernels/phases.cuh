// What the rungs by phases have in common: which products a block owns, its tiles on their way to shared memory, and the kernels before
// and after the matrix products.
//
// Pixels lie as [y][x][channel][image], the images of a row padded to a multiple of four, `stride`, so that images are read and written by
// fours. Output (2p + y, 2q + x), y and x its parities, has 2 + y by 2 + x taps: tap a meets input row p + y - a with weight row
// 1 - y + 2a, columns alike. The outputs of one pair of parities, a phase, are one matrix product: a row for each pixel and image, whose
// terms are the taps' channels.
#ifndef GAN_TCONV_PHASES
#define GAN_TCONV_PHASES

#include "../../ptx.cuh"

constexpr int kSize = 5;  // rows and columns of a weight
constexpr float kEpsilon = 1e-5f;
constexpr unsigned kTf32Bits = 0xffffe000u;  // what a tensor core sees of a float

__device__ __forceinline__ float rounded_if(bool round, float x) { return round ? __uint_as_float(to_tf32(x)) : x; }

// The tile of a block: rows are (pixel, image) of a phase, columns output channels. Blocks with most taps come first.
template <int rows, int columns>
struct Tile {
  int y, x;                                      // parities
  int first_row, first_column;                   // of the product
  int lowest_a, highest_a, lowest_b, highest_b;  // taps that some pixel of the tile has
  int side, stride;

  __device__ __forceinline__ Tile(int side, int stride, int out_channels) : side(side), stride(stride) {
    const int across = (out_channels + columns - 1) / columns, down = (side * side * stride + rows - 1) / rows;
    const int phase = blockIdx.x / across / down;
    y = phase < 2, x = phase % 2 == 0;
    first_row = blockIdx.x / across % down * rows, first_column = blockIdx.x % across * columns;
    const int first = first_row / stride, last = (min(first_row + rows, side * side * stride) - 1) / stride;
    const int top = first / side, bottom = last / side;
    const int left = top == bottom ? first % side : 0, right = top == bottom ? last % side : side - 1;
    lowest_a = max(0, top + y - side + 1), highest_a = min(1 + y, bottom + y);
    lowest_b = max(0, left + x - side + 1), highest_b = min(1 + x, right + x);
  }

  __device__ __forceinline__ int taps() const { return (highest_a - lowest_a + 1) * (highest_b - lowest_b + 1); }

  // Where the pixel and image of a row of the product lie in the output, for channel 0.
  __device__ __forceinline__ int output(int row, int out_channels) const {
    const int pixel = row / stride, p = pixel / side, q = pixel % side;
    return ((2 * p + y) * 2 * side + 2 * q + x) * out_channels * stride + row % stride;
  }
};

// Copies the next `depth` terms of a tile's product to shared memory: a[term][row] of pixels, b[term][column] of weights, which lie as
// [tap][channel][output channel]. A tap outside the image, and what lies beyond rows, columns and channels, becomes zeros.
// A dense layer is the product of one pixel with one tap.
template <int rows, int columns, int threads, int depth, int padding, bool dense>
struct Loader {
  static constexpr int kRowStep = threads / (rows / 4), kColumnStep = threads / (columns / 4);
  static_assert(kRowStep * (rows / 4) == threads && kColumnStep * (columns / 4) == threads);
  static_assert(depth % kRowStep == 0 && depth % kColumnStep == 0);

  const Tile<rows, columns>& tile;
  const float *in, *w;         // of this thread's first term of the tap
  const int channels, out_channels;
  int p, q, a, b;              // pixel of this thread's four rows; tap
  bool pixel, column, inside;  // of the product, of the weights, of the image
  const float *from_a, *from_b;
  int channel = 0;

  __device__ __forceinline__ Loader(const Tile<rows, columns>& tile, const float* x, const float* weights, int channels,
                                    int out_channels)
      : tile(tile), channels(channels), out_channels(out_channels), a(tile.lowest_a), b(tile.lowest_b) {
    const int row = tile.first_row + threadIdx.x % (rows / 4) * 4, k = tile.first_column + threadIdx.x % (columns / 4) * 4;
    p = row / tile.stride / tile.side, q = row / tile.stride % tile.side;
    pixel = p < tile.side, column = k < out_channels;
    in = x + threadIdx.x / (rows / 4) * tile.stride + row % tile.stride;
    w = weights + threadIdx.x / (columns / 4) * out_channels + k;
    begin_tap();
  }

  __device__ __forceinline__ void begin_tap() {
    const int i = p + tile.y - a, j = q + tile.x - b;
    inside = pixel && i >= 0 && i < tile.side && j >= 0 && j < tile.side;
    from_a = in + (inside ? (i * tile.side + j) * channels * tile.stride : 0);
    from_b = dense ? w : w + ((1 - tile.y + 2 * a) * kSize + 1 - tile.x + 2 * b) * channels * out_channels;
  }

  __device__ __forceinline__ int blocks() const { return tile.taps() * ((channels + depth - 1) / depth); }

  __device__ __forceinline__ void load(float* to_a, float* to_b) {
    const int row_term = threadIdx.x / (rows / 4), column_term = threadIdx.x / (columns / 4);
    to_a += row_term * (rows + padding) + threadIdx.x % (rows / 4) * 4;
    to_b += column_term * (columns + padding) + threadIdx.x % (columns / 4) * 4;
#pragma unroll
    for (int n = 0; n < depth; n += kRowStep)
      cp_async<16>(to_a + n * (rows + padding), from_a + n * tile.stride, inside && channel + row_term + n < channels);
#pragma unroll
    for (int n = 0; n < depth; n += kColumnStep)
      cp_async<16>(to_b + n * (columns + padding), from_b + n * out_channels, column && channel + column_term + n < channels);
    channel += depth, from_a += depth * tile.stride, from_b += depth * out_channels;
    if (channel < channels) return;
    channel = 0;
    if (++b > tile.highest_b) b = tile.lowest_b, ++a;
    begin_tap();
  }
};

// Batch normalisation and bias of a layer as x * scale + shift: rows 2n and 2n + 1 of `folded`, `channels` long, are those of layer n.
__global__ void fold(const float* __restrict__ bn0, const float* __restrict__ bn1, const float* __restrict__ bias1,
                     const float* __restrict__ bn2, const float* __restrict__ bias2, const float* __restrict__ bn3,
                     const float* __restrict__ bias3, float* __restrict__ folded, int channels) {
  const int layer = blockIdx.y, here = channels >> layer, k = blockDim.x * blockIdx.x + threadIdx.x;
  if (k >= here) return;
  const float* bn = layer == 0 ? bn0 : layer == 1 ? bn1 : layer == 2 ? bn2 : bn3;
  const float bias = layer == 0 ? 0.0f : layer == 1 ? bias1[k] : layer == 2 ? bias2[k] : bias3[k];
  const float scale = bn[k] / sqrtf(bn[3 * here + k] + kEpsilon);
  folded[2 * layer * channels + k] = scale;
  folded[(2 * layer + 1) * channels + k] = (bias - bn[2 * here + k]) * scale + bn[here + k];
}

// Each of gridDim.z matrices, rows x columns, to columns x stride; zeros beyond the rows.
template <bool round>
__global__ void __launch_bounds__(256) transpose(const float* __restrict__ in, float* __restrict__ out, int rows, int columns,
                                                 int stride) {
  constexpr int kTile = 32, kStep = 8;  // the block is kTile x kStep threads
  __shared__ float tile[kTile][kTile + 1];
  in += (size_t)blockIdx.z * rows * columns;
  out += (size_t)blockIdx.z * columns * stride;
  const int row = blockIdx.x * kTile, column = blockIdx.y * kTile;
  for (int n = threadIdx.y; n < kTile; n += kStep) {
    const bool inside = row + n < rows && column + threadIdx.x < columns;
    tile[n][threadIdx.x] = inside ? in[(row + n) * columns + column + threadIdx.x] : 0.0f;
  }
  __syncthreads();
  for (int n = threadIdx.y; n < kTile; n += kStep)
    if (column + n < columns && row + threadIdx.x < stride)
      out[(column + n) * stride + row + threadIdx.x] = rounded_if(round, tile[threadIdx.x][n]);
}

// The last layer: three output channels are too few for a tile. A lane is an image; its thread has 4 x 4 outputs of three colours, for
// which it loads 4 x 4 inputs a channel and all 75 weights, which are the same to all lanes: 300 multiply-adds out of registers.
constexpr int kColours = 3, kPatch = 4, kWeights = 76;  // 75 weights of a channel, padded to vectors

__global__ void __launch_bounds__(128) last_layer(const float* __restrict__ in, const float* __restrict__ w,
                                                  const float* __restrict__ bias, float* __restrict__ images, int side, int stride,
                                                  int channels, int count) {
  const int patches = 2 * side / kPatch;  // along one direction
  extern __shared__ __align__(16) float weights[];
  for (int n = threadIdx.y * 32 + threadIdx.x; n < channels * kWeights; n += 128) weights[n] = w[n];
  __syncthreads();
  const int image = blockIdx.x * 32 + threadIdx.x, patch = blockIdx.y * blockDim.y + threadIdx.y;
  const int down = patch / patches, across = patch % patches;
  const int pixel_step = channels * stride;
  const float* from[kPatch];  // the channel in the patch's first column of each row
  bool row_inside[kPatch];
#pragma unroll
  for (int i = 0; i < kPatch; ++i) {
    const int row = 2 * down + i - 1;
    row_inside[i] = row >= 0 && row < side;
    from[i] = in + (row * side + 2 * across - 1) * pixel_step + min(image, stride - 1);
  }
  float sum[kPatch][kPatch][kColours] = {};
#pragma unroll 1
  for (int c = 0; c < channels; ++c) {
    float x[kPatch][kPatch], of[kWeights];
#pragma unroll
    for (int i = 0; i < kPatch; ++i) {
#pragma unroll
      for (int j = 0; j < kPatch; ++j) {
        const bool column_inside = (j > 0 || across > 0) && (j < kPatch - 1 || across < patches - 1);
        x[i][j] = row_inside[i] && column_inside ? from[i][j * pixel_step] : 0.0f;
      }
      from[i] += stride;
    }
#pragma unroll
    for (int n = 0; n < kWeights; n += 4) {
      const float4 four = *reinterpret_cast<const float4*>(weights + c * kWeights + n);
      of[n] = four.x, of[n + 1] = four.y, of[n + 2] = four.z, of[n + 3] = four.w;
    }
#pragma unroll
    for (int r = 0; r < kSize; ++r) {
#pragma unroll
      for (int s = 0; s < kSize; ++s) {
        const int row_parity = 1 - r % 2, column_parity = 1 - s % 2;
#pragma unroll
        for (int p = 0; p < 2; ++p)
#pragma unroll
          for (int q = 0; q < 2; ++q)
#pragma unroll
            for (int k = 0; k < kColours; ++k) {
              float& out = sum[2 * p + row_parity][2 * q + column_parity][k];
              out = fmaf(x[p + row_parity - r / 2 + 1][q + column_parity - s / 2 + 1], of[(r * kSize + s) * kColours + k], out);
            }
      }
    }
  }
  if (image >= count) return;
#pragma unroll
  for (int i = 0; i < kPatch; ++i) {
    float4* to = reinterpret_cast<float4*>(images + ((image * 2 * side + kPatch * down + i) * 2 * side + kPatch * across) * kColours);
    float of[kPatch * kColours];
#pragma unroll
    for (int n = 0; n < kPatch * kColours; ++n) of[n] = tanhf(sum[i][n / kColours][n % kColours] + bias[n % kColours]);
#pragma unroll
    for (int n = 0; n < kColours; ++n) to[n] = make_float4(of[4 * n], of[4 * n + 1], of[4 * n + 2], of[4 * n + 3]);
  }
}

#endif
