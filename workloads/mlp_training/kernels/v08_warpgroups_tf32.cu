// Idea: The large products of v07_warpgroups_3xtf32 with one product of TF32 for three. The TMA rounds to TF32 as it copies, so that nobody
//     else has to, and tiles are up to 256 columns wide, the widest product of a warpgroup. The tiles of a product lie behind one another
//     along k, and each block has an equal share of that line, whether or not a tile ends in it: so all multiprocessors work to the end.
//     Bias, sigmoid and slices of a tile that several blocks have are the output layer's, which computes while its next samples come.
// Bottleneck: Not the tensor cores: on an H200 8192 samples take 0.19 ms, and at the rate of the products of mlp_gemm both products of this
//     step would take 0.07. The hidden layer is read and written once, 33 MB each, between them. A small batch has so few tiles that those of
//     64 columns are faster, and 37 samples are quickest by v06_one_product.
// Next: -
// Source: Own work; shares of a line of tiles are the "stream-K" of M. Osama et al., 2023; rounding by the TMA as in NVIDIA's CUTLASS 3.

#include "../../hopper.cuh"
#include "hidden_sums.cuh"

constexpr int kDepth = 32;  // of a stage: 128 bytes, the span of the swizzle
constexpr int kBox = 32;    // rows of one of the boxes that a tile of A consists of
constexpr int kProducers = 128, kConsumers = 256;  // two consumer warpgroups, of 64 rows each

template <int columns>
struct Stage {
  float a[kRows * kDepth];
  float b[columns * kDepth];
};

// A thread's share of an operand a whose rows are neighbours in memory, as WgmmaFragments of hopper.cuh has it, but with two neighbouring
// rows a thread: one load brings both. The 16 threads that load together, 4 steps of 4 pairs, meet all banks; 8 neighbouring rows belong
// to a warp, so that results go to whole sectors of memory.
struct RowPairs {
  int piece;  // of 16 bytes in a row of the box
  int first;  // float of step `step` of the thread's box, within a piece
  int step;   // t % 4
  int row;    // first of its two rows

  // Threads of two warpgroups: 128 rows, 4 boxes.
  __device__ __forceinline__ explicit RowPairs(int thread) {
    const int warp = thread / 32, group = thread % 32 / 4;
    step = thread % 4;
    piece = group / 2 % 2 * 4 + warp % 2 * 2 + group / 4;
    first = warp / 2 * kBox * kDepth + step * kBox + group % 2 * 2;
    row = warp / 2 * kBox + 4 * piece + group % 2 * 2;
  }

  // All fragments of 32 steps.
  __device__ __forceinline__ void load(const float* a, unsigned (&values)[16]) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float2 pair = *(const float2*)(a + first + 4 * i * kBox + 4 * (piece ^ (4 * (i % 2) + step)));
      values[2 * i] = __float_as_uint(pair.x), values[2 * i + 1] = __float_as_uint(pair.y);
    }
  }
};

// A times B, m rows by n columns, where the rows of A and the k steps of B are neighbours in memory. The first `blocks` blocks have a share
// each, and call finish(sums, row pairs, first row, first column, slice) for each tile that they have a part of, as threads of the consumers.
template <int columns, int stages, class Finish>
__device__ __forceinline__ void warpgroup_product(const TensorMap& a, const TensorMap& b, int m, int n, int k, Shares shares, Finish finish) {
  extern __shared__ char memory[];
  auto* stage = aligned_1024<Stage<columns>>(memory);
  __shared__ Pipeline<stages> pipeline;
  pipeline.init(kConsumers / 32);

  const int down = (m + kRows - 1) / kRows, tiles = down * ((n + columns - 1) / columns);
  const int depth = (k + kDepth - 1) / kDepth;
  const int first = blockIdx.x * shares.share, last = min(first + shares.share, tiles * shares.span);
  Ring<stages> ring;

  if (threadIdx.x < kProducers) {
    give_registers<40>();
    if (threadIdx.x == 0)
      for (int at = first; at < last;) {
        const int tile = at / shares.span, begin = at % shares.span, end = min(begin + last - at, shares.span);
        for (int step = begin; step < min(end, depth); ++step, ring.next()) {
          auto& now = stage[ring.stage];
          mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);
          mbarrier_arrive_expect(&pipeline.full[ring.stage], sizeof now);
          for (int box = 0; box < kRows / kBox; ++box)
            tma_load(now.a + box * kBox * kDepth, a, tile % down * kRows + box * kBox, step * kDepth, &pipeline.full[ring.stage]);
          tma_load(now.b, b, step * kDepth, tile / down * columns, &pipeline.full[ring.stage]);
        }
        at += end - begin;
      }
    return;
  }

  take_registers<232>();
  const RowPairs rows(threadIdx.x - kProducers);
  for (int at = first; at < last;) {
    const int tile = at / shares.span, begin = at % shares.span, end = min(begin + last - at, shares.span);
    const int steps = min(end, depth) - begin;
    float sums[columns / 2];
    unsigned values[2][16];
    const auto start = [&](unsigned(&of_a)[16], bool add) {
      auto& now = stage[ring.stage];
      mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
      rows.load(now.a, of_a);
      const unsigned long long operand = wgmma_operand(now.b);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < 4; ++i) wgmma_tf32(sums, of_a + 4 * i, operand + 2 * i, add || i > 0);
      wgmma_commit();
    };
    int previous = -1;
    if (steps % 2) {  // by itself: two sets of fragments take turns, and the compiler must see which
      start(values[0], false);
      wgmma_wait<0>();
      wgmma_keep(sums);
      pipeline.release(ring.stage);
      ring.next();
    }
#pragma unroll 1
    for (int step = steps % 2; step < steps; step += 2) {
#pragma unroll
      for (int turn = 0; turn < 2; ++turn) {
        start(values[turn], step + turn > 0);
        wgmma_wait<1>();
        if (previous >= 0) pipeline.release(previous);
        previous = ring.stage;
        ring.next();
      }
    }
    wgmma_wait<0>();
    wgmma_keep(sums);
    if (previous >= 0) pipeline.release(previous);
    finish(sums, rows, tile % down * kRows, tile / down * columns, (int)blockIdx.x - shares.first_block(tile));
    at += end - begin;
  }
}

// z1[slice] = a slice of x w1 + b1. Rows of a tile are hidden units, columns are samples.
template <int columns, int stages>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    forward_hidden(const __grid_constant__ TensorMap w1, const __grid_constant__ TensorMap x, const float* __restrict__ b1,
                   float* __restrict__ z1, int batch, int inputs, int hidden, int share, int span) {
  warpgroup_product<columns, stages>(
      w1, x, hidden, batch, inputs, Shares{share, span},
      [&](const float(&sums)[columns / 2], const RowPairs& rows, int row, int column, int slice) {
        const int h = row + rows.row;
        if (h >= hidden) return;
        const float2 bias = slice == 0 ? *(const float2*)(b1 + h) : make_float2(0.0f, 0.0f);
        const int samples = batch - column - 2 * rows.step;
        float* to = z1 + ((size_t)slice * batch + column + 2 * rows.step) * hidden + h;
#pragma unroll
        for (int i = 0; i < columns / 2; i += 4)
#pragma unroll
          for (int next = 0; next < 2; ++next)
            store_if(2 * i + next < samples, to + (size_t)(2 * i + next) * hidden, sums[i + next] + bias.x, sums[i + 2 + next] + bias.y);
      });
}

// slices[slice] = a slice of rate * x^T dz1, dz1 given as [hidden unit][sample]. Rows of a tile are inputs, columns are hidden units.
template <int columns, int stages>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    backward_slices(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap dz1, float* __restrict__ slices, int batch,
                    int inputs, int hidden, float rate, int share, int span) {
  warpgroup_product<columns, stages>(
      x, dz1, inputs, hidden, batch, Shares{share, span},
      [&](const float(&sums)[columns / 2], const RowPairs& rows, int row, int column, int slice) {
        const int d = row + rows.row, h = column + 2 * rows.step;
        if (d >= inputs) return;
        float* to = slices + ((size_t)slice * inputs + d) * hidden + h;
#pragma unroll
        for (int i = 0; i < columns / 2; i += 4) {
          store_if(h + 2 * i < hidden, to + 2 * i, rate * sums[i], rate * sums[i + 1]);
          store_if(h + 2 * i < hidden, to + hidden + 2 * i, rate * sums[i + 2], rate * sums[i + 3]);
        }
      });
}

// The same where a block has whole tiles, with the update: new w1 = keep * w1 - rate * x^T dz1, by the first `blocks` blocks; the others have
// the other weights.
template <int columns, int stages>
__global__ void __launch_bounds__(kProducers + kConsumers, 1)
    backward_update(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap dz1, const float* __restrict__ w1,
                    const float* __restrict__ b1, const float* __restrict__ w2, const float* __restrict__ b2, float* __restrict__ new_w1,
                    float* __restrict__ new_b1, float* __restrict__ new_w2, float* __restrict__ new_b2, const float* __restrict__ parts,
                    int count, int batch, int inputs, int hidden, float rate, float keep, int share, int span, int blocks) {
  if (blockIdx.x >= blocks) {
    const int first = (blockIdx.x - blocks) * blockDim.x + threadIdx.x, stride = (gridDim.x - blocks) * blockDim.x;
    update_small(b1, w2, b2, new_b1, new_w2, new_b2, parts, count, hidden, rate, keep, first, stride);
    return;
  }
  warpgroup_product<columns, stages>(
      x, dz1, inputs, hidden, batch, Shares{share, span},
      [&](const float(&sums)[columns / 2], const RowPairs& rows, int row, int column, int slice) {
        constexpr int kAtOnce = 4;  // pairs of columns whose old weights are under way at a time
        const int d = row + rows.row, h = column + 2 * rows.step;
        if (d >= inputs) return;
#pragma unroll
        for (int first = 0; first < columns / 2; first += 4 * kAtOnce) {
          float2 old[kAtOnce][2];
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i)
#pragma unroll
            for (int next = 0; next < 2; ++next) {
              const int of_pair = h + 2 * first + 8 * i;
              old[i][next] = of_pair < hidden ? *(const float2*)(w1 + (size_t)(d + next) * hidden + of_pair) : make_float2(0.0f, 0.0f);
            }
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i)
#pragma unroll
            for (int next = 0; next < 2; ++next) {
              const int of_pair = h + 2 * first + 8 * i, sum = first + 4 * i + 2 * next;
              if (of_pair < hidden)
                *(float2*)(new_w1 + (size_t)(d + next) * hidden + of_pair) =
                    make_float2(keep * old[i][next].x - rate * sums[sum], keep * old[i][next].y - rate * sums[sum + 1]);
            }
        }
      });
}
