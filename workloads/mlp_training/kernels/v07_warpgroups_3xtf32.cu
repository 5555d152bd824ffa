// Idea: Three launches, the two large products on Hopper's warpgroups (wgmma), whose operands the TMA brings as they lie. Both lie on the way
//     forward: w1 goes through registers, where it is split into two TF32 parts; of the samples the tensor cores cut off the first part
//     themselves, and three warps beside the producer write the rest into shared memory. On the way back the samples go through
//     registers, and the hidden layer's gradients are needed transposed, as the output layer's kernel writes them. The ways out of the products
//     have bias and sigmoid, and the new w1: no slices, no pass of its own over a matrix. The blocks that the way back has to spare
//     update the other weights.
// Bottleneck: The tensor cores, three products for one, and how few tiles there are: a small batch, and always the way back, have fewer than
//     a GPU of 132 multiprocessors has room for: 800 samples take 53 us on an H200, but 37 samples 34 us, by v06_one_product 18.
// Next: -
// Source: Own work; producer and consumers in the order of NVIDIA's CUTLASS 3.

#include "../../hopper.cuh"
#include "output_layer.cuh"

constexpr int kRows = 128;  // of a tile: two consumer warpgroups of 64
constexpr int kDepth = 32;  // of a stage: 128 bytes, the span of the swizzle
constexpr int kBox = 32;    // rows of one of the boxes that a tile of A consists of
constexpr int kProducers = 128, kConsumers = 256, kSplitters = 96;

template <int columns>
struct Stage {
  float a[kRows * kDepth];
  float b[columns * kDepth];
  unsigned rest[columns * kDepth];  // of b
};

// A times B, m rows by n columns, where the rows of A and the k steps of B are neighbours in memory. The first `blocks` blocks walk over the
// tiles and call finish(sums, first row, first column) for each, as threads of the consumers.
template <int columns, int stages, class Finish>
__device__ __forceinline__ void warpgroup_product(const TensorMap& a, const TensorMap& b, int m, int n, int k, int blocks, Finish finish) {
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
  pipeline.init(kConsumers / 32, kSplitters);

  const int down = (m + kRows - 1) / kRows, tiles = down * ((n + columns - 1) / columns);
  const int steps = (k + kDepth - 1) / kDepth;
  Ring<stages> ring;

  if (threadIdx.x < kProducers) {
    give_registers<40>();
    if (threadIdx.x >= kProducers - kSplitters) {
      for (int tile = blockIdx.x; tile < tiles; tile += blocks)
        for (int step = 0; step < steps; ++step, ring.next()) {
          auto& now = stage[ring.stage];
          mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
          split_tile<columns * kDepth, kSplitters>(now.b, now.rest, threadIdx.x - (kProducers - kSplitters));
          mbarrier_arrive(&pipeline.split[ring.stage]);
        }
    } else if (threadIdx.x == 0) {
      for (int tile = blockIdx.x; tile < tiles; tile += blocks)
        for (int step = 0; step < steps; ++step, ring.next()) {
          auto& now = stage[ring.stage];
          mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
          mbarrier_arrive_expect(&pipeline.full[ring.stage], sizeof now.a + sizeof now.b);
          for (int box = 0; box < kRows / kBox; ++box)
            tma_load(now.a + box * kBox * kDepth, a, tile % down * kRows + box * kBox, step * kDepth, &pipeline.full[ring.stage]);
          tma_load(now.b, b, step * kDepth, tile / down * columns, &pipeline.full[ring.stage]);
        }
    }
    return;
  }

  take_registers<232>();
  const int thread = threadIdx.x - kProducers;
  const WgmmaFragments fragments(thread);
  for (int tile = blockIdx.x; tile < tiles; tile += blocks) {
    float sums[columns / 2] = {}, partial[columns / 2];
#pragma unroll 1
    for (int step = 0; step < steps; ++step, ring.next()) {
      auto& now = stage[ring.stage];
      mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
      const SplitFragments split_a(fragments, now.a);
      mbarrier_wait(&pipeline.split[ring.stage], ring.parity);
      wgmma_3xtf32(partial, split_a, now.b, now.rest);
      pipeline.release(ring.stage);
#pragma unroll
      for (int i = 0; i < columns / 2; ++i) sums[i] += partial[i];
    }
    finish(sums, fragments, tile % down * kRows, tile / down * columns);
  }
}

// a1 = sigmoid(x w1 + b1). Rows of a tile are hidden units, columns are samples.
template <int columns, int stages>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    forward_hidden(const __grid_constant__ TensorMap w1, const __grid_constant__ TensorMap x, const float* __restrict__ b1,
                   float* __restrict__ a1, int batch, int inputs, int hidden) {
  warpgroup_product<columns, stages>(
      w1, x, hidden, batch, inputs, gridDim.x,
      [&](const float(&sums)[columns / 2], const WgmmaFragments& fragments, int row, int column) {
        const int h = row + fragments.row;
        const float bias[2] = {h < hidden ? b1[h] : 0.0f, h + 4 < hidden ? b1[h + 4] : 0.0f};
#pragma unroll
        for (int i = 0; i < columns / 2; ++i) {
          const int n = column + fragments.across(i), down = fragments.down(i);
          if (n < batch && h + down < hidden)
            a1[(size_t)n * hidden + h + down] = 1.0f / (1.0f + expf(-(sums[i] + bias[down / 4])));
        }
      });
}

// new w1 = keep * w1 - rate * x^T dz1, dz1 given as [hidden unit][sample], by the first `blocks` blocks; the others have the other weights.
// Rows of a tile are inputs, columns are hidden units.
template <int columns, int stages>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    backward_update(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap dz1, const float* __restrict__ w1,
                    const float* __restrict__ b1, const float* __restrict__ w2, const float* __restrict__ b2, float* __restrict__ new_w1,
                    float* __restrict__ new_b1, float* __restrict__ new_w2, float* __restrict__ new_b2, const float* __restrict__ parts,
                    int count, int batch, int inputs, int hidden, float rate, float keep, int blocks) {
  if (blockIdx.x >= blocks) {
    const int first = (blockIdx.x - blocks) * blockDim.x + threadIdx.x, stride = (gridDim.x - blocks) * blockDim.x;
    update_small(b1, w2, b2, new_b1, new_w2, new_b2, parts, count, hidden, rate, keep, first, stride);
    return;
  }
  warpgroup_product<columns, stages>(
      x, dz1, inputs, hidden, batch, blocks,
      [&](const float(&sums)[columns / 2], const WgmmaFragments& fragments, int row, int column) {
        constexpr int kPairs = 8;  // whose old weights are under way at a time
        const auto place = [&](int pair) {
          const int d = row + fragments.row + fragments.down(2 * pair), h = column + fragments.across(2 * pair);
          return d < inputs && h < hidden ? (long long)d * hidden + h : -1;
        };
#pragma unroll
        for (int first = 0; first < columns / 4; first += kPairs) {
          float2 old[kPairs];
#pragma unroll
          for (int i = 0; i < kPairs; ++i)
            old[i] = place(first + i) < 0 ? make_float2(0.0f, 0.0f) : *(const float2*)(w1 + place(first + i));
#pragma unroll
          for (int i = 0; i < kPairs; ++i)
            if (place(first + i) >= 0) {
              const int pair = 2 * (first + i);
              *(float2*)(new_w1 + place(first + i)) =
                  make_float2(keep * old[i].x - rate * sums[pair], keep * old[i].y - rate * sums[pair + 1]);
            }
        }
      });
}
