// Idea: Memory is written in sectors of 32 bytes. Where rows of the output do not begin with a sector, a tile that is cut straight
//     writes a part of a sector at both ends of each row, and another block writes the other part at another time. Here each row of
//     a tile begins with a sector of its own: rows are shifted by up to seven elements against one another. A tile of HEIGHT
//     rows writes HEIGHT - 8 of them, and eight are loaded twice, the second time from L2. All accesses are of 4 bytes: the lanes
//     of a warp are neighbours on both sides, through a tile with a padded column, and any extent is served alike.
// Bottleneck: Memory, as for the swizzled tile, and the eight rows. A tile of 128 loads fewer rows twice, and a tile of 64 leaves
//     space for more blocks. (2,1,0) reaches nine tenths of the copy, since both sides have rows that lie far apart.
// Next: Nothing that we know of: on an H100 vectors of 16 bytes, where rows allow them, made a tile that is not shifted 1 % slower at
//     512 x 512 x 512 and up to 7 % slower at odd extents, and tiles whose rows leave as bulk copies were no faster. On an H200 tiles that are
//     cut from all planes merged into one, so that few of them are not full, were 1 % faster to 7 % slower at odd extents.
// Source: Own work.

// As in the padded tile: `height` rows of `width` contiguous floats, `in_row` apart, become `width` rows of `height`. Blocks go through
// the `across` tiles of a row, then `down` the plane, then through the planes; or, with DOWN_FIRST, down the plane first.
template <int HEIGHT, bool SHIFTED, bool DOWN_FIRST>
__global__ void __launch_bounds__(256, HEIGHT == 64 ? 4 : 3)
    transpose(const float* __restrict__ in, float* __restrict__ out, int height, int width, unsigned in_row, unsigned in_plane,
              unsigned out_row, unsigned out_plane, int across, int down) {
  constexpr int WIDTH = 64, LANES = 32, WARPS = 256 / LANES, SECTOR = 8;  // elements of a sector
  constexpr int WRITTEN = SHIFTED ? HEIGHT - SECTOR : HEIGHT, LARGEST_SHIFT = SHIFTED ? SECTOR - 1 : 0;
  __shared__ float tile[WIDTH][HEIGHT + 1];  // rows of the output
  const int strip = blockIdx.x / (DOWN_FIRST ? down : across), in_strip = blockIdx.x % (DOWN_FIRST ? down : across);
  const int plane = strip / (DOWN_FIRST ? across : down), of_plane = strip % (DOWN_FIRST ? across : down);
  const int left = (DOWN_FIRST ? of_plane : in_strip) * WIDTH;
  const int top = (DOWN_FIRST ? in_strip : of_plane) * WRITTEN - LARGEST_SHIFT;
  const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;

  {
    constexpr int ACROSS = WIDTH / LANES, ROWS_AT_ONCE = WARPS / ACROSS, PASSES = HEIGHT / ROWS_AT_ONCE;
    const int c = warp % ACROSS * LANES + lane, r = warp / ACROSS;
    const float* from = in + (plane * in_plane + left + c);
    float value[PASSES];
#pragma unroll
    for (int p = 0; p < PASSES; p++) {
      const int row = top + r + p * ROWS_AT_ONCE;
      if (row >= 0 && row < height && left + c < width) value[p] = from[row * in_row];
    }
#pragma unroll
    for (int p = 0; p < PASSES; p++) tile[c][r + p * ROWS_AT_ONCE] = value[p];
  }
  __syncthreads();

  constexpr int DOWN = HEIGHT / LANES, COLUMNS_AT_ONCE = WARPS / DOWN, PASSES = WIDTH / COLUMNS_AT_ONCE;
  const int r = warp % DOWN * LANES + lane, c = warp / DOWN;
  if (r >= WRITTEN) return;
  float value[PASSES];
  unsigned at[PASSES];
#pragma unroll
  for (int p = 0; p < PASSES; p++) {
    const int column = c + p * COLUMNS_AT_ONCE;
    const unsigned row_start = plane * out_plane + (left + column) * out_row;
    const int shift = SHIFTED ? LARGEST_SHIFT - row_start % SECTOR : 0;  // row_start + top + shift is a multiple of SECTOR
    at[p] = top + r + shift;  // beyond the height too where it is negative
    value[p] = tile[column][r + shift];
  }
#pragma unroll
  for (int p = 0; p < PASSES; p++) {
    const int column = left + c + p * COLUMNS_AT_ONCE;
    if (column < width && at[p] < static_cast<unsigned>(height)) out[plane * out_plane + column * out_row + at[p]] = value[p];
  }
}
