"""A workload of many small cases, each measured in about a tenth of a second, n=100 first: a quick run without a GPU begins with the smallest."""

import time
from typing import Any

import numpy as np

from warpladder.workloads.api import Buffer, Case, HostVariant, Workload


def multiply(case: Case, inputs: Any, outputs: Any) -> None:
    time.sleep(0.002)
    np.multiply(inputs["x"], 2, out=outputs["y"])


def add(case: Case, inputs: Any, outputs: Any) -> None:
    time.sleep(0.002)
    np.add(inputs["x"], inputs["x"], out=outputs["y"])


WORKLOAD = Workload(
    name="quick_cases",
    title="Doubling",
    cases=tuple(Case({"n": n}, flops=n, min_bytes=8 * n, sets=("quick",), size_rank=n) for n in range(100, 120)),
    variants=tuple(HostVariant(run.__name__, run.__name__, "host", run=run) for run in (multiply, add)),
    buffers=lambda case: ({"x": Buffer((case.params["n"],))}, {"y": Buffer((case.params["n"],))}),
    make_inputs=lambda case, rng: {"x": rng.standard_normal(case.params["n"], dtype=np.float32)},
    reference=lambda case, inputs: {"y": 2.0 * inputs["x"].astype(np.float64)},
    host_baseline="multiply",
)
