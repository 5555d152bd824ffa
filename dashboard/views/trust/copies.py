"""Checks of a recording against its own trace: launches outside of ranges, and copies whose bytes differ from the case's."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.run_data import VERDICT_CELL, RunData
from warpladder.dashboard.core.traces import NONE, Int64s, lookup
from warpladder.dashboard.trace.ranges import nearest
from warpladder.data.names import Source

_SCOPE: Final = "end_to_end"
_DIRECTIONS: Final = ("h2d", "d2h")


@dataclass(frozen=True)
class Attribution:
    """The number and time of a trace's kernels: all, those outside of ranges, and those with an unknown launch."""

    kernels: int
    time_ns: int
    outside: int
    outside_ns: int
    unlaunched: int
    unlaunched_ns: int


def attribution(data: RunData) -> Attribution:
    """The counts of kernels that are not attributed to a range; zeros without a table `kernels`."""
    if "kernels" not in data.traces.tables:
        return Attribution(0, 0, 0, 0, 0, 0)
    outside, unlaunched = _unattributed(data)
    time_ns = data.traces.durations("kernels")
    return Attribution(
        len(time_ns),
        int(time_ns.sum()),
        int(outside.sum()),
        int(time_ns[outside].sum()),
        int(unlaunched.sum()),
        int(time_ns[unlaunched].sum()),
    )


def unattributed(data: RunData) -> pd.DataFrame:
    """Kernels with launches that are not attributed to a range, the longest first.

    The columns are `kernel`, `outside` and `unlaunched` (numbers of launches), and `time_ns` (of both).
    """
    columns = ["kernel", "outside", "unlaunched", "time_ns"]
    if "kernels" not in data.traces.tables:
        return pd.DataFrame(columns=columns)
    outside, unlaunched = _unattributed(data)
    rows = np.flatnonzero(outside | unlaunched)
    names = data.traces.texts("kernels", "name")
    frame = pd.DataFrame(
        {
            "kernel": np.asarray(names.categories, dtype=object)[names.codes[rows]],
            "outside": outside[rows].astype(int),
            "unlaunched": unlaunched[rows].astype(int),
            "time_ns": data.traces.durations("kernels")[rows],
        }
    )
    sums = frame.groupby("kernel", as_index=False, sort=False).sum()
    return sums.sort_values(["time_ns", "kernel"], ascending=[False, True], ignore_index=True)[columns]


def dropped(data: RunData) -> tuple[str, ...]:
    """The records that the tool reports as lost."""
    return tuple(data.diagnostics.loc[data.diagnostics["source"] == Source.DROPPED, "text"])


def rounds(data: RunData) -> pd.DataFrame:
    """The bytes that each end-to-end round copied, beside those of its case.

    A round is the range of one sample, including the baseline's second entry, without warm-ups. Copies in inner ranges count.

    Returns:
        `workload`, `variant`, `config`, `case`, `range` (its text), `h2d_bytes` and `d2h_bytes` (copied), `case_h2d_bytes`,
        `case_d2h_bytes` and `equal`. There are no rows where the trace has no such range or no copies.
    """
    columns = [*VERDICT_CELL, "range", "h2d_bytes", "d2h_bytes", "case_h2d_bytes", "case_d2h_bytes", "equal"]
    traces = data.traces
    if not {"ranges", "memory_ops"} <= set(traces.tables):
        return pd.DataFrame(columns=columns)
    scope = traces.texts("ranges", "scope")
    ids = traces.numbers("ranges", "range_id")
    parent = lookup(ids, traces.numbers("ranges", "parent_id"))
    ours = (
        np.asarray(scope.categories == _SCOPE)[scope.codes] if len(scope.categories) else np.zeros(len(ids), dtype=bool)
    ) & (scope.codes >= 0)
    ours &= traces.numbers("ranges", "round") >= 0
    outermost = ours & ~((parent >= 0) & ours[parent])
    at = _outermost(lookup(ids, traces.numbers("memory_ops", "range_id")), parent, ours, outermost)
    kind, moved = traces.texts("memory_ops", "kind"), traces.numbers("memory_ops", "bytes")
    found: dict[str, Any] = {}
    chosen = np.flatnonzero(outermost)
    for column in VERDICT_CELL:
        names = traces.texts("ranges", column)
        found[column] = np.asarray(names)[chosen]
    found["range"] = np.asarray(traces.texts("ranges", "text"))[chosen]
    for direction in _DIRECTIONS:
        copies = (at >= 0) & (np.asarray(kind) == direction)
        sums = np.zeros(len(ids), dtype=np.int64)
        np.add.at(sums, at[copies], moved[copies])
        found[f"{direction}_bytes"] = sums[chosen]
    cases = data.cases.rename(columns={f"{direction}_bytes": f"case_{direction}_bytes" for direction in _DIRECTIONS})
    keys = ["workload", "case"]
    frame = pd.DataFrame(found).merge(cases[[*keys, "case_h2d_bytes", "case_d2h_bytes"]], on=keys, how="inner")
    equal = (frame["h2d_bytes"] == frame["case_h2d_bytes"]) & (frame["d2h_bytes"] == frame["case_d2h_bytes"])
    return frame.assign(equal=equal)[columns]


def by_case(frame: pd.DataFrame) -> pd.DataFrame:
    """`rounds` by case: `workload`, `case`, `rounds`, `equal` (numbers of rounds), and the case's bytes in each direction."""
    keys = ["workload", "case", "case_h2d_bytes", "case_d2h_bytes"]
    sums = frame.groupby(keys, sort=False, as_index=False).agg(rounds=("equal", "size"), equal=("equal", "sum"))
    return sums[["workload", "case", "rounds", "equal", "case_h2d_bytes", "case_d2h_bytes"]]


def _unattributed(data: RunData) -> tuple[Any, Any]:
    """Masks of the kernels outside of all ranges, and of the kernels with an unknown launch."""
    traces = data.traces
    return traces.numbers("kernels", "range_id") == NONE, traces.numbers("kernels", "launch_start_ns") == NONE


def _outermost(at: Int64s, parent: Int64s, ours: Any, outermost: Any) -> Int64s:
    """For each place of a range, the place of the outermost range of a sample around it; `NONE` where there is none."""
    return np.where((at >= 0) & ours[at], nearest(parent, outermost)[at], NONE)
