"""A kernel with a known critical path: a wait at its mark `produce` counts in `share` of 16 steps, one at `consume` in the others."""

from pathlib import Path
from typing import Final

import numpy as np

from warpladder.workloads.api import Buffer, Case, CudaVariant, Launch, Params, Workload

#: Blocks, one on each multiprocessor of the SXM models of H100 and H200, since each has most of the shared memory.
_BLOCKS: Final = 132
_SHARED: Final = 200 << 10
_THREADS: Final = 256
_STEPS: Final = 64
_CYCLES: Final = 3000


def true_slopes(case: Case) -> dict[str, float]:
    """What a microsecond less at each mark saves."""
    share = int(str(case.params["share"])) / 16
    return {"produce": share, "consume": 1 - share}


def _launches(case: Case, config: Params) -> tuple[Launch, ...]:
    numbers = (np.int32(case.params["share"]), np.int32(_CYCLES), np.int32(_STEPS))
    return (Launch("paths", (_BLOCKS, 1, 1), (_THREADS, 1, 1), ("x", "y", *numbers), _SHARED),)


WORKLOAD = Workload(
    name="known_paths",
    title="Known critical paths",
    cases=tuple(
        Case({"share": share}, flops=0, min_bytes=8 * _BLOCKS * _THREADS, sets=("quick", "full"), size_rank=share)
        for share in range(17)
    ),
    variants=(CudaVariant("v01_paths", "Paths", "rung", source=Path(__file__).with_name("paths.cu"), launches=_launches),),
    buffers=lambda case: ({"x": Buffer((_BLOCKS * _THREADS,))}, {"y": Buffer((_BLOCKS * _THREADS,))}),
    make_inputs=lambda case, rng: {"x": rng.random(_BLOCKS * _THREADS, dtype=np.float32)},
    reference=lambda case, inputs: {"y": 2.0 * inputs["x"].astype(np.float64)},
    baseline="v01_paths",
)
