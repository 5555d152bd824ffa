"""The ranges of a trace: how they are nested, what runs within them, and their times."""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import GRAPH, Traces, of_calls
from warpladder.dashboard.trace.describe import describe, rounded, times
from warpladder.data.arrays import NONE, Bools, Int64s, Places, least_of_windows, lookup, numbered


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


def only_nested(traces: Traces) -> bool:
    """Whether every range was closed and ranges of a thread only nest.

    Then a range's depth is the number of open ranges at its start.
    """
    if (traces.numbers("ranges", "end_ns") < 0).any():
        return False
    ranges, depth = places(traces), traces.numbers("ranges", "depth")
    for rows in _by_thread(ranges.thread, ranges.start, ranges.end):
        # Ends are nearly in order, which makes a stable sort fast.
        closed = np.searchsorted(np.sort(ranges.end[rows], kind="stable"), ranges.start[rows], side="right")
        if not np.array_equal(np.arange(len(closed)) - closed, depth[rows]):
            return False
    return True


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
    _, start[within], end[within] = of_calls(traces, process, correlation, "start_ns", "end_ns")
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


def shortest_around(ranges: ThreadSpans) -> Int64s:
    """Place of the shortest range of the same thread around each range; `NONE` for an outermost one.

    In the order of `_by_thread`, that is an earlier range that ends no sooner. Blocks of 2, 4, 8 and so on neighbours are
    sorted by end in descending order, and the later half of each block takes the shortest range so far of its earlier half. The
    time is of the order n log n.
    """
    rows = np.concatenate([np.empty(0, dtype=np.int64), *_by_thread(ranges.thread, ranges.start, ranges.end)])
    end, count = ranges.end[rows], len(rows)
    by_length = np.lexsort((rows, end, end - ranges.start[rows]))
    rank = np.empty(count, dtype=np.int64)
    rank[by_length] = np.arange(count)
    best = np.full(count, count)
    # An earlier thread sorts behind a later one, so that its ranges are around none of the later thread.
    order = np.lexsort((-end, -_numbered(ranges.thread[rows])))
    for level in reversed(range(max(count - 1, 0).bit_length())):
        later = order >> level & 1
        block = order >> level + 1
        # All numbers of a later block are lower, so one running minimum serves all blocks.
        offered = np.minimum.accumulate(np.where(later, count, rank[order]) - block * (count + 1)) + block * (count + 1)
        best[order] = np.where(later, np.minimum(best[order], offered), best[order])
        order = _halved(order, later, level)
    parent = np.full(count, NONE)
    rows_inside = np.flatnonzero(best < count)
    parent[rows[rows_inside]] = rows[by_length[best[rows_inside]]]
    return parent


def _numbered(thread: Int64s) -> Int64s:
    """The threads numbered from 0, in the order in which they follow one another."""
    return np.cumsum(np.diff(thread, prepend=thread[:1]) != 0)


def _halved(order: Int64s, later: Int64s, level: int) -> Int64s:
    """The order with the earlier half of each block of 2^(level + 1) before its later half, each half as it was."""
    begin = order >> level + 1 << level + 1
    # The blocks before are full, so half of their places are later ones.
    later_before = np.cumsum(later) - later - begin // 2
    place = np.where(later, begin + (1 << level) + later_before, np.arange(len(order)) - later_before)
    halved = np.empty_like(order)
    halved[place] = order
    return halved


def _by_thread(thread: Int64s, start: Int64s, end: Int64s) -> list[Int64s]:
    """Places of the ranges of each thread by start, longer ranges first. The importer writes them in this order."""
    rows = np.arange(len(start))
    later = (start[1:] > start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] <= end[:-1]))
    if not ((thread[1:] > thread[:-1]) | ((thread[1:] == thread[:-1]) & later)).all():
        rows = np.lexsort((-end, start, thread))
    return np.split(rows, np.flatnonzero(np.diff(thread[rows])) + 1) if len(rows) else []


def climbs(parent: Int64s) -> Iterator[tuple[Int64s, Int64s]]:
    """Places of ranges and of the ranges 1, then 2, then 4 and so on levels around them, up to the outermost ones.

    A value that is passed on at each step reaches every level. The iteration also ends for a circle, which no import writes.
    """
    above = parent.copy()
    for _ in range(len(parent).bit_length()):
        places = np.flatnonzero(above >= 0)
        if not len(places):
            return
        around = above[places]
        yield places, around
        above[places] = above[around]


def depths(parent: Int64s) -> Int64s:
    """How many ranges enclose each."""
    depth = (parent >= 0).astype(np.int64)
    for places, around in climbs(parent):
        depth[places] += depth[around]
    return depth


#: The names of `nsys stats` for the two styles of ranges.
STYLES: Final = {"push_pop": "PushPop", "start_end": "StartEnd"}
#: The importer attributes no launch of a greater correlation id to a range.
_CORRELATION_BITS: Final = 38
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
    """NVTX ranges projected to the GPU: from the start of the first device work launched inside to the end of the last.

    Ranges without device work or without a text are left out, as are CUDA graphs that were traced as a whole. `Total GPU Ops`
    counts launches, and not the several kernels of one graph launch. In a trace of PyTorch, what is attributed to a range by time
    counts too.
    """
    traces = data.traces
    labelled = range_names(traces)
    simple = not has_graphs(traces) and only_nested(traces)
    projected = _by_parents(traces) if simple else _by_times(traces)
    rows = np.flatnonzero((projected.launches > 0) & (labelled.names != "")[labelled.code])
    codes = labelled.code[rows]
    described = describe(codes, (projected.end - projected.start)[rows], len(labelled.names))

    def summed(values: Int64s) -> Int64s:
        sums = np.zeros(len(labelled.names), dtype=np.int64)
        np.add.at(sums, codes, values[rows])
        return sums[described.index]

    above = projected.parent[projected.launches > 0]
    children = summed(np.bincount(above[above >= 0], minlength=len(projected.parent)))
    operations, levels = summed(projected.launches), summed(projected.depth)
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
            "Avg Range Lvl": rounded(levels / described["n"]),
            "Avg Num Child": rounded(children / described["n"]),
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


def nearest(parent: Int64s, chosen: Bools) -> Int64s:
    """The place of the nearest chosen range among each range and the ranges around it; `NONE` where no range is chosen.

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


class _ProjectedRanges(NamedTuple):
    """For each range: number of launches in it, start and end of their work, place of its parent, and its depth."""

    launches: Int64s
    start: Int64s
    end: Int64s
    parent: Int64s
    depth: Int64s


def _by_parents(traces: Traces) -> _ProjectedRanges:
    """The projection of ranges that nest, from the importer.

    A launch counts for its innermost range and all ranges around it.
    """
    traces.read("ranges", "gpu_start_ns", "gpu_end_ns", "depth", "range_id", "parent_id")
    of_range = traces.device_time_of_ranges if traces.of_pytorch else lambda name: traces.numbers("ranges", name)
    start, end, depth = of_range("gpu_start_ns"), of_range("gpu_end_ns"), traces.numbers("ranges", "depth")
    parent = parents(traces)
    count = np.sum([_launches(traces, len(parent), column) for column in columns_of_ranges(traces)], axis=0)
    for places, around in climbs(parent):
        np.add.at(count, around, count[places])
    # Earlier imports gave no device time to ranges with too much work.
    return _ProjectedRanges(np.where(start >= 0, count, 0), start, end, parent, depth)


def columns_of_ranges(traces: Traces) -> tuple[str, ...]:
    """The columns with the ranges of device work: by the launching thread, and in a trace of PyTorch by time too.

    `nsys stats`, whose tables a report of Nsight Systems has, counts by the launching thread alone.
    """
    return ("range_id", "time_range_id") if traces.of_pytorch else ("range_id",)


def _launches(traces: Traces, size: int, column: str) -> Int64s:
    """The number of launches whose innermost range is each range. The work of a graph has several rows for one launch."""
    places = Places(traces.numbers("ranges", "range_id"))
    holders, launches = list[npt.NDArray[np.int32]](), list[Int64s]()
    for table in (name for name in ("kernels", "memory_ops") if name in traces.tables):
        if column != "range_id":
            traces.read(table, column, "process", "correlation")
        for range_id, process, correlation in traces.scan(table, column, "process", "correlation"):
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


def _by_times(traces: Traces) -> _ProjectedRanges:
    """The projection of ranges that overlap without nesting, from the launches within each range."""
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
    parent = shortest_around(ranges)
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
    return _ProjectedRanges(launches, first, last, parent, depths(parent))
