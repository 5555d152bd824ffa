"""Attributes launches to NVTX ranges, and computes each range's device times. Works on arrays, without a loop over events.

Ranges are in the order of `nesting`. An index into them identifies a range. Ranges of different domains, and start/end ranges, may
overlap without nesting.
"""

from array import array
from bisect import bisect_left, bisect_right
from typing import Final, NamedTuple

import numpy as np

from warpladder.data.arrays import NONE, Bools, Int64s, Intervals, least_of_windows
from warpladder.data.nesting import Innermost

#: Instead of the index of a range: more than one range is possible.
SEVERAL: Final = -2
_THREAD_BITS: Final = 24


def distinct(values: Int64s) -> Int64s:
    """Return sorted distinct values. `numpy.unique` hashes first, and takes several times longer on millions of times."""
    ordered = np.sort(values)
    values_once: Int64s = ordered[np.concatenate((np.ones(min(len(ordered), 1), bool), ordered[1:] != ordered[:-1]))]
    return values_once


class ByTime:
    """Finds the range of another thread that a launch belongs to by time.

    What is launched while a step is open belongs to the step, whichever thread of the process launched it: to the innermost range
    of the step's thread. Outside of steps, a launch by a thread without a range belongs to the innermost range of the one other
    thread that has one open.

    Args:
        thread, start, end: columns of the ranges; `thread >> 24` is the process.
        innermost: finder over the same ranges.
        steps: places of the ranges that are steps, in ascending order.
    """

    def __init__(self, thread: Int64s, start: Int64s, end: Int64s, innermost: Innermost, steps: Int64s) -> None:
        self._thread = thread
        self._of_steps = _OpenThreads(thread[steps], start[steps], end[steps], innermost)
        self._of_all = _OpenThreads(thread, start, end, innermost)

    def at(self, thread: Int64s, time: Int64s, has_own: Bools) -> Int64s:
        """Return the range for each thread and time of a launch.

        It is `NONE` if there is none, and `SEVERAL` if a launch without a range of its own could belong to several threads.

        Args:
            has_own: the launching thread had a range open.
        """
        found = self._of_steps.at(thread >> _THREAD_BITS, time)
        known = np.flatnonzero(found >= 0)
        found[known[self._thread[found[known]] == thread[known]]] = NONE
        found[found == SEVERAL] = NONE
        alone = np.flatnonzero((found < 0) & ~has_own)
        found[alone] = self._of_all.at(thread[alone] >> _THREAD_BITS, time[alone])
        return found


class _OpenThreads:
    """Finds the innermost range of the one thread of a process that has any of the given ranges open.

    Args:
        thread, start, end: columns of the given ranges.
        innermost: finder over all ranges.
    """

    def __init__(self, thread: Int64s, start: Int64s, end: Int64s, innermost: Innermost) -> None:
        self._innermost, self._threads = innermost, distinct(thread)
        parts = [(np.empty(0, np.int64),) * 3]
        for number, thread_id in enumerate(self._threads.tolist()):
            own_ranges = slice(np.searchsorted(thread, thread_id), np.searchsorted(thread, thread_id, side="right"))
            open_in = Intervals(start[own_ranges], end[own_ranges])
            parts.append((open_in.start, open_in.end, np.full(len(open_in.start), number)))
        opened, closed, owner = (np.concatenate(column) for column in zip(*parts, strict=True))
        time, owner = np.concatenate((opened, closed)), np.concatenate((owner, owner))
        change = np.repeat(np.array([1, -1]), len(opened))
        process = self._threads[owner] >> _THREAD_BITS
        sorting = np.lexsort((time, process))
        self._process, self._time = process[sorting], time[sorting]
        # The changes of each process sum to 0, so one running sum works for all. If one thread is open, the sum is its number.
        self._count, self._number = np.cumsum(change[sorting]), np.cumsum((change * owner)[sorting])

    def at(self, process: Int64s, time: Int64s) -> Int64s:
        """Return the range for each process and time of a launch; `NONE` if none is open, `SEVERAL` if on several threads."""
        owners = np.full(len(time), NONE)
        for process_id in distinct(process).tolist():
            first, last = np.searchsorted(self._process, process_id), np.searchsorted(self._process, process_id, side="right")
            rows = np.flatnonzero(process == process_id)
            place = first + np.searchsorted(self._time[first:last], time[rows], side="right") - 1
            rows, place = rows[place >= first], place[place >= first]
            alone = self._count[place] == 1
            owners[rows[self._count[place] > 1]] = SEVERAL
            owners[rows[alone]] = self._innermost.at(self._threads[self._number[place[alone]]], time[rows[alone]])
        return owners


class LaunchedWork(NamedTuple):
    """Device work with a known launch: launching thread, start of the launch, and start and end on the device, in ns."""

    thread: Int64s
    launched: Int64s
    start: Int64s
    end: Int64s


class DeviceTime(NamedTuple):
    """Device times of each range, over the work launched while it was open on its thread. `items` counts the pieces of work."""

    items: Int64s
    start: Int64s
    end: Int64s
    busy: Int64s


def device_time(thread: Int64s, start: Int64s, end: Int64s, launches: LaunchedWork) -> DeviceTime:
    """Return start of the first, end of the last, and union length of the device intervals launched inside each range."""
    work = _by_launch(launches)
    first, last = np.zeros(len(thread), np.int64), np.zeros(len(thread), np.int64)
    for thread_id in distinct(thread).tolist():
        ranges = slice(np.searchsorted(thread, thread_id), np.searchsorted(thread, thread_id, side="right"))
        begin, stop = np.searchsorted(work.thread, thread_id), np.searchsorted(work.thread, thread_id, side="right")
        first[ranges] = begin + np.searchsorted(work.launched[begin:stop], start[ranges])
        last[ranges] = begin + np.searchsorted(work.launched[begin:stop], end[ranges])
    items = np.maximum(last - first, 0)
    result = DeviceTime(items, np.zeros_like(items), np.zeros_like(items), np.zeros_like(items))
    some = np.flatnonzero(items)
    # Ranges with the same work (common with nested ranges) share one window.
    width = len(work.start) + 1
    windows, window = np.unique(first[some] * width + last[some], return_inverse=True)
    for column, values in zip(result[1:], of_windows(work.start, work.end, *np.divmod(windows, width)), strict=True):
        column[some] = values[window]
    return result


def _by_launch(launches: LaunchedWork) -> LaunchedWork:
    """Sort by thread, then by launch. Most reports are sorted already."""
    same = launches.thread[1:] == launches.thread[:-1]
    later = launches.launched[1:] >= launches.launched[:-1]
    if np.all((launches.thread[1:] > launches.thread[:-1]) | (same & later)):
        return launches
    sorting = np.lexsort((launches.launched, launches.thread))
    return LaunchedWork(*(column[sorting] for column in launches))


_FAR: Final = 1 << 61
_PAIRS_AT_ONCE: Final = 4_000_000
#: The sweep takes as long for one piece as the direct method for this many pairs of window and piece.
_PAIRS_A_PIECE: Final = 64


def of_windows(start: Int64s, end: Int64s, first: Int64s, last: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return start of the first, end of the last, and union length of the intervals of each window.

    Args:
        start, end: times of each piece of work, in ns.
        first, last: for each window, the index of its first piece, and the index after its last piece. No window is empty.
    """
    count = last - first
    if int(count.sum()) <= max(_PAIRS_A_PIECE * len(start), _PAIRS_AT_ONCE):
        busy = _beside_one_another(start, end, first, count)
    else:
        busy = _by_sweep(start, end, first, last)
    return least_of_windows(start, first, last), -least_of_windows(-end, first, last), busy


def _beside_one_another(start: Int64s, end: Int64s, first: Int64s, count: Int64s) -> Int64s:
    """Return union lengths. Lays out the pieces of a few windows at a time, one window after another."""
    in_order = bool(np.all(start[1:] >= start[:-1]))
    lengths = np.empty(len(first), np.int64)
    pairs = np.cumsum(count)
    begin = 0
    while begin < len(first):
        laid_out = pairs[begin - 1] if begin else 0
        stop = max(begin + 1, int(np.searchsorted(pairs, laid_out + _PAIRS_AT_ONCE, side="right")))
        lengths[begin:stop] = _unions(start, end, first[begin:stop], count[begin:stop], in_order)
        begin = stop
    return lengths


def _unions(start: Int64s, end: Int64s, first: Int64s, count: Int64s, in_order: bool) -> Int64s:
    heads = np.cumsum(count) - count
    owner = np.repeat(np.arange(len(count)), count)
    picked = np.arange(len(owner)) - np.repeat(heads - first, count)
    begins, ends = start[picked], end[picked]
    if not in_order:
        sorting = np.lexsort((begins, owner))
        begins, ends = begins[sorting], ends[sorting]
    starts = begins[heads]
    # The windows lie one after another on one axis, so that one running maximum works for all.
    width = np.maximum.reduceat(ends, heads) - starts + 1
    shift = np.cumsum(width) - width - starts
    begins = begins + shift[owner]
    ends = ends + shift[owner]
    covered = np.maximum.accumulate(ends)
    covered = np.concatenate((begins[:1], covered[:-1]))
    gained = np.maximum(ends - np.maximum(begins, covered), 0)
    return np.asarray(np.add.reduceat(gained, heads), np.int64)


def _by_sweep(start: Int64s, end: Int64s, first: Int64s, last: Int64s) -> Int64s:
    """Return union lengths in O(n log n), for any number of windows per piece.

    Each piece is painted over the earlier ones. A window's union is the length that its pieces painted over nothing or over
    pieces before the window: the length painted over these up to the window's end, minus the length up to its beginning.
    """
    under, by, length = _painted(start, end)
    until = np.searchsorted(by, last)
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(length)))
    return _sums_below(under + 1, length, until, first + 1) - before[np.searchsorted(by, first)]


def _painted(start: Int64s, end: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return, for each painted stretch: the piece under it (`NONE` for nothing), the piece that painted it, and its length."""
    edges, owners = [-2 * _FAR, 2 * _FAR], [NONE, NONE]  # owners[i] is the piece painted last between edges i and i+1
    under, by, length = array("q"), array("q"), array("q")
    pieces = zip(np.clip(start, -_FAR, _FAR).tolist(), np.clip(end, -_FAR, _FAR).tolist(), strict=True)
    for piece, (begin, stop) in enumerate(pieces):
        if stop <= begin:
            continue
        left, right = bisect_right(edges, begin) - 1, bisect_left(edges, stop)
        for place in range(left, right):
            under.append(owners[place])
            by.append(piece)
            length.append(min(edges[place + 1], stop) - max(edges[place], begin))
        rest = edges[right] > stop
        first_free = left + (edges[left] < begin)
        cut = owners[right - 1]
        edges[first_free:right] = [begin, stop] if rest else [begin]
        owners[first_free:right] = [piece, cut] if rest else [piece]
    return np.array(under, np.int64), np.array(by, np.int64), np.array(length, np.int64)


def _sums_below(keys: Int64s, values: Int64s, until: Int64s, below: Int64s) -> Int64s:
    """For each pair of limits, sum the first `until` values whose key is less than `below`. Uses a wavelet matrix."""
    first, last = np.zeros_like(until), until
    sums = np.zeros(len(until), np.int64)
    for bit in reversed(range(int(max(keys.max(initial=0), below.max(initial=0))).bit_length())):
        low = (keys >> bit & 1) == 0
        count, total = np.zeros(len(keys) + 1, np.int64), np.zeros(len(keys) + 1, np.int64)
        np.cumsum(low, out=count[1:])
        np.cumsum(np.where(low, values, 0), out=total[1:])
        up = (below >> bit & 1) == 1
        sums += np.where(up, total[last] - total[first], 0)
        first, last = (np.where(up, count[-1] + place - count[place], count[place]) for place in (first, last))
        keys, values = np.concatenate((keys[low], keys[~low])), np.concatenate((values[low], values[~low]))
    return sums
