"""The time in which intervals run, and in which they overlap."""

import numpy as np

from warpladder.dashboard.core.traces import Int64s


def union_ns(start: Int64s, end: Int64s) -> int:
    """Nanoseconds in which at least one of the intervals runs."""
    edges = _union(start, end)
    return int((edges[1] - edges[0]).sum())


def _union(start: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """The intervals as few that do not touch, in order."""
    order = np.argsort(start, kind="stable")
    start, last = start[order], np.maximum.accumulate(end[order])
    new = np.ones(len(start), dtype=bool)
    new[1:] = start[1:] > last[:-1]
    first = np.flatnonzero(new)
    return start[first], last[np.append(first[1:], len(start))[: len(first)] - 1]


def overlap_ns(busy: tuple[Int64s, Int64s], start: Int64s, end: Int64s) -> Int64s:
    """Of each interval, the nanoseconds in which one of others ran, given by their starts and ends; these may be none."""
    if not len(busy[0]):
        return np.zeros(len(start), dtype=np.int64)
    joined = _union(*busy)
    return _busy_until(joined, end) - _busy_until(joined, start)


def _busy_until(busy: tuple[Int64s, Int64s], time: Int64s) -> Int64s:
    start, end = busy
    before = np.concatenate([[0], np.cumsum(end - start)])
    place = np.searchsorted(start, time, side="right")
    within = np.where(place > 0, end[place - 1] - np.minimum(time, end[place - 1]), 0)
    return np.asarray(before[place] - within, dtype=np.int64)
