// Idea: No shared memory and no barrier: a thread loads four float4 from four rows, transposes the 4x4 in its registers, which is
//     only a matter of naming them, and stores four float4. The config says how the 32 lanes lie: `read` 128 bytes a row
//     and write 64, or read 64 and write 128, or read 256 and write 32.
// Bottleneck: One of the two sides moves at most 64 bytes a row at a time. At small sizes nothing is quicker, since no thread waits for another;
//     at large ones, where rows lie far apart, memory wants longer runs.
// Next: Long rows on both sides: exchange the 4x4 tiles through shared memory.
// Source: Own work.

template <int LANES_ACROSS, int WARPS>
__global__ void __launch_bounds__(WARPS * 32)
    transpose(const float* __restrict__ in, float* __restrict__ out, int height, int width, long long in_row, long long in_plane,
              long long out_row, long long out_plane) {
  constexpr int LANES_DOWN = 32 / LANES_ACROSS;  // warps lie two across and the others down
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int column = 4 * ((blockIdx.x * 2 + warp % 2) * LANES_ACROSS + lane % LANES_ACROSS);
  const int row = 4 * ((blockIdx.y * (WARPS / 2) + warp / 2) * LANES_DOWN + lane / LANES_ACROSS);
  if (row >= height || column >= width) return;  // both are multiples of 4

  const float* from = in + blockIdx.z * in_plane + row * in_row + column;
  const float4 a = *reinterpret_cast<const float4*>(from);
  const float4 b = *reinterpret_cast<const float4*>(from + in_row);
  const float4 c = *reinterpret_cast<const float4*>(from + 2 * in_row);
  const float4 d = *reinterpret_cast<const float4*>(from + 3 * in_row);

  float* to = out + blockIdx.z * out_plane + column * out_row + row;
  *reinterpret_cast<float4*>(to) = make_float4(a.x, b.x, c.x, d.x);
  *reinterpret_cast<float4*>(to + out_row) = make_float4(a.y, b.y, c.y, d.y);
  *reinterpret_cast<float4*>(to + 2 * out_row) = make_float4(a.z, b.z, c.z, d.z);
  *reinterpret_cast<float4*>(to + 3 * out_row) = make_float4(a.w, b.w, c.w, d.w);
}
