"""The NVTX summaries of `nsys stats`: ranges on the host's clock, projected to the GPU, and the kernels launched inside them."""

from typing import Any, Final

import numpy as np
import pandas as pd

from dashboard.queries.describe import describe, rounded, times
from dashboard.queries.run_data import RunData
from dashboard.queries.trace_data import NONE, Int64s, Traces, calls_of, lookup

#: Bytes of the table of marks in `_distinct`.
_MOST_MARKS: Final = 1 << 28


def nvtx_sum(data: RunData) -> pd.DataFrame:
    """NVTX ranges by `domain:text`, on the host's clock. A range that was never closed lasts to the end of the last one."""
    return times(labels(data.traces), range_ns(data.traces), "Instances", "Range")


def nvtx_gpu_proj_sum(data: RunData) -> pd.DataFrame:
    """NVTX ranges projected to the GPU: from the start of the first device work launched inside to the end of the last.

    A range without device work is left out. `Total GPU Ops` counts launches, not the several kernels of one graph launch.
    """
    traces = data.traces
    start, end = traces.numbers("ranges", "gpu_start_ns"), traces.numbers("ranges", "gpu_end_ns")
    kept = np.flatnonzero(start >= 0)
    names, parent = labels(traces), parents(traces)
    codes = names.codes[kept].astype(np.int64)
    found = describe(codes, (end - start)[kept], len(names.categories))

    def summed(values: Int64s) -> Int64s:
        sums = np.zeros(len(names.categories), dtype=np.int64)
        np.add.at(sums, codes, values[kept])
        return sums[found.index]

    above = parent[kept]
    children = summed(np.bincount(above[above >= 0], minlength=len(start)))
    operations, levels = summed(_launches(traces, parent)), summed(traces.numbers("ranges", "depth"))
    frame = pd.DataFrame(
        {
            "Range": np.asarray(names.categories)[found.index], "Total Proj Time (ns)": found["total"],
            "Total Range Time (ns)": summed(range_ns(traces)), "Range Instances": found["n"],
            "Proj Avg (ns)": rounded(found["mean"]), "Proj Med (ns)": rounded(found["median"]), "Proj Min (ns)": found["min"],
            "Proj Max (ns)": found["max"], "Proj StdDev (ns)": rounded(found["stddev"]), "Total GPU Ops": operations,
            "Avg GPU Ops": rounded(operations / found["n"]), "Avg Range Lvl": rounded(levels / found["n"]),
            "Avg Num Child": rounded(children / found["n"]),
        }
    )  # fmt: skip
    return frame.sort_values(["Total Proj Time (ns)", "Range"], ascending=[False, True], ignore_index=True)


def nvtx_kern_sum(data: RunData) -> pd.DataFrame:
    """Kernels by the ranges that were open at their launch: all of them, not the innermost alone.

    Kernels outside of any range stand first, with a null range. Process and thread are null where the launch was not traced.
    """
    kernels, durations = data.traces.texts("kernels", "full_name"), data.traces.durations("kernels")
    range_labels = labels(data.traces)
    holder, holders = _holders(data.traces, range_labels)
    owner = holders.groupby(["label", "process", "thread"], sort=False).ngroup().to_numpy(dtype=np.int64)
    parent = holders["parent"].to_numpy()
    width = max(len(kernels.categories), 1)

    codes, values, again = [], [], []
    above, owners = np.arange(len(holders)), list[Int64s]()
    # Level by level outwards: the holder itself, the range around it, and so on.
    while (above >= 0).any():
        level = np.where(above >= 0, owner[above], NONE)
        # A kernel in two nested ranges of one name is one instance of it, though nsys adds its time twice.
        repeats = np.zeros(len(level), dtype=bool)
        for inner in owners:
            repeats |= inner == level
        owners.append(level)
        group = level[holder]
        inside = slice(None) if group.min(initial=0) >= 0 else group >= 0
        codes.append(group[inside] * width + kernels.codes[inside])
        values.append(durations[inside])
        if repeats.any():
            twice = (repeats & (level >= 0))[holder]
            again.append(group[twice] * width + kernels.codes[twice])
        above = np.where(above >= 0, parent[above], NONE)
    count = (int(owner.max(initial=0)) + 1) * width
    found = describe(np.concatenate(codes), np.concatenate(values), count)
    repeated = np.bincount(np.concatenate(again), minlength=count)[found.index] if again else 0
    who, what = np.divmod(found.index.to_numpy(), width)
    about = holders.assign(owner=owner).drop_duplicates("owner").set_index("owner").loc[who]
    outside = about["label"].to_numpy() < 0
    held = _held_pairs(holder * width + kernels.codes, parent, width)
    instances = np.bincount(owner[held // width] * width + held % width, minlength=count)[found.index]
    frame = pd.DataFrame(
        {
            "NVTX Range": np.array([*range_labels.categories, None], dtype=object)[about["label"]],
            "PID": _nullable(about["process"]), "TID": _nullable(about["thread"]),
            "NVTX Inst": np.where(outside, 0, instances), "Kern Inst": found["n"].to_numpy() - repeated,
            "Total Time (ns)": found["total"].to_numpy(), "Avg (ns)": rounded(found["mean"]), "Med (ns)": rounded(found["median"]),
            "Min (ns)": found["min"].to_numpy(), "Max (ns)": found["max"].to_numpy(), "StdDev (ns)": rounded(found["stddev"]),
            "Kernel Name": np.asarray(kernels.categories)[what],
        }
    )  # fmt: skip
    order = ["NVTX Range", "PID", "TID", "Total Time (ns)", "Kernel Name"]
    return frame.sort_values(order, ascending=[True, True, True, False, True], na_position="first", ignore_index=True)


def _held_pairs(pairs: Int64s, parent: Int64s, width: int) -> Int64s:
    """Every pair of a holder and a kernel that was launched in it or in what it holds, once; a pair is holder * width + kernel."""
    size = len(parent) * width
    level = _distinct(pairs, size)
    every = [level]
    while len(level):
        above = parent[level // width]
        level = _distinct((above * width + level % width)[above >= 0], size)
        every.append(level)
    return _distinct(np.concatenate(every), size)


def _distinct(numbers: Int64s, size: int) -> Int64s:
    """Each of the numbers once. Below `size` of up to this many, a table of marks is several times faster than hashing."""
    if size > _MOST_MARKS:
        return np.asarray(pd.unique(numbers), dtype=np.int64)
    marks = np.zeros(size, dtype=bool)
    marks[numbers] = True
    return np.flatnonzero(marks)


def labels(traces: Traces) -> "pd.Categorical[Any]":
    """`domain:text` of each range; the text alone in the default domain."""
    domains, texts = traces.texts("ranges", "domain"), traces.texts("ranges", "text")
    width = max(len(texts.categories), 1)
    pair, pairs = pd.factorize(domains.codes.astype(np.int64) * width + texts.codes)
    domain, text = (
        np.asarray(names.categories)[part] for names, part in zip((domains, texts), np.divmod(pairs, width), strict=True)
    )
    code, unique = pd.factorize(
        np.array([f"{d}:{t}" if d else str(t) for d, t in zip(domain, text, strict=True)], dtype=object)
    )
    return pd.Categorical.from_codes(code[pair], categories=pd.Index(unique))


def range_ns(traces: Traces) -> Int64s:
    """Nanoseconds from start to end of each range."""
    start, end = traces.numbers("ranges", "start_ns"), traces.numbers("ranges", "end_ns")
    return np.where(end >= 0, end, max(int(start.max()), int(end.max()))) - start


def parents(traces: Traces) -> Int64s:
    """Place of the range that encloses each range; `NONE` for an outermost one."""
    return lookup(traces.numbers("ranges", "range_id"), traces.numbers("ranges", "parent_id"))


def _launches(traces: Traces, parent: Int64s) -> Int64s:
    """How many launches each range holds, its inner ranges' included."""
    tables = [name for name in ("kernels", "memory_ops") if name in traces.tables]
    if not tables:
        return np.zeros(len(parent), dtype=np.int64)
    process, correlation, range_id = (
        np.concatenate([traces.numbers(table, name) for table in tables]) for name in ("process", "correlation", "range_id")
    )
    inside = lookup(traces.numbers("ranges", "range_id"), range_id)
    launch = (pd.factorize(process)[0].astype(np.int64) << 48) + correlation
    once = (inside >= 0) & ~pd.Series(launch).duplicated().to_numpy()
    count = np.bincount(inside[once], minlength=len(parent))
    depth = traces.numbers("ranges", "depth")
    # The deepest first, so that each passes on all that it holds.
    for level in range(int(depth.max(initial=0)), 0, -1):
        rows = np.flatnonzero((depth == level) & (parent >= 0))
        np.add.at(count, parent[rows], count[rows])
    return count


def _holders(traces: Traces, range_labels: "pd.Categorical[Any]") -> tuple[Int64s, pd.DataFrame]:
    """The range of each kernel; what no range holds is held by its thread.

    Returns:
        For each kernel, its row of the second: `label` (code; `NONE` for a thread), `process`, `thread`, and `parent`, a row of it.
    """
    holders = pd.DataFrame(
        {
            "label": range_labels.codes.astype(np.int64), "process": traces.numbers("ranges", "process"),
            "thread": traces.numbers("ranges", "thread"), "parent": parents(traces),
        }
    )  # fmt: skip
    holder = lookup(traces.numbers("ranges", "range_id"), traces.numbers("kernels", "range_id"))
    outside = holder < 0
    if not outside.any():
        return holder, holders
    calls = calls_of(traces, "kernels", outside)
    threads = pd.DataFrame(
        {"process": np.full(len(calls), NONE, dtype=np.int64), "thread": np.full(len(calls), NONE, dtype=np.int64)}
    )
    if (calls >= 0).any():
        for name in ("process", "thread"):
            threads[name] = np.where(calls >= 0, traces.numbers("api_calls", name)[calls], NONE)
    number = threads.groupby(["process", "thread"], sort=False).ngroup().to_numpy(dtype=np.int64)
    holder[outside] = len(holders) + number
    threads = threads[~pd.Series(number).duplicated()].assign(label=NONE, parent=NONE)
    return holder, pd.concat([holders, threads], ignore_index=True)


def _nullable(values: "pd.Series[int]") -> "pd.api.extensions.ExtensionArray":
    return pd.array([None if value < 0 else value for value in values], dtype="Int64")
