"""The ranges of a trace: how they are nested, what runs within them, and their times."""

import re
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import GRAPH, Traces, of_calls
from warpladder.dashboard.trace.describe import describe, rounded, times
from warpladder.data.arrays import NONE, Int64s, Places, least_of_windows, lookup, numbered


class ThreadSpans(NamedTuple):
    """Thread number, start and end of ranges, or of the launches of device work.

    A range that was never closed ends with the trace's last range. The thread of a launch in no range is `NONE`.
    """

    thread: Int64s
    start: Int64s
    end: Int64s


class HeldLaunches(NamedTuple):
    """Range number r holds the launches `launch[first[r]:last[r]]`."""

    launch: Int64s
    first: Int64s
    last: Int64s

    def pairs(self) -> tuple[Int64s, Int64s]:
        """Every pair of a range and a launch in it."""
        count = self.last - self.first
        heads = np.cumsum(count) - count
        holder = np.repeat(np.arange(len(count)), count)
        return holder, self.launch[np.arange(len(holder)) + np.repeat(self.first - heads, count)]


def places(traces: Traces) -> ThreadSpans:
    """Thread, start and end of the ranges."""
    traces.read("ranges", "process", "thread", "start_ns", "end_ns")
    start, end = traces.numbers("ranges", "start_ns"), traces.numbers("ranges", "end_ns")
    thread, _ = numbered(traces.numbers("ranges", "process"), traces.numbers("ranges", "thread"))
    return ThreadSpans(thread, start, closed_ends(start, end))


def closed_ends(start: Int64s, end: Int64s) -> Int64s:
    """Ends of ranges; for a range without one, the last start or end of all ranges."""
    return end if (end >= 0).all() else np.where(end >= 0, end, max(int(start.max()), int(end.max())))


def launches_of(traces: Traces, ranges: ThreadSpans, table: str, rows: Int64s, inside: npt.NDArray[Any]) -> ThreadSpans:
    """Launches of some rows of `kernels` or `memory_ops`. Work outside of all ranges has no thread here.

    Args:
        inside: of each row, the place of a range that holds the launch, on whose thread it counts; `NONE` without one.
    """
    thread = np.where(inside >= 0, ranges.thread[inside], NONE)
    if table == "kernels":
        start, end = (traces.numbers(table, name)[rows] for name in ("launch_start_ns", "launch_end_ns"))
        return ThreadSpans(thread, start, end)
    start, end = (np.zeros(len(rows), dtype=np.int64) for _ in range(2))
    within = inside >= 0
    process, correlation = traces.at(table, rows[within], "process", "correlation")
    place, begin, stop = of_calls(traces, process, correlation, "start_ns", "end_ns")
    held = ranges.start[inside[within]]  # a launch whose call was not traced
    start[within], end[within] = np.where(place >= 0, begin, held), np.where(place >= 0, stop, held)
    return ThreadSpans(thread, start, end)


def held(ranges: ThreadSpans, launches: ThreadSpans, call: Int64s | None = None) -> HeldLaunches:
    """The launches in each range. Launches of one thread follow one another, so those in a range are neighbours.

    Args:
        call: number of the call of each launch. Launches of one call are then neighbours.
    """
    order = np.lexsort((launches.start, launches.thread) if call is None else (call, launches.start, launches.thread))
    first, last = np.zeros(len(ranges.start), dtype=np.int64), np.zeros(len(ranges.start), dtype=np.int64)
    thread = launches.thread[order]
    for rows in _by_thread(ranges.thread, ranges.start, ranges.end):
        one = ranges.thread[rows[0]]
        begin, stop = np.searchsorted(thread, one), np.searchsorted(thread, one, side="right")
        calls = order[begin:stop]
        first[rows] = begin + np.searchsorted(launches.start[calls], ranges.start[rows])
        last[rows] = begin + np.searchsorted(np.maximum.accumulate(launches.end[calls]), ranges.end[rows], side="right")
    return HeldLaunches(order, first, np.maximum(last, first))


def _by_thread(thread: Int64s, start: Int64s, end: Int64s) -> list[Int64s]:
    """Places of the ranges of each thread by start, longer ranges first. The importer writes them in this order."""
    rows = np.arange(len(start))
    later = (start[1:] > start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] <= end[:-1]))
    if not ((thread[1:] > thread[:-1]) | ((thread[1:] == thread[:-1]) & later)).all():
        rows = np.lexsort((-end, start, thread))
    return np.split(rows, np.flatnonzero(np.diff(thread[rows])) + 1) if len(rows) else []


#: The names of `nsys stats` for the two styles of ranges.
STYLES: Final = {"push_pop": "PushPop", "start_end": "StartEnd"}
#: The importer numbers a domain whose name the report lacks.
_UNNAMED: Final = re.compile(r"domain \d+")


class RangeNames(NamedTuple):
    """Ranges by name and style: the number of each range, and the name and style of each number, sorted by both."""

    code: Int64s
    names: npt.NDArray[Any]
    styles: npt.NDArray[Any]


def nvtx_sum(data: RunData) -> pd.DataFrame:
    """NVTX ranges by `domain:text` and style, on the host's clock.

    A range that was never closed lasts to the end of the last one.
    """
    ranges = range_names(data.traces)
    keys = {"Style": ranges.styles, "Range": ranges.names}
    return times(ranges.code, range_ns(data.traces), "Instances", keys, ["Range", "Style"])


def nvtx_gpu_proj_sum(data: RunData) -> pd.DataFrame:
    """NVTX ranges projected to the GPU: from the start of the first device work launched inside to the end of the last. The average level
    and number of children, which `nsys stats` has too, are left out.

    Ranges without device work or without a text are left out, as are CUDA graphs that were traced as a whole. `Total GPU Ops`
    counts launches, and not the several kernels of one graph launch. In a trace of PyTorch, what is attributed to a range by time
    counts too.
    """
    traces = data.traces
    labelled = range_names(traces)
    projected = _projected(traces)
    rows = np.flatnonzero((projected.launches > 0) & (labelled.names != "")[labelled.code])
    codes = labelled.code[rows]
    described = describe(codes, (projected.end - projected.start)[rows])

    def summed(values: Int64s) -> Int64s:
        sums = np.zeros(len(labelled.names), dtype=np.int64)
        np.add.at(sums, codes, values[rows])
        return sums[described.index]

    operations = summed(projected.launches)
    frame = pd.DataFrame(
        {
            "Range": labelled.names[described.index],
            "Style": labelled.styles[described.index],
            "Total Proj Time (ns)": described["total"],
            "Total Range Time (ns)": summed(range_ns(traces)),
            "Range Instances": described["n"],
            "Proj Avg (ns)": rounded(described["mean"]),
            "Proj Med (ns)": rounded(described["median"]),
            "Proj Min (ns)": described["min"],
            "Proj Max (ns)": described["max"],
            "Proj StdDev (ns)": rounded(described["stddev"]),
            "Total GPU Ops": operations,
            "Avg GPU Ops": rounded(operations / described["n"]),
        }
    )
    order = ["Total Proj Time (ns)", "Range", "Style"]
    return frame.sort_values(order, ascending=[False, True, True], ignore_index=True)


def labels(traces: Traces) -> "pd.Categorical[Any]":
    """`domain:text` of each range; the text alone in the default domain and in an unnamed one; empty without a text."""
    domains, texts = traces.texts("ranges", "domain"), traces.texts("ranges", "text")
    pair, first = numbered(domains.codes, texts.codes)
    words = zip(*(np.asarray(each.categories)[each.codes[first]] for each in (domains, texts)), strict=True)
    joined = [f"{d}:{t}" if t and d and not _UNNAMED.fullmatch(d) else str(t) for d, t in words]
    code, unique = pd.factorize(np.array(joined, dtype=object))
    return pd.Categorical.from_codes(code[pair], categories=pd.Index(unique))


def range_names(traces: Traces) -> RangeNames:
    """The ranges by label and style."""
    traces.read("ranges", "domain", "text", "style")
    label, style = labels(traces), traces.texts("ranges", "style")
    code, first = numbered(label.codes, style.codes)
    names, styles = label.codes[first], style.codes[first]
    words = np.asarray(label.categories, dtype=object)
    ways = np.array([STYLES[each] for each in style.categories], dtype=object)
    # The words stay objects, because an array of fixed width would take the longest word's size for each.
    order = np.lexsort((_ranks(ways)[styles], _ranks(words)[names]))
    return RangeNames(_inverse(order)[code], words[names][order], ways[styles][order])


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
    return closed_ends(start, end) - start


def parents(traces: Traces) -> Int64s:
    """Place of the range that encloses each range; `NONE` for an outermost one."""
    traces.read("ranges", "range_id", "parent_id")
    return lookup(traces.numbers("ranges", "range_id"), traces.numbers("ranges", "parent_id"))


def has_graphs(traces: Traces) -> bool:
    """Whether some row of `kernels` is a CUDA graph that was traced as a whole."""
    return "kernels" in traces.tables and GRAPH in traces.texts("kernels", "full_name").categories


def without_graphs(traces: Traces, table: str) -> Int64s:
    """Places of the rows of `kernels` or `memory_ops`, without CUDA graphs that were traced as a whole."""
    if table == "kernels" and has_graphs(traces):
        names = traces.texts("kernels", "full_name")
        return np.flatnonzero(names.codes != names.categories.get_loc(GRAPH))
    return np.arange(traces.length(table))


class _ProjectedRanges(NamedTuple):
    """For each range: number of launches in it, and start and end of their work."""

    launches: Int64s
    start: Int64s
    end: Int64s


def columns_of_ranges(traces: Traces) -> tuple[str, ...]:
    """The columns with the ranges of device work: by the launching thread, and in a trace of PyTorch by time too.

    `nsys stats`, whose tables a report of Nsight Systems has, counts by the launching thread alone.
    """
    return ("range_id", "time_range_id") if traces.of_pytorch else ("range_id",)


def _projected(traces: Traces) -> _ProjectedRanges:
    """The projection of the ranges, from the launches within each, whether or not they nest."""
    ranges = places(traces)
    parts, columns = list[ThreadSpans](), list[list[Int64s]]()
    ids = Places(traces.numbers("ranges", "range_id"))
    for table in (name for name in ("kernels", "memory_ops") if name in traces.tables):
        for column in columns_of_ranges(traces):
            rows = without_graphs(traces, table)
            inside = ids.of(traces.numbers(table, column)[rows])
            if column != "range_id":
                rows, inside = rows[inside >= 0], inside[inside >= 0]
            parts.append(launches_of(traces, ranges, table, rows, inside))
            columns.append([traces.numbers(table, name)[rows] for name in ("start_ns", "end_ns", "process", "correlation")])
    size = len(ranges.start)
    launches, first, last = (np.zeros(size, dtype=np.int64) for _ in range(3))
    if parts:
        joined = ThreadSpans(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        start, end, process, correlation = (np.concatenate(column) for column in zip(*columns, strict=True))
        call, _ = numbered(process, correlation)
        nested = held(ranges, joined, call)
        some = np.flatnonzero(nested.first < nested.last)
        windows = nested.first[some], nested.last[some]
        first[some] = least_of_windows(start[nested.launch], *windows)
        last[some] = -least_of_windows(-end[nested.launch], *windows)
        # The work of one call is consecutive.
        begins = np.cumsum(np.diff(call[nested.launch], prepend=NONE) != 0)
        launches[some] = begins[windows[1] - 1] - begins[windows[0]] + 1
    return _ProjectedRanges(launches, first, last)
