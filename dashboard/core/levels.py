"""The time of a cell in one run as a level with its errors, and the ratio of two levels of independent runs."""

import math
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.intervals import grouped_median_intervals

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
#: Cells whose times are at most this many times apart are alike, and so many of them tell a noise.
LIKE: Final = 3.0
ENOUGH_ALIKE: Final = 8
#: The fewest processes of each run from which the interval of a ratio holds the noise from one process to the next.
FEWEST_PROCESSES: Final = 3
#: The 97.5 % quantiles of Student's t for 1, 2, 3 … degrees of freedom (any table, such as NIST's e-Handbook, 1.3.6.7.2), and of
#: infinitely many.
_T: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
_NORMAL: Final = 1.960


class Level(NamedTuple):
    """A cell in one run. All but the counts are natural logarithms of nanoseconds, or distances of them.

    Attributes:
        log: mean over the processes of the logarithm of the median of each; NaN if the clock is too coarse.
        down, up: from the median of all samples to the ends of its 95 % interval; see `statistics.median_ranks`.
        error: standard error of `log` over the processes; NaN for one process.
        freedom: degrees of freedom of `error`.
        processes: that took samples.
        n: samples.
    """

    log: float
    down: float
    up: float
    error: float
    freedom: float
    processes: int
    n: int


class Levels(NamedTuple):
    """The levels of many cells; each array has the shape (cells,). See `Level`."""

    log: Floats
    down: Floats
    up: Floats
    error: Floats
    freedom: Floats
    processes: Integers
    n: Integers

    def of(self, places: Sequence[int]) -> "Levels":
        """The levels of some cells, in this order."""
        return Levels(*(values[list(places)] for values in self))  # type: ignore[arg-type]

    def at(self, place: int) -> Level:
        """The level of one cell."""
        log, down, up, error, freedom = (float(values[place]) for values in self[:5])
        return Level(log, down, up, error, freedom, int(self.processes[place]), int(self.n[place]))


def levels(durations: Floats, n: Integers, processes: npt.NDArray[np.integer], alike: Sequence[Hashable]) -> Levels:
    """The levels of cells.

    Three processes tell their variance badly. So it is averaged with the mean variance of at least eight other cells of like times,
    from a third to three times the cell's, which doubles its degrees of freedom.

    Args:
        durations: in nanoseconds, the samples of the first cell, then those of the second, and so on.
        n: samples of each cell, at least 1.
        processes: the process of each sample.
        alike: the cells with equal values here are timed alike.
    """
    ends = grouped_median_intervals(durations, n)
    cell = np.repeat(np.arange(len(n)), n)
    order = np.lexsort((processes, cell))
    starts = np.ones(len(cell), dtype=bool)
    starts[1:] = (np.diff(cell[order]) != 0) | (np.diff(processes[order]) != 0)
    first = np.flatnonzero(starts)
    medians = grouped_median_intervals(durations[order], np.diff(np.append(first, len(cell))))["median"]
    of_cell = cell[order][first]
    count = np.bincount(of_cell, minlength=len(n))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.where(ends["low"][of_cell] > 0, medians, np.nan))
        mean = np.bincount(of_cell, logs, minlength=len(n)) / count
        variance = np.bincount(of_cell, (logs - mean[of_cell]) ** 2, minlength=len(n)) / (count - 1)
        down, up = np.log(ends["median"] / ends["low"]), np.log(ends["high"] / ends["median"])
    typical = _typical(mean, np.where(count >= FEWEST_PROCESSES, variance, np.nan), alike)
    known = np.isfinite(typical)
    shared = np.where(known, (variance + typical) / 2, variance)
    freedom = ((count - 1) * np.where(known, 2, 1)).astype(np.float64)
    return Levels(mean, down, up, np.sqrt(shared / count), freedom, count, n)


def _typical(logs: Floats, variances: Floats, alike: Sequence[Hashable]) -> Floats:
    """The mean variance of the other cells of like times of each cell; NaN where fewer than eight are known."""
    found = np.full(len(logs), np.nan)
    places: dict[Hashable, list[int]] = {}
    for place in np.flatnonzero(np.isfinite(variances) & np.isfinite(logs)).tolist():
        places.setdefault(alike[place], []).append(place)
    for group in places.values():
        ordered = np.array(group)[np.argsort(logs[group], kind="stable")]
        times, sums = logs[ordered], np.concatenate([[0.0], np.cumsum(variances[ordered])])
        low = np.searchsorted(times, times - math.log(LIKE), "left")
        high = np.searchsorted(times, times + math.log(LIKE), "right")
        others = high - low - 1
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = (sums[high] - sums[low] - variances[ordered]) / others
        found[ordered] = np.where(others >= ENOUGH_ALIKE, np.maximum(mean, 0.0), np.nan)
    return found


def several_processes(before: Level, after: Level) -> bool:
    """Whether the interval of the ratio of two levels holds the noise from one process to the next."""
    return min(before.processes, after.processes) >= FEWEST_PROCESSES


def ratio(before: Level, after: Level) -> Estimate:
    """The level after over that before, in two independent runs, with a 95 % interval.

    The distances to the ends of both medians' intervals add up as squares, as those of independent errors do. Where both runs
    have three processes, the interval is also at least that of Welch's t test for the means over the processes (Welch, The
    generalization of Student's problem, Biometrika 34, 1947). Unknown where a level is not finite.
    """
    log = after.log - before.log
    down, up = math.hypot(after.down, before.up), math.hypot(after.up, before.down)
    if not math.isfinite(log + down + up):
        return Estimate.unknown()
    if several_processes(before, after):
        half = _welch(before, after)
        down, up = max(down, half), max(up, half)
    return Estimate(math.exp(log), math.exp(log - down), math.exp(log + up))


def _welch(before: Level, after: Level) -> float:
    """Half of the width of the interval of the difference of two means."""
    a, b = before.error**2, after.error**2
    if a + b == 0:
        return 0.0
    freedom = (a + b) ** 2 / (a**2 / before.freedom + b**2 / after.freedom)
    return student(freedom) * math.sqrt(a + b)


def student(freedom: float) -> float:
    """The 97.5 % quantile of Student's t; between two entries of the table it is linear in the inverse of the degrees of freedom."""
    known = [math.inf, *range(len(_T), 0, -1)]
    return float(np.interp(1 / freedom, [1 / each for each in known], [_NORMAL, *reversed(_T)]))
