// Idea: B is turned first, so that the TMA brings a stage of A and of B with one request each. The copies of v07_warp_tile turn B on its way,
//     4 bytes at a time: they take issue slots and turns of shared memory from the loads of the multiply-adds. A warp arrives at a barrier
//     when it has read a stage. Half a stage later the first thread waits for all warps and asks for the next one. The block never waits
//     as a whole.
// Bottleneck: The registers' ports, as for v07_warp_tile: in the machine code for sm_90a one multiply-add in 11 has three reads, against one
//     in eight; with 8 x 16 elements a thread it is one in 22. On an H200 the turn takes 34 of 2615 us at n = 4096, and 150 of 20955 us at
//     n = 8192. At n = 4096 the tile of 128 x 256 takes 2712 us: it fills the multiprocessors in four waves, the last of them not full.
// Next: Nothing that we know of. A tile of 256 x 128 takes 2788 us at n = 4096, and 8 x 16 elements a thread in a tile of 128 x 128 2736 us.
// Source: Own work; PTX ISA, cp.async.bulk.tensor.

#include "v07_warp_tile.cu"
#include "../../hopper.cuh"
#include "turned_product.cuh"
#include "pad.cuh"

// B, column after column -> row after row, at a pitch that the TMA takes, filled up with zeros. Threads 32 x 8.
__global__ void turn(const float* __restrict__ b, float* __restrict__ turned, int n, int k, int pitch) {
  __shared__ float tile[kTurned][kTurned + 1];
  const int step = blockIdx.x * kTurned, column = blockIdx.y * kTurned;
#pragma unroll
  for (int i = threadIdx.y; i < kTurned; i += 8)
    if (step + threadIdx.x < k && column + i < n) tile[i][threadIdx.x] = b[(size_t)(column + i) * k + step + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = threadIdx.y; i < kTurned; i += 8)
    if (step + i < k && column + threadIdx.x < pitch)
      turned[(size_t)(step + i) * pitch + column + threadIdx.x] = column + threadIdx.x < n ? tile[threadIdx.x][i] : 0;
}

// A block a tile.
template <int kRows, int kColumns, int kDepth, int kThreadRows, int kThreadColumns, int kWarpsDown, int kStages, int kBlocks,
          bool kWhole, int kApart>
__global__ void __launch_bounds__(kRows / kThreadRows * (kColumns / kThreadColumns), kBlocks)
    gemm_turned(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const float* __restrict__ c,
                float* __restrict__ d, int m, int n, int k, float alpha, float beta) {
  using Tile = BlockTile<kRows, kColumns, kDepth, kThreadRows, kThreadColumns, kWarpsDown, kStages, kWhole>;
  using Product = TurnedProduct<Tile, kRows, kColumns, kDepth, kStages, kApart>;
  extern __shared__ __align__(128) char memory[];
  __shared__ Pipeline<kStages> pipeline;
  pipeline.init(Tile::kWarps);

  const Tile tile(blockIdx.x, m, n);
  const Product product{a, b, reinterpret_cast<typename Product::Stage*>(memory), pipeline, tile, 0, (k + kDepth - 1) / kDepth};
  Ring<kStages> ring, before;
  float sums[kThreadColumns][kThreadRows] = {};
  product.begin(ring);
  product.multiply(sums, ring, before);

#pragma unroll
  for (int j = 0; j < kThreadColumns; ++j) {
    const int column = tile.first_column + tile.column + j % kFour + j / kFour * Tile::kColumnsApart;
    if (column >= n) continue;
#pragma unroll
    for (int i = 0; i < kThreadRows; i += kFour) {
      const int row = tile.first_row + tile.row + i / kFour * Tile::kRowsApart;
      if (row >= m) continue;  // never where tiles are whole; without it the sums get such registers too
      const size_t at = (size_t)column * m + row;
      const float* four = &sums[j][i];
      if constexpr (kWhole) {
        const float4 old = *(const float4*)(c + at);
        *(float4*)(d + at) = make_float4(alpha * four[0] + beta * old.x, alpha * four[1] + beta * old.y,
                                         alpha * four[2] + beta * old.z, alpha * four[3] + beta * old.w);
      } else {
#pragma unroll
        for (int e = 0; e < kFour; ++e)
          if (row + e < m) d[at + e] = alpha * four[e] + beta * c[at + e];
      }
    }
  }
}
