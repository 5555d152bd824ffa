"""The NVTX summaries of `nsys stats`: ranges on the host's clock, projected to the GPU, and the kernels launched inside them."""

from typing import Any

import numpy as np
import pandas as pd

from dashboard.queries.describe import describe, rounded, times
from dashboard.queries.run_data import RunData
from dashboard.queries.trace_data import NONE, Int64s, Traces, calls_of, lookup


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

    # What all launches of one kernel in one range share is worked out once a pair of the two.
    pair, pairs = pd.factorize(holder * width + kernels.codes)
    launches = np.bincount(pair, minlength=len(pairs))
    at, kernel = np.divmod(np.asarray(pairs, dtype=np.int64), width)
    levels = []
    rows = np.arange(len(pairs))
    while len(rows):
        levels.append(pd.DataFrame({"pair": rows, "holder": at, "group": owner[at] * width + kernel[rows]}))
        rows, at = rows[parent[at] >= 0], parent[at][parent[at] >= 0]
    held = pd.concat(levels, ignore_index=True)
    code, groups = pd.factorize(held["group"].to_numpy())

    # A level below the first holds some pairs only; their launches are counted once more, under the range around.
    codes, values, first = [], [], 0
    for level in levels:
        of_pair = np.full(len(pairs), NONE, dtype=np.int64)
        of_pair[level["pair"]] = code[first : first + len(level)]
        first += len(level)
        found_code = of_pair[pair]
        inside = slice(None) if len(level) == len(pairs) else found_code >= 0
        codes.append(found_code[inside])
        values.append(durations[inside])
    found = describe(np.concatenate(codes), np.concatenate(values), len(groups))

    # A kernel in two nested ranges of one name is one instance of it, though nsys adds its time twice.
    once = ~held.duplicated(["pair", "group"]).to_numpy()
    instances = np.bincount(code[once], weights=launches[held["pair"][once]], minlength=len(groups)).astype(np.int64)
    distinct = ~pd.Series(code * len(holders) + held["holder"].to_numpy()).duplicated().to_numpy()
    ranges = np.bincount(code[distinct], minlength=len(groups))
    who, what = np.divmod(np.asarray(groups, dtype=np.int64)[found.index], width)
    about = holders.assign(owner=owner).drop_duplicates("owner").set_index("owner").loc[who]
    outside = about["label"].to_numpy() < 0
    frame = pd.DataFrame(
        {
            "NVTX Range": [None if code < 0 else range_labels.categories[code] for code in about["label"]],
            "PID": _nullable(about["process"]), "TID": _nullable(about["thread"]),
            "NVTX Inst": np.where(outside, 0, ranges[found.index]), "Kern Inst": instances[found.index],
            "Total Time (ns)": found["total"].to_numpy(), "Avg (ns)": rounded(found["mean"]), "Med (ns)": rounded(found["median"]),
            "Min (ns)": found["min"].to_numpy(), "Max (ns)": found["max"].to_numpy(), "StdDev (ns)": rounded(found["stddev"]),
            "Kernel Name": np.asarray(kernels.categories)[what],
        }
    )  # fmt: skip
    order = ["NVTX Range", "PID", "TID", "Total Time (ns)", "Kernel Name"]
    return frame.sort_values(order, ascending=[True, True, True, False, True], na_position="first", ignore_index=True)


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
