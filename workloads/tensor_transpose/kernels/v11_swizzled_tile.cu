// Idea: 4x4 tiles in registers, exchanged through shared memory so that both sides move whole rows of 128 to 256 bytes, 16 bytes an
//     access. Instead of padding, the columns of a row are swapped by an exclusive-or with the number of its group of four: each
//     quarter of a warp then meets all 32 banks once, when it stores and when it loads. Blocks that run together write what
//     lies together: where rows of the output are further apart than planes, (2,0,1) and (2,1,0), they go down a column of
//     tiles and through the planes before they go to the next column. Where the innermost dimension stays, whole rows are copied.
// Bottleneck: Memory. What is left for (2,0,1) and (2,1,0) at large sizes is DRAM, which is read or written in runs of 256 bytes; at
//     small sizes the barrier, which the register tile does without.
// Next: Nothing that we know of: on an H200 at 512 x 512 x 512, larger tiles were no faster, streaming hints 0.5 % slower, and the
//     other orders of the blocks 1 to 5 % slower.
// Source: Own work; the exclusive-or is the usual swizzle of matrix kernels' shared tiles.

// Four neighbours of a row: one access where rows are aligned, single elements within the row's end where they are not.
template <bool ALIGNED>
__device__ __forceinline__ float4 load4(const float* row, int column, int end) {
  if (ALIGNED) return *reinterpret_cast<const float4*>(row + column);
  float4 value = {};
  value.x = row[column];
  if (column + 1 < end) value.y = row[column + 1];
  if (column + 2 < end) value.z = row[column + 2];
  if (column + 3 < end) value.w = row[column + 3];
  return value;
}

template <bool ALIGNED>
__device__ __forceinline__ void store4(float* row, int column, int end, float4 value) {
  if (ALIGNED) {
    *reinterpret_cast<float4*>(row + column) = value;
    return;
  }
  row[column] = value.x;
  if (column + 1 < end) row[column + 1] = value.y;
  if (column + 2 < end) row[column + 2] = value.z;
  if (column + 3 < end) row[column + 3] = value.w;
}

// As in the padded tile: `height` rows of `width` contiguous floats, `in_row` apart, become `width` rows of `height`.
// Blocks go across, down, and through the planes; or, with COLUMNS_LAST, down, through the planes, and across.
template <int WIDTH, int HEIGHT, int THREADS, int BLOCKS_PER_SM, bool ALIGNED, bool COLUMNS_LAST>
__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    transpose(const float* __restrict__ in, float* __restrict__ out, int height, int width, long long in_row, long long in_plane,
              long long out_row, long long out_plane) {
  constexpr int ACROSS = WIDTH / 4, DOWN = HEIGHT / 4;  // 4x4 tiles
  constexpr int DOWN_AT_ONCE = THREADS / ACROSS;
  constexpr int PASSES = DOWN / DOWN_AT_ONCE;
  constexpr int GROUPS = DOWN < 8 ? DOWN : 8;           // float4 columns that are swapped among themselves
  static_assert(DOWN % DOWN_AT_ONCE == 0 && THREADS % DOWN == 0, "the threads must cover the tile");
  __shared__ float4 tile[WIDTH][DOWN];                  // rows of the output
  const int left = (COLUMNS_LAST ? blockIdx.z : blockIdx.x) * WIDTH;
  const int top = (COLUMNS_LAST ? blockIdx.x : blockIdx.y) * HEIGHT;
  const int plane = COLUMNS_LAST ? blockIdx.y : blockIdx.z;
  in += plane * in_plane;
  out += plane * out_plane;

  const int across = threadIdx.x % ACROSS, down = threadIdx.x / ACROSS;
  const int from_column = left + across * 4;
  float4 value[PASSES][4];
#pragma unroll
  for (int p = 0; p < PASSES; p++)
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const int row = top + (down + p * DOWN_AT_ONCE) * 4 + k;
      if (row < height && from_column < width) value[p][k] = load4<ALIGNED>(in + row * in_row, from_column, width);
    }
#pragma unroll
  for (int p = 0; p < PASSES; p++) {
    const int column = (down + p * DOWN_AT_ONCE) ^ (across % GROUPS);
    const float4 a = value[p][0], b = value[p][1], c = value[p][2], d = value[p][3];
    tile[across * 4 + 0][column] = make_float4(a.x, b.x, c.x, d.x);
    tile[across * 4 + 1][column] = make_float4(a.y, b.y, c.y, d.y);
    tile[across * 4 + 2][column] = make_float4(a.z, b.z, c.z, d.z);
    tile[across * 4 + 3][column] = make_float4(a.w, b.w, c.w, d.w);
  }
  __syncthreads();

  const int column = threadIdx.x % DOWN;
  const int to_column = top + column * 4;
#pragma unroll
  for (int p = 0; p < WIDTH * DOWN / THREADS; p++) {
    const int r = p * (THREADS / DOWN) + threadIdx.x / DOWN, row = left + r;
    if (row < width && to_column < height)
      store4<ALIGNED>(out + row * out_row, to_column, height, tile[r][column ^ (r / 4 % GROUPS)]);
  }
}

// out[a][b] = in[b][a], rows of `columns` elements; LANES threads a row.
template <class T, int LANES>
__global__ void __launch_bounds__(256) copy_rows(const T* __restrict__ in, T* __restrict__ out, int dim_a, int dim_b, int columns) {
  const unsigned row = blockIdx.x * (256 / LANES) + threadIdx.x / LANES;
  if (row >= unsigned(dim_a) * dim_b) return;
  const T* from = in + (size_t(row % dim_b) * dim_a + row / dim_b) * columns;
  T* to = out + size_t(row) * columns;
  for (int column = threadIdx.x % LANES; column < columns; column += LANES) to[column] = from[column];
}
