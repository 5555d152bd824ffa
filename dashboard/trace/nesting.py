"""Which launches a range holds where ranges of one thread overlap without nesting, as start/end ranges and those of two domains may.

`nsys stats` counts a launch to every range of its thread that is open from the launch's start to its end, takes a range that was never
closed as open until the last range's start or end, and the shortest range around another as its parent. Where every range was closed
and ranges only nest, all that follows from `parent_id`, and nothing of this module is needed.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpladder.dashboard.core.traces import NONE, Int64s, Traces, codes_of, lookup, of_calls


class Places(NamedTuple):
    """Of each range: number of its thread, start, and end, that of the trace's last range where it was never closed."""

    thread: Int64s
    start: Int64s
    end: Int64s


class Launches(NamedTuple):
    """Of each piece of device work: number of the launching thread (`NONE` where no range holds it), and start and end of the launch."""

    thread: Int64s
    start: Int64s
    end: Int64s


class Held(NamedTuple):
    """Range number r holds the launches `launch[first[r]:last[r]]`."""

    launch: Int64s
    first: Int64s
    last: Int64s

    def pairs(self) -> tuple[Int64s, Int64s]:
        """Every range beside every launch in it."""
        count = self.last - self.first
        heads = np.cumsum(count) - count
        holder = np.repeat(np.arange(len(count)), count)
        return holder, self.launch[np.arange(len(holder)) + np.repeat(self.first - heads, count)]


def places(traces: Traces) -> Places:
    """Where the ranges stand."""
    traces.read("ranges", "process", "thread", "start_ns", "end_ns")
    start, end = traces.numbers("ranges", "start_ns"), traces.numbers("ranges", "end_ns")
    thread, _ = codes_of(traces.numbers("ranges", "process"), traces.numbers("ranges", "thread"))
    return Places(thread, start, closed_ends(start, end))


def closed_ends(start: Int64s, end: Int64s) -> Int64s:
    """Ends, the trace's last range's start or end where there is none."""
    return end if (end >= 0).all() else np.where(end >= 0, end, max(int(start.max()), int(end.max())))


def only_nested(traces: Traces) -> bool:
    """Whether every range was closed, and any two of a thread that overlap nest: as many are open at its start as its depth says."""
    if (traces.numbers("ranges", "end_ns") < 0).any():
        return False
    ranges, depth = places(traces), traces.numbers("ranges", "depth")
    for rows in _by_thread(ranges.thread, ranges.start, ranges.end):
        # Ends are nearly in order, which a stable sort makes use of.
        closed = np.searchsorted(np.sort(ranges.end[rows], kind="stable"), ranges.start[rows], side="right")
        if not np.array_equal(np.arange(len(closed)) - closed, depth[rows]):
            return False
    return True


def launches_of(traces: Traces, ranges: Places, table: str, rows: Int64s) -> Launches:
    """Launches of some rows of `kernels` or `memory_ops`; work that was launched outside of all ranges is on no thread here."""
    inside = lookup(traces.numbers("ranges", "range_id"), traces.numbers(table, "range_id")[rows])
    thread = np.where(inside >= 0, ranges.thread[inside], NONE)
    if table == "kernels":
        start, end = (traces.numbers(table, name)[rows] for name in ("launch_start_ns", "launch_end_ns"))
        return Launches(thread, start, end)
    start, end = (np.zeros(len(rows), dtype=np.int64) for _ in range(2))
    within = inside >= 0
    process, correlation = traces.at(table, rows[within], "process", "correlation")
    _, start[within], end[within] = of_calls(traces, process, correlation, "start_ns", "end_ns")
    return Launches(thread, start, end)


def held(ranges: Places, launches: Launches, call: Int64s | None = None) -> Held:
    """What each range holds. Launches of one thread follow one another, so those within a range are neighbours.

    Args:
        call: number of the call of each launch; those of one call then stand side by side.
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


def shortest_around(ranges: Places) -> Int64s:
    """Place of the shortest range of the same thread around each; `NONE` for an outermost one.

    In the order of `_by_thread` it is an earlier one that ends no sooner. Blocks of 2, 4, 8… neighbours are sorted by end, the last first,
    and in each the shortest so far of its earlier half is offered to its later half: n log n, whatever the overlaps.
    """
    rows = np.concatenate([np.empty(0, dtype=np.int64), *_by_thread(ranges.thread, ranges.start, ranges.end)])
    end, count = ranges.end[rows], len(rows)
    by_length = np.lexsort((rows, end, end - ranges.start[rows]))
    rank = np.empty(count, dtype=np.int64)
    rank[by_length] = np.arange(count)
    best = np.full(count, count)
    # An earlier thread sorts behind, as if it had ended, so that none of its ranges is around one of a later thread.
    order = np.lexsort((-end, -_numbered(ranges.thread[rows])))
    for level in reversed(range(max(count - 1, 0).bit_length())):
        later = order >> level & 1
        block = order >> level + 1
        # Of a later block all are lower, so that one running minimum serves them all.
        offered = np.minimum.accumulate(np.where(later, count, rank[order]) - block * (count + 1)) + block * (count + 1)
        best[order] = np.where(later, np.minimum(best[order], offered), best[order])
        order = _halved(order, later, level)
    parent = np.full(count, NONE)
    found = np.flatnonzero(best < count)
    parent[rows[found]] = rows[by_length[best[found]]]
    return parent


def _numbered(thread: Int64s) -> Int64s:
    """Numbers the threads, which stand one behind the other."""
    return np.cumsum(np.diff(thread, prepend=thread[:1]) != 0)


def _halved(order: Int64s, later: Int64s, level: int) -> Int64s:
    """The order with the earlier half of each block of 2^(level + 1) before its later half, each half as it was."""
    begin = order >> level + 1 << level + 1
    # Blocks before are full, so that half of them are later ones.
    later_before = np.cumsum(later) - later - begin // 2
    place = np.where(later, begin + (1 << level) + later_before, np.arange(len(order)) - later_before)
    found = np.empty_like(order)
    found[place] = order
    return found


def _by_thread(thread: Int64s, start: Int64s, end: Int64s) -> list[Int64s]:
    """Places of the ranges of each thread, by start, the longer first; the importer writes them so."""
    rows = np.arange(len(start))
    later = (start[1:] > start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] <= end[:-1]))
    if not ((thread[1:] > thread[:-1]) | ((thread[1:] == thread[:-1]) & later)).all():
        rows = np.lexsort((-end, start, thread))
    return np.split(rows, np.flatnonzero(np.diff(thread[rows])) + 1) if len(rows) else []


def climbs(parent: Int64s) -> Iterator[tuple[Int64s, Int64s]]:
    """Places of ranges, and of those 1, then 2, then 4… levels around them: as often as it takes to reach the outermost.

    What is passed on from the one to the other at each step reaches every level. A circle, which no import writes, ends too.
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
