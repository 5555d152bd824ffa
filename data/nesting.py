"""Nested intervals, such as ranges and operators: which one is open on a thread at a time, and which one is around each.

Intervals are sorted by thread, then by start, then by descending length (`order`). An index into them identifies one. An interval
is open from its start up to, but not including, its end. Intervals of a thread may overlap without nesting.
"""

import numpy as np

from warpladder.data.arrays import NONE, Bools, Int64s, heads


def order(thread: Int64s, start: Int64s, end: Int64s) -> Int64s:
    """Return the indices that sort intervals into this module's order."""
    return np.lexsort((-end, start, thread))


class Innermost:
    """Finds the interval that was opened last among those open on a thread at a given time.

    It is the nearest one before the first that starts later, that ends later. The time for `n` intervals is O(n), and O(log n) for each
    search, for any overlaps.
    """

    def __init__(self, thread: Int64s, start: Int64s, end: Int64s) -> None:
        self._thread, self._start, self._maxima = thread, start, _maxima(end)
        bounds = np.append(heads(thread), len(thread))
        self._first, self._last = bounds[:-1], bounds[1:]

    def at(self, thread: Int64s, time: Int64s) -> Int64s:
        """Return the index of the innermost interval for each thread and time; `NONE` if none is open."""
        place = np.zeros(len(thread), np.int64)
        by_thread = np.argsort(thread, kind="stable")
        threads, wanted = self._thread[self._first], thread[by_thread]
        begins, ends = (np.searchsorted(wanted, threads, side=side) for side in ("left", "right"))
        for first, last, begin, finish in zip(*map(np.ndarray.tolist, (self._first, self._last, begins, ends)), strict=True):
            of_thread = by_thread[begin:finish]
            place[of_thread] = first + np.searchsorted(self._start[first:last], time[of_thread], side="right")
        found = _latest_above(self._maxima, place, time)
        return np.where(np.append(self._thread, NONE)[found] == thread, found, NONE)


def parents(thread: Int64s, end: Int64s) -> Int64s:
    """Return the index of the interval that encloses each one on its thread; of several, the last opened; `NONE` if none.

    It is the nearest earlier interval of the thread that does not end sooner.
    """
    found = _latest_above(_maxima(end), np.arange(len(end)), end - 1)
    return np.where((found >= 0) & (thread[found] == thread), found, NONE)


def depths(parent: Int64s) -> Int64s:
    """Return the number of intervals that enclose each one. The steps up the tree double in length."""
    depth = (parent >= 0).astype(np.int64)
    above = parent.copy()
    while (climbing := np.flatnonzero(above >= 0)).size:
        step = above[climbing]
        depth[climbing] += depth[step]
        above[climbing] = above[step]
    return depth


def nearest(parent: Int64s, chosen: Bools) -> Int64s:
    """Return the nearest chosen interval among each one and those that enclose it; `NONE` if none. Steps double in length too.

    It also ends for a circle, which no import writes.
    """
    at = np.where(chosen, np.arange(len(parent)), parent)
    searching = np.flatnonzero((at >= 0) & ~chosen[at])
    for _ in range(len(parent).bit_length()):
        at[searching] = at[at[searching]]
        searching = searching[(at[searching] >= 0) & ~chosen[at[searching]]]
    at[searching] = NONE
    return at


def _maxima(values: Int64s) -> list[Int64s]:
    """The values, and the largest of each two, each four… of them."""
    maxima = [values]
    while len(maxima[-1]) > 1:
        maxima.append(np.maximum.reduceat(maxima[-1], np.arange(0, len(maxima[-1]), 2)))
    return maxima


def _latest_above(maxima: list[Int64s], place: Int64s, value: Int64s) -> Int64s:
    """For each place the last index before it whose value is above a given one; `NONE` if none.

    The search climbs through larger blocks until one has such a value, and descends in it.

    Args:
        maxima: see `_maxima`.
    """
    place = place.copy()  # what stands from here up to the given place is not above
    found_at = np.full(len(place), NONE)
    searching = np.arange(len(place))
    for power, level in enumerate(maxima):
        block = place[searching] >> power
        odd = (block & 1) == 1
        high = odd.copy()
        high[odd] = level[block[odd] - 1] > value[searching[odd]]
        found_at[searching[high]] = power
        skipped = searching[odd & ~high]
        place[skipped] -= 1 << power
        searching = searching[~high & (place[searching] > 0)]
    for power in range(len(maxima) - 2, -1, -1):
        descending = np.flatnonzero(found_at > power)
        low = maxima[power][(place[descending] >> power) - 1] <= value[descending]
        place[descending[low]] -= 1 << power
    return np.where(found_at >= 0, place - 1, NONE)
