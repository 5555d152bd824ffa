"""The launches in each range, where ranges of one thread overlap without nesting.

Start/end ranges and ranges of two domains can overlap so. `nsys stats` has these rules:

- a launch belongs to every range of its thread that is open from the launch's start to its end;
- a range that was never closed lasts until the last start or end of a range;
- the parent of a range is the shortest range around it.

Where every range was closed and ranges only nest, `parent_id` gives the same, and this module is not needed.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpladder.dashboard.core.traces import NONE, Int64s, Traces, codes_of, lookup, of_calls


class RangeSpans(NamedTuple):
    """Thread number, start and end of each range. A range that was never closed ends with the trace's last range."""

    thread: Int64s
    start: Int64s
    end: Int64s


class LaunchCalls(NamedTuple):
    """Thread number, start and end of the launch of each piece of device work; thread `NONE` where it is in no range."""

    thread: Int64s
    start: Int64s
    end: Int64s


class Held(NamedTuple):
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


def places(traces: Traces) -> RangeSpans:
    """Thread, start and end of the ranges."""
    traces.read("ranges", "process", "thread", "start_ns", "end_ns")
    start, end = traces.numbers("ranges", "start_ns"), traces.numbers("ranges", "end_ns")
    thread, _ = codes_of(traces.numbers("ranges", "process"), traces.numbers("ranges", "thread"))
    return RangeSpans(thread, start, closed_ends(start, end))


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


def launches_of(traces: Traces, ranges: RangeSpans, table: str, rows: Int64s) -> LaunchCalls:
    """Launches of some rows of `kernels` or `memory_ops`. Work outside of all ranges has no thread here."""
    inside = lookup(traces.numbers("ranges", "range_id"), traces.numbers(table, "range_id")[rows])
    thread = np.where(inside >= 0, ranges.thread[inside], NONE)
    if table == "kernels":
        start, end = (traces.numbers(table, name)[rows] for name in ("launch_start_ns", "launch_end_ns"))
        return LaunchCalls(thread, start, end)
    start, end = (np.zeros(len(rows), dtype=np.int64) for _ in range(2))
    within = inside >= 0
    process, correlation = traces.at(table, rows[within], "process", "correlation")
    _, start[within], end[within] = of_calls(traces, process, correlation, "start_ns", "end_ns")
    return LaunchCalls(thread, start, end)


def held(ranges: RangeSpans, launches: LaunchCalls, call: Int64s | None = None) -> Held:
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
        mine = order[begin:stop]
        first[rows] = begin + np.searchsorted(launches.start[mine], ranges.start[rows])
        last[rows] = begin + np.searchsorted(np.maximum.accumulate(launches.end[mine]), ranges.end[rows], side="right")
    return Held(order, first, np.maximum(last, first))


def shortest_around(ranges: RangeSpans) -> Int64s:
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
    found = np.flatnonzero(best < count)
    parent[rows[found]] = rows[by_length[best[found]]]
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
    found = np.empty_like(order)
    found[place] = order
    return found


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
