"""Events side by side where they overlap, so that none is painted over another."""

import heapq
from typing import Final

import numpy as np

from warpladder.dashboard.core.traces import Int64s

#: Beyond so many at once, one event after the other takes less time than all of them level by level.
_MOST_PASSES: Final = 64


def layers(start: Int64s, end: Int64s) -> Int64s:
    """A layer for each event, from 0, such that no two events of a layer overlap. Events are sorted by start, then end.

    Events that nest get their depth as layer, level by level. Where that takes more layers than events ever run at once, each event
    takes the first layer that is free, one after the other: about a microsecond an event that overlaps another. Of events that nest, that is
    their depth too.
    """
    if not len(start):
        return np.zeros(0, dtype=np.int64)
    at_once = int((np.arange(1, len(start) + 1) - np.searchsorted(np.sort(end), start, side="right")).max())
    if at_once > _MOST_PASSES:
        return _first_free(start, end)
    layer = np.zeros(len(start), dtype=np.int64)
    left = np.arange(len(start))
    begins, ends = start, end
    for level in range(max(at_once, 1)):
        clear = np.ones(len(left), dtype=bool)
        np.greater_equal(begins[1:], np.maximum.accumulate(ends)[:-1], out=clear[1:])
        layer[left[clear]] = level
        left = left[~clear]
        if not len(left):
            return layer
        begins, ends = start[left], end[left]
    return _first_free(start, end)


def _first_free(start: Int64s, end: Int64s) -> Int64s:
    layer = np.zeros(len(start), dtype=np.int64)
    clash = start[1:] < np.maximum.accumulate(end)[:-1]
    among = np.zeros(len(start), dtype=bool)
    among[1:] |= clash
    among[:-1] |= clash
    crowded = np.flatnonzero(among)
    running: list[tuple[int, int]] = []
    free: list[int] = []
    used = 0
    chosen = np.empty(len(crowded), dtype=np.int64)
    for place, (begins, ends) in enumerate(zip(start[crowded].tolist(), end[crowded].tolist(), strict=True)):
        while running and running[0][0] <= begins:
            heapq.heappush(free, heapq.heappop(running)[1])
        if free:
            mine = heapq.heappop(free)
        else:
            mine, used = used, used + 1
        chosen[place] = mine
        heapq.heappush(running, (ends, mine))
    layer[crowded] = chosen
    return layer
