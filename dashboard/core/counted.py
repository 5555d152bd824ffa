"""The counters of one cell in two runs, side by side."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.counters import by_config
from warpladder.dashboard.core.run_data import RunData
from warpladder.data import metrics

#: Groups in the order of a table, and their columns of `counters.by_config` with words and units.
_SHOWN: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "speed of light": {
        "time_ns": ("time under the profiler", "ns"),
        "compute_percent": ("compute", "%"),
        "memory_percent": ("memory", "%"),
        "dram_percent": ("device memory", "%"),
        "l2_percent": ("L2", "%"),
        "l1_percent": ("L1 and shared memory", "%"),
        "tensor_percent": ("tensor cores", "%"),
        "issue_percent": ("cycles with an instruction issued", "%"),
    },
    "memory": {
        "dram_read_bytes": ("read from device memory", "B"),
        "dram_write_bytes": ("written to device memory", "B"),
        "l1_hit_percent": ("hits in L1", "%"),
        "l2_hit_percent": ("hits in L2", "%"),
        "load_sectors_per_request": ("sectors a load", ""),
        "store_sectors_per_request": ("sectors a store", ""),
        "load_conflicts": ("bank conflicts of loads", ""),
        "store_conflicts": ("bank conflicts of stores", ""),
    },
    "arithmetic": {
        "fp32_flop": ("fp32 operations", ""),
        "fp64_flop": ("fp64 operations", ""),
        "gflop_per_s": ("GFLOP/s", ""),
        "flop_per_byte": ("FLOP a byte of device memory", ""),
    },
    "occupancy": {
        "occupancy_percent": ("occupancy, achieved", "%"),
        "theoretical_percent": ("occupancy, theoretical", "%"),
        "waves": ("waves", ""),
        "registers": ("registers a thread", ""),
        "shared_bytes": ("shared memory a block", "B"),
        "grid_blocks": ("blocks", ""),
        "block_threads": ("threads a block", ""),
        "launches": ("launches", ""),
    },
    "warp stalls": {f"stall_{name}": (f"cycles: {name.replace('_', ' ')}", "") for name in metrics.STALLS},
}


@dataclass(frozen=True)
class Counter:
    """A counter of a cell in two runs.

    Attributes:
        group: what it is shown with; the important groups come first.
        a, b: NaN where a run has no such figure.
        unit: `ns`, `B`, `%`, or empty for a number.
    """

    group: str
    name: str
    unit: str
    a: float
    b: float

    @property
    def ratio(self) -> float:
        """B over A; NaN where A is 0 or one is missing."""
        return self.b / self.a if self.a else float("nan")


def side_by_side(
    a: RunData, b: RunData, workload: str, case: str, of_a: tuple[str, str], of_b: tuple[str, str]
) -> tuple[Counter, ...]:
    """The counters that at least one of two cells has; none where a run has no counters of its cell.

    Args:
        of_a, of_b: variant and config of each run.
    """
    before, after = (_of(data, workload, case).get(cell) for data, cell in ((a, of_a), (b, of_b)))
    if before is None or after is None:
        return ()
    every = [
        Counter(group, name, unit, *(float(row[column]) for row in (before, after)))
        for group, columns in _SHOWN.items()
        for column, (name, unit) in columns.items()
    ]
    return tuple(each for each in every if not (pd.isna(each.a) and pd.isna(each.b)) and (each.a or each.b))


@lru_cache(maxsize=16)
def _of(data: RunData, workload: str, case: str) -> dict[tuple[str, str], dict[Any, Any]]:
    """The rows of `counters.by_config` of a case by variant and config."""
    if not ((data.counters["workload"] == workload) & (data.counters["case"] == case)).any():
        return {}
    return {(row["variant"], row["config"]): row for row in by_config(data, workload, case).to_dict("records")}
