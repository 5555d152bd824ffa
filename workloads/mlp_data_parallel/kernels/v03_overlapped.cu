// Idea: Weights leave as soon as they are new. The output layer and the biases are updated before the large product of the way back, and are
//     averaged beside it, in a stream of higher priority; that product is cut into `chunks` of w1's rows, each updated by itself and averaged
//     beside the next one's product. Only the last chunk's average has nothing to hide behind.
// Bottleneck: NCCL's latency, once a chunk, and the blocks that an average takes from the product beside it. On two H200s with 8,192 rows each,
//     averaging adds 42 us to the step after it, 44 beside it in one chunk and 34 in three; but three chunks' products take 15 us more. So one
//     chunk is fastest, for its kernels, and nothing is gained by hiding: of 3.2 MB there is too little.
// Next: -
// Source: Own work, after the buckets of PyTorch's DistributedDataParallel (S. Li et al., VLDB 2020); kernels: `mlp_training` v04_fused, cut in two.

#include "../../mlp_training/kernels/v04_fused.cu"

// Parts of the gradients of w2, b2 and b1, which `backward_weights` has beside the large product.
__global__ void __launch_bounds__(kTileThreads)
    backward_output(const float* __restrict__ a1, const float* __restrict__ dz2, const float* __restrict__ dz1, float* __restrict__ parts,
                    int batch, int hidden, int chunk) {
  __shared__ float memory[kTileThreads / 32 * (kClasses + 1) * 32];
  output_gradient(a1, dz2, dz1, parts, batch, hidden, chunk, blockIdx.x, memory);
}

// slices[s] = rows [first, first + rows) of x^T dz1 over the samples [s * depth, (s + 1) * depth). Blocks: tiles across, tiles down, slices.
template <bool kVector>
__global__ void __launch_bounds__(kTileThreads, kVector ? kTileBlocks : kTileBlocks - 1)
    backward_rows(const float* __restrict__ x, const float* __restrict__ dz1, float* __restrict__ slices, int batch, int inputs, int hidden,
                  int depth, int first, int rows) {
  __shared__ float4 memory[kTileMemory];
  const int step = blockIdx.z * depth;
  const Operands operands = {x + first, dz1, inputs, rows, hidden, step, min(step + depth, batch)};
  product_tile<kVector, true>(operands, blockIdx.y * kRows, blockIdx.x * kColumns, slices + (size_t)blockIdx.z * rows * hidden, memory);
}
