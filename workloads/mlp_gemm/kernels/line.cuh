// Whole tiles, and tiles behind one another along k as one line, of which each block has an equal share.

// Tiles below `whole` are computed whole. The others lie behind one another, `span` pairs of steps each, and a block has `share` of those
// pairs, no more than a tile. Pairs, for multiply_tile takes steps by two.
struct Line {
  int whole, share, span;

  // The first block that has a part of a tile, and how many have.
  __device__ __forceinline__ int first_block(int tile) const { return (tile - whole) * span / share; }
  __device__ __forceinline__ int parts(int tile) const { return ((tile - whole + 1) * span - 1) / share - first_block(tile) + 1; }

  // Where scratch memory has the sums of a block's part of a tile: from part to part the block, the tile or both are the next.
  __device__ __forceinline__ int place(int block, int tile) const { return block + tile - whole; }
};

// From pair `begin` of a tile up to pair `end`.
struct Piece {
  int tile, begin, end;
};

// What a block, or a cluster of blocks, computes: its whole tiles, then its share of the line. `first` is its number, of `count` at once. Beyond
// the `depth` pairs of a tile `span` may have empty ones.
struct Pieces {
  const Line line;
  const int depth, count, last;
  int tile, at;

  __device__ __forceinline__ Pieces(Line line, int tiles, int depth, int first = blockIdx.x, int count = gridDim.x)
      : line(line), depth(depth), count(count), last(min((first + 1) * line.share, (tiles - line.whole) * line.span)), tile(first),
        at(first * line.share) {}

  // False after the last piece. With a branch for each kind of piece, the loops of the product would lose their uniform registers.
  __device__ __forceinline__ bool next(Piece& piece) {
    const bool whole = tile < line.whole;
    if (!whole && at >= last) return false;
    const int begin = at % line.span, end = min(begin + last - at, line.span);
    piece = whole ? Piece{tile, 0, depth} : Piece{line.whole + at / line.span, begin, min(end, depth)};
    tile += count;
    at += whole ? 0 : end - begin;
    return true;
  }
};
