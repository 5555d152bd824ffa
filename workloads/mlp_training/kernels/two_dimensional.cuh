// Algorithm 1 of the report: one thread an element of D, blocks of 16 x 16. For the program v01_products_only, which brings the operands
// of every product from the host.
#include "products.cuh"

__device__ void two_dimensional(const Product& product) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= product.m || j >= product.n) return;
  float sum = 0.0f;
  for (int p = 0; p < product.k; ++p) sum = fmaf(product.a_at(i, p), product.b_at(p, j), sum);
  product.store(i, j, sum);
}

extern "C" __global__ void forward_gemm(PRODUCT_PARAMETERS) { two_dimensional({PRODUCT_ARGUMENTS}); }
extern "C" __global__ void backward_gemm(PRODUCT_PARAMETERS) { two_dimensional({PRODUCT_ARGUMENTS}); }
