// Idea: The whole step on the GPU: the report's second version, whose products are its algorithm 2, blocks of 32x32 threads with 32x32
//     tiles of both operands in shared memory. Between them a kernel for each operation on matrices: 15 launches.
// Bottleneck: The products: two loads from shared memory for each multiply-add. The gradients of the output layer are 10 rows, so that a
//     tile of 32 is mostly empty, and the bias gradients are added up by one thread a row.
// Next: Sums in registers: algorithm 3, the report's final version.
// Source: M. L. Wong, "CME213 Final Project Report", version 2, written from its description. Its copies of each batch in, and of weights
//     out, are in the scope end_to_end; z1, a1 and z2, which it copied out too, stay here.

#include "products.cuh"
#include "whole_matrices.cuh"

constexpr int kTile = 32;

__device__ void shared_tile(const Product& product) {
  __shared__ float of_a[kTile][kTile + 1], of_b[kTile][kTile + 1];  // padded: some operands are read across
  const int row = threadIdx.x, column = threadIdx.y;
  const int i = blockIdx.x * kTile + row, j = blockIdx.y * kTile + column;
  float sum = 0.0f;
  for (int first = 0; first < product.k; first += kTile) {
    const bool in_a = i < product.m && first + column < product.k, in_b = first + row < product.k && j < product.n;
    of_a[column][row] = in_a ? product.a_at(i, first + column) : 0.0f;
    of_b[column][row] = in_b ? product.b_at(first + row, j) : 0.0f;
    __syncthreads();
#pragma unroll
    for (int p = 0; p < kTile; ++p) sum = fmaf(of_a[p][row], of_b[column][p], sum);
    __syncthreads();
  }
  if (i < product.m && j < product.n) product.store(i, j, sum);
}

__global__ void __launch_bounds__(kTile* kTile) forward_gemm(PRODUCT_PARAMETERS) { shared_tile({PRODUCT_ARGUMENTS}); }
__global__ void __launch_bounds__(kTile* kTile) backward_gemm(PRODUCT_PARAMETERS) { shared_tile({PRODUCT_ARGUMENTS}); }
