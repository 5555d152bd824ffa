"""The NVTX summaries of `nsys stats` by range name: on the host's clock, and projected to the GPU."""

import re
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import GRAPH, MOST_MARKS, NONE, IdIndex, Int64s, Traces, codes_of, lookup
from warpladder.dashboard.trace import nesting as trace_nesting
from warpladder.dashboard.trace import windows as trace_windows
from warpladder.dashboard.trace.describe import describe, rounded, times

#: The names of `nsys stats` for the two styles of ranges.
STYLES: Final = {"push_pop": "PushPop", "start_end": "StartEnd"}
#: The importer attributes no launch of a greater correlation id to a range.
_CORRELATION_BITS: Final = 38
#: The importer numbers a domain whose name the report lacks.
_UNNAMED: Final = re.compile(r"domain \d+")


class Named(NamedTuple):
    """Ranges by name and style: the number of each range, and the name and style of each number, sorted by both."""

    code: Int64s
    names: npt.NDArray[Any]
    styles: npt.NDArray[Any]


def nvtx_sum(data: RunData) -> pd.DataFrame:
    """NVTX ranges by `domain:text` and style, on the host's clock.

    A range that was never closed lasts to the end of the last one.
    """
    of = named(data.traces)
    keys = {"Style": of.styles, "Range": of.names}
    return times(of.code, range_ns(data.traces), "Instances", keys, ["Range", "Style"])


def nvtx_gpu_proj_sum(data: RunData) -> pd.DataFrame:
    """NVTX ranges projected to the GPU: from the start of the first device work launched inside to the end of the last.

    Ranges without device work or without a text are left out, as are CUDA graphs that were traced as a whole. `Total GPU Ops`
    counts launches, and not the several kernels of one graph launch.
    """
    traces = data.traces
    of = named(traces)
    simple = not has_graphs(traces) and trace_nesting.only_nested(traces)
    projected = _by_parents(traces) if simple else _by_times(traces)
    kept = np.flatnonzero((projected.launches > 0) & (of.names != "")[of.code])
    codes = of.code[kept]
    found = describe(codes, (projected.end - projected.start)[kept], len(of.names))

    def summed(values: Int64s) -> Int64s:
        sums = np.zeros(len(of.names), dtype=np.int64)
        np.add.at(sums, codes, values[kept])
        return sums[found.index]

    above = projected.parent[projected.launches > 0]
    children = summed(np.bincount(above[above >= 0], minlength=len(projected.parent)))
    operations, levels = summed(projected.launches), summed(projected.depth)
    frame = pd.DataFrame(
        {
            "Range": of.names[found.index],
            "Style": of.styles[found.index],
            "Total Proj Time (ns)": found["total"],
            "Total Range Time (ns)": summed(range_ns(traces)),
            "Range Instances": found["n"],
            "Proj Avg (ns)": rounded(found["mean"]),
            "Proj Med (ns)": rounded(found["median"]),
            "Proj Min (ns)": found["min"],
            "Proj Max (ns)": found["max"],
            "Proj StdDev (ns)": rounded(found["stddev"]),
            "Total GPU Ops": operations,
            "Avg GPU Ops": rounded(operations / found["n"]),
            "Avg Range Lvl": rounded(levels / found["n"]),
            "Avg Num Child": rounded(children / found["n"]),
        }
    )
    order = ["Total Proj Time (ns)", "Range", "Style"]
    return frame.sort_values(order, ascending=[False, True, True], ignore_index=True)


def labels(traces: Traces) -> "pd.Categorical[Any]":
    """`domain:text` of each range; the text alone in the default domain and in an unnamed one; empty without a text."""
    domains, texts = traces.texts("ranges", "domain"), traces.texts("ranges", "text")
    pair, (domain, text) = codes_of(domains.codes.astype(np.int64), texts.codes.astype(np.int64))
    words = zip(np.asarray(domains.categories)[domain], np.asarray(texts.categories)[text], strict=True)
    joined = [f"{d}:{t}" if t and d and not _UNNAMED.fullmatch(d) else str(t) for d, t in words]
    code, unique = pd.factorize(np.array(joined, dtype=object))
    return pd.Categorical.from_codes(code[pair], categories=pd.Index(unique))


def named(traces: Traces) -> Named:
    """The ranges by label and style."""
    traces.read("ranges", "domain", "text", "style")
    label, style = labels(traces), traces.texts("ranges", "style")
    code, (names, styles) = codes_of(label.codes.astype(np.int64), style.codes.astype(np.int64))
    words = np.asarray(label.categories, dtype=object)
    ways = np.array([STYLES[each] for each in style.categories], dtype=object)
    # The words stay objects, because an array of fixed width would take the longest word's size for each.
    order = np.lexsort((_ranks(ways)[styles], _ranks(words)[names]))
    return Named(_inverse(order)[code], words[names][order], ways[styles][order])


def _ranks(words: npt.NDArray[Any]) -> Int64s:
    """Place of each word among all, sorted; they are distinct."""
    return _inverse(np.argsort(words))


def _inverse(order: Int64s) -> Int64s:
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place


def range_ns(traces: Traces) -> Int64s:
    """Nanoseconds from start to end of each range."""
    traces.read("ranges", "start_ns", "end_ns")
    start, end = traces.numbers("ranges", "start_ns"), traces.numbers("ranges", "end_ns")
    return trace_nesting.closed_ends(start, end) - start


def parents(traces: Traces) -> Int64s:
    """Place of the range that encloses each range; `NONE` for an outermost one."""
    traces.read("ranges", "range_id", "parent_id")
    return lookup(traces.numbers("ranges", "range_id"), traces.numbers("ranges", "parent_id"))


def nearest(parent: Int64s, chosen: npt.NDArray[np.bool_]) -> Int64s:
    """The place of the nearest chosen range among each range and the ranges around it; `NONE` where there is none.

    Args:
        parent: as `parents` gives it.
        chosen: a mask of the ranges.
    """
    at = np.where(chosen, np.arange(len(parent)), parent)
    searching = np.flatnonzero((at >= 0) & ~chosen[at])
    # Each pass doubles the step up the tree. After the last pass, only a circle is left, which no import writes.
    for _ in range(len(parent).bit_length()):
        at[searching] = at[at[searching]]
        searching = searching[(at[searching] >= 0) & ~chosen[at[searching]]]
        if not len(searching):
            break
    at[searching] = NONE
    return at


def has_graphs(traces: Traces) -> bool:
    """Whether some row of `kernels` is a CUDA graph that was traced as a whole."""
    return "kernels" in traces.tables and GRAPH in traces.texts("kernels", "full_name").categories


def without_graphs(traces: Traces, table: str) -> Int64s:
    """Places of the rows of `kernels` or `memory_ops`, without CUDA graphs that were traced as a whole."""
    if table == "kernels" and has_graphs(traces):
        names = traces.texts("kernels", "full_name")
        return np.flatnonzero(names.codes != names.categories.get_loc(GRAPH))
    return np.arange(traces.length(table))


def distinct(numbers: Int64s, size: int) -> Int64s:
    """The distinct numbers, which are below `size`. For a size up to `MOST_MARKS` a table of marks is faster than hashing."""
    if size > MOST_MARKS:
        return np.asarray(pd.unique(numbers), dtype=np.int64)
    marks = np.zeros(size, dtype=bool)
    marks[numbers] = True
    return np.flatnonzero(marks)


class _Projected(NamedTuple):
    """For each range: number of launches in it, start and end of their work, place of its parent, and its depth."""

    launches: Int64s
    start: Int64s
    end: Int64s
    parent: Int64s
    depth: Int64s


def _by_parents(traces: Traces) -> _Projected:
    """The projection of ranges that nest, from the importer.

    A launch counts for its innermost range and all ranges around it.
    """
    traces.read("ranges", "gpu_start_ns", "gpu_end_ns", "depth", "range_id", "parent_id")
    start, end, depth = (traces.numbers("ranges", name) for name in ("gpu_start_ns", "gpu_end_ns", "depth"))
    parent = parents(traces)
    count = _launches(traces, len(parent))
    for places, around in trace_nesting.climbs(parent):
        np.add.at(count, around, count[places])
    # Earlier imports gave no device time to ranges with too much work.
    return _Projected(np.where(start >= 0, count, 0), start, end, parent, depth)


def _launches(traces: Traces, size: int) -> Int64s:
    """The number of launches whose innermost range is each range. The work of a graph has several rows for one launch."""
    places = IdIndex(traces.numbers("ranges", "range_id"))
    holders, launches = list[npt.NDArray[np.int32]](), list[Int64s]()
    for table in (name for name in ("kernels", "memory_ops") if name in traces.tables):
        for range_id, process, correlation in traces.scan(table, "range_id", "process", "correlation"):
            holder = places.of(range_id)
            rows = np.flatnonzero(holder >= 0)
            holders.append(holder[rows].astype(np.int32))
            launches.append(process[rows] << _CORRELATION_BITS | correlation[rows])
    if not launches:
        return np.zeros(size, dtype=np.int64)
    holder, launch = np.concatenate(holders), np.concatenate(launches)
    # Most launches are in order, and a stable sort of them is much faster than hashing.
    ordered = np.sort(launch, kind="stable")
    repeated = (ordered[1:] == ordered[:-1]).any()
    once = holder[~pd.Series(launch).duplicated().to_numpy()] if repeated else holder
    return np.bincount(once, minlength=size)


def _by_times(traces: Traces) -> _Projected:
    """The projection of ranges that overlap without nesting, from the launches within each range."""
    ranges = trace_nesting.places(traces)
    parts, columns = list[trace_nesting.LaunchCalls](), list[list[Int64s]]()
    for table in (name for name in ("kernels", "memory_ops") if name in traces.tables):
        rows = without_graphs(traces, table)
        parts.append(trace_nesting.launches_of(traces, ranges, table, rows))
        columns.append([traces.numbers(table, name)[rows] for name in ("start_ns", "end_ns", "process", "correlation")])
    size = len(ranges.start)
    parent = trace_nesting.shortest_around(ranges)
    launches, first, last = (np.zeros(size, dtype=np.int64) for _ in range(3))
    if parts:
        joined = trace_nesting.LaunchCalls(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        start, end, process, correlation = (np.concatenate(column) for column in zip(*columns, strict=True))
        call, _ = codes_of(process, correlation)
        found = trace_nesting.held(ranges, joined, call)
        some = np.flatnonzero(found.first < found.last)
        windows = found.first[some], found.last[some]
        first[some] = trace_windows.least(start[found.launch], *windows)
        last[some] = -trace_windows.least(-end[found.launch], *windows)
        # The work of one call is consecutive.
        begins = np.cumsum(np.diff(call[found.launch], prepend=NONE) != 0)
        launches[some] = begins[windows[1] - 1] - begins[windows[0]] + 1
    return _Projected(launches, first, last, parent, trace_nesting.depths(parent))
