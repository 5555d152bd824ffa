"""The noise between two runs, from the cells whose sources are equal in both."""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import exp, floor, isfinite
from typing import Final

#: The fewest cells with equal sources from which the noise between two runs is taken, how far their times may be from that of the
#: cell that is judged, and the part of them that lies within the noise.
FEWEST_FOR_NOISE: Final = 8
_LIKE: Final = 3.0
_WITHIN_NOISE: Final = 0.95
#: The noise between two runs where too few sources are equal. On one H200, kernels of 5 to 20 µs differ by 0.5 to 1.3 % from one
#: process to the next.
UNMEASURED_NOISE: Final = 1.015


@dataclass(frozen=True)
class Distance:
    """How far a cell of one run is from that of the other.

    Attributes:
        timing: cells of one timing are compared.
        time_ns: median of the first run, above 0.
        apart: the logarithm of the ratio of the two, without its sign.
        counts: whether the cell tells the noise: its source is equal in both runs.
    """

    timing: Hashable
    time_ns: float
    apart: float
    counts: bool


def noise_between(cells: Sequence[Distance]) -> list[float]:
    """The noise between two runs around each cell, as a factor of at least 1.

    95 % of the other cells of the timing that tell the noise differ by less: of those of like times, from a third to three times
    the cell's, or of all where fewer than eight have such a time. `UNMEASURED_NOISE` where there are fewer than eight.
    """
    found = [UNMEASURED_NOISE] * len(cells)
    by_timing: dict[Hashable, list[int]] = defaultdict(list)
    for place, cell in enumerate(cells):
        by_timing[cell.timing].append(place)
    for places in by_timing.values():
        places.sort(key=lambda place: cells[place].time_ns)
        counted = [cells[place] for place in places if cells[place].counts and isfinite(cells[place].apart)]
        every, like = sorted(cell.apart for cell in counted), list[float]()
        first = last = 0
        # The cells come by time, so the window of like times only moves up.
        for place in places:
            cell = cells[place]
            while last < len(counted) and counted[last].time_ns <= cell.time_ns * _LIKE:
                insort(like, counted[last].apart)
                last += 1
            while first < last and counted[first].time_ns < cell.time_ns / _LIKE:
                del like[bisect_left(like, counted[first].apart)]
                first += 1
            own = cell.counts and isfinite(cell.apart)
            pool = like if len(like) - own >= FEWEST_FOR_NOISE else every
            if len(pool) - own >= FEWEST_FOR_NOISE:
                found[place] = exp(_quantile(pool, bisect_left(pool, cell.apart) if own else len(pool)))
    return found


def _quantile(ordered: Sequence[float], without: int) -> float:
    """The quantile `_WITHIN_NOISE` of ordered values without the one at a place, linear between two values, as in NumPy."""
    last = len(ordered) - (without < len(ordered)) - 1
    at = _WITHIN_NOISE * last
    low = floor(at)
    below, above = (ordered[place + (place >= without)] for place in (low, min(low + 1, last)))
    return below + (at - low) * (above - below)
