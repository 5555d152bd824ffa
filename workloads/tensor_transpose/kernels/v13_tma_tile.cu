// Idea: The TMA brings a tile to shared memory and takes the transposed one away, in boxes of 32 floats by the tile's rows, whole lines of memory on both
//     sides. Blocks stay and walk over tiles: while one tile is transposed, the next ones are on their way and the last one leaves. Within
//     shared memory 4x4 micro-tiles go through registers. A 128-byte swizzle and a diagonal order of the micro-tiles in a warp let every quarter
//     of a warp meet all 32 banks, when it loads and when it stores.
// Bottleneck: -
// Next: -
// Source: Own work; PTX ISA, cp.async.bulk.tensor.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"

constexpr int kBox = 32;  // floats of an inner row of a box: 128 bytes, the span of the swizzle
constexpr int kMicro = 4;

// A tile's corner and plane -> the coordinates of the TMA, the contiguous axis first. `rows_first`: the axis of the tile's rows comes before that of
// the planes.
template <bool rows_first>
struct At {
  int y, z;
  __device__ __forceinline__ At(int row, int plane) : y(rows_first ? row : plane), z(rows_first ? plane : row) {}
};

// Rows become columns. `from` points to boxes of `height` inner rows, `to` to boxes of `width`.
template <int threads, int width, int height>
__device__ __forceinline__ void transpose_tile(const float4* from, float4* to) {
  constexpr int kPieces = kBox / kMicro, kMicroTiles = kPieces * kPieces;  // 16-byte pieces of an inner row; micro-tiles of 32 x 32 floats
#pragma unroll
  for (int n = threadIdx.x; n < width * height / (kMicro * kMicro); n += threads) {
    const int block = n / kMicroTiles, across = n % kPieces, down = (n % kMicroTiles / kPieces + across) % kPieces;
    const int box_across = block % (width / kBox), box_down = block / (width / kBox);
    const float4* row = from + (box_across * height + box_down * kBox + down * kMicro) * kPieces;
    float4 in[kMicro];
#pragma unroll
    for (int i = 0; i < kMicro; ++i) in[i] = row[i * kPieces + (across ^ (down * kMicro + i) % kPieces)];
    float4* column = to + (box_down * width + box_across * kBox + across * kMicro) * kPieces;
    const float4 out[kMicro] = {make_float4(in[0].x, in[1].x, in[2].x, in[3].x), make_float4(in[0].y, in[1].y, in[2].y, in[3].y),
                                make_float4(in[0].z, in[1].z, in[2].z, in[3].z), make_float4(in[0].w, in[1].w, in[2].w, in[3].w)};
#pragma unroll
    for (int i = 0; i < kMicro; ++i) column[i * kPieces + (down ^ (across * kMicro + i) % kPieces)] = out[i];
  }
}

// Tiles of `width` by `height` floats of planes of `in_width` by `in_height`. Numbers of tiles go down, over `group` columns, through the planes, and on.
template <int width, int height, int threads, int stages, int blocks_per_sm, bool in_rows_first, bool out_rows_first, int group>
__global__ void __launch_bounds__(threads, blocks_per_sm)
    transpose(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap out, int in_height, int in_width, int planes) {
  constexpr int kTile = width * height;
  constexpr int kLeaving = 2;  // tiles that leave at the same time
  extern __shared__ char memory[];
  float* arriving = aligned_1024<float>(memory);
  float* leaving = arriving + stages * kTile;
  __shared__ Mbarrier full[stages];
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) mbarrier_init(&full[s], 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  const int across = (in_width + width - 1) / width, down = (in_height + height - 1) / height, tiles = across * down * planes;
  struct Place {
    int left, top, plane;
  };
  const auto place = [&](int number) {
    const int first = number / (group * down * planes) * group, columns = min(group, across - first);
    number %= group * down * planes;
    return Place{(first + number / down % columns) * width, number % down * height, number / down / columns};
  };
  const auto fetch = [&](int number, int stage) {
    const Place at = place(number);
    const At<in_rows_first> from(at.top, at.plane);
    mbarrier_arrive_expect(&full[stage], kTile * sizeof(float));
    for (int box = 0; box < width / kBox; ++box)
      tma_load_3d(arriving + stage * kTile + box * kBox * height, in, at.left + box * kBox, from.y, from.z, &full[stage]);
  };

  if (threadIdx.x == 0)
    for (int s = 0; s < stages; ++s)
      if (blockIdx.x + s * gridDim.x < tiles) fetch(blockIdx.x + s * gridDim.x, s);
  Ring<stages> ring;
  int slot = 0;
  for (int number = blockIdx.x; number < tiles; number += gridDim.x, ring.next(), slot = (slot + 1) % kLeaving) {
    mbarrier_wait(&full[ring.stage], ring.parity);
    if (threadIdx.x == 0) tma_store_wait_read<kLeaving - 1>();
    __syncthreads();
    float* to = leaving + slot * kTile;
    transpose_tile<threads, width, height>(reinterpret_cast<const float4*>(arriving + ring.stage * kTile), reinterpret_cast<float4*>(to));
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x == 0) {
      const Place at = place(number);
      const At<out_rows_first> corner(at.left, at.plane);
      for (int box = 0; box < height / kBox; ++box)
        tma_store_3d(to + box * kBox * width, out, at.top + box * kBox, corner.y, corner.z);
      tma_store_commit();
      if (number + stages * gridDim.x < tiles) fetch(number + stages * gridDim.x, ring.stage);
    }
  }
  if (threadIdx.x == 0) tma_store_wait_read<0>();
}
