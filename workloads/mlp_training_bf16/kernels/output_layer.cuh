// The output layer for a tile of samples, forward and back, by a cluster whose blocks have the hidden units between them: what is left to do with
// activations that are in registers, as a product of a warpgroup leaves its sums. After pipeline.cuh.
//
// A warp has 16 samples. It multiplies its activations by the output layer's weights; blocks add their sums up in each other's shared memory, and
// each has the softmax of all samples. The gradients of the output layer are products of a warpgroup, of activations in shared memory, across.

constexpr int kClasses = 10;
constexpr int kSums = kClasses + 1;  // and the gradient of b1
constexpr int kSlots = 16;           // of classes in products
constexpr int kLoaders = kProducers - 32;
constexpr float kNever = -1e30f;     // bias of a unit that is none: its activation is 0

__device__ __forceinline__ float tanh_approx(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Off by 2^-12 at most: half of the error of tanh.approx, 2^-11 of at most 1.
__device__ __forceinline__ float sigmoid(float z) { return fmaf(tanh_approx(0.5f * z), 0.5f, 0.5f); }

__device__ __forceinline__ float low_half(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_half(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }

__device__ __forceinline__ float sum_of_quad(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}
__device__ __forceinline__ float largest_of_quad(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}
// Of the eight lanes with the same place in their quads.
__device__ __forceinline__ float sum_of_quads(float value) {
#pragma unroll
  for (int lanes = 4; lanes < 32; lanes *= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
  return value;
}

// Of the blocks' hidden units: `columns` each.
template <int warpgroups, int columns, int blocks>
struct OutputLayer {
  static constexpr int kSamples = 64 * warpgroups, kWarps = 4 * warpgroups, kBoxes = columns / kBox;
  static constexpr int kOwn = kBoxes / warpgroups;  // boxes of units whose gradients a warpgroup has

  // In place of stages, when these are done.
  struct Tiles {
    unsigned activations[kBoxes][kSamples][kBox / 2], gradients[kBoxes][kSamples][kBox / 2];
  };
  struct Memory {
    unsigned differences[kSamples / kBox][kSlots][kBox / 2];  // along the samples, as wgmma_operand has it; class 10 is 1
    float4 outputs[blocks][kSamples][4];                      // sums of each block, in slots of a quad's lanes
    unsigned by_class[kSlots][columns / 2 + 4];               // the weights, padded for the banks
    unsigned by_unit[columns][kSlots / 2 + 4];
    float bias[columns];
    float of_warps[kWarps][kClasses];
  };
  struct Barriers {
    Mbarrier outputs;                // sums of all blocks
    Meeting weights;                 // are loaded
    Meeting free, differences, gradients;  // stages are read; activations and differences, then gradients are written
  };

  Memory& memory;
  Tiles& tiles;
  Barriers& barriers;
  int unit, sample;  // first of the block
  int rank, first;   // number among the blocks with these samples, and where these begin in the cluster

  // By one thread, before the blocks of the cluster meet.
  static __device__ __forceinline__ void init(Barriers& barriers) {
    mbarrier_init(&barriers.outputs, 1);
    mbarrier_init(&barriers.weights.barrier, kLoaders / 32);
    mbarrier_init(&barriers.free.barrier, kWarps);
    mbarrier_init(&barriers.differences.barrier, kWarps);
    mbarrier_init(&barriers.gradients.barrier, kWarps);
    fence_mbarrier_init();
  }

  // By `kLoaders` threads: weights of the units, zeros beyond.
  __device__ __forceinline__ void load_weights(int thread, const float* __restrict__ b1, const unsigned* __restrict__ w2, int hidden) {
    for (int u = thread; u < columns; u += kLoaders) {
      const bool is_unit = unit + u < hidden;
      memory.bias[u] = is_unit ? b1[unit + u] : kNever;
#pragma unroll
      for (int pair = 0; pair < kSlots / 2; ++pair) {
        const unsigned word = is_unit && pair < kClasses / 2 ? w2[(unit + u) * (kClasses / 2) + pair] : 0;
        memory.by_unit[u][pair] = word;
        ((unsigned short*)memory.by_class[2 * pair])[u] = (unsigned short)word;
        ((unsigned short*)memory.by_class[2 * pair + 1])[u] = (unsigned short)(word >> 16);
      }
    }
    barriers.weights.arrive();
  }

  // Writes a thread's share of a tile, pairs of neighbouring units, as wgmma and the TMA take it: boxes of 64 units, a sample a line.
  __device__ __forceinline__ void put(unsigned (&to)[kBoxes][kSamples][kBox / 2], const unsigned (&pairs)[columns / 16][4]) {
    const int lane = threadIdx.x % 32, group = lane / 4, row = threadIdx.x / 32 * 16 + group;
#pragma unroll
    for (int i = 0; i < columns / 8; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        to[i / 8][row + 8 * half][((i % 8) ^ group) * 4 + lane % 4] = pairs[i / 2][i % 2 * 2 + half];
  }

  // Starts sums = units by samples * differences, for the boxes of a warpgroup.
  __device__ __forceinline__ void times_differences(float (&sums)[kOwn][8], unsigned (&of)[kBoxes][kSamples][kBox / 2]) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const unsigned long long a = wgmma_operand_across(of[threadIdx.x / 128 * kOwn + i], 0);
#pragma unroll
      for (int step = 0; step < kSamples / 16; ++step)
        wgmma_across<true, false>(sums[i], a + 128 * step, wgmma_operand(memory.differences[step / 4]) + 2 * (step % 4), step > 0);
    }
    wgmma_commit();
  }

  // By the threads of the warpgroups: activations are pairs of neighbouring units, [16 units][sample of the group, the one 8 below; the same 8 units
  // further]. Leaves gradients of the hidden units in dz1 and the tile's gradients of the other weights in `part`.
  __device__ __forceinline__ void finish(unsigned (&pairs)[columns / 16][4], const TensorMap& dz1, const float* __restrict__ b2,
                                         const float* __restrict__ y, float* __restrict__ part,
                                         float* __restrict__ losses, int batch, int hidden) {
    const int lane = threadIdx.x % 32, group = lane / 4, step = lane % 4, warp = threadIdx.x / 32;
    const int row = warp * 16 + group;
    const bool has_last = step == 0;  // classes 8 and 9

    float z[2][4] = {};
    if (threadIdx.x == 0) mbarrier_arrive_expect(&barriers.outputs, sizeof Memory::outputs);
    barriers.weights.wait();
#pragma unroll
    for (int i = 0; i < columns / 16; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const unsigned* of_class = memory.by_class[8 * half + group] + 8 * i + step;
        const unsigned weights[2] = {of_class[0], of_class[4]};
        mma_m16n8k16_bf16(z[half], pairs[i], weights);
      }
    for (int other = 0; other < blocks; ++other)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        store_remote(&memory.outputs[rank][row + 8 * half][step], make_float4(z[0][2 * half], z[0][2 * half + 1], z[1][2 * half], z[1][2 * half + 1]),
                     &barriers.outputs, first + other);

    float labels[2][4] = {}, bias[4] = {};
#pragma unroll
    for (int last = 0; last < 2; ++last) {
      if (last && !has_last) continue;
      const float2 two = *(const float2*)(b2 + 8 * last + 2 * step);
      bias[2 * last] = two.x, bias[2 * last + 1] = two.y;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int of = sample + row + 8 * half;
        if (of >= batch) continue;
        const float2 label = *(const float2*)(y + (size_t)of * kClasses + 8 * last + 2 * step);
        labels[half][2 * last] = label.x, labels[half][2 * last + 1] = label.y;
      }
    }
    barriers.free.wait();
    put(tiles.activations, pairs);

    mbarrier_wait_of_cluster(&barriers.outputs, 0);
    const float scale = 1.0f / batch;
    float of_b2[4] = {};
    unsigned differences[4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float value[4] = {bias[0], bias[1], bias[2], bias[3]};
#pragma unroll
      for (int other = 0; other < blocks; ++other) {
        const float4 four = memory.outputs[other][row + 8 * half][step];
        value[0] += four.x, value[1] += four.y, value[2] += four.z, value[3] += four.w;
      }
      float largest = fmaxf(value[0], value[1]);
      if (has_last) largest = fmaxf(largest, fmaxf(value[2], value[3]));
      largest = largest_of_quad(largest);
      float power[4], sum = 0.0f, meant = 0.0f, right = 0.0f;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        power[i] = i < 2 || has_last ? expf(value[i] - largest) : 0.0f;
        sum += power[i], meant += labels[half][i] * (value[i] - largest), right += labels[half][i];
      }
      sum = sum_of_quad(sum), meant = sum_of_quad(meant), right = sum_of_quad(right);
      const int of_batch = sample + row + 8 * half;
      const bool is_sample = of_batch < batch;
      if (is_sample && step == 0 && rank == 0) losses[of_batch] = right * logf(sum) - meant;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        power[i] = is_sample ? (power[i] / sum - labels[half][i]) * scale : 0.0f;
        of_b2[i] += power[i];
      }
      differences[half] = to_bf16_pair(power[0], power[1]);
      differences[2 + half] = step == 1 ? 0x3f80u : to_bf16_pair(power[2], power[3]);  // class 10 is 1, which sums up gradients
      auto* lines = memory.differences[row / kBox];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int slot = i / 2 * 8 + 2 * step + i % 2, of = (row + 8 * half) % kBox;
        ((unsigned short*)lines[slot])[((of / 8) ^ (slot % 8)) * 8 + of % 8] = (unsigned short)(differences[i / 2 * 2 + half] >> (16 * (i % 2)));
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) of_b2[i] = sum_of_quads(of_b2[i]);
    if (group == 0) {
      float* of_warp = memory.of_warps[warp];
      of_warp[2 * step] = of_b2[0], of_warp[2 * step + 1] = of_b2[1];
      if (has_last) of_warp[8] = of_b2[2], of_warp[9] = of_b2[3];
    }
    barriers.differences.arrive();
    barriers.differences.wait();

    float of_w2[kOwn][8], of_b1[kOwn][8];
    times_differences(of_w2, tiles.activations);
#pragma unroll
    for (int i = 0; i < columns / 8; ++i) {
      const unsigned* of_unit = memory.by_unit[8 * i + group] + step;
      const unsigned weights[2] = {of_unit[0], of_unit[4]};
      float back[4] = {};
      mma_m16n8k16_bf16(back, differences, weights);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        unsigned& pair = pairs[i / 2][i % 2 * 2 + half];
        const float first = low_half(pair), second = high_half(pair);
        pair = to_bf16_pair(back[2 * half] * (first - first * first), back[2 * half + 1] * (second - second * second));
      }
    }
    put(tiles.gradients, pairs);
    barriers.gradients.arrive();
    barriers.gradients.wait();
    if (threadIdx.x == 0) {
      for (int box = 0; box < kBoxes; ++box)
        if (unit + box * kBox < hidden) tma_store(dz1, unit + box * kBox, sample, tiles.gradients[box]);
      tma_store_commit();
    }
    times_differences(of_b1, tiles.gradients);
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < kOwn; ++i) wgmma_keep(of_w2[i]), wgmma_keep(of_b1[i]);

    const int width = hidden + 1;
#pragma unroll
    for (int i = 0; i < kOwn; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int of = unit + (warp / 4 * kOwn + i) * kBox + warp % 4 * 16 + group + 8 * half;
        if (of >= hidden) continue;
        float* to = part + of;
        to[2 * step * width] = of_w2[i][2 * half], to[(2 * step + 1) * width] = of_w2[i][2 * half + 1];
        if (has_last) to[8 * width] = of_w2[i][4 + 2 * half], to[9 * width] = of_w2[i][5 + 2 * half];
        if (step == 1) to[kClasses * width] = of_b1[i][4 + 2 * half];
      }
    if (rank == 0 && threadIdx.x < kClasses) {
      float sum = 0.0f;
#pragma unroll
      for (int of = 0; of < kWarps; ++of) sum += memory.of_warps[of][threadIdx.x];
      part[threadIdx.x * width + hidden] = sum;
    }
    if (threadIdx.x == 0) tma_store_wait_read<0>();  // shared memory is there until the TMA has read it
  }
};
