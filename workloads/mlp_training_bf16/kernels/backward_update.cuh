// The way back and the update in one launch. A cluster has a tile of x^T dz1, of 128 inputs by `columns` hidden units, and each of its blocks a
// part of the samples: they exchange their sums through each other's shared memory, and each updates a slice of the tile's columns. After pipeline.cuh.

constexpr int kInputs = 128;  // of a tile: two consumer warpgroups of 64
constexpr int kConsumers = 256;

// New weights and biases but w1, from the parts of all tiles of samples, by the blocks beyond the tiles.
__device__ __forceinline__ void update_small(const float* __restrict__ b1, const float* __restrict__ w2, const float* __restrict__ b2,
                                             float* __restrict__ new_b1, float* __restrict__ new_w2, float* __restrict__ new_b2,
                                             unsigned short* __restrict__ next_w2, const float* __restrict__ parts, int count, int hidden,
                                             float rate, float keep, int first,
                                             int stride) {
  const int width = hidden + 1, all = kSums * width;
  for (int i = first; i < all - 1; i += stride) {  // the last one, row 10 of column hidden, is nobody's
    const int c = i / width, h = i % width;
    float sum = 0.0f;
#pragma unroll 16
    for (int part = 0; part < count; ++part) sum += parts[(size_t)part * all + i];
    if (c == kClasses) {
      new_b1[h] = b1[h] - rate * sum;
    } else if (h == hidden) {
      new_b2[c] = b2[c] - rate * sum;
    } else {
      const int at = h * kClasses + c;
      const float weight = keep * w2[at] - rate * sum;
      new_w2[at] = weight, next_w2[at] = (unsigned short)to_bf16_pair(weight, 0.0f);
    }
  }
}

template <int columns, int slices, int stages>
__global__ void __cluster_dims__(slices, 1, 1) __launch_bounds__(kProducers + kConsumers, 1)
    backward_update(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap dz1, const float* __restrict__ w1,
                    const float* __restrict__ b1, const float* __restrict__ w2, const float* __restrict__ b2, float* __restrict__ new_w1,
                    float* __restrict__ new_b1, float* __restrict__ new_w2, float* __restrict__ new_b2, unsigned* __restrict__ next_w1,
                    unsigned short* __restrict__ next_w2, const float* __restrict__ parts, int count, int batch,
                    int inputs, int hidden, float rate, float keep) {
  constexpr int kSlice = columns / slices, kShare = kSlice / 2;  // columns that a block updates, and sums of a thread among them
  const int down = (inputs + kInputs - 1) / kInputs, tiles = down * ((hidden + columns - 1) / columns), tile = blockIdx.x / slices;
  if (tile >= tiles) {
    wait_for_launch_before();
    const int before = tiles * slices;
    update_small(b1, w2, b2, new_b1, new_w2, new_b2, next_w2, parts, count, hidden, rate, keep,
                 (blockIdx.x - before) * blockDim.x + threadIdx.x, (gridDim.x - before) * blockDim.x);
    return;
  }
  extern __shared__ char dynamic[];
  auto* stage = aligned_1024<Stage<kInputs, columns>>(dynamic);
  auto* others = reinterpret_cast<float4(*)[kShare / 4][kConsumers]>(stage);  // of the other blocks, when no block multiplies any more
  static_assert(slices * sizeof *others <= stages * sizeof *stage);
  __shared__ Pipeline<stages> pipeline;
  __shared__ Mbarrier exchanged;
  if (threadIdx.x == 0) {
    mbarrier_init(&exchanged, 1);
    mbarrier_arrive_expect(&exchanged, (slices - 1) * sizeof *others);
  }
  if (threadIdx.x == kConsumers) prefetch_map(x), prefetch_map(dz1);
  pipeline.init(kConsumers / 32);

  const int rank = slices > 1 ? cluster_rank() : 0;
  const int top = tile % down * kInputs, left = tile / down * columns, own = left + rank * kSlice;
  const int depth = (batch + kDepth - 1) / kDepth, share = (depth + slices - 1) / slices;
  const int begin = min(rank * share, depth), steps = min(begin + share, depth) - begin;

  if (threadIdx.x >= kConsumers) {
    give_registers<40>();
    const int thread = threadIdx.x - kConsumers;
    if (thread < 32) {
      load_steps(
          pipeline, steps,
          [&](int to, int step) {
            auto& now = stage[to];
            mbarrier_arrive_expect(&pipeline.full[to], sizeof now);
            for (int box = 0; box < kInputs; box += kBox)
              tma_load(now.a + box * kLineBytes, x, top + box, (begin + step) * kDepth, &pipeline.full[to]);
          },
          [] { wait_for_launch_before(); },
          [&](int to, int step) {
            for (int box = 0; box < columns; box += kBox)
              tma_load(stage[to].b + box * kLineBytes, dz1, left + box, (begin + step) * kDepth, &pipeline.full[to]);
          });
    } else {  // the old weights on their way to L2
      constexpr int kLine = 32;  // floats
      for (int i = thread - 32; i < kInputs * (kSlice / kLine); i += kProducers - 32) {
        const int d = top + i / (kSlice / kLine), h = own + i % (kSlice / kLine) * kLine;
        if (d < inputs && h < hidden) prefetch_l2(w1 + (size_t)d * hidden + h);
      }
    }
    if constexpr (slices > 1) cluster_arrive_relaxed(), cluster_wait();
    return;
  }
  take_registers<232>();
  float sums[columns / 2];
  if (steps == 0)
#pragma unroll
    for (float& sum : sums) sum = 0.0f;
  else
    multiply_steps<true>(sums, steps, stage, pipeline, threadIdx.x / 128, [&](int of) { pipeline.release(of); });

  const int d = top + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, h = own + threadIdx.x % 4 * 2;
  const auto place = [&](int i) { return (size_t)(d + i % 4 / 2 * 8) * hidden + h + i / 4 * 8; };
  const auto is_weight = [&](int i) { return d + i % 4 / 2 * 8 < inputs && h + i / 4 * 8 < hidden; };
  float2 old[kShare / 2];
#pragma unroll
  for (int i = 0; i < kShare; i += 2) old[i / 2] = is_weight(i) ? *(const float2*)(w1 + place(i)) : make_float2(0.0f, 0.0f);

  float mine[kShare];
  if constexpr (slices > 1) {
    cluster_arrive_relaxed();  // without a fence of the whole GPU: the others only need to know that this block multiplies no more
    cluster_wait();
#pragma unroll
    for (int other = 0; other < slices; ++other) {
      if (other == rank) {
#pragma unroll
        for (int i = 0; i < kShare; ++i) mine[i] = sums[other * kShare + i];
        continue;
      }
#pragma unroll
      for (int i = 0; i < kShare; i += 4) {
        const float* four = sums + other * kShare + i;
        store_remote(&others[rank][i / 4][threadIdx.x], make_float4(four[0], four[1], four[2], four[3]), &exchanged, other);
      }
    }
    mbarrier_wait_of_cluster(&exchanged, 0);
#pragma unroll
    for (int other = 0; other < slices; ++other) {
      if (other == rank) continue;
#pragma unroll
      for (int i = 0; i < kShare; i += 4) {
        const float4 four = others[other][i / 4][threadIdx.x];
        mine[i] += four.x, mine[i + 1] += four.y, mine[i + 2] += four.z, mine[i + 3] += four.w;
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < kShare; ++i) mine[i] = sums[i];
  }

#pragma unroll
  for (int i = 0; i < kShare; i += 2) {
    if (!is_weight(i)) continue;
    const float2 next = make_float2(keep * old[i / 2].x - rate * mine[i], keep * old[i / 2].y - rate * mine[i + 1]);
    *(float2*)(new_w1 + place(i)) = next;
    next_w1[place(i) / 2] = to_bf16_pair(next.x, next.y);
  }
}
