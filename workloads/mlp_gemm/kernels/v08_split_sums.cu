// Idea: The tiles of v07_warp_tile fill all multiprocessors for whole waves only; those left over, or all where there are
//     fewer tiles than multiprocessors, are split along k. Each part of such a tile is a block of its own, which leaves its
//     sums in scratch memory; a second kernel adds a tile's parts in their order, so that the result is the same every time.
// Bottleneck: What is split is written and read once more, 64 KB a part of a tile, and there is a second launch: worth it
//     only where many multiprocessors would wait. Elsewhere the registers' ports, as for v07_warp_tile.
// Next: Tensor cores: the same tiles with products that cost less.
// Source: Own work; parts along k are the "split-K" of NVIDIA CUTLASS.

#include "v07_warp_tile.cu"

// Blocks below `whole` compute a tile each. The others compute a part each of the tiles that follow: `part_depth` steps, a
// multiple of kDepth, from `part` * `part_depth` on.
template <int kRows, int kColumns, int kDepth, int kThreadRows, int kThreadColumns, int kWarpsDown, int kStages, int kBlocks,
          bool kWhole>
__global__ void __launch_bounds__(kRows / kThreadRows * (kColumns / kThreadColumns), kWhole ? kBlocks : 1)
    gemm_parts(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c,
               float* __restrict__ d, float4* __restrict__ partial_sums, int m, int n, int k, float alpha, float beta,
               int whole, int parts, int part_depth) {
  using Tile = BlockTile<kRows, kColumns, kDepth, kThreadRows, kThreadColumns, kWarpsDown, kStages, kWhole>;
  const int split = (int)blockIdx.x - whole;  // number among the blocks that compute parts; negative for the others
  const int part = split < 0 ? 0 : split % parts;
  Tile tile(split < 0 ? blockIdx.x : whole + split / parts, m, n);
  tile.multiply(a, b, m, n, k, part * part_depth, split < 0 ? k : min(k, (part + 1) * part_depth));
  if (split < 0) {
    tile.store(c, d, m, n, alpha, beta);
    return;
  }
  // Each thread's fours lie a block apart, so that a warp writes 512 bytes in one go. add_parts has the same threads. Alpha
  // comes in here: ptxas keeps sums that are stored as they are in fours of registers, like the values, and then the two are
  // of one parity, in one bank, in most multiply-adds.
  float4* to = partial_sums + (size_t)split * (kRows * kColumns / kFour) + threadIdx.x;
#pragma unroll
  for (int j = 0; j < kThreadColumns; ++j)
#pragma unroll
    for (int i = 0; i < kThreadRows; i += kFour, to += Tile::kThreads)
      *to = make_float4(alpha * tile.sums[j][i], alpha * tile.sums[j][i + 1], alpha * tile.sums[j][i + 2],
                        alpha * tile.sums[j][i + 3]);
}

// d = sum of the parts + beta * c for the tiles from `whole` on: blockIdx.x a tile, blockIdx.y one of each thread's fours.
template <int kRows, int kColumns, int kDepth, int kThreadRows, int kThreadColumns, int kWarpsDown, int kStages, int kBlocks,
          bool kWhole>
__global__ void __launch_bounds__(kRows / kThreadRows * (kColumns / kThreadColumns))
    add_parts(const float4* __restrict__ partial_sums, const float* __restrict__ c, float* __restrict__ d, int m, int n,
              float beta, int whole, int parts) {
  using Tile = BlockTile<kRows, kColumns, kDepth, kThreadRows, kThreadColumns, kWarpsDown, kStages, kWhole>;
  constexpr int kFours = kRows * kColumns / kFour;  // of a part
  const float4* from = partial_sums + (size_t)blockIdx.x * parts * kFours + blockIdx.y * Tile::kThreads + threadIdx.x;
  float4 sum = *from;
  for (int part = 1; part < parts; ++part) {
    const float4 value = from[(size_t)part * kFours];
    sum = make_float4(sum.x + value.x, sum.y + value.y, sum.z + value.z, sum.w + value.w);
  }

  const Tile tile(whole + blockIdx.x, m, n);  // for the place of this thread
  const int i = blockIdx.y % (kThreadRows / kFour), j = blockIdx.y / (kThreadRows / kFour);
  const int row = tile.first_row + tile.row + i * Tile::kRowsApart;
  const int column = tile.first_column + tile.column + j % kFour + j / kFour * Tile::kColumnsApart;
  if (column >= n) return;
  const size_t at = (size_t)column * m + row;
  if constexpr (kWhole) {
    const float4 old = *(const float4*)(c + at);
    *(float4*)(d + at) = make_float4(sum.x + beta * old.x, sum.y + beta * old.y, sum.z + beta * old.z,
                                     sum.w + beta * old.w);
  } else {
    if (row + 0 < m) d[at + 0] = sum.x + beta * c[at + 0];
    if (row + 1 < m) d[at + 1] = sum.y + beta * c[at + 1];
    if (row + 2 < m) d[at + 2] = sum.z + beta * c[at + 2];
    if (row + 3 < m) d[at + 3] = sum.w + beta * c[at + 3];
  }
}
