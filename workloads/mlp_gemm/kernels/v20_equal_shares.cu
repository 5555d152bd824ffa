// Idea: For tiles that do not fill the multiprocessors: after the full waves of v17_turned_columns the tiles left over lie behind one another
//     along k, as one line of stages, and each block has an equal share of it, wherever tiles end. A block leaves its sums of a part of a
//     tile in scratch memory, and a second kernel adds the parts of each tile in their order.
// Bottleneck: Not measured yet.
// Next: The last block of a tile adds the parts of the others to the sums in its registers, without a second launch.
// Source: Own work; shares of a line of tiles are the "stream-K" of M. Osama et al., 2023.

#include "v17_turned_columns.cu"
#include "line.cuh"

// Four elements of D below one another: the product, by alpha already, and beta * c.
template <bool kWhole>
__device__ __forceinline__ void add_old(float4 product, const float* __restrict__ c, float* __restrict__ d, int row, int column, int m,
                                        int n, float beta) {
  if (row >= m || column >= n) return;  // never where tiles are whole
  const size_t at = (size_t)column * m + row;
  const float four[kFour] = {product.x, product.y, product.z, product.w};
  if constexpr (kWhole) {
    const float4 old = *(const float4*)(c + at);
    *(float4*)(d + at) = make_float4(four[0] + beta * old.x, four[1] + beta * old.y, four[2] + beta * old.z, four[3] + beta * old.w);
  } else {
#pragma unroll
    for (int e = 0; e < kFour; ++e)
      if (row + e < m) d[at + e] = four[e] + beta * c[at + e];
  }
}

// Blocks stay for all tiles: as many as fit on all multiprocessors.
template <int kRows, int kColumns, int kDepth, int kThreadRows, int kThreadColumns, int kWarpsDown, int kStages, int kBlocks,
          bool kWhole, int kApart>
__global__ void __launch_bounds__(kRows / kThreadRows * (kColumns / kThreadColumns), kBlocks)
    gemm_shares(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const float* __restrict__ c,
                float* __restrict__ d, float4* __restrict__ parts, int m, int n, int k, float alpha, float beta, int whole, int share,
                int span) {
  using Tile = BlockTile<kRows, kColumns, kDepth, kThreadRows, kThreadColumns, kWarpsDown, kStages, kWhole>;
  struct Stage {
    float a[kDepth][kRows], b[kDepth][kColumns];
  };
  extern __shared__ __align__(128) char memory[];
  auto* stages = reinterpret_cast<Stage*>(memory);
  __shared__ Pipeline<kStages> pipeline;
  pipeline.init(Tile::kWarps);

  const Line line{whole, share, span};
  Pieces pieces(line, ((m + kRows - 1) / kRows) * ((n + kColumns - 1) / kColumns), (k + kDepth - 1) / kDepth);
  Piece piece;
  Ring<kStages> ring, before;
#pragma unroll 1
  while (pieces.next(piece)) {
    const Tile tile(piece.tile, m, n);  // for the place of this thread
    const int count = piece.end - piece.begin;
    const auto fetch = [&](int number, int to) {
      Mbarrier* full = &pipeline.full[to];
      mbarrier_arrive_expect(full, sizeof(Stage));
      tma_load(stages[to].a, a, tile.first_row, (piece.begin + number) * kDepth, full);
      tma_load(stages[to].b, b, tile.first_column, (piece.begin + number) * kDepth, full);
    };
    __syncthreads();  // nobody reads the stages of the last piece any more
    if (threadIdx.x == 0)
      for (int i = 0; i < min(kStages, count); ++i) fetch(i, (ring.stage + i) % kStages);

    float values[2][kThreadRows], weights[2][kThreadColumns];
    const float *of_a = &stages[ring.stage].a[0][tile.row], *of_b = &stages[ring.stage].b[0][tile.column];
    const auto load = [&](int fragment, int p) {
#pragma unroll
      for (int i = 0; i < kThreadRows; i += kFour)
        *(float4*)&values[fragment][i] = *(const float4*)(of_a + p * kRows + i / kFour * Tile::kRowsApart);
#pragma unroll
      for (int j = 0; j < kThreadColumns; j += kFour)
        *(float4*)&weights[fragment][j] = *(const float4*)(of_b + p * kColumns + j / kFour * Tile::kColumnsApart);
    };
    mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
    load(0, 0);

    float sums[kThreadColumns][kThreadRows] = {};
#pragma unroll 1
    for (int number = 0; number < count; ++number) {
#pragma unroll
      for (int p = 0; p < kDepth; ++p) {
        if (p == kDepth / 2 && threadIdx.x == 0 && number > 0 && number - 1 + kStages < count) {
          mbarrier_wait(&pipeline.empty[before.stage], before.parity);
          fetch(number - 1 + kStages, before.stage);
        }
        if (p + 1 < kDepth) {
          load((p + 1) % 2, p + 1);
        } else {
          pipeline.release(ring.stage);
          before = ring;
          ring.next();
          if (number + 1 < count) mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
          of_a = &stages[ring.stage].a[0][tile.row], of_b = &stages[ring.stage].b[0][tile.column];
          load(0, 0);  // after the last step nobody uses it
        }
#pragma unroll
        for (int j = 0; j < kThreadColumns; ++j)
#pragma unroll
          for (int t = 0; t < kThreadRows; ++t) {
            const int turn = j % 2 ? kThreadRows - 1 - t : t;  // down one column and up the next
            const int i = turn * kApart % kThreadRows + turn * kApart / kThreadRows;
            sums[j][i] = fmaf(values[p % 2][i], weights[p % 2][j], sums[j][i]);
          }
      }
    }

    // A thread's fours of a part lie apart, so that a warp writes 512 bytes in one go.
    float4* part = parts + (size_t)line.place(blockIdx.x, piece.tile) * (kRows * kColumns / kFour) + threadIdx.x;
#pragma unroll
    for (int j = 0; j < kThreadColumns; ++j) {
      const int column = tile.first_column + tile.column + j % kFour + j / kFour * Tile::kColumnsApart;
#pragma unroll
      for (int i = 0; i < kThreadRows; i += kFour) {
        const float* four = &sums[j][i];
        const float4 product = make_float4(alpha * four[0], alpha * four[1], alpha * four[2], alpha * four[3]);
        if (piece.tile >= whole) {
          part[(j * kThreadRows + i) / kFour * Tile::kThreads] = product;
        } else {
          add_old<kWhole>(product, c, d, tile.first_row + tile.row + i / kFour * Tile::kRowsApart, column, m, n, beta);
        }
      }
    }
  }
}

// The sum of the parts + beta * C for the tiles of the line: blockIdx.x a tile, blockIdx.y one of the fours of each thread.
template <int kRows, int kColumns, int kDepth, int kThreadRows, int kThreadColumns, int kWarpsDown, int kStages, int kBlocks,
          bool kWhole>
__global__ void __launch_bounds__(kRows / kThreadRows * (kColumns / kThreadColumns))
    add_shares(const float4* __restrict__ parts, const float* __restrict__ c, float* __restrict__ d, int m, int n, float beta, int whole,
               int share, int span) {
  using Tile = BlockTile<kRows, kColumns, kDepth, kThreadRows, kThreadColumns, kWarpsDown, kStages, kWhole>;
  constexpr int kFours = kRows * kColumns / kFour;  // of a part
  const Line line{whole, share, span};
  const int number = whole + blockIdx.x, count = line.parts(number);
  const float4* from = parts + (size_t)line.place(line.first_block(number), number) * kFours + blockIdx.y * Tile::kThreads + threadIdx.x;
  float4 sum = *from;
#pragma unroll 4
  for (int part = 1; part < count; ++part) {
    const float4 value = from[(size_t)part * kFours];
    sum = make_float4(sum.x + value.x, sum.y + value.y, sum.z + value.z, sum.w + value.w);
  }

  const Tile tile(number, m, n);  // for the place of this thread
  const int i = blockIdx.y % (kThreadRows / kFour), j = blockIdx.y / (kThreadRows / kFour);
  add_old<kWhole>(sum, c, d, tile.first_row + tile.row + i * Tile::kRowsApart,
                  tile.first_column + tile.column + j % kFour + j / kFour * Tile::kColumnsApart, m, n, beta);
}
