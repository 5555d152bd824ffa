// Idea: For tiles that do not fill the multiprocessors: after the full waves of v17_turned_columns the tiles left over lie behind one another
//     along k, as one line of stages, and each block has an equal share of it, wherever tiles end. A block leaves its sums of the beginning or
//     the middle of a tile in scratch memory. The block that computes the end of a tile waits for its other parts, and adds them in their
//     order to the sums in its registers. One launch before turns B, pads A where the TMA needs it, and sets the counters to zero.
// Bottleneck: The registers' ports, and tiles that reach beyond D. On an H100 it takes 2577 us at n = 4096, and v17_turned_columns 2595. At
//     shape=1337x2209x901 it takes 143 us, of which multiply-adds at 51 TFLOP/s would take 117; v08_split_sums takes 170, cuBLASLt 137.
//     At n = 1024 v16_cluster_sums is faster, 53 against 57 us: it turns nothing.
// Next: Nothing that we know of. With launches of their own for padding, turning and adding, shape=1337x2209x901 took 152 us.
// Source: Own work; shares of a line of tiles are the "stream-K" of M. Osama et al., 2023.

#include "v07_warp_tile.cu"
#include "../../hopper.cuh"
#include "turned_product.cuh"
#include "line.cuh"

constexpr int kThreads = 256;  // of a block of `prepare`
constexpr int kWarps = kThreads / kWarp;
constexpr int kLoads = 8;                  // that a thread has under way
constexpr int kStrip = kLoads * kWarps;    // columns of B that a block turns, kTurned steps of each
constexpr int kRowPiece = kLoads * kWarp;  // elements of a row of A that a warp pads

// Turns B and pads A as v17_turned_columns does, and sets `count` counters to zero. The first `turns` blocks turn; a warp of the others pads a
// piece of a row, and where A needs no padding there are no others. No thread divides for each element, and each has kLoads loads under way.
__global__ void __launch_bounds__(kThreads)
    prepare(const float* __restrict__ a, float* __restrict__ padded, const float* __restrict__ b, float* __restrict__ turned,
            int* __restrict__ counters, int m, int n, int k, int turns, int count) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  if (blockIdx.x == 0)
#pragma unroll 1
    for (int i = threadIdx.x; i < count; i += kThreads) counters[i] = 0;

  float values[kLoads];
  if (blockIdx.x < turns) {
    __shared__ float tile[kStrip][kTurned + 1];
    const int steps = (k + kTurned - 1) / kTurned, pitch = (n + kFour - 1) / kFour * kFour;
    const int step = blockIdx.x % steps * kTurned, column = blockIdx.x / steps * kStrip;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int of = column + warp + i * kWarps;
      values[i] = of < n && step + lane < k ? b[(size_t)of * k + step + lane] : 0;
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) tile[warp + i * kWarps][lane] = values[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTurned; i += kWarps)
#pragma unroll
      for (int j = lane; j < kStrip; j += kWarp)
        if (step + warp + i < k && column + j < pitch) turned[(size_t)(step + warp + i) * pitch + column + j] = tile[j][warp + i];
  } else {
    const int pitch = (m + kFour - 1) / kFour * kFour, pieces = (pitch + kRowPiece - 1) / kRowPiece;
    const int piece = blockIdx.x - turns, row = piece / pieces * kWarps + warp, column = piece % pieces * kRowPiece + lane;
    if (row >= k) return;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) values[i] = column + i * kWarp < m ? a[(size_t)row * m + column + i * kWarp] : 0;
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
      if (column + i * kWarp < pitch) padded[(size_t)row * pitch + column + i * kWarp] = values[i];
  }
}

// What a block computes: its whole tiles, then its share of the line, from the last piece to the first.
struct PiecesFromLast {
  const Line line;
  const int depth, begin;
  int tile, end;

  __device__ __forceinline__ PiecesFromLast(Line line, int block, int tiles, int depth)
      : line(line), depth(depth), begin(block * line.share), tile(block),
        end(min((block + 1) * line.share, (tiles - line.whole) * line.span)) {}

  // False after the last piece. With a branch for each kind of piece, the loops of the product would lose their uniform registers.
  __device__ __forceinline__ bool next(Piece& piece) {
    const bool whole = tile < line.whole;
    if (!whole && end <= begin) return false;
    const int of_line = (end - 1) / line.span, start = of_line * line.span, from = max(begin, start);
    piece = whole ? Piece{tile, 0, depth} : Piece{line.whole + of_line, from - start, min(end - start, depth)};
    tile += gridDim.x;
    end = whole ? end : from;
    return true;
  }
};

// Asks L2 for a tile of C.
template <int kRows, int kColumns, int kOfBlock>
__device__ __forceinline__ void prefetch_tile(const float* c, int first_row, int first_column, int m, int n) {
  constexpr int kLine = 32, kLines = kRows / kLine;  // of a column
#pragma unroll
  for (int i = threadIdx.x; i < kColumns * kLines; i += kOfBlock) {
    const int row = first_row + i % kLines * kLine, column = first_column + i / kLines;
    if (row < m && column < n) prefetch_l2(c + (size_t)column * m + row);
  }
}

// Blocks stay for all tiles: as many as fit on all multiprocessors. counters: blocks that have begun, then parts of each tile of the line
// that are in scratch memory; all 0 before.
//
// A block has at most two pieces of the line, since a share is no longer than a tile: the beginning of a tile, whose sums it leaves in scratch
// memory, then the end of the tile before, to which it adds the parts that others left. It waits for blocks with lower numbers only. A
// block's number is how many began before it: so these run or have ended, and none waits for a block that cannot begin.
template <int kRows, int kColumns, int kDepth, int kThreadRows, int kThreadColumns, int kWarpsDown, int kStages, int kBlocks,
          bool kWhole, int kApart>
__global__ void __launch_bounds__(kRows / kThreadRows * (kColumns / kThreadColumns), kBlocks)
    gemm_shares(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const float* __restrict__ c,
                float* __restrict__ d, float4* parts, int* counters, int m, int n, int k, float alpha, float beta, int whole, int share,
                int span) {
  using Tile = BlockTile<kRows, kColumns, kDepth, kThreadRows, kThreadColumns, kWarpsDown, kStages, kWhole>;
  constexpr int kFours = kThreadRows * kThreadColumns / kFour;  // of a thread
  using Product = TurnedProduct<Tile, kRows, kColumns, kDepth, kStages, kApart>;
  extern __shared__ __align__(128) char memory[];
  auto* stages = reinterpret_cast<typename Product::Stage*>(memory);
  __shared__ Pipeline<kStages> pipeline;
  __shared__ int number_of_block;
  if (threadIdx.x == 0) number_of_block = atomicAdd(counters, 1);
  pipeline.init(Tile::kWarps);
  const int block = __shfl_sync(0xffffffff, number_of_block, 0);  // in a uniform register

  const Line line{whole, share, span};
  const int depth = (k + kDepth - 1) / kDepth;
  PiecesFromLast pieces(line, block, ((m + kRows - 1) / kRows) * ((n + kColumns - 1) / kColumns), depth);
  Piece piece;
  Ring<kStages> ring, before;
#pragma unroll 1
  while (pieces.next(piece)) {
    const Tile tile(piece.tile, m, n);
    const Product product{a, b, stages, pipeline, tile, piece.begin, piece.end - piece.begin};
    __syncthreads();  // nobody reads the stages of the last piece any more
    product.begin(ring);
    if (piece.end == depth) prefetch_tile<kRows, kColumns, Tile::kThreads>(c, tile.first_row, tile.first_column, m, n);
    float sums[kThreadColumns][kThreadRows] = {};
    product.multiply(sums, ring, before);

    // A thread's fours of a part lie apart, so that a warp writes 512 bytes in one go. Parts are by alpha already: if sums were written as they
    // are, fours of them would need neighbouring registers, and more multiply-adds would have three reads.
    const auto part_of = [&](int of_block) { return parts + (size_t)of_block * kFours * Tile::kThreads + threadIdx.x; };
    int* arrived = counters + 1 + piece.tile - whole;  // parts of the tile
    if (piece.end < depth) {
      float4* part = part_of(block);
#pragma unroll
      for (int f = 0; f < kFours; ++f) {
        const float* four = &sums[0][0] + f * kFour;
        part[f * Tile::kThreads] = make_float4(alpha * four[0], alpha * four[1], alpha * four[2], alpha * four[3]);
      }
      __syncthreads();
      if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
      }
      continue;
    }

    float factor = alpha;
    if (piece.begin > 0) {
      const int first = line.first_block(piece.tile);
      if (threadIdx.x == 0) {
        while (*(volatile int*)arrived < block - first) {
        }
        __threadfence();
      }
      __syncthreads();
#pragma unroll
      for (int j = 0; j < kThreadColumns; ++j)
#pragma unroll
        for (int i = 0; i < kThreadRows; ++i) sums[j][i] *= alpha;
      factor = 1;
#pragma unroll 1
      for (int other = first; other < block; ++other) {
        const float4* part = part_of(other);
#pragma unroll
        for (int f = 0; f < kFours; ++f) {
          const float4 value = __ldcg(part + f * Tile::kThreads);
          float* four = &sums[0][0] + f * kFour;
          four[0] += value.x, four[1] += value.y, four[2] += value.z, four[3] += value.w;
        }
      }
    }
#pragma unroll
    for (int j = 0; j < kThreadColumns; ++j) {
      const int row = tile.first_row + tile.row;
      const int column = tile.first_column + tile.column + j % kFour + j / kFour * Tile::kColumnsApart;
      if (row >= m || column >= n) continue;  // never where tiles are whole; without it more multiply-adds have three reads
      const size_t at = (size_t)column * m + row;
      float result[kThreadRows];  // C first, all rows before any is stored, so that they are under way at once
#pragma unroll
      for (int i = 0; i < kThreadRows; ++i) {
        const int down = i % kFour + i / kFour * Tile::kRowsApart;
        if constexpr (kWhole) {
          if (i % kFour == 0) *(float4*)&result[i] = *(const float4*)(c + at + down);
        } else {
          result[i] = row + down < m ? c[at + down] : 0;
        }
      }
#pragma unroll
      for (int i = 0; i < kThreadRows; ++i) {
        const int four = i / kFour * kFour, down = i % kFour + i / kFour * Tile::kRowsApart;
        result[i] = factor * sums[j][i] + beta * result[i];
        if constexpr (kWhole) {
          if (i % kFour == kFour - 1) *(float4*)(d + at + four / kFour * Tile::kRowsApart) = *(const float4*)&result[four];
        } else {
          if (row + down < m) d[at + down] = result[i];
        }
      }
    }
  }
}
