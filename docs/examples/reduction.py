"""The sum of n numbers: CUDA C++ kernels that CuPy's RawModule compiles, beside cupy.sum."""

from contextlib import suppress
from functools import cache

import numpy as np

import warpladder

KERNELS = r"""
__device__ float sum_of_warp(float value) {
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_down_sync(0xffffffffu, value, lanes);
  return value;
}

__device__ void add_sum_of_block(float value, float* sum) {
  __shared__ float of_warps[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = sum_of_warp(value);
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = sum_of_warp(lane < blockDim.x / 32 ? of_warps[lane] : 0.0f);
    if (lane == 0) atomicAdd(sum, value);
  }
}

extern "C" __global__ void atomics(const float* x, float* sum, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(sum, x[i]);
}

extern "C" __global__ void tree(const float* x, float* sum, long long n) {
  __shared__ float partial[256];
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  partial[threadIdx.x] = i < n ? x[i] : 0.0f;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x == 0) atomicAdd(sum, partial[0]);
}

extern "C" __global__ void shuffles(const float* x, float* sum, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  add_sum_of_block(i < n ? x[i] : 0.0f, sum);
}

extern "C" __global__ void strided(const float* x, float* sum, long long n) {
  float value = 0.0f;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x) value += x[i];
  add_sum_of_block(value, sum);
}

extern "C" __global__ void vectors(const float* x, float* sum, long long n) {
  const float4* fours = reinterpret_cast<const float4*>(x);
  const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x, step = (long long)gridDim.x * blockDim.x;
  float4 part = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
  for (long long i = first; i < n / 4; i += step) {
    const float4 four = fours[i];
    part.x += four.x, part.y += four.y, part.z += four.z, part.w += four.w;
  }
  float value = (part.x + part.y) + (part.z + part.w);
  if (first < n % 4) value += x[n / 4 * 4 + first];
  add_sum_of_block(value, sum);
}
"""

bench = warpladder.Benchmark("reduction", arrays="cupy", n=[1 << 20, 1 << 24, 1 << 26], flops=lambda n: n - 1)

with suppress(ImportError):  # without CuPy, its variants are skipped
    import cupy

    kernel = cache(cupy.RawModule(code=KERNELS).get_function)


@bench.inputs
def inputs(n, rng):
    return rng.integers(-8, 9, n, np.int8).astype(np.float32)  # their sum is exact in every order


@bench.reference
def reference(x):
    return x.sum()


def launch(name, x, out, blocks):
    out.fill(0)
    kernel(name)((blocks,), (256,), (x, out, x.size))


@bench.variant(baseline=True)
def atomics(x, out):
    """Idea: Every thread adds its number to the sum.

    Bottleneck: Additions to one address follow one another.
    """
    launch("atomics", x, out, -(-x.size // 256))


@bench.variant
def tree(x, out):
    """Idea: A block adds its 256 numbers in shared memory, in eight steps. One thread adds the result to the sum.

    Bottleneck: A barrier a step, and fewer threads with work at each.
    """
    launch("tree", x, out, -(-x.size // 256))


@bench.variant
def shuffles(x, out):
    """Idea: The lanes of a warp add by shuffles, without memory or barriers. One barrier remains.

    Bottleneck: A block lives for one load a thread.
    """
    launch("shuffles", x, out, -(-x.size // 256))


@bench.variant(configs=[{"blocks": 512}, {"blocks": 1024}, {"blocks": 2048}])
def strided(x, out, blocks):
    """Idea: As many blocks as the GPU holds at once. Each thread adds many numbers in a register first.

    Bottleneck: A load of 4 bytes at a time keeps too few bytes in flight.
    """
    launch("strided", x, out, blocks)


@bench.variant(configs=[{"blocks": 512}, {"blocks": 1024}, {"blocks": 2048}])
def vectors(x, out, blocks):
    """Idea: A load brings 16 bytes, and four of them are on the way at once."""
    launch("vectors", x, out, blocks)


@bench.variant(role="peer")
def cupy_sum(x):
    return x.sum()


@bench.variant(arrays="numpy")
def numpy_sum(x):
    return x.sum()
