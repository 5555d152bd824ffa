// The way forward, and back through the output layer. A cluster has `down` tiles of samples, and `blocks` blocks a tile with `columns` hidden units
// each. Each block fetches a share of what others of the cluster need too, the same samples or the same weights, for all of them (multicast). After
// pipeline.cuh and output_layer.cuh.

template <int warpgroups, int columns, int blocks, int down, int stages>
struct Forward {
  using Output = OutputLayer<warpgroups, columns, blocks>;
  static constexpr int kSamples = Output::kSamples, kConsumers = 128 * warpgroups;
  struct Memory {
    union {
      Stage<kSamples, columns> stage[stages];
      typename Output::Tiles tiles;
    };
    typename Output::Memory output;
  };

  // Arrivals that make a stage empty: of the blocks that this one fetches for.
  static constexpr int kReleases = kConsumers / 32 * (blocks + down - 1);

  // By a warp: stages of x, and of w1, whose lines are hidden units.
  static __device__ __forceinline__ void load(Memory& memory, Pipeline<stages>& pipeline, const TensorMap& x, const TensorMap& w1, int rank,
                                              int sample, int unit, int steps) {
    constexpr int kShare = kSamples / blocks, kBoxes = columns / kBox / down;
    constexpr unsigned kMates = (1u << blocks) - 1, kColumnMates = (down > 1 ? 1u << blocks : 0u) | 1u;
    static_assert(down <= 2);
    const int of_row = rank / blocks, of_column = rank % blocks;
    load_steps(
        pipeline, steps,
        [&](int to, int step) {
          auto& now = memory.stage[to];
          mbarrier_arrive_expect(&pipeline.full[to], sizeof now);
          if constexpr (down == 1)
            for (int box = 0; box < kBoxes; ++box)
              tma_load(now.b + box * kBox * kLineBytes, w1, unit + box * kBox, step * kDepth, &pipeline.full[to]);
        },
        [] { cluster_wait(); },
        [&](int to, int step) {
          auto& now = memory.stage[to];
          tma_load_multicast(now.a + of_column * kShare * kLineBytes, x, step * kDepth, sample + of_column * kShare, &pipeline.full[to],
                             kMates << (of_row * blocks));
          if constexpr (down > 1)
            for (int box = of_row * kBoxes; box < (of_row + 1) * kBoxes; ++box)
              tma_load_multicast(now.b + box * kBox * kLineBytes, w1, unit + box * kBox, step * kDepth, &pipeline.full[to],
                                 kColumnMates << of_column);
        });
  }

  // By the consumers: activations as OutputLayer takes them.
  static __device__ __forceinline__ void multiply(unsigned (&pairs)[columns / 16][4], Memory& memory, Pipeline<stages>& pipeline,
                                                  typename Output::Barriers& barriers, int rank, int steps) {
    const int lane = threadIdx.x % 32, of_row = rank / blocks, of_column = rank % blocks;
    const int mate = lane < blocks ? of_row * blocks + lane : (of_row + 1) % down * blocks + of_column;
    float sums[columns / 2];
    multiply_steps<false>(sums, steps, memory.stage, pipeline, threadIdx.x / 128, [&](int of) {
      __syncwarp();
      if (lane < blocks + down - 1) mbarrier_arrive_remote(&pipeline.empty[of], mate);
    });
    barriers.free.arrive();
    barriers.weights.wait();
#pragma unroll
    for (int i = 0; i < columns / 2; i += 2) {
      const float2 bias = *(const float2*)(memory.output.bias + i / 4 * 8 + threadIdx.x % 4 * 2);
      pairs[i / 8][i % 8 / 2] = to_bf16_pair(sigmoid(sums[i] + bias.x), sigmoid(sums[i + 1] + bias.y));
    }
  }

  // Calls call(pair, whether it is one, its place in memory) for all of a thread.
  template <class Call>
  static __device__ __forceinline__ void for_each(unsigned (&pairs)[columns / 16][4], const Output& output, int batch, int hidden, Call call) {
    const int row = output.sample + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, unit = output.unit + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < columns / 4; ++i) {
      const int of = row + i % 2 * 8, first = unit + i / 2 * 8;
      call(pairs[i / 4][i % 4], of < batch && first < hidden, ((size_t)of * hidden + first) / 2);
    }
  }
};

// kHidden: the hidden layer's activations, in registers; kOutput: then dz1, and the other weights' gradients of each tile of samples in `parts`.
// What is not done by the same launch goes by way of a1, pairs of neighbouring units.
template <int warpgroups, int columns, int blocks, int down, int stages, bool kHidden, bool kOutput>
__global__ void __cluster_dims__(blocks* down, 1, 1) __launch_bounds__(128 * warpgroups + kProducers, 1)
    forward(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap w1, const __grid_constant__ TensorMap dz1,
            const float* __restrict__ b1, const unsigned* __restrict__ w2, const float* __restrict__ b2, const float* __restrict__ y,
            unsigned* __restrict__ a1, float* __restrict__ parts, float* __restrict__ losses, int batch, int inputs, int hidden) {
  using Hidden = Forward<warpgroups, columns, blocks, down, stages>;
  using Output = typename Hidden::Output;
  extern __shared__ char dynamic[];
  auto& memory = *aligned_1024<typename Hidden::Memory>(dynamic);
  __shared__ Pipeline<stages> pipeline;
  __shared__ typename Output::Barriers barriers;
  if (threadIdx.x == 0) Output::init(barriers);
  if (threadIdx.x == Hidden::kConsumers) prefetch_map(x), prefetch_map(w1), prefetch_map(dz1);
  pipeline.init(Hidden::kReleases);
  cluster_arrive_relaxed();  // before others reach this block's shared memory they wait
  let_next_launch_start();
  if constexpr (!kHidden) wait_for_launch_before();

  const int rank = cluster_rank(), tile = blockIdx.x / blocks, unit = rank % blocks * columns;
  Output output{memory.output, memory.tiles, barriers, unit, tile * Hidden::kSamples, rank % blocks, rank / blocks * blocks};
  const int steps = kHidden ? (inputs + kDepth - 1) / kDepth : 0;
  if (threadIdx.x >= Hidden::kConsumers) {
    if constexpr (warpgroups > 1) give_registers<40>();
    const int thread = threadIdx.x - Hidden::kConsumers;
    if (thread < 32) {
      Hidden::load(memory, pipeline, x, w1, rank, output.sample, output.unit, steps);
    } else {
      output.load_weights(thread - 32, b1, w2, hidden);
      cluster_wait();
    }
    return;
  }
  cluster_wait();
  if constexpr (warpgroups > 1) take_registers<232>();

  unsigned pairs[columns / 16][4];
  if constexpr (kHidden)
    Hidden::multiply(pairs, memory, pipeline, barriers, rank, steps);
  else {
    barriers.free.arrive();
    Hidden::for_each(pairs, output, batch, hidden, [&](unsigned& pair, bool is_inside, size_t place) { pair = is_inside ? a1[place] : 0; });
  }
  if constexpr (kOutput)
    output.finish(pairs, dz1, b2, y, parts + (size_t)tile * kSums * (hidden + 1), losses, batch, hidden);
  else
    Hidden::for_each(pairs, output, batch, hidden, [&](unsigned pair, bool is_inside, size_t place) {
      if (is_inside) a1[place] = pair;
    });
}
