"""Kernels of known work: two of the same code under two names, and one that does 3 % more."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from warpladder.workloads.api import Buffer, Case, CudaVariant, Launch, Params, Workload

N: Final = 1 << 22
ITERATIONS: Final = 1000

#: Halves the distance of `value` from x in each iteration, so that the output is x after any number of them.
SOURCE: Final = """
template <int ITERATIONS> __global__ void approach(const float* x, float* y) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float half = 0.5f * x[i], value = 0.0f;
  for (int k = 0; k < ITERATIONS; ++k) value = fmaf(value, 0.5f, half);
  y[i] = value;
}
"""


def _variant(name: str, iterations: int) -> CudaVariant:
    def launches(case: Case, config: Params) -> Sequence[Launch]:
        return (Launch(f"approach<{iterations}>", (N // 256, 1, 1), (256, 1, 1), ("x", "y")),)

    return CudaVariant(name, name.replace("_", " "), "rung", source=SOURCE, launches=launches)


WORKLOAD = Workload(
    name="known_work",
    title="Iterations of known number",
    cases=(Case({"n": N}, flops=2 * N * ITERATIONS, min_bytes=8 * N, sets=("quick",), size_rank=0),),
    variants=(
        _variant("v01_plain", ITERATIONS),
        _variant("v02_same_code", ITERATIONS),
        _variant("v03_more_work", ITERATIONS * 103 // 100),
    ),
    buffers=lambda case: ({"x": Buffer((N,))}, {"y": Buffer((N,))}),
    make_inputs=lambda case, rng: {"x": rng.standard_normal(N, dtype=np.float32)},
    reference=lambda case, inputs: {"y": inputs["x"].astype(np.float64)},
    baseline="v01_plain",
)
