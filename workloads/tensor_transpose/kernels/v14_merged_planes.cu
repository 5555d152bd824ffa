// Idea: A stack of planes is one plane. For (2,0,1) and (2,1,0) the rows of all planes follow one another in the output, for (0,2,1)
//     and (1,2,0) the columns do. So tiles are cut from the merged plane, and only the last one is not full, where v13_whole_sectors has
//     such tiles in every plane: with extents of 178 and 396 its tiles of 56 rows are four fifths full. The plane of a row, or of a
//     column, comes from a product with a reciprocal and a shift. Merged rows of the output are long, and begin with a sector more often.
// Bottleneck: Memory. Tiles are still not full along the axis that is not merged.
// Next: Nothing that we know of.
// Source: Own work. Inductor, the compiler of torch.compile, merges axes likewise.

#include "v12_flat_rows.cu"

// `rows` rows of `columns` elements of the input become `columns` rows of the output, `out_row` apart. With PLANES_DOWN `extent` rows are a
// plane, else `extent` columns are. Blocks go down the rows first, or across the columns; `in_strip` tiles on their way before they turn.
// SHIFTED: as in v13_whole_sectors, each row of a tile begins with a sector, and eight of HEIGHT rows are loaded twice.
template <int WIDTH, int HEIGHT, bool SHIFTED, bool PLANES_DOWN, bool DOWN_FIRST>
__global__ void __launch_bounds__(256, 4)
    transpose(const float* __restrict__ in, float* __restrict__ out, unsigned rows, unsigned columns, unsigned extent, unsigned reciprocal,
              unsigned reciprocal_shift, unsigned in_row, unsigned in_plane, unsigned out_row, unsigned in_strip) {
  constexpr int LANES = 32, WARPS = 256 / LANES, SECTOR = 8;  // elements of a sector
  constexpr int WRITTEN = SHIFTED ? HEIGHT - SECTOR : HEIGHT, LARGEST_SHIFT = SHIFTED ? SECTOR - 1 : 0;
  __shared__ float tile[WIDTH][HEIGHT + 1];  // rows of the output
  const unsigned strip = blockIdx.x / in_strip, of_strip = blockIdx.x % in_strip;
  const unsigned left = (DOWN_FIRST ? strip : of_strip) * WIDTH;
  const int top = (DOWN_FIRST ? of_strip : strip) * WRITTEN - LARGEST_SHIFT;
  const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;

  {
    constexpr int ACROSS = WIDTH / LANES, ROWS_AT_ONCE = WARPS / ACROSS, PASSES = HEIGHT / ROWS_AT_ONCE;
    const int c = warp % ACROSS * LANES + lane, r = warp / ACROSS;
    const unsigned column = left + c, plane_of_column = PLANES_DOWN ? 0 : over(column, reciprocal, reciprocal_shift);
    const float* from = in + (plane_of_column * in_plane + (column - plane_of_column * extent));
    float value[PASSES];
#pragma unroll
    for (int p = 0; p < PASSES; p++) {
      const unsigned row = top + r + p * ROWS_AT_ONCE;  // large where it would be negative
      const unsigned plane = PLANES_DOWN ? over(row, reciprocal, reciprocal_shift) : 0;
      if (row < rows && column < columns) value[p] = from[plane * in_plane + (row - plane * extent) * in_row];
    }
#pragma unroll
    for (int p = 0; p < PASSES; p++) tile[c][r + p * ROWS_AT_ONCE] = value[p];
  }
  __syncthreads();

  constexpr int DOWN = HEIGHT / LANES, COLUMNS_AT_ONCE = WARPS / DOWN, PASSES = WIDTH / COLUMNS_AT_ONCE;
  const int r = warp % DOWN * LANES + lane, c = warp / DOWN;
  if (r >= WRITTEN) return;
#pragma unroll
  for (int p = 0; p < PASSES; p++) {
    const unsigned column = left + c + p * COLUMNS_AT_ONCE, row_start = column * out_row;
    const int shift = SHIFTED ? LARGEST_SHIFT - row_start % SECTOR : 0;  // row_start + top + shift is a multiple of SECTOR
    const unsigned at = top + r + shift;
    if (column < columns && at < rows) out[row_start + at] = tile[c + p * COLUMNS_AT_ONCE][r + shift];
  }
}
