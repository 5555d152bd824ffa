// The way back, the exchange between ranks and the update in one launch: backward_update.cuh of mlp_training_bf16, whose product it has, with what
// the ranks send one another before the update. All ranks add the same numbers in the same order, so that their weights stay equal bit by bit.
// After step.cuh of mlp_training_bf16 and peer_memory.cuh.

// What a rank contributes to the update, summed over all ranks in place; own numbers are rounded as the others'. A thread has `count` numbers, eight
// of which are four words, `stride` apart; is_sent(i) tells whether the ith eight are numbers at all, which is the same on all ranks.
template <int count, class IsSent>
__device__ __forceinline__ void sum_over_ranks(float (&values)[count], const PeerMemory& inbox, size_t at, size_t of_sender, int stride,
                                               IsSent is_sent) {
  uint4 own[count / 8];
#pragma unroll
  for (int i = 0; i < count / 8; ++i) {
    const float* eight = values + 8 * i;
    own[i] = make_uint4(to_bf16_pair(eight[0], eight[1]), to_bf16_pair(eight[2], eight[3]), to_bf16_pair(eight[4], eight[5]),
                        to_bf16_pair(eight[6], eight[7]));
  }
  for (int other = 1; other < inbox.ranks; ++other) {
    uint4* to = (uint4*)inbox.of[(inbox.rank + other) % inbox.ranks] + inbox.rank * of_sender + at;
#pragma unroll
    for (int i = 0; i < count / 8; ++i)
      if (is_sent(i)) send(to + i * stride, own[i]);
  }
#pragma unroll
  for (float& value : values) value = 0.0f;
  for (int sender = 0; sender < inbox.ranks; ++sender) {
    uint4 words[count / 8];
    if (sender == inbox.rank) {
#pragma unroll
      for (int i = 0; i < count / 8; ++i) words[i] = own[i];
    } else {
      take(words, (uint4*)inbox.of[inbox.rank] + sender * of_sender + at, stride, is_sent);
    }
#pragma unroll
    for (int i = 0; i < count / 8; ++i) {
      const unsigned pairs[4] = {words[i].x, words[i].y, words[i].z, words[i].w};
#pragma unroll
      for (int k = 0; k < 4; ++k) values[8 * i + 2 * k] += low_half(pairs[k]), values[8 * i + 2 * k + 1] += high_half(pairs[k]);
    }
  }
}

// New weights and biases but w1, by the blocks beyond the tiles: four of the sums at a time, in float32. A rank sends to itself too.
__device__ __forceinline__ void update_others(const float* __restrict__ b1, const float* __restrict__ w2, const float* __restrict__ b2,
                                              float* __restrict__ new_b1, float* __restrict__ new_w2, float* __restrict__ new_b2,
                                              unsigned short* __restrict__ next_w2, const float* __restrict__ parts, const PeerMemory& inbox,
                                              size_t at, size_t of_sender, int count, int hidden, float rate, float decay, int first,
                                              int stride) {
  const int width = hidden + 1, all = kSums * width, fours = (all + 3) / 4;
  const float share = 1.0f / inbox.ranks;
  const auto weight = [&](int i) { return i / width < kClasses && i % width < hidden ? i % width * kClasses + i / width : -1; };
  for (int four = first; four < fours; four += stride) {
    float sums[4] = {};
#pragma unroll 8
    for (int part = 0; part < count; ++part)
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (4 * four + k < all - 1) sums[k] += parts[(size_t)part * all + 4 * four + k];  // the last one, of row 10 and column hidden, is nobody's
    unsigned words[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int at_w2 = weight(4 * four + k);
      words[k] = __float_as_uint(share * (rate * sums[k] + (at_w2 < 0 ? 0.0f : decay * w2[at_w2])));
    }
    for (int other = 0; other < inbox.ranks; ++other)
      send((uint4*)inbox.of[(inbox.rank + other) % inbox.ranks] + inbox.rank * of_sender + at + four,
           make_uint4(words[0], words[1], words[2], words[3]));
  }
  for (int four = first; four < fours; four += stride) {
    float sums[4] = {};
    for (int sender = 0; sender < inbox.ranks; ++sender) {
      uint4 words[1];
      take(words, (uint4*)inbox.of[inbox.rank] + sender * of_sender + at + four, 0, [](int) { return true; });
      sums[0] += __uint_as_float(words[0].x), sums[1] += __uint_as_float(words[0].y);
      sums[2] += __uint_as_float(words[0].z), sums[3] += __uint_as_float(words[0].w);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int i = 4 * four + k, c = i / width, h = i % width;
      if (i >= all - 1) continue;
      if (c == kClasses) {
        new_b1[h] = b1[h] - sums[k];
      } else if (h == hidden) {
        new_b2[c] = b2[c] - sums[k];
      } else {
        const int at_w2 = weight(i);
        const float next = w2[at_w2] - sums[k];
        new_w2[at_w2] = next, next_w2[at_w2] = (unsigned short)to_bf16_pair(next, 0.0f);
      }
    }
  }
}

template <int columns, int slices, int stages>
__global__ void __cluster_dims__(slices, 1, 1) __launch_bounds__(kProducers + kConsumers, 1)
    backward_exchange(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap dz1, const float* __restrict__ w1,
                      const float* __restrict__ b1, const float* __restrict__ w2, const float* __restrict__ b2, float* __restrict__ new_w1,
                      float* __restrict__ new_b1, float* __restrict__ new_w2, float* __restrict__ new_b2, unsigned* __restrict__ next_w1,
                      unsigned short* __restrict__ next_w2, const float* __restrict__ parts, const __grid_constant__ PeerMemory inbox,
                      unsigned* turns, int count, int batch, int inputs, int hidden, float rate, float decay) {
  constexpr int kSlice = columns / slices, kShare = kSlice / 2;  // columns that a block updates, and sums of a thread among them
  constexpr int kFours = kShare / 8;                             // times four words that a thread sends
  const int down = (inputs + kInputs - 1) / kInputs, tiles = down * ((hidden + columns - 1) / columns), tile = blockIdx.x / slices;
  const int before = tiles * slices;                                                           // blocks of tiles
  const size_t of_w1 = (size_t)before * kFours * kConsumers, of_others = ((hidden + 1) * kSums + 3) / 4, of_step = of_w1 + of_others;
  unsigned* turn_of_warp = turns + (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (tile >= tiles) {
    const unsigned turn = next_turn(turn_of_warp, inbox);
    wait_for_launch_before();
    update_others(b1, w2, b2, new_b1, new_w2, new_b2, next_w2, parts, inbox, turn * of_step + of_w1, 2 * of_step, count, hidden, rate, decay,
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
  const unsigned turn = next_turn(turn_of_warp, inbox);
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

  const float part = 1.0f / inbox.ranks;
#pragma unroll
  for (int i = 0; i < kShare; i += 2) {
    mine[i] = part * (rate * mine[i] + decay * old[i / 2].x), mine[i + 1] = part * (rate * mine[i + 1] + decay * old[i / 2].y);
  }
  if (inbox.ranks > 1)  // of eight, the first is the one that lies the farthest up and left
    sum_over_ranks(mine, inbox, turn * of_step + (size_t)blockIdx.x * kFours * kConsumers + threadIdx.x, 2 * of_step, kConsumers,
                   [&](int i) { return is_weight(8 * i); });
#pragma unroll
  for (int i = 0; i < kShare; i += 2) {
    if (!is_weight(i)) continue;
    const float2 next = make_float2(old[i / 2].x - mine[i], old[i / 2].y - mine[i + 1]);
    *(float2*)(new_w1 + place(i)) = next;
    next_w1[place(i) / 2] = to_bf16_pair(next.x, next.y);
  }
}
