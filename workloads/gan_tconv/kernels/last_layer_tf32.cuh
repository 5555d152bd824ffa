// The last layer on tensor cores, by mma.sync. The four output pixels around an input pixel have 6 sums of each row: a matrix of six columns
// for either row, filled up to the eight of the instruction. Their nine inputs, 32 images and 8 channels of each at a time, come from memory
// as fragments: four images are one read of a lane, and stand for rows g and g + 8 of two products. A warp has 2 x 2 of these input pixels:
// what it reads meets up to nine of them, and the weights that join them stay in registers while all pixels pass.
#ifndef GAN_TCONV_LAST_LAYER_TF32
#define GAN_TCONV_LAST_LAYER_TF32

#include "phases.cuh"

constexpr int kPixelsDown = 2, kPixelsAcross = 2, kNeighbours = 9;  // input pixels of a warp; inputs of each
constexpr int kWarpsDown = 2, kWarpsAcross = 2;
constexpr int kSumsOfRow = 2 * kColours;

// Of lane (g, t): weights of channels t and t + 4 of the step, for column g of the upper, then of the lower row of outputs.
__device__ __forceinline__ float4 weight_fragment(const float* __restrict__ w, int first_channel, int channels, int i, int j, int lane) {
  const int g = lane / 4, s = g / kColours + 1 - 2 * j;
  float of[4];
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const int c = first_channel + lane % 4 + n % 2 * 4, r = n / 2 + 1 - 2 * i;
    const bool has = g < kSumsOfRow && c < channels && r >= 0 && r < kSize && s >= 0 && s < kSize;
    of[n] = has ? rounded_if(true, w[c * kWeights + (r * kSize + s) * kColours + g % kColours]) : 0.0f;
  }
  return make_float4(of[0], of[1], of[2], of[3]);
}

__device__ __forceinline__ unsigned rounded_bits(float x) { return __float_as_uint(x) + 0x1000u; }  // tensor cores cut off the rest

// whole: channels are a multiple of 8.
template <bool whole>
__global__ void __launch_bounds__(32 * kWarpsDown * kWarpsAcross, 2)
    last_layer_tf32(const float* __restrict__ in, const float* __restrict__ w, const float* __restrict__ bias, float* __restrict__ images,
                    int side, int stride, int channels, int count) {
  extern __shared__ __align__(16) float4 fragments[];  // [step][neighbour][lane]
  const int lane = threadIdx.x % 32, steps = (channels + 7) / 8;
  const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);  // the same for all lanes: its pixels' addresses are kept once a warp
  for (int n = warp; n < steps * kNeighbours; n += kWarpsDown * kWarpsAcross) {
    const int neighbour = n % kNeighbours;
    fragments[n * 32 + lane] = weight_fragment(w, n / kNeighbours * 8, channels, neighbour / 3 - 1, neighbour % 3 - 1, lane);
  }
  __syncthreads();

  const int g = lane / 4, t = lane % 4, tiles = side / (kPixelsAcross * kWarpsAcross);
  const int p = (blockIdx.y / tiles * kWarpsDown + warp / kWarpsAcross) * kPixelsDown;
  const int q = (blockIdx.y % tiles * kWarpsAcross + warp % kWarpsAcross) * kPixelsAcross;
  const int image = blockIdx.x * 32 + 4 * g;
  const int pixel = channels * stride;
  const float* from = in + (p * side + q) * pixel + min(image, stride - 4) + t * stride;

  float sums[kPixelsDown][kPixelsAcross][2][2][4] = {};  // [row][column][row of outputs][pair of images]
#pragma unroll 1
  for (int step = 0; step < steps; ++step, from += 8 * stride) {
    float4 weights[kNeighbours];
#pragma unroll
    for (int n = 0; n < kNeighbours; ++n) weights[n] = fragments[(step * kNeighbours + n) * 32 + lane];
    const bool low = whole || 8 * step + t < channels, high = whole || 8 * step + t + 4 < channels;
#pragma unroll
    for (int row = -1; row <= kPixelsDown; ++row) {
      const float* row_from = from + (row * side) * pixel;
#pragma unroll
      for (int column = -1; column <= kPixelsAcross; ++column) {
        const bool inside = p + row >= 0 && p + row < side && q + column >= 0 && q + column < side;
        const float* at = row_from + column * pixel;
        const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        const float4 x = inside && low ? *reinterpret_cast<const float4*>(at) : zero;
        const float4 y = inside && high ? *reinterpret_cast<const float4*>(at + 4 * stride) : zero;
        const unsigned pixels[2][4] = {{rounded_bits(x.x), rounded_bits(x.y), rounded_bits(y.x), rounded_bits(y.y)},
                                       {rounded_bits(x.z), rounded_bits(x.w), rounded_bits(y.z), rounded_bits(y.w)}};
#pragma unroll
        for (int i = -1; i <= 1; ++i)
#pragma unroll
          for (int j = -1; j <= 1; ++j) {
            const int down = row - i, across = column - j;  // the pixel that this one is neighbour (i, j) of
            if (down < 0 || down >= kPixelsDown || across < 0 || across >= kPixelsAcross) continue;
            const float4& weight = weights[(i + 1) * 3 + j + 1];
            const unsigned upper[2] = {__float_as_uint(weight.x), __float_as_uint(weight.y)};
            const unsigned lower[2] = {__float_as_uint(weight.z), __float_as_uint(weight.w)};
#pragma unroll
            for (int pair = 0; pair < 2; ++pair) {
              if (i < 1) mma_m16n8k8_tf32(sums[down][across][0][pair], pixels[pair], upper);  // below, only the lower row has weights
              mma_m16n8k8_tf32(sums[down][across][1][pair], pixels[pair], lower);
            }
          }
      }
    }
  }

  // Columns 2t and 2t + 1 of the six that a row of two output pixels and three colours has.
  if (t >= kSumsOfRow / 2) return;
  const float first_bias = bias[2 * t % kColours], second_bias = bias[(2 * t + 1) % kColours];
#pragma unroll
  for (int n = 0; n < kPixelsDown * kPixelsAcross * 2; ++n) {
    const int down = n / kPixelsAcross / 2, y = n / kPixelsAcross % 2, across = n % kPixelsAcross;
    const size_t to = ((size_t)(2 * (p + down) + y) * 2 * side + 2 * (q + across)) * kColours + 2 * t;
#pragma unroll
    for (int of = 0; of < 4; ++of) {
      if (image + of >= count) continue;
      const float* sum = &sums[down][across][y][of / 2][of % 2 * 2];
      const float2 colours = make_float2(tanhf(sum[0] + first_bias), tanhf(sum[1] + second_bias));
      *reinterpret_cast<float2*>(images + (size_t)(image + of) * 4 * side * side * kColours + to) = colours;
    }
  }
}

#endif
