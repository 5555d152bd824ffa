// Two groups of warps with a barrier in each step. In the first `share` of 16 steps the producers take `cycles` and the consumers a
// twentieth of it; in the others it is the other way round. So a wait at a mark lengthens its share of the steps.
#define WARPLADDER_MARK(name) asm volatile(".pragma \"warpladder mark " name "\";" ::: "memory")

__device__ void spin(int cycles) {
  const unsigned start = clock();
  while ((unsigned)clock() - start < (unsigned)cycles) {}
}

__global__ void paths(const float* x, float* y, int share, int cycles, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const bool produces = threadIdx.x < 128;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const bool is_first = step % 16 < share;
    if (produces) {
      WARPLADDER_MARK("produce");
      spin(is_first ? cycles : cycles / 20);
    } else {
      WARPLADDER_MARK("consume");
      spin(is_first ? cycles / 20 : cycles);
    }
    __syncthreads();
  }
  y[i] = 2.0f * x[i];
}
