"""Which NVTX range a launch belongs to, and what each range's launches did on the device. Arrays only, no loop over events.

Ranges are given sorted by thread, then start, then the longer first (`order`), and an index into them identifies a range. A range is
open from its start up to, and not including, its end. Ranges of several domains, and start/end ranges, may overlap without nesting.
"""

from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from collectors.trace import coverage

Int64s: TypeAlias = npt.NDArray[np.int64]

NONE: Final = -1


def distinct(values: Int64s) -> Int64s:
    """Sorted distinct values; `numpy.unique` hashes first, which takes several times longer on millions of times."""
    ordered = np.sort(values)
    kept: Int64s = ordered[np.concatenate((np.ones(min(len(ordered), 1), bool), ordered[1:] != ordered[:-1]))]
    return kept


def order(thread: Int64s, start: Int64s, end: Int64s) -> Int64s:
    """Indices that sort ranges as this module wants them."""
    return np.lexsort((-end, start, thread))


class Innermost:
    """Finds the range opened last among those open on a thread at a time.

    The boundaries cut each thread's time into segments. Every range is painted over its segments in two blocks whose length is a power
    of two, and blocks are halved from the longest down, so that each segment keeps the greatest index: n log n, whatever the overlaps.
    """

    def __init__(self, thread: Int64s, start: Int64s, end: Int64s) -> None:
        self._threads = distinct(thread)
        self._times = distinct(np.concatenate((start, end)))
        opened = self._keys(np.searchsorted(self._threads, thread), np.searchsorted(self._times, start))
        closed = self._keys(np.searchsorted(self._threads, thread), np.searchsorted(self._times, end))
        self._cuts = distinct(np.concatenate((opened, closed)))
        self._owner = _paint(np.searchsorted(self._cuts, opened), np.searchsorted(self._cuts, closed), len(self._cuts))

    def at(self, thread: Int64s, time: Int64s) -> Int64s:
        """Index of the innermost range for each thread and time; `NONE` where none is open."""
        if not len(self._threads):
            return np.full(len(thread), NONE)
        number = np.minimum(np.searchsorted(self._threads, thread), len(self._threads) - 1)
        rank = np.searchsorted(self._times, time, side="right") - 1
        segment = np.searchsorted(self._cuts, self._keys(number, rank), side="right") - 1
        known = (self._threads[number] == thread) & (rank >= 0) & (segment >= 0)
        return np.where(known, self._owner[np.maximum(segment, 0)], NONE)

    def _keys(self, thread_number: Int64s, time_rank: Int64s) -> Int64s:
        return thread_number * (len(self._times) + 1) + time_rank


def _paint(first: Int64s, last: Int64s, segments: int) -> Int64s:
    owner = np.full(segments, NONE)
    index = np.flatnonzero(last > first)
    first, last = first[index], last[index]
    level = np.frexp((last - first).astype(np.float64))[1] - 1  # floor(log2(length))
    for power in range(int(level.max(initial=-1)), -1, -1):
        of_level = level == power
        np.maximum.at(owner, first[of_level], index[of_level])
        np.maximum.at(owner, last[of_level] - (1 << power), index[of_level])
        if power:
            half = 1 << (power - 1)
            halved = owner.copy()
            np.maximum(halved[half:], owner[:-half], out=halved[half:])
            owner = halved
    return owner


def parents(thread: Int64s, end: Int64s) -> Int64s:
    """Index of the range that encloses each on its thread, the one opened last where several do; `NONE` where none does.

    In this module's order that is the nearest earlier range of the thread that ends no sooner: climbed to through maxima over
    aligned blocks of 1, 2, 4… ranges.
    """
    count = len(end)
    maxima = [end]
    while len(maxima[-1]) > 1:
        level = maxima[-1]
        maxima.append(np.maximum.reduceat(level, np.arange(0, len(level), 2)))
    place = np.arange(count)  # all in [place, own index) end sooner
    found_at = np.full(count, NONE)
    searching = np.arange(count)
    for power, level in enumerate(maxima):
        block = place[searching] >> power
        odd = (block & 1) == 1
        high = odd.copy()
        high[odd] = level[block[odd] - 1] >= end[searching[odd]]
        found_at[searching[high]] = power
        skipped = searching[odd & ~high]
        place[skipped] -= 1 << power
        searching = searching[~high & (place[searching] > 0)]
    for power in range(len(maxima) - 2, -1, -1):
        descending = np.flatnonzero(found_at > power)
        block = (place[descending] >> power) - 1
        low = maxima[power][block] < end[descending]
        place[descending[low]] -= 1 << power
    parent = np.where(found_at >= 0, place - 1, NONE)
    return np.where((parent >= 0) & (thread[parent] == thread), parent, NONE)


def depths(parent: Int64s) -> Int64s:
    """How many ranges enclose each, counted by doubling the step up the tree."""
    depth = (parent >= 0).astype(np.int64)
    above = parent.copy()
    while (climbing := np.flatnonzero(above >= 0)).size:
        step = above[climbing]
        depth[climbing] += depth[step]
        above[climbing] = above[step]
    return depth


def around(parent: Int64s, chosen: npt.NDArray[np.bool_]) -> Int64s:
    """Index of the nearest chosen range among each and those that enclose it, `NONE` where there is none; the step is doubled too."""
    at = np.where(chosen, np.arange(len(parent)), parent)
    while (climbing := np.flatnonzero((at >= 0) & ~chosen[at])).size:
        at[climbing] = at[at[climbing]]
    return at


class Launches(NamedTuple):
    """Device work whose launch is known: launching thread, start of the launch, and start and end on the device, in ns."""

    thread: Int64s
    launched: Int64s
    start: Int64s
    end: Int64s


class DeviceTime(NamedTuple):
    """For each range, over the device work launched while it was open on the thread; `items` is the number of pieces of work."""

    items: Int64s
    start: Int64s
    end: Int64s
    busy: Int64s


def device_time(thread: Int64s, start: Int64s, end: Int64s, launches: Launches) -> DeviceTime:
    """Start of the first, end of the last, and length of the union of the device intervals launched inside each range."""
    work = _by_launch(launches)
    first, last = np.zeros(len(thread), np.int64), np.zeros(len(thread), np.int64)
    for one in distinct(thread).tolist():
        ranges = slice(np.searchsorted(thread, one), np.searchsorted(thread, one, side="right"))
        begin, stop = np.searchsorted(work.thread, one), np.searchsorted(work.thread, one, side="right")
        first[ranges] = begin + np.searchsorted(work.launched[begin:stop], start[ranges])
        last[ranges] = begin + np.searchsorted(work.launched[begin:stop], end[ranges])
    items = np.maximum(last - first, 0)
    result = DeviceTime(items, np.zeros_like(items), np.zeros_like(items), np.zeros_like(items))
    some = np.flatnonzero(items)
    # Ranges that hold the same work, as nested ones often do, are one window.
    width = len(work.start) + 1
    windows, window = np.unique(first[some] * width + last[some], return_inverse=True)
    for column, found in zip(result[1:], coverage.of_windows(work.start, work.end, *np.divmod(windows, width)), strict=True):
        column[some] = found[window]
    return result


def _by_launch(launches: Launches) -> Launches:
    """Sorted by thread, then launch; reports mostly are."""
    same = launches.thread[1:] == launches.thread[:-1]
    later = launches.launched[1:] >= launches.launched[:-1]
    if np.all((launches.thread[1:] > launches.thread[:-1]) | (same & later)):
        return launches
    sorting = np.lexsort((launches.launched, launches.thread))
    return Launches(*(column[sorting] for column in launches))
