"""A workload whose kernels race, though they are right where threads run as they usually do, and as many that do not race."""

from collections.abc import Callable
from typing import Any

import numpy as np

from warpladder.workloads.api import Buffer, Buffers, Case, CudaVariant, Launch, Workload

N, THREADS = 8192, 256

SOURCE = """
constexpr int kThreads = 256;

// What takes a few microseconds, so that a wrong value is rare.
__device__ int other_work(const int* next, int at) {
  for (int k = 0; k < 8; ++k) at = next[at];
  return at;
}

template <bool right> __global__ void block(const float* x, const int* next, float* y, float* part, unsigned* count, int shift) {
  __shared__ float tile[kThreads];
  const int t = threadIdx.x, i = blockIdx.x * kThreads + t;
  tile[t] = x[i];
  if (right) __syncthreads();
  const int zero = other_work(next, i) < 0;
  y[i] = tile[(t + shift + zero) % kThreads];
}

template <bool right> __global__ void warp(const float* x, const int* next, float* y, float* part, unsigned* count, int shift) {
  __shared__ float tile[kThreads];
  const int t = threadIdx.x, i = blockIdx.x * kThreads + t;
  tile[t] = x[i];
  if (right) __syncwarp();
  y[i] = tile[(t & ~31) | (t + shift + 1) & 31];
}

template <bool right> __global__ void buffer(const float* x, const int* next, float* y, float* part, unsigned* count, int shift) {
  __shared__ float tile[2][kThreads];
  const int t = threadIdx.x, i = blockIdx.x * kThreads + t;
  float sum = 0.0f;
#pragma unroll 1
  for (int k = 0; k < 8; ++k) {
    float* now = tile[right ? k & 1 : 0];
    now[t] = x[(i + k * kThreads) % (gridDim.x * kThreads)];
    __syncthreads();
    sum += now[(t + shift) % kThreads];
  }
  y[i] = sum;
}

// The last block adds what all blocks left.
template <bool right> __global__ void fence(const float* x, const int* next, float* y, float* part, unsigned* count, int shift) {
  __shared__ bool last;
  const int t = threadIdx.x, n = gridDim.x * kThreads;
  if (t == 0) {
    float sum = 0.0f;
    for (int i = 0; i < kThreads; ++i) sum += x[blockIdx.x * kThreads + i];
    part[blockIdx.x] = sum;
    if (right) __threadfence();
    last = atomicAdd(count, 1u) == gridDim.x - 1;
    if (right) __threadfence();
  }
  __syncthreads();
  if (!last) return;
  float sum = 0.0f;
  for (int b = 0; b < gridDim.x; ++b) sum += ((volatile float*)part)[b];
  for (int i = t; i < n; i += kThreads) y[i] = sum;
  if (t == 0) *count = 0;
}

// A block waits for the flag of the one before it, which is set before all of its warps are done where a barrier lacks.
template <bool right> __global__ void flag(const float* x, const int* next, float* y, float* part, unsigned* count, int shift) {
  const int t = threadIdx.x, i = blockIdx.x * kThreads + t, before = (blockIdx.x + gridDim.x - 1) % gridDim.x;
  part[i] = x[i];
  const int zero = other_work(next, i) < 0;
  __threadfence();
  if (right) __syncthreads();
  if (t == 0) {
    atomicExch(count + blockIdx.x, 1u + zero);
    while (atomicExch(count + before, 0u) == 0) {}
    __threadfence();
  }
  __syncthreads();
  y[i] = ((volatile float*)part)[before * kThreads + (t + shift) % kThreads];
}

template <bool right> __global__ void floats(const float* x, const int* next, float* y, float* part, unsigned* count, int shift) {
  atomicAdd(y + threadIdx.x, x[blockIdx.x * kThreads + threadIdx.x]);
}
template <bool right> __global__ void clear(float* y) { y[blockIdx.x * kThreads + threadIdx.x] = 0.0f; }
"""


def _blocks(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64).reshape(-1, THREADS)


#: What each kernel computes of the inputs.
RIGHT: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "block": lambda x: np.roll(_blocks(x), -32, axis=1),
    "warp": lambda x: np.roll(x.astype(np.float64).reshape(-1, 32), -33, axis=1),
    "buffer": lambda x: np.roll(sum(np.roll(_blocks(x), -k, axis=0) for k in range(8)), -32, axis=1),
    "fence": lambda x: np.full(N, x.astype(np.float64).sum()),
    "flag": lambda x: np.roll(np.roll(_blocks(x), 1, axis=0), -32, axis=1),
    "floats": lambda x: np.concatenate([_blocks(x).sum(axis=0), np.zeros(N - THREADS)]),
}
RACES = ("block", "warp", "buffer", "fence", "flag")


def variant(kernel: str, *, right: bool) -> CudaVariant:
    """A variant with a race, or without."""
    grid, block = (N // THREADS, 1, 1), (THREADS, 1, 1)

    def launches(case: Case, config: Any) -> tuple[Launch, ...]:
        name = f"{kernel}<{str(right).lower()}>"
        first = (Launch("clear<true>", grid, block, ("y",)),) if kernel == "floats" else ()
        return (*first, Launch(name, grid, block, ("x", "next", "y", "part", "count", np.int32(32))))

    def reference(case: Case, inputs: Buffers) -> dict[str, np.ndarray]:
        return {"y": np.ascontiguousarray(RIGHT[kernel](inputs["x"])).reshape(-1)}

    scratch = {"part": Buffer((N,)), "count": Buffer((N // THREADS,), "uint32", zeroed=True)}
    name = f"{kernel}_right" if right else f"{kernel}_races"
    return CudaVariant(
        name,
        name,
        "rung",
        source=SOURCE,
        launches=launches,
        scratch=lambda case, config: scratch,
        reference=reference,
    )


def inputs(case: Case, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"x": rng.standard_normal(N, dtype=np.float32), "next": rng.permutation(N).astype(np.int32)}


WORKLOAD = Workload(
    name="planted_races",
    title="Kernels with a race each",
    cases=(Case({"n": N}, flops=N, min_bytes=8 * N, size_rank=0),),
    variants=(
        *(variant(kernel, right=right) for kernel in RACES for right in (False, True)),
        variant("floats", right=True),
    ),
    buffers=lambda case: ({"x": Buffer((N,)), "next": Buffer((N,), "int32")}, {"y": Buffer((N,))}),
    make_inputs=inputs,
    reference=lambda case, inputs: {"y": inputs["x"].astype(np.float64)},
)
