"""The limits of each variant of a case, from the hardware counters of one execution."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.cell import ROLE_ORDER
from warpladder.dashboard.core.limits import UNITS
from warpladder.dashboard.core.machine_code import MachineCode
from warpladder.dashboard.core.run_data import RunData
from warpladder.data import metrics
from warpladder.data.naming import CellName

_FULL_PERCENT: Final = 99.5

_COLUMNS: Final = {
    "time_ns": metrics.TIME,
    "compute_percent": metrics.COMPUTE,
    "memory_percent": metrics.MEMORY,
    "l1_percent": metrics.L1,
    "tensor_percent": metrics.TENSOR,
    "issue_percent": metrics.ISSUE,
    **{unit.column: unit.metric for unit in UNITS},
    "sm_cycles": metrics.CYCLES,
    "active_cycles": metrics.ACTIVE_CYCLES,
    "clock_hz": metrics.CLOCK,
    "warps": metrics.WARPS,
    "instructions": metrics.INSTRUCTIONS,
    "local_loads": metrics.LOCAL_LOADS,
    "local_stores": metrics.LOCAL_STORES,
    "load_requests": metrics.LOAD_REQUESTS,
    "load_sectors": metrics.LOAD_SECTORS,
    "store_requests": metrics.STORE_REQUESTS,
    "store_sectors": metrics.STORE_SECTORS,
    "l2_sectors": metrics.ALL_L2_SECTORS,
    "wavefronts": metrics.WAVEFRONTS,
    "shared_wavefronts": metrics.SHARED_WAVEFRONTS,
    "dram_read_bytes": metrics.DRAM_READ,
    "dram_write_bytes": metrics.DRAM_WRITE,
    "l1_hit_percent": metrics.L1_HIT,
    "l2_hit_percent": metrics.L2_HIT,
    "load_conflicts": metrics.LOAD_CONFLICTS,
    "store_conflicts": metrics.STORE_CONFLICTS,
    "occupancy_percent": metrics.OCCUPANCY,
    "theoretical_percent": metrics.THEORETICAL,
    "waves": metrics.WAVES,
    "registers": metrics.REGISTERS,
    "shared_bytes": metrics.SHARED_BYTES,
    "grid_blocks": metrics.GRID,
    "block_threads": metrics.BLOCK,
}
#: Column -> numerator and denominator.
_RATIOS: Final = {
    "load_sectors_per_request": (metrics.LOAD_SECTORS, metrics.LOAD_REQUESTS),
    "store_sectors_per_request": (metrics.STORE_SECTORS, metrics.STORE_REQUESTS),
    "load_conflict_share": (metrics.LOAD_CONFLICTS, metrics.LOAD_WAVEFRONTS),
    "store_conflict_share": (metrics.STORE_CONFLICTS, metrics.STORE_WAVEFRONTS),
}


def counted_cases(data: RunData, workload: str) -> tuple[str, ...]:
    """Cases of the workload that have counters, in the order of the cases."""
    of_workload = data.counters[data.counters["workload"] == workload]
    counted = set(of_workload["case"])
    return tuple(case for case in data.cases.loc[data.cases["workload"] == workload, "case"] if case in counted)


def counted_workloads(data: RunData) -> tuple[str, ...]:
    """Workloads that have counters, in the order of the run."""
    counted = set(data.counters["workload"])
    return tuple(workload for workload in data.workloads if workload in counted)


def by_config(data: RunData, workload: str, case: str) -> pd.DataFrame:
    """The counters of each variant and config of a case, in the order of the ladder.

    The launches of an execution are joined. Times, bytes and counts are summed. Percentages and stalls are averaged by the
    launches' time on the device. Of registers and other sizes the largest counts.

    Returns:
        One row for each variant and config: `variant`, `config`, `title`, `role`, `launches`, `kernels` (a tuple of names), the
        columns of `_COLUMNS` and `_RATIOS` (null where not measured, or where the denominator is 0), and

        - `dram_bytes`, `min_bytes`, `dram_over_min`: bytes read and written, the case's least bytes, and their ratio (1 is
          ideal);
        - `fp32_flop`, `fp64_flop`: executed operations; a multiply-add counts as two;
        - `gflop_per_s`, `flop_per_byte`: these operations over the kernels' time, and over the bytes of device memory;
        - `limiter`: the resource that allows the fewest blocks on a multiprocessor; empty where the occupancy is not limited;
        - `stall_REASON`: cycles between two instructions that a warp spends for that reason;
        - `top_stall`, `top_stall_percent`: the reason that takes the most cycles, and its share.
    """
    rows = data.counters[(data.counters["workload"] == workload) & (data.counters["case"] == case)]
    joined = _joined(rows, _counts(rows, data.code))
    frame = joined[["variant", "config", "launches", "kernels"]].copy()
    for column, name in _COLUMNS.items():
        frame[column] = joined[name]
    for column, (part, divisor) in _RATIOS.items():
        frame[column] = joined[part] / joined[divisor].where(joined[divisor] > 0)
    frame["dram_bytes"] = frame["dram_read_bytes"] + frame["dram_write_bytes"]
    least = data.cases.loc[(data.cases["workload"] == workload) & (data.cases["case"] == case), "min_bytes"]
    frame["min_bytes"] = float(least.iloc[0]) if len(least) and least.iloc[0] > 0 else np.nan
    frame["dram_over_min"] = frame["dram_bytes"] / frame["min_bytes"]
    for precision, instructions in metrics.OPERATIONS.items():
        frame[f"{precision}_flop"] = sum(joined[metrics.operation_metric(name)] * flop for name, flop in instructions.items())
    flop = frame[["fp32_flop", "fp64_flop"]].sum(axis=1, min_count=1)
    # One FLOP a nanosecond is one GFLOP/s.
    frame["gflop_per_s"] = flop / frame["time_ns"].where(frame["time_ns"] > 0)
    frame["flop_per_byte"] = flop / frame["dram_bytes"].where(frame["dram_bytes"] > 0)
    for reason in metrics.STALLS:
        frame[f"stall_{reason}"] = joined[metrics.stall_metric(reason)]
    limits = joined[list(metrics.LIMITS)].to_dict("records")
    frame["limiter"] = [_limiter(*pair) for pair in zip(limits, frame["theoretical_percent"], strict=True)]
    stalls = pd.DataFrame([_top_stall(row) for row in frame.to_dict("records")], index=frame.index, columns=_STALL_COLUMNS)
    return _in_order(pd.concat([frame, stalls], axis=1), data, workload)


def _counts(rows: pd.DataFrame, code: MachineCode) -> Mapping[tuple[str, str, int], int]:
    """How many launches each one stands for, where one of each kind was profiled: by variant, config and place."""
    counts = dict[tuple[str, str, int], int]()
    for name, group in rows.groupby(list(CellName._fields), observed=True, sort=False):
        cell = CellName(*map(str, name))
        alike = code.alike(cell)
        if set(group["launch_index"]) == set(alike):
            counts |= {(cell.variant, cell.config, index): count for index, count in alike.items()}
    return counts


def _joined(rows: pd.DataFrame, counts: Mapping[tuple[str, str, int], int]) -> pd.DataFrame:
    """One row for each variant and config, with every metric of the contract joined over its launches.

    Args:
        counts: how many launches one stands for; see `_counts`. Others stand for themselves.
    """
    launch = ["variant", "config", "launch_index", "kernel"]
    wide = rows.pivot_table("value", launch, "metric", aggfunc="first").reset_index()
    wide = wide.reindex(columns=[*launch, *metrics.BY_NAME])
    cell = [wide["variant"], wide["config"]]
    number = np.array([counts.get(key, 1) for key in zip(*cell, wide["launch_index"], strict=True)], dtype=float)
    timed = wide[metrics.TIME].groupby(cell).transform("count") == wide[metrics.TIME].groupby(cell).transform("size")
    # Where a launch has no time, all launches have equal weight.
    weight = wide[metrics.TIME].where(timed, 1.0).astype(float) * number
    groups = wide.groupby(["variant", "config"], sort=False)
    joined = pd.DataFrame({"launches": pd.Series(number).groupby(cell, sort=False).sum().astype(int)})
    joined["kernels"] = [tuple(dict.fromkeys(kernels)) for _, kernels in groups["kernel"]]
    values = wide[list(metrics.BY_NAME)].astype(float)

    def of(combine: str) -> pd.DataFrame:
        return values[[name for name, metric in metrics.BY_NAME.items() if metric.combine == combine]]

    means = of("mean")
    weights = means.notna().mul(weight, axis=0).groupby(cell, sort=False).sum()
    joined = joined.join(
        [
            means.mul(weight, axis=0).groupby(cell, sort=False).sum(min_count=1) / weights.where(weights > 0),
            of("sum").mul(number, axis=0).groupby(cell, sort=False).sum(min_count=1),
            of("max").groupby(cell, sort=False).max(),
        ]
    )
    return joined.rename_axis(["variant", "config"]).reset_index()


def _limiter(limits: dict[Any, float], theoretical_percent: float) -> str:
    blocks_by_limit = {name: blocks for name, blocks in limits.items() if pd.notna(blocks)}
    if not blocks_by_limit or theoretical_percent >= _FULL_PERCENT:
        return ""
    return metrics.LIMITS[min(blocks_by_limit, key=blocks_by_limit.__getitem__)]


_STALL_COLUMNS: Final = ["top_stall", "top_stall_percent"]


def _top_stall(row: dict[Any, Any]) -> tuple[str, float]:
    """The columns `_STALL_COLUMNS` of a row."""
    spent = {reason: row[f"stall_{reason}"] for reason in metrics.STALLS if pd.notna(row[f"stall_{reason}"])}
    waiting = {reason: cycles for reason, cycles in spent.items() if reason not in metrics.ISSUING and cycles > 0}
    top = max(waiting, key=waiting.__getitem__, default="")
    return top, 100 * waiting[top] / sum(spent.values()) if top else np.nan


def _in_order(frame: pd.DataFrame, data: RunData, workload: str) -> pd.DataFrame:
    variants = data.variants[data.variants["workload"] == workload][["variant", "title", "role", "rung"]]
    frame = frame.merge(variants, on="variant", how="left")
    frame["title"] = frame["title"].fillna("")
    frame["role"] = frame["role"].fillna("rung")
    frame["place"] = [ROLE_ORDER.index(role) if role in ROLE_ORDER else len(ROLE_ORDER) for role in frame["role"]]
    order = frame.sort_values(["place", "rung", "variant", "config"], kind="stable")
    return order.drop(columns=["place", "rung"]).reset_index(drop=True)


#: Groups in the order of a table, and their columns of `counters.by_config` with words and units.
_SHOWN: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "speed of light": {
        "time_ns": ("time under the profiler", "ns"),
        "compute_percent": ("compute", "%"),
        "memory_percent": ("memory", "%"),
        "l1_percent": ("L1 and shared memory, while active", "%"),
        "tensor_percent": ("tensor cores, while active", "%"),
        "issue_percent": ("issue slots, while active", "%"),
        **{unit.column: (unit.name, "%") for unit in UNITS},
        "clock_hz": ("clock", "Hz"),
    },
    "memory": {
        "dram_read_bytes": ("read from device memory", "B"),
        "dram_write_bytes": ("written to device memory", "B"),
        "dram_bytes": ("bytes of device memory", "B"),
        "l2_sectors": ("sectors of L2", ""),
        "wavefronts": ("passes of L1 and shared memory", ""),
        "shared_wavefronts": ("passes of shared memory", ""),
        "l1_hit_percent": ("hits in L1", "%"),
        "l2_hit_percent": ("hits in L2", "%"),
        "load_sectors_per_request": ("sectors a load", ""),
        "store_sectors_per_request": ("sectors a store", ""),
        "load_conflicts": ("bank conflicts of loads", ""),
        "store_conflicts": ("bank conflicts of stores", ""),
    },
    "instructions": {
        "instructions": ("instructions", ""),
        "load_requests": ("loads from global memory", ""),
        "store_requests": ("stores to global memory", ""),
        "local_loads": ("loads from local memory", ""),
        "local_stores": ("stores to local memory", ""),
        "fp32_flop": ("fp32 operations", ""),
        "fp64_flop": ("fp64 operations", ""),
        "gflop_per_s": ("GFLOP/s", ""),
        "flop_per_byte": ("FLOP a byte of device memory", ""),
    },
    "occupancy": {
        "occupancy_percent": ("occupancy, achieved", "%"),
        "theoretical_percent": ("occupancy, theoretical", "%"),
        "warps": ("warps on a scheduler", ""),
        "waves": ("waves", ""),
        "registers": ("registers a thread", ""),
        "shared_bytes": ("shared memory a block", "B"),
        "grid_blocks": ("blocks", ""),
        "block_threads": ("threads a block", ""),
        "launches": ("launches", ""),
    },
    "warp stalls": {f"stall_{name}": (f"cycles: {name.replace('_', ' ')}", "") for name in metrics.STALLS},
}


#: Two counts differ where one is larger by more than this part.
DIFFERENT: Final = 0.03


@dataclass(frozen=True)
class Counter:
    """A counter of two cells.

    Attributes:
        group: what it is shown with; the important groups come first.
        a, b: NaN where a run has no such figure.
        unit: `ns`, `B`, `%`, `Hz`, or empty for a number.
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

    @property
    def changed(self) -> bool:
        """Whether the two differ by more than `DIFFERENT`."""
        return abs(self.b - self.a) > DIFFERENT * max(abs(self.a), abs(self.b))


def side_by_side(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> tuple[Counter, ...]:
    """The counters that at least one of two rows of `by_config` has."""
    every = [
        Counter(group, name, unit, *(float(row[column]) for row in (a, b)))
        for group, columns in _SHOWN.items()
        for column, (name, unit) in columns.items()
    ]
    return tuple(each for each in every if not (pd.isna(each.a) and pd.isna(each.b)) and (each.a or each.b))


@lru_cache(maxsize=16)
def rows_by_cell(data: RunData, workload: str, case: str) -> dict[tuple[str, str], dict[Any, Any]]:
    """The rows of `counters.by_config` of a case by variant and config."""
    if not ((data.counters["workload"] == workload) & (data.counters["case"] == case)).any():
        return {}
    return {(row["variant"], row["config"]): row for row in by_config(data, workload, case).to_dict("records")}
