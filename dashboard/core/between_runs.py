"""The noise between two runs, from the cells whose sources are equal in both."""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import exp, floor, isfinite
from typing import Final

import numpy as np
import numpy.typing as npt

#: A difference smaller than this is `unchanged`, however narrow its interval is.
SMALLEST_EFFECT: Final = 0.01
#: The fewest cells with equal sources from which the noise between two runs is taken, how far their times may be from that of the
#: cell that is judged, and the part of them that lies within the noise.
FEWEST_FOR_NOISE: Final = 8
_LIKE: Final = 3.0
_WITHIN_NOISE: Final = 0.95
#: The noise between two runs where too few sources are equal. On one H200, kernels of 5 to 20 µs differ by 0.5 to 1.3 % from one
#: process to the next.
UNMEASURED_NOISE: Final = 1.015


@dataclass(frozen=True)
class Place:
    """A cell that is judged, or that tells the noise.

    Attributes:
        key: tells the cell from others.
        timing: only cells of one timing are compared.
        time_ns: median in the first run, above 0.
    """

    key: Hashable
    timing: Hashable
    time_ns: float


@dataclass(frozen=True)
class Distance(Place):
    """A cell of equal code in two runs.

    Attributes:
        apart: the logarithm of the ratio of its two medians, without its sign.
    """

    apart: float


def noise_between(cells: Sequence[Place], equal: Sequence[Distance]) -> list[float]:
    """The noise between two runs around each cell, as a factor of at least 1.

    95 % of the other cells of equal code and of the same timing differ by less: of those of like times, from a third to three
    times the cell's, or of all where fewer than eight have such a time. `UNMEASURED_NOISE` where there are fewer than eight.

    Args:
        cells: the cells that are judged.
        equal: the cells of equal code. A cell is never judged by its own distance.
    """
    found = [UNMEASURED_NOISE] * len(cells)
    own = {distance.key: distance.apart for distance in equal}
    by_timing: dict[Hashable, list[Distance]] = defaultdict(list)
    for distance in sorted(equal, key=lambda distance: distance.time_ns):
        if isfinite(distance.apart):
            by_timing[distance.timing].append(distance)
    windows = {timing: _Window(distances) for timing, distances in by_timing.items()}
    for place, cell in sorted(enumerate(cells), key=lambda each: each[1].time_ns):
        if cell.timing in windows:
            found[place] = windows[cell.timing].noise(cell.time_ns, own.get(cell.key))
    return found


class _Window:
    """Distances of one timing, ordered by time, and those of like times, which move up with the time that is asked for."""

    def __init__(self, distances: Sequence[Distance]) -> None:
        self._distances = distances
        self._every = sorted(distance.apart for distance in distances)
        self._like: list[float] = []
        self._first = self._last = 0

    def noise(self, time_ns: float, own: float | None) -> float:
        """The noise around a time, which is no less than that of the call before; `own` is the distance to leave out."""
        counted = self._distances
        while self._last < len(counted) and counted[self._last].time_ns <= time_ns * _LIKE:
            insort(self._like, counted[self._last].apart)
            self._last += 1
        while self._first < self._last and counted[self._first].time_ns < time_ns / _LIKE:
            del self._like[bisect_left(self._like, counted[self._first].apart)]
            self._first += 1
        left_out = own is not None and isfinite(own)
        pool = self._like if len(self._like) - left_out >= FEWEST_FOR_NOISE else self._every
        if len(pool) - left_out < FEWEST_FOR_NOISE:
            return UNMEASURED_NOISE
        return exp(_quantile(pool, bisect_left(pool, own) if own is not None and left_out else len(pool)))


def _quantile(ordered: Sequence[float], without: int) -> float:
    """The quantile `_WITHIN_NOISE` of ordered values without the one at a place, linear between two values, as in NumPy."""
    last = len(ordered) - (without < len(ordered)) - 1
    at = _WITHIN_NOISE * last
    low = floor(at)
    below, above = (ordered[place + (place >= without)] for place in (low, min(low + 1, last)))
    return below + (at - low) * (above - below)


def noise_of_pairs(
    apart: npt.NDArray[np.float64], times_ns: npt.NDArray[np.float64], time_ns: float
) -> npt.NDArray[np.float64]:
    """The noise between the two runs of each pair, as a factor of at least 1: 95 % of the cells with equal sources are less apart.

    Args:
        apart: distances of the logarithms of both times, shape (cells, pairs), without the cell that is judged; NaN where a cell
            is not in both runs, or its source is not equal.
        times_ns: of the cells.
        time_ns: of the cell that is judged. Where at least eight cells have times from a third to three times of it, only they
            count.

    Returns:
        Shape (pairs,). NaN where fewer than eight cells are known.
    """
    like = (times_ns >= time_ns / _LIKE) & (times_ns <= time_ns * _LIKE)
    near, every = _quantiles(apart[like]), _quantiles(apart)
    return np.exp(np.where(np.isnan(near), every, near))


def _quantiles(apart: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The 95 % quantile of each column without its NaN; NaN where fewer than eight values are left."""
    known = np.isfinite(apart).sum(axis=0)
    found = np.full(apart.shape[1], np.nan)
    enough = known >= FEWEST_FOR_NOISE
    if enough.any():
        # Column by column NumPy's own `nanquantile` takes seconds. NaN is sorted behind all numbers.
        ordered = np.sort(apart[:, enough], axis=0)
        place = _WITHIN_NOISE * (known[enough] - 1)
        low, pairs = place.astype(np.int64), np.arange(enough.sum())
        below, above = ordered[low, pairs], ordered[low + 1, pairs]
        found[enough] = below + (place - low) * (above - below)
    return found
