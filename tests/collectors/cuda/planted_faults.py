"""A workload whose kernels compute what they should, each with the one fault that a tool of compute-sanitizer is there to find."""

from typing import Any

import numpy as np

from warpladder.workloads.api import Buffer, Case, CudaVariant, Launch, Role, Workload

N = 1024

SOURCE = """
extern "C" __global__ void sound(const float* x, float* y, float* unwritten) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];
}
extern "C" __global__ void past_the_end(const float* x, float* y, float* unwritten) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];
  if (i == 0) y[gridDim.x * 64] = x[0];
}
extern "C" __global__ void no_barrier(const float* x, float* y, float* unwritten) {
  __shared__ float tile[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  tile[threadIdx.x] = x[i];
  y[i] = tile[threadIdx.x ^ 32] == 12345.5f ? 0.0f : x[i];
}
extern "C" __global__ void unwritten(const float* x, float* y, float* unwritten) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = unwritten[i] == 12345.5f ? 0.0f : x[i];
}
"""


def kernel(name: str) -> CudaVariant:
    def launches(case: Case, config: Any) -> tuple[Launch, ...]:
        return (Launch(name, (N // 64, 1, 1), (64, 1, 1), ("x", "y", "unwritten")),)

    scratch = {"unwritten": Buffer((N,))}
    role: Role = "rung" if name == "sound" else "specimen"
    return CudaVariant(name, name, role, source=SOURCE, launches=launches, scratch=lambda case, config: scratch)


WORKLOAD = Workload(
    name="planted_faults",
    title="Copies with a fault each",
    cases=(Case({"n": N}, flops=0, min_bytes=8 * N, size_rank=None),),
    variants=tuple(kernel(name) for name in ("sound", "past_the_end", "no_barrier", "unwritten")),
    buffers=lambda case: ({"x": Buffer((N,))}, {"y": Buffer((N,))}),
    make_inputs=lambda case, rng: {"x": rng.standard_normal(N, dtype=np.float32)},
    reference=lambda case, inputs: {"y": inputs["x"].astype(np.float64)},
)
