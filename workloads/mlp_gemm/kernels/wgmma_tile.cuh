// What both rungs on warpgroups share: the order of the tiles, and the way out.

constexpr int kRows = 128;  // of a tile: two consumer warpgroups of 64
constexpr int kDepth = 32;  // of a stage: 128 bytes, the span of the swizzle
constexpr int kBand = 8;    // tiles one above the other that are walked together, so that their columns stay in L2

// First row and column of a tile, by its number.
template <int columns>
__device__ __forceinline__ void place_tile(int tile, int m, int n, int& row, int& column) {
  const int down = (m + kRows - 1) / kRows, across = (n + columns - 1) / columns;
  const int band = tile / (kBand * across), within = tile % (kBand * across);
  const int height = min(kBand, down - band * kBand);
  row = (band * kBand + within % height) * kRows;
  column = within / height * columns;
}

// Asks L2 for a tile of C, a line a lane and step: C is needed when the tile is done, and memory has time until then.
template <int columns>
__device__ __forceinline__ void prefetch_tile(const float* c, int row, int column, int m, int n, int step) {
  constexpr int kLine = 32;  // floats
  const int line = step * 32 + threadIdx.x % 32;
  const int of_row = row + line % (kRows / kLine) * kLine, of_column = column + line / (kRows / kLine);
  if (line < columns * kRows / kLine && of_row < m && of_column < n)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(c + (size_t)of_column * m + of_row));
}

// D = alpha * sums + beta * C for a thread's share of a tile. All loads of 16 elements are under way before the first is waited for.
template <int count>
__device__ __forceinline__ void store_tile(const float (&sums)[count], const float* __restrict__ c, float* __restrict__ d,
                                           int row, int column, const WgmmaFragments& fragments, int m, int n,
                                           float alpha, float beta) {
  constexpr int kAtOnce = 16;
#pragma unroll
  for (int first = 0; first < count; first += kAtOnce) {
    float old[kAtOnce];
    auto place = [&](int i) {
      const int to_row = row + fragments.row + fragments.down(i), to_column = column + fragments.across(i);
      return to_row < m && to_column < n ? (long long)to_column * m + to_row : -1;
    };
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) old[i] = place(first + i) < 0 ? 0.0f : c[place(first + i)];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (place(first + i) >= 0) d[place(first + i)] = alpha * sums[first + i] + beta * old[i];
  }
}

#include "pad.cuh"
