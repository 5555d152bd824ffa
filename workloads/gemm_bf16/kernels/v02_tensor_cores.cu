// Idea: Tensor cores (mma.sync): a warp of eight multiplies 64 x 32 elements of a tile of 128 x 128, 16 steps along k at a time. Asynchronous
//     copies bring the operands to shared memory three stages of 64 steps ahead; 16-byte pieces are exchanged within eight rows, so that
//     `ldmatrix` reads four 8 x 8 fragments without bank conflicts.
// Bottleneck: Issue slots and shared memory: each warp loads its own fragments again, and mma.sync does no more than about two thirds of what
//     Hopper's tensor cores do.
// Next: Warpgroups, which multiply straight out of shared memory, and copies that take no instruction of the warps.
// Source: PTX ISA, mma.m16n8k16, ldmatrix, cp.async; the tiling is that of NVIDIA's CUTLASS 2.

#include "../../ptx.cuh"
#include "../../ptx_bf16.cuh"
#include "../../ptx_ldmatrix.cuh"
#include "../../hopper_low_precision.cuh"
#include "pad.cuh"

constexpr int kTile = 128;         // rows and columns
constexpr int kThreads = 256;      // warps of 2 x 4
constexpr int kStageDepth = 64;    // 128 bytes of a row
constexpr int kStages = 3;
constexpr int kPieces = 8;         // of 16 bytes in a row

struct OperandTile {
  uint4 pieces[kTile][kPieces];

  // Piece of a row, as it was before the exchange.
  __device__ __forceinline__ uint4& at(int row, int piece) { return pieces[row][piece ^ row % 8]; }

  // Copies 64 steps of 128 rows, `pitch` elements apart; zeros beyond.
  __device__ __forceinline__ void fetch(const unsigned short* from, int row, int rows, int step, int pitch) {
#pragma unroll
    for (int i = threadIdx.x; i < kTile * kPieces; i += kThreads) {
      const int below = i / kPieces, along = step + i % kPieces * 8;
      const bool inside = row + below < rows && along < pitch;
      cp_async<16>(&at(below, i % kPieces), inside ? from + (size_t)(row + below) * pitch + along : from, inside);
    }
  }
};

struct Memory {
  OperandTile a[kStages], b[kStages];
};

__global__ void __launch_bounds__(kThreads, 2)
    gemm(const unsigned short* a, const unsigned short* b, unsigned short* __restrict__ d, int m, int n, int k, int pitch) {
  extern __shared__ uint4 dynamic[];
  Memory& memory = *reinterpret_cast<Memory*>(dynamic);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, steps = (k + kStageDepth - 1) / kStageDepth;
  const int row = blockIdx.y * kTile, column = blockIdx.x * kTile, top = warp % 2 * 64, left = warp / 2 * 32;
  float sums[4][4][4] = {};

  const auto fetch = [&](int step) {
    if (step < steps) {
      memory.a[step % kStages].fetch(a, row, m, step * kStageDepth, pitch);
      memory.b[step % kStages].fetch(b, column, n, step * kStageDepth, pitch);
    }
    cp_async_commit();
  };
  for (int step = 0; step < kStages - 1; ++step) fetch(step);

  for (int step = 0; step < steps; ++step) {
    cp_async_wait<kStages - 2>();
    __syncthreads();
    fetch(step + kStages - 1);
    OperandTile &of_a = memory.a[step % kStages], &of_b = memory.b[step % kStages];
#pragma unroll
    for (int piece = 0; piece < kPieces; piece += 2) {  // 16 steps
      unsigned fragments_a[4][4], fragments_b[4][2];
#pragma unroll
      for (int i = 0; i < 4; ++i) ldmatrix(fragments_a[i], &of_a.at(top + 16 * i + lane % 16, piece + lane / 16));
#pragma unroll
      for (int j = 0; j < 4; j += 2) {
        unsigned both[4];
        ldmatrix(both, &of_b.at(left + 8 * j + lane / 16 * 8 + lane % 8, piece + lane / 8 % 2));
        fragments_b[j][0] = both[0], fragments_b[j][1] = both[1], fragments_b[j + 1][0] = both[2], fragments_b[j + 1][1] = both[3];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) mma_m16n8k16_bf16(sums[i][j], fragments_a[i], fragments_b[j]);
    }
  }

#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int to_row = row + top + 16 * i + lane / 4 + 8 * half, to_column = column + left + 8 * j + 2 * (lane % 4);
        if (to_row >= m || to_column >= n) continue;
        unsigned short* to = d + (size_t)to_row * n + to_column;
        const unsigned pair = to_bf16_pair(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
        to[0] = (unsigned short)pair;
        if (to_column + 1 < n) to[1] = (unsigned short)(pair >> 16);
      }
}
