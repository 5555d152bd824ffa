// Idea: The report's final version: algorithm 3. A block of 64 threads computes 64x16 of D; each thread has a row of it in 16 registers,
//     reads its own elements of A, one load for 16 multiply-adds, and finds B, a 16x16 tile, in shared memory.
// Bottleneck: The load of A is waited for in every step, and one of B from shared memory comes with every multiply-add. Products of few
//     rows, such as the gradient of w2 with 10, fill neither the block nor the GPU; and a launch for each small matrix operation.
// Next: Both dimensions of a tile in registers, sums over slices of K where the result is small, and the small operations fused.
// Source: M. L. Wong, "CME213 Final Project Report", final version, written from its description. Batches stay on the device, as the
//     scopes device and operation have it; the report brings the gradients back to the host, which adds up those of all processes.

#include "products.cuh"
#include "whole_matrices.cuh"

constexpr int kRows = 64;
constexpr int kTile = 16;

__device__ void column_strip(const Product& product) {
  __shared__ float of_b[kTile][kTile + 1];  // of_b[j][p]
  const int thread = threadIdx.y * kTile + threadIdx.x;
  const int i = blockIdx.x * kRows + thread, left = blockIdx.y * kTile;
  float sum[kTile] = {};
  for (int first = 0; first < product.k; first += kTile) {
#pragma unroll
    for (int j = threadIdx.y; j < kTile; j += kRows / kTile) {
      const bool inside = first + threadIdx.x < product.k && left + j < product.n;
      of_b[j][threadIdx.x] = inside ? product.b_at(first + threadIdx.x, left + j) : 0.0f;
    }
    __syncthreads();
    if (i < product.m) {
      const int depth = min(kTile, product.k - first);
      for (int p = 0; p < depth; ++p) {
        const float of_a = product.a_at(i, first + p);
#pragma unroll
        for (int j = 0; j < kTile; ++j) sum[j] = fmaf(of_a, of_b[j][p], sum[j]);
      }
    }
    __syncthreads();
  }
  if (i >= product.m) return;
#pragma unroll
  for (int j = 0; j < kTile; ++j)
    if (left + j < product.n) product.store(i, left + j, sum[j]);
}

__global__ void __launch_bounds__(kRows) forward_gemm(PRODUCT_PARAMETERS) { column_strip({PRODUCT_ARGUMENTS}); }
__global__ void __launch_bounds__(kRows) backward_gemm(PRODUCT_PARAMETERS) { column_strip({PRODUCT_ARGUMENTS}); }
