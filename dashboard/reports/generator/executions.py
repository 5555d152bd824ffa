"""Figures 2 to 6 of the generator's report, from a trace: the device work of one execution of each of their variants."""

from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import NONE, Int64s, Traces, lookup
from warpladder.dashboard.reports.generator.names import FIGURES, KIND_OF, OTHER, WORKLOAD
from warpladder.dashboard.trace.overlap import overlap_ns
from warpladder.dashboard.trace.ranges import nearest, parents

_SCOPE: Final = "end_to_end"
_NAMES: Final = {"kernels": ("name",), "memory_ops": ("kind", "bytes")}
_COLUMNS: Final = [
    "figure",
    "variant",
    "config",
    "n",
    "trace_ns",
    "span_ns",
    "kind",
    "name",
    "start_ns",
    "end_ns",
    "bytes",
    "hidden_ns",
]


def executions(data: RunData, case: str) -> pd.DataFrame:
    """The device work of one end-to-end execution for each traced entry of `FIGURES`: the execution of median duration.

    An execution lasts from the start of its first device work to the end of its last. For an even number of executions, the
    shorter of the two middle ones is taken.

    Returns:
        One row for each kernel or memory operation, in the order of `FIGURES` and then by start. Empty where no such execution
        was traced. The columns are `figure`, `variant`, `config`, `name`, and

        - `n`: number of traced executions;
        - `trace_ns`: start of the execution, from the start of the trace;
        - `span_ns`: duration of the execution;
        - `kind`: one of `KINDS`;
        - `start_ns`, `end_ns`: from the start of the execution;
        - `bytes`, `hidden_ns`: bytes of a memory operation, and the part of its time in which a kernel of the execution ran;
          null for kernels.
    """
    traces = data.traces
    nothing = pd.DataFrame(columns=_COLUMNS)
    if not {"ranges", "kernels"} <= set(traces.tables):
        return nothing
    chosen = _median_executions(traces, case)
    if chosen.empty:
        return nothing
    ids, parent = traces.numbers("ranges", "range_id"), parents(traces)
    owner = nearest(parent, np.isin(np.arange(len(parent)), chosen["place"]))
    work = pd.concat([_work(traces, table, ids, owner) for table in _NAMES if table in traces.tables])
    frame = work.merge(chosen, on="place")
    frame["kind"] = frame["name"].map(KIND_OF).fillna(OTHER)
    frame["trace_ns"] = frame["begin_ns"] - _begin_ns(traces)
    frame["hidden_ns"] = np.nan
    for _, rows in frame.groupby("place"):
        kernels, copies = rows[rows["bytes"].isna()], rows[rows["bytes"].notna()]
        busy = (kernels["start_ns"].to_numpy(), kernels["end_ns"].to_numpy())
        frame.loc[copies.index, "hidden_ns"] = overlap_ns(busy, copies["start_ns"].to_numpy(), copies["end_ns"].to_numpy())
    for column in ("start_ns", "end_ns"):
        frame[column] -= frame["begin_ns"]
    return frame.sort_values(["order", "start_ns", "end_ns"], kind="stable", ignore_index=True)[_COLUMNS]


def _median_executions(traces: Traces, case: str) -> pd.DataFrame:
    """One row for each execution: `place` of its range, `order`, `figure`, `variant`, `config`, `begin_ns`, `span_ns`, `n`."""
    traces.read("ranges", "workload", "variant", "config", "case", "scope", "round", "gpu_start_ns", "gpu_end_ns")
    # Warm-ups have no round.
    wanted = (traces.numbers("ranges", "round") >= 0) & (traces.numbers("ranges", "gpu_start_ns") >= 0)
    for column, value in (("workload", WORKLOAD), ("case", case), ("scope", _SCOPE)):
        wanted &= np.asarray(traces.texts("ranges", column) == value)
    place = np.flatnonzero(wanted)
    names = {
        name: pd.Series(np.asarray(traces.texts("ranges", name)[place]), dtype="str").fillna("")
        for name in ("variant", "config")
    }
    begin, end = (traces.numbers("ranges", f"gpu_{side}_ns")[place] for side in ("start", "end"))
    frame = pd.DataFrame({"place": place, **names, "begin_ns": begin, "span_ns": end - begin})
    order = {key: number for number, key in enumerate(FIGURES)}
    frame["order"] = [order.get(key, NONE) for key in zip(frame["variant"], frame["config"], strict=True)]
    frame = frame[frame["order"] >= 0].sort_values("span_ns", kind="stable")
    groups = frame.groupby("order")
    frame["n"] = groups["place"].transform("size")
    frame = frame[groups.cumcount() == (frame["n"] - 1) // 2]
    return frame.assign(figure=[list(FIGURES.values())[number] for number in frame["order"]])


def _work(traces: Traces, table: str, ids: Int64s, owner: Int64s) -> pd.DataFrame:
    """The rows of a table that were launched in the executions.

    The columns are `place` (of the execution's range), `name`, `start_ns`, `end_ns` and `bytes`.

    Args:
        ids: the ids of the ranges.
        owner: for each range, the place of the execution that it is or is in; `NONE` where it is in none.
    """
    column, *numbers = _NAMES[table]
    rows, range_id, *found = traces.find(table, "range_id", ids[owner >= 0], "start_ns", "end_ns", *numbers)
    at = lookup(ids, range_id)
    texts = traces.texts(table, column)
    names = np.asarray(texts.categories, dtype=object)[texts.codes[rows]]
    values = dict(zip(("start_ns", "end_ns", *numbers), found, strict=True))
    frame = pd.DataFrame({"place": np.where(at >= 0, owner[at], NONE), "name": names, "bytes": np.nan, **values})
    return frame[frame["place"] >= 0]


def _begin_ns(traces: Traces) -> int:
    """Start of the first event of the trace. The Timeline counts from it."""
    return min(int(start.min()) for table in traces.tables for (start,) in traces.scan(table, "start_ns") if len(start))
