"""Judges the variants of a benchmark in this process, in few rounds."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from tests.collectors.core.test_measure import Kept
from warpladder import Benchmark
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.measure import measure_case
from warpladder.collectors.core.plan import Job, WorkloadRef
from warpladder.collectors.core.rounds import Limits, Turn
from warpladder.collectors.host.host_clock import HostBench

FEW = Limits(seconds=0.02, min_rounds=6, max_rounds=6)


def judged(
    inputs: Callable[..., Any],
    reference: Callable[..., Any],
    variants: Mapping[str, Callable[..., Any]],
    limits: Limits = FEW,
    **options: Any,
) -> pd.DataFrame:
    """Rows of `results` by variant. Options are those of `Benchmark.reference`, and of `Benchmark` for `tolerance`."""
    return measured(inputs, reference, variants, limits, **options).set_index("variant")


def measured(
    inputs: Callable[..., Any],
    reference: Callable[..., Any],
    variants: Mapping[str, Callable[..., Any]],
    limits: Limits = FEW,
    table: str = "results",
    tolerance: Any = None,
    **options: Any,
) -> pd.DataFrame:
    """Rows of a table."""
    bench = Benchmark("judged", tolerance=tolerance)
    bench.inputs(inputs)
    bench.reference(reference, **options)
    for name, function in variants.items():
        bench.variant(function, name=name)
    workload = bench.workload
    case = workload.cases[0].name
    kept = Kept()
    cells = tuple(Cell("judged", name, "", case) for name in variants)
    with np.errstate(all="ignore"):
        measure_case(Job(WorkloadRef("judged"), case, cells, 0), workload, {"host": HostBench}, Turn(0, 0, limits), kept)
    return pd.DataFrame(kept.tables.get(table, []))
