// What the rungs for few images have in common: units of work, their way to shared memory, their sums' way out, and the dense and the last
// layer.
//
// A unit is a square of kTile x kTile input pixels of 2 * per images, kColumns output channels and a slice of the input channels, with all
// 25 taps: input (i, j) by weight (r, s) belongs to output (2i + r - 1, 2j + s - 1). For the outputs 2p + y and 2q + x of its pixels (p, q), y
// and x 0 or 1, a unit needs the pixels (p + dy, q + dx), dy and dx -1, 0 or 1, by the weights (y + 1 - 2 dy, x + 1 - 2 dx). All units have the
// same work. The slices of a unit are the blocks of a cluster: each adds up its share of the sums of all.
//
// Pixels lie as [image][y][x][channel], weights as they are given.
#ifndef GAN_TCONV_FEW_IMAGES
#define GAN_TCONV_FEW_IMAGES

#include "../../ptx.cuh"
#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"

constexpr int kSize = 5, kTaps = kSize * kSize;
constexpr int kTile = 4, kHalo = kTile + 2, kHaloPixels = kHalo * kHalo;  // pixels with those around them
constexpr int kColumns = 16;
constexpr int kThreads = 256, kGroup = 128;  // two groups of threads share the channels of a step
constexpr int kLineFloats = 32;              // of the L2 cache
constexpr float kEpsilon = 1e-5f;

__device__ __forceinline__ float rounded_if(bool round, float x) { return round ? __uint_as_float(to_tf32(x)) : x; }

// Batch normalisation of x + bias as x * scale + shift. The rows of `bn` are scale, shift, mean and variance.
__device__ __forceinline__ void fold(const float* bn, float bias, int channels, int k, float& scale, float& shift) {
  scale = bn[k] / sqrtf(bn[3 * channels + k] + kEpsilon);
  shift = (bias - bn[2 * channels + k]) * scale + bn[channels + k];
}

// Asks L2 for the weights of the next layer; all blocks together ask for each line once.
__device__ __forceinline__ void prefetch(const float* next, int floats) {
  const size_t step = (size_t)gridDim.x * gridDim.y * kThreads * kLineFloats;
  const size_t first = (((size_t)blockIdx.y * gridDim.x + blockIdx.x) * kThreads + threadIdx.x) * kLineFloats;
  for (size_t n = first; n < floats; n += step) prefetch_l2(next + n);
}

struct Sizes {
  int side, images, channels, out_channels, slice;
};

struct Unit {
  int rank;  // of its slice
  int first_image, top, left, first_column;

  template <int images, int slices>
  static __device__ __forceinline__ Unit of_block(const Sizes& sizes) {
    const int tiles = (sizes.side + kTile - 1) / kTile, ranges = (sizes.out_channels + kColumns - 1) / kColumns;
    const int unit = blockIdx.x / slices, square = unit / ranges;
    return {int(blockIdx.x % slices), square / (tiles * tiles) * images, square / tiles % tiles * kTile, square % tiles * kTile,
            unit % ranges * kColumns};
  }
};

// A layer with the arithmetic of `Product`, which has
//   per: images of a thread; a unit has 2 * per
//   depth: channels of a step; stages: steps in shared memory
//   weight_vector, pixel_vector: where the n-th four channels of a row of shared memory lie, so that reads meet all banks
//   sums: a thread's
//   multiply: adds a step to the sums; told whether there are pixels above and below the square
//   position: a thread's number among those of its group, for `place`
//   place: which output the sum i of a thread is, within the unit
template <class Product, int slices, bool round>
struct Layer {
  static constexpr int per = Product::per, images = 2 * per, depth = Product::depth, stages = Product::stages;
  static constexpr int kVectors = depth / 4, kPixelRows = images * kHaloPixels, kWeightRows = kTaps * kColumns;
  static constexpr int kStage = (kPixelRows + kWeightRows) * depth, kSums = 16 * per;
  static_assert(kStage * stages >= kSums * kGroup);

  // Where this thread's vectors of a step come from, and go to.
  struct Copies {
    static constexpr int kStep = kThreads / kVectors;  // rows
    static constexpr int kPixels = (kPixelRows + kStep - 1) / kStep;
    static_assert(kStep % kColumns == 0);

    const float *weights, *pixels[kPixels];
    size_t next_tap;
    bool column, inside[kPixels];  // of the layer, of the image

    __device__ __forceinline__ Copies(const float* in, const float* w, const Sizes& sizes, const Unit& unit, int channel) {
      const int first = threadIdx.x / kVectors, k = unit.first_column + first % kColumns;
      channel += threadIdx.x % kVectors * 4;
      next_tap = sizes.out_channels * sizes.channels;
      weights = w + (size_t)(first / kColumns * sizes.out_channels + k) * sizes.channels + channel;
      column = k < sizes.out_channels;
#pragma unroll
      for (int n = 0; n < kPixels; ++n) {
        const int row = first + n * kStep, image = unit.first_image + row / kHaloPixels;
        const int y = unit.top + row % kHaloPixels / kHalo - 1, x = unit.left + row % kHalo - 1;
        inside[n] = image < sizes.images && y >= 0 && y < sizes.side && x >= 0 && x < sizes.side;
        pixels[n] = in + (inside[n] ? (size_t)((image * sizes.side + y) * sizes.side + x) * sizes.channels + channel : 0);
      }
    }

    // Copies the step that begins `offset` channels after the first one, of `left` channels: zeros beyond these, the image, the images and
    // the columns.
    __device__ __forceinline__ void issue(float* stage, int offset, int left) const {
      const int first = threadIdx.x / kVectors, vector = threadIdx.x % kVectors;
      const bool channel = 4 * vector < left;
#pragma unroll
      for (int n = 0; n < kPixels; ++n) {
        const int row = first + n * kStep;
        if ((n + 1) * kStep <= kPixelRows || row < kPixelRows)
          cp_async<16>(stage + row * depth + 4 * Product::pixel_vector(row, vector), pixels[n] + offset, channel && inside[n]);
      }
      stage += kPixelRows * depth + first * depth + 4 * Product::weight_vector(first % kColumns, vector);
#pragma unroll
      for (int n = 0; n < kWeightRows; n += kStep)
        if (n + kStep <= kWeightRows || first + n < kWeightRows)
          cp_async<16>(stage + n * depth, weights + n / kColumns * next_tap + offset, channel && column);
    }
  };

  // Adds the sums of the two groups, which have the same places, and leaves them in shared memory: sum i of thread t in [i][t].
  static __device__ __forceinline__ void join(float* shared, float (&sums)[kSums]) {
    const int thread = Product::position();
    if (threadIdx.x < kGroup) {
#pragma unroll
      for (int i = kSums / 2; i < kSums; ++i) shared[i * kGroup + thread] = sums[i];
    } else {
#pragma unroll
      for (int i = 0; i < kSums / 2; ++i) shared[i * kGroup + thread] = sums[i];
    }
    __syncthreads();
    if (threadIdx.x < kGroup) {
#pragma unroll
      for (int i = 0; i < kSums / 2; ++i) shared[i * kGroup + thread] += sums[i];
    } else {
#pragma unroll
      for (int i = kSums / 2; i < kSums; ++i) shared[i * kGroup + thread] += sums[i];
    }
  }

  static __device__ __forceinline__ void run(const float* in, const float* w, const float* bias, const float* bn, float* out,
                                             const float* next, int next_floats, const Sizes& sizes) {
    extern __shared__ __align__(16) float shared[];
    __shared__ float scale[kColumns], shift[kColumns];
    const Unit unit = Unit::of_block<images, slices>(sizes);
    const int first = unit.rank * sizes.slice, end = min(first + sizes.slice, sizes.channels);
    const int steps = (end - first + depth - 1) / depth;
    {
      const Copies copies(in, w, sizes, unit, first);
#pragma unroll
      for (int n = 0; n < stages; ++n) {
        if (n < steps) copies.issue(shared + n * kStage, n * depth, end - first - n * depth);
        cp_async_commit();
      }
    }
    prefetch(next, next_floats);
    if (threadIdx.x < kColumns && unit.first_column + threadIdx.x < sizes.out_channels) {
      const int k = unit.first_column + threadIdx.x;
      fold(bn, bias[k], sizes.out_channels, k, scale[threadIdx.x], shift[threadIdx.x]);
    }
    float sums[kSums] = {};
#pragma unroll 1
    for (int n = 0; n < steps; ++n) {
      float* stage = shared + n % stages * kStage;
      cp_async_wait<stages - 1>();
      __syncthreads();
      Product::multiply(sums, stage, stage + kPixelRows * depth, unit.top > 0, unit.top + kTile < sizes.side);
      if (n + stages < steps) {
        __syncthreads();
        const int channel = first + (n + stages) * depth;
        Copies(in, w, sizes, unit, channel).issue(stage, 0, end - channel);
      }
      cp_async_commit();
    }
    __syncthreads();
    join(shared, sums);
    constexpr int kStep = 2 * slices, kOwn = (kSums + kStep - 1) / kStep;  // a thread has every kStep-th sum
    const int thread = threadIdx.x % kGroup, own = 2 * unit.rank + threadIdx.x / kGroup;
    float totals[kOwn] = {};
    if constexpr (slices > 1) {
      cluster_sync();
#pragma unroll
      for (int n = 0; n < kOwn; ++n)
        if (kSums % kStep == 0 || own + n * kStep < kSums) {
#pragma unroll
          for (int rank = 0; rank < slices; ++rank) totals[n] += of_block(shared, rank)[(own + n * kStep) * kGroup + thread];
        }
      cluster_arrive();
    } else {
      __syncthreads();
#pragma unroll
      for (int n = 0; n < kOwn; ++n) totals[n] = shared[(own + n * kStep) * kGroup + thread];
    }
#pragma unroll
    for (int n = 0; n < kOwn; ++n) {
      const int sum = own + n * kStep;
      const auto place = Product::place(thread, sum);
      const int image = unit.first_image + place.image, y = 2 * unit.top + place.y, x = 2 * unit.left + place.x;
      const int k = unit.first_column + place.column;
      if (sum < kSums && image < sizes.images && y < 2 * sizes.side && x < 2 * sizes.side && k < sizes.out_channels)
        out[(size_t)((image * 2 * sizes.side + y) * 2 * sizes.side + x) * sizes.out_channels + k] =
            rounded_if(round, fmaxf(fmaf(totals[n], scale[place.column], shift[place.column]), 0.0f));
    }
    if constexpr (slices > 1) cluster_wait();  // nobody leaves while others read its shared memory
  }
};

struct Place {
  int image, y, x, column;
};

// The dense layer: a thread has one output of three images.
constexpr int kLatent = 100, kDenseRows = 64, kDenseImages = 12;

template <bool round>
__global__ void __launch_bounds__(kThreads) dense(const float* __restrict__ z, const float* __restrict__ w, const float* __restrict__ bn,
                                                  float* __restrict__ out, const float* __restrict__ next, int next_floats, int images,
                                                  int outputs, int channels) {
  constexpr int kVectors = kLatent / 4, kThreadImages = kDenseImages * kDenseRows / kThreads;
  __shared__ __align__(16) float weights[kDenseRows * kLatent], latents[kDenseImages * kLatent];
  const int first = blockIdx.x * kDenseRows, first_image = blockIdx.y * kDenseImages;
  for (int n = threadIdx.x; n < kDenseRows * kVectors; n += kThreads) {
    const bool valid = first + n / kVectors < outputs;
    cp_async<16>(weights + 4 * n, valid ? w + (size_t)first * kLatent + 4 * n : w, valid);
  }
  for (int n = threadIdx.x; n < kDenseImages * kVectors; n += kThreads) {
    const bool valid = first_image + n / kVectors < images;
    cp_async<16>(latents + 4 * n, valid ? z + first_image * kLatent + 4 * n : z, valid);
  }
  cp_async_commit();
  prefetch(next, next_floats);
  const int row = threadIdx.x % kDenseRows, group = threadIdx.x / kDenseRows;
  float scale = 0.0f, shift = 0.0f;
  if (first + row < outputs) fold(bn, 0.0f, channels, (first + row) % channels, scale, shift);
  cp_async_wait<0>();
  __syncthreads();
  float sum[kThreadImages] = {};
#pragma unroll 5
  for (int c = 0; c < kLatent; c += 4) {
    const float4 a = *reinterpret_cast<const float4*>(weights + row * kLatent + c);
#pragma unroll
    for (int n = 0; n < kThreadImages; ++n) {
      const float4 b = *reinterpret_cast<const float4*>(latents + (group * kThreadImages + n) * kLatent + c);
      sum[n] = fmaf(a.x, b.x, sum[n]), sum[n] = fmaf(a.y, b.y, sum[n]), sum[n] = fmaf(a.z, b.z, sum[n]), sum[n] = fmaf(a.w, b.w, sum[n]);
    }
  }
  if (first + row >= outputs) return;
#pragma unroll
  for (int n = 0; n < kThreadImages; ++n) {
    const int image = first_image + group * kThreadImages + n;
    if (image < images) out[(size_t)image * outputs + first + row] = rounded_if(round, fmaxf(fmaf(sum[n], scale, shift), 0.0f));
  }
}

// The last layer: half a warp has a quad of 2 x 2 input pixels of an image, 4 x 4 outputs of three colours, and each of its lanes every 16th
// four channels. The lanes add their sums up so that each has one output in the end.
constexpr int kColours = 3, kQuadThreads = 320, kQuadLanes = 16;

// Lanes that differ in the bit of `distance` exchange halves of their values, and add; then those of half the distance.
template <int count, int distance>
__device__ __forceinline__ void reduce(float* values) {
  const bool upper = threadIdx.x & distance;
#pragma unroll
  for (int n = 0; n < count / 2; ++n) {
    const float mine = upper ? values[n + count / 2] : values[n], other = upper ? values[n] : values[n + count / 2];
    values[n] = mine + __shfl_xor_sync(0xffffffffu, other, distance);
  }
  if constexpr (distance > 1) reduce<count / 2, distance / 2>(values);
}

__global__ void __launch_bounds__(kQuadThreads) last_layer(const float* in, const float* __restrict__ w, const float* __restrict__ bias,
                                                           float* out, int side, int channels, int images) {
  extern __shared__ __align__(16) float weights[];
  for (int n = threadIdx.x; n < kTaps * kColours * channels / 4; n += kQuadThreads) cp_async<16>(weights + 4 * n, w + 4 * n);
  cp_async_commit();
  const int across = side / 2, lane = threadIdx.x % kQuadLanes;
  const int quad = blockIdx.x * (kQuadThreads / kQuadLanes) + threadIdx.x / kQuadLanes;
  const int image = quad / (across * across), top = quad / across % across * 2, left = quad % across * 2;
  float sums[4][4][kColours] = {};
  for (int c = 4 * lane; c - 4 * lane < channels; c += 4 * kQuadLanes) {
    float4 x[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int row = top + i - 1, column = left + j - 1;
        const bool valid = image < images && c < channels && row >= 0 && row < side && column >= 0 && column < side;
        x[i][j] = valid ? *reinterpret_cast<const float4*>(in + (size_t)((image * side + row) * side + column) * channels + c)
                        : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      }
    cp_async_wait<0>();
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kSize; ++r)
#pragma unroll
      for (int s = 0; s < kSize; ++s)
#pragma unroll
        for (int k = 0; k < kColours; ++k) {
          const float4 by = *reinterpret_cast<const float4*>(weights + ((r * kSize + s) * kColours + k) * channels + (c < channels ? c : 0));
#pragma unroll
          for (int p = 0; p < 2; ++p)
#pragma unroll
            for (int q = 0; q < 2; ++q) {
              const int y = 1 - r % 2, z = 1 - s % 2;  // parities of the output
              const float4 of = x[p + (y + 1 - r) / 2 + 1][q + (z + 1 - s) / 2 + 1];
              float& sum = sums[2 * p + y][2 * q + z][k];
              sum = fmaf(of.x, by.x, sum), sum = fmaf(of.y, by.y, sum), sum = fmaf(of.z, by.z, sum), sum = fmaf(of.w, by.w, sum);
            }
        }
  }
  float* values = &sums[0][0][0];
  reduce<16 * kColours, kQuadLanes / 2>(values);
  if (image >= images) return;
  const int y = 2 * top + lane / 4, x = 2 * left + lane % 4;
  float* to = out + (size_t)((image * 2 * side + y) * 2 * side + x) * kColours;
#pragma unroll
  for (int k = 0; k < kColours; ++k) to[k] = tanhf(values[k] + bias[k]);
}

#endif
