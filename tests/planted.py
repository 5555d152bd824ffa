"""A workload whose right verdicts are known: identical code, and the same work with 1, 3 and 10 % more of it.

Each thread repeats a multiply-add, which converges to twice its input. So more repetitions take longer, and the result stays the
same. Thirteen sizes take from about 7 us to 2 ms on an H200. `same` has the source and the launches of `base`.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from warpladder.workloads.api import Buffer, Case, CudaVariant, Launch, Params, Workload

REPETITIONS = 3_000
BLOCK = 128
#: Variant -> percent of work that it adds to the baseline's.
PLANTED = {"base": 0, "same": 0, "plus_1": 1, "plus_3": 3, "plus_10": 10}

SOURCE = """
extern "C" __global__ void converge(const float* __restrict__ x, float* __restrict__ y, int n, int repetitions) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float to = x[i];
  float at = 0.0f;
#pragma unroll 4
  for (int k = 0; k < repetitions; ++k) at = fmaf(at, 0.5f, to);
  y[i] = at;
}
"""


def launches(percent: int, case: Case, config: Params) -> Sequence[Launch]:
    n = int(case.params["n"])
    repetitions = REPETITIONS * (100 + percent) // 100
    return (Launch("converge", (-(-n // BLOCK), 1, 1), (BLOCK, 1, 1), ("x", "y", np.int32(n), np.int32(repetitions))),)


def case(place: int) -> Case:
    n = 2 ** (12 + place)
    # The work that the result needs; the planted work is in no count, so that no floor depends on it.
    return Case({"n": n}, flops=2 * n, min_bytes=8 * n, sets=("quick", "full"), size_rank=place)


WORKLOAD = Workload(
    name="planted",
    title="Planted differences",
    cases=tuple(map(case, range(13))),
    variants=tuple(
        CudaVariant(name, name, "rung", source=SOURCE, launches=partial(launches, percent)) for name, percent in PLANTED.items()
    ),
    buffers=lambda case: ({"x": Buffer((case.params["n"],))}, {"y": Buffer((case.params["n"],))}),
    make_inputs=lambda case, rng: {"x": rng.standard_normal(case.params["n"], dtype=np.float32)},
    reference=lambda case, inputs: {"y": 2.0 * inputs["x"].astype(np.float64)},
    baseline="base",
)
