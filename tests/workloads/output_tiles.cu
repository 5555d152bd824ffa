// Which inputs meet which outputs, by which tap, as the tiles of gan_tconv's rungs on warpgroups have it: met[output][input] counts 1000 and
// adds the tap. One image block and one block of columns.
#include "../../workloads/gan_tconv/kernels/output_tiles.cuh"

template <int outputs>
__global__ void meet(int* met, int side) {
  using Tile = OutputTile<outputs, 256 / outputs>;
  const Sizes of = {side, 3, 8, 4, 1, 8};
  for (int n = 0; n < 4 * side * side * side * side; ++n) met[n] = 0;
  for (int number = 0; number < Tile::count(of); ++number) {
    const Tile tile(number, of);
    for (int kind = 0; kind < Tile::kinds; ++kind) {
      const Span rows = tile.rows(kind), across = tile.across(kind);
      for (int i = rows.low; i <= rows.high; ++i)
        for (int j = across.low; j <= across.high; ++j)
          for (int n = 0; n < Tile::outputs_of(kind); ++n) {
            const int output = Tile::first_output(kind) + n, input = (tile.p + i) * side + tile.q + j;
            met[tile.pixel(output) * side * side + input] += 1000 + tile.tap(output, i, j);
          }
    }
  }
}
