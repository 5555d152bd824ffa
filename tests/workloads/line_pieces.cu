// Which blocks compute what of a line of tiles, and where their sums are, as v19_equal_shares_tf32 of mlp_gemm has it.
#include "../../workloads/mlp_gemm/kernels/line.cuh"

// computed[tile][pair] counts how often a pair of steps is computed; sums[place] is how many pairs of a cut tile stand there.
__global__ void compute(int* computed, int* sums, int tiles, int depth, int whole, int share, int span) {
  const Line line{whole, share, span};
  Pieces pieces(line, tiles, depth);
  Piece piece;
  while (pieces.next(piece)) {
    for (int pair = piece.begin; pair < piece.end; ++pair) ++computed[piece.tile * depth + pair];
    if (piece.tile >= whole) sums[line.place(blockIdx.x, piece.tile)] += piece.end - piece.begin;
  }
}

// added[tile] is how many pairs are added up, block by block a tile of the line.
__global__ void add(const int* sums, int* added, int whole, int share, int span) {
  const Line line{whole, share, span};
  const int tile = whole + blockIdx.x;
  for (int part = 0; part < line.parts(tile); ++part) added[tile] += sums[line.place(line.first_block(tile), tile) + part];
}
