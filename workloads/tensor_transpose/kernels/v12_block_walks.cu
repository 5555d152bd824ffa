// Idea: The swizzled tile with other walks of the blocks over memory. Blocks that run together decide how long the runs are in which a page of DRAM is
//     read and written before the next. A walk goes down a column of tiles, over a few columns or planes, and then on, so that reads and writes
//     both return to a page while it is open. Tiles are not square: longer rows on one side, shorter ones on the other.
// Bottleneck: -
// Next: Copies by the TMA.
// Source: Own work.

constexpr int kDownGroupPlanesAcross = 0, kGroupDownPlanesAcross = 1, kDownGroupAcrossPlanes = 2, kAcrossDownPlanes = 3;

// Where a block's tile is, in tiles of a plane of `across` by `down` tiles.
struct Place {
  int across, down, plane;
};

// walk: which of the tiles' axes the blocks go along first. `group` columns or planes are walked together; the last group may be short.
template <int walk, int group>
__device__ __forceinline__ Place place_of(int block, int across, int down, int planes) {
  Place at;
  if (walk == kDownGroupPlanesAcross || walk == kGroupDownPlanesAcross) {
    const int of_group = group * down * planes, first = block / of_group * group, width = min(group, across - first);
    block %= of_group;
    if (walk == kDownGroupPlanesAcross) {
      at.down = block % down, block /= down;
      at.across = first + block % width, at.plane = block / width;
    } else {
      at.across = first + block % width, block /= width;
      at.down = block % down, at.plane = block / down;
    }
  } else if (walk == kDownGroupAcrossPlanes) {
    const int of_group = group * down * across, first = block / of_group * group, width = min(group, planes - first);
    block %= of_group;
    at.down = block % down, block /= down;
    at.plane = first + block % width, at.across = block / width;
  } else {
    at.across = block % across, block /= across;
    at.down = block % down, at.plane = block / down;
  }
  return at;
}

// Four neighbours of a row: one access where rows are aligned, single elements within the row's end where they are not.
template <bool aligned>
__device__ __forceinline__ float4 load4(const float* row, int column, int end) {
  if (aligned) return *reinterpret_cast<const float4*>(row + column);
  float4 value = {};
  value.x = row[column];
  if (column + 1 < end) value.y = row[column + 1];
  if (column + 2 < end) value.z = row[column + 2];
  if (column + 3 < end) value.w = row[column + 3];
  return value;
}

template <bool aligned>
__device__ __forceinline__ void store4(float* row, int column, int end, float4 value) {
  if (aligned) {
    *reinterpret_cast<float4*>(row + column) = value;
    return;
  }
  row[column] = value.x;
  if (column + 1 < end) row[column + 1] = value.y;
  if (column + 2 < end) row[column + 2] = value.z;
  if (column + 3 < end) row[column + 3] = value.w;
}

// As in the padded tile: `height` rows of `width` contiguous floats, `in_row` apart, become `width` rows of `height`.
template <int tile_width, int tile_height, int threads, int blocks_per_sm, bool aligned, int walk, int group>
__global__ void __launch_bounds__(threads, blocks_per_sm)
    transpose(const float* __restrict__ in, float* __restrict__ out, int height, int width, long long in_row, long long in_plane,
              long long out_row, long long out_plane, int planes) {
  constexpr int kAcross = tile_width / 4, kDown = tile_height / 4;  // 4x4 tiles
  constexpr int kDownAtOnce = threads / kAcross, kPasses = kDown / kDownAtOnce;
  constexpr int kGroups = kDown < 8 ? kDown : 8;  // float4 columns that are swapped among themselves
  static_assert(kDown % kDownAtOnce == 0 && threads % kDown == 0, "the threads must cover the tile");
  extern __shared__ __align__(16) float4 memory[];  // [row of the output][column]
  const Place at = place_of<walk, group>(blockIdx.x, (width + tile_width - 1) / tile_width, (height + tile_height - 1) / tile_height, planes);
  const int left = at.across * tile_width, top = at.down * tile_height;
  in += at.plane * in_plane;
  out += at.plane * out_plane;

  const int across = threadIdx.x % kAcross, down = threadIdx.x / kAcross, from_column = left + across * 4;
  float4 value[kPasses][4];
#pragma unroll
  for (int p = 0; p < kPasses; p++)
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const int row = top + (down + p * kDownAtOnce) * 4 + k;
      if (row < height && from_column < width) value[p][k] = load4<aligned>(in + row * in_row, from_column, width);
    }
#pragma unroll
  for (int p = 0; p < kPasses; p++) {
    const int column = (down + p * kDownAtOnce) ^ (across % kGroups);
    const float4 a = value[p][0], b = value[p][1], c = value[p][2], d = value[p][3];
    float4* row = memory + across * 4 * kDown + column;
    row[0 * kDown] = make_float4(a.x, b.x, c.x, d.x);
    row[1 * kDown] = make_float4(a.y, b.y, c.y, d.y);
    row[2 * kDown] = make_float4(a.z, b.z, c.z, d.z);
    row[3 * kDown] = make_float4(a.w, b.w, c.w, d.w);
  }
  __syncthreads();

  const int column = threadIdx.x % kDown, to_column = top + column * 4;
#pragma unroll
  for (int p = 0; p < tile_width * kDown / threads; p++) {
    const int r = p * (threads / kDown) + threadIdx.x / kDown, row = left + r;
    if (row < width && to_column < height)
      store4<aligned>(out + row * out_row, to_column, height, memory[r * kDown + (column ^ (r / 4 % kGroups))]);
  }
}
