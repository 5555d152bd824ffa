"""The copies of a trace: bytes, time, rate and overlap with kernels, and the speedups with the copies counted."""

from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.cell import ASIDE
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import Traces
from warpladder.dashboard.trace.ranges import labels, parents, range_ns
from warpladder.data.arrays import NONE, Floats, Int64s, Intervals, lookup, numbered
from warpladder.data.nesting import nearest

_COPIES: Final = ("h2d", "d2h", "d2d", "p2p", "h2h", "unknown")
_OF_OURS: Final = ("workload", "variant", "config", "case")
STAGES: Final = ("kernel_ns", "with_launch_ns", "with_copies_ns", "end_to_end_ns")


def span_ns(traces: Traces) -> int:
    """Nanoseconds from the start of the trace's first call or device work to the end of its last."""
    tables = [table for table in ("kernels", "memory_ops", "api_calls") if table in traces.tables]
    first = min(int(traces.numbers(table, "start_ns").min()) for table in tables)
    return max(int(traces.numbers(table, "end_ns").max()) for table in tables) - first


def transfers(data: RunData) -> pd.DataFrame:
    """Copies, sets and migrations by kind and by the memory of their host side.

    Returns:
        One row for each kind and host memory, the longest first: `kind`, `n`, `overlap_percent`, and

        - `host_memory`: `pinned`, `pageable` and so on; empty where no host memory is involved;
        - `bytes`: sum over those whose size is known; null where none is;
        - `unknown`: number of those whose size is not known;
        - `time_ns`: sum of durations;
        - `gb_per_s`: `bytes` over the durations of those whose size is known;
        - `percent_of_run`: the part of `span_ns` in which at least one of them ran;
        - `overlap_ns`: the part of `time_ns` in which a kernel of the process ran on the same device.
    """
    traces = data.traces
    kind = traces.texts("memory_ops", "kind")
    names = pd.Series(np.asarray(kind), dtype="str")
    source, target = (
        pd.Series(np.asarray(traces.texts("memory_ops", side)), dtype="object") for side in ("src_memory", "dst_memory")
    )
    memory = source.where(
        names.isin(["h2d", "h2h", "unified_h2d"]), target.where(names.isin(["d2h", "unified_d2h"]), "")
    ).fillna("unknown")
    start, end, size = (traces.numbers("memory_ops", name) for name in ("start_ns", "end_ns", "bytes"))
    known = size != NONE
    rows = pd.DataFrame(
        {
            "kind": names,
            "host_memory": memory,
            "n": 1,
            "bytes": np.where(known, size, 0),
            "unknown": (~known).astype(np.int64),
            "time_ns": end - start,
            "known_ns": np.where(known, end - start, 0),
            "overlap_ns": _overlap(traces, start, end),
        }
    )
    keys = ["kind", "host_memory"]
    number = rows.groupby(keys, sort=False).ngroup().to_numpy()
    sums = rows.groupby(keys, sort=False).sum().reset_index()
    busy = [Intervals(start[number == group], end[number == group]).length for group in range(len(sums))]
    sums = sums.assign(
        bytes=sums["bytes"].astype("Int64").where(sums["unknown"] < sums["n"]),
        gb_per_s=sums["bytes"] / sums["known_ns"].where(sums["known_ns"] > 0),
        percent_of_run=100 * np.array(busy) / max(span_ns(traces), 1),
        overlap_percent=100 * sums["overlap_ns"] / sums["time_ns"].where(sums["time_ns"] > 0),
    )
    columns = [*keys, "n", "bytes", "unknown", "time_ns", "gb_per_s", "percent_of_run", "overlap_ns", "overlap_percent"]
    return sums.sort_values(["time_ns", "kind"], ascending=[False, True], ignore_index=True)[columns]


def stages(data: RunData) -> pd.DataFrame:
    """The time and speedup of each variant, with its launches and copies added stage by stage.

    The figures come from ranges with a kernel and a copy. In our recordings these are the ranges with a scope, and in other
    reports the outermost ranges. Work that another thread launched while a step was open counts for the step, and work of a thread
    without ranges for the range that it is attributed to by time.

    Returns:
        One row for each (workload, case, variant, config), with medians over its ranges. The columns after the key are
        `role`, `n`, `copies_ns`, and

        - `kernel_ns`: durations of the kernels;
        - `with_launch_ns`: `kernel_ns` plus the durations of the calls that launched the kernels, each call once;
        - `with_copies_ns`: `with_launch_ns` plus the durations of the copies;
        - `end_to_end_ns`: duration of the range;
        - `speedup_…`: of each stage over the first variant of the case. Ceilings and specimens are passed over, unless the case
          has no others.
    """
    traces = data.traces
    speedups = [f"speedup_{stage.removesuffix('_ns')}" for stage in STAGES]
    columns = [*_OF_OURS, "role", *STAGES, "copies_ns", "n", *speedups]
    if not {"ranges", "kernels", "memory_ops"} <= set(traces.tables):
        return pd.DataFrame(columns=columns)
    held = _held(traces)
    held = held[(held["kernel_ns"] > 0) & (held["copies_ns"] > 0)]
    groups = held.groupby(list(_OF_OURS), sort=False)
    frame = groups[[*STAGES, "copies_ns"]].median().join(groups.size().rename("n")).reset_index()
    if frame.empty:
        return pd.DataFrame(columns=columns)
    order = {name: place for place, name in enumerate(zip(data.variants["workload"], data.variants["variant"], strict=True))}
    place = [order.get(pair, len(order)) for pair in zip(frame["workload"], frame["variant"], strict=True)]
    frame = (
        frame.assign(place=place)
        .sort_values(["workload", "case", "place"], kind="stable", ignore_index=True)
        .drop(columns="place")
    )
    roles = data.variants.set_index(["workload", "variant"])["role"].to_dict()
    frame["role"] = [roles.get(pair, "rung") for pair in zip(frame["workload"], frame["variant"], strict=True)]
    compared_first = frame.assign(aside=frame["role"].isin(ASIDE)).sort_values("aside", kind="stable")
    first = compared_first.groupby(["workload", "case"])[list(STAGES)].transform("first")
    for stage, speedup in zip(STAGES, speedups, strict=True):
        frame[speedup] = first[stage] / frame[stage]
    return frame[columns]


def _overlap(traces: Traces, start: Int64s, end: Int64s) -> Int64s:
    """Nanoseconds of each memory operation in which a kernel of its process ran on the same device."""
    overlap = np.zeros(len(start), dtype=np.int64)
    if "kernels" not in traces.tables:
        return overlap
    process, device = (
        np.concatenate([traces.numbers(table, name) for table in ("memory_ops", "kernels")]) for name in ("process", "device")
    )
    number, first = numbered(process, device)
    of_copies, of_kernels = number[: len(start)], number[len(start) :]
    for each in range(len(first)):
        kernels, rows = of_kernels == each, of_copies == each
        if kernels.any():
            busy = Intervals(traces.numbers("kernels", "start_ns")[kernels], traces.numbers("kernels", "end_ns")[kernels])
            overlap[rows] = busy.within(start[rows], end[rows])
    return overlap


def _held(traces: Traces) -> pd.DataFrame:
    """The contents of each range that is one execution: the columns of `_OF_OURS`, `STAGES` and `copies_ns`.

    An execution of a whole program has a range on each of its threads, with the same start and end. They count as one.
    """
    parent, scope = parents(traces), traces.texts("ranges", "scope").codes
    has_scope = bool((scope >= 0).any())
    chosen = scope >= 0 if has_scope else parent < 0
    owner = nearest(parent, chosen)
    size = len(parent)

    def summed(table: str, durations: Int64s) -> Floats:
        own, by_time = (traces.numbers(table, name) for name in ("range_id", "time_range_id"))
        at = lookup(traces.numbers("ranges", "range_id"), np.where(by_time == NONE, own, by_time))
        at = np.where(at >= 0, owner[at], -1)
        return np.asarray(np.bincount(at[at >= 0], weights=durations[at >= 0], minlength=size), dtype=float)

    copies = np.isin(np.asarray(traces.texts("memory_ops", "kind")), _COPIES)
    kernel_ns, launch_ns = summed("kernels", traces.durations("kernels")), summed("kernels", _calls_ns(traces))
    copies_ns = summed("memory_ops", np.where(copies, traces.durations("memory_ops"), 0))
    if has_scope:
        names: dict[str, Any] = {
            name: pd.Series(np.asarray(traces.texts("ranges", name)), dtype="object").fillna("") for name in _OF_OURS
        }
    else:
        names = {"workload": "", "variant": np.asarray(labels(traces)), "config": "", "case": ""}
    frame = pd.DataFrame(
        {
            **names,
            "kernel_ns": kernel_ns,
            "with_launch_ns": kernel_ns + launch_ns,
            "with_copies_ns": kernel_ns + launch_ns + copies_ns,
            "end_to_end_ns": range_ns(traces),
            "copies_ns": copies_ns,
            "start_ns": traces.numbers("ranges", "start_ns"),
        }
    )[chosen]
    if not has_scope:
        return frame
    sums = [*STAGES[:-1], "copies_ns"]
    return frame.groupby([*_OF_OURS, "start_ns", "end_to_end_ns"], sort=False, as_index=False, dropna=False)[sums].sum()


def _calls_ns(traces: Traces) -> Int64s:
    """Duration of the call that launched each kernel; 0 for the further kernels of one call, as of a graph."""
    process, correlation, start, end = (
        traces.numbers("kernels", name) for name in ("process", "correlation", "launch_start_ns", "launch_end_ns")
    )
    again = pd.DataFrame({"process": process, "correlation": correlation, "start": start}).duplicated().to_numpy()
    return np.where(again, 0, end - start)
