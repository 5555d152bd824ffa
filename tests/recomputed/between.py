"""Two runs, cell by cell, as docs/compare.md defines it: levels, their errors, the noise between runs, verdicts."""

import math
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from tests.recomputed import definitions as of
from tests.recomputed.definitions import Floats, Shipped

#: The 97.5 % quantile of a normal distribution.
_NORMAL: Final = 1.959963984540054
#: Three quarters of the distances of normal values lie within so many standard deviations.
_MOST_OF_NORMAL: Final = 1.1503
#: The standard deviation over the median distance from the median, and its correction for 2, 3 … 9 values (Croux and Rousseeuw, 1992).
_OF_NORMAL: Final = 1.4826
_OF_FEW: Final = {2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.2, 7: 1.14, 8: 1.129}
_OF_MANY: Final = 1.107
#: A process has a figure of its own from so many samples on, a run of so many processes has one for each, and a noise has so many cells.
_THREE: Final = 3
#: The least error of a cell, in logarithms: of the clock.
_LEAST_ERROR: Final = 1e-4
#: No end of an interval and no noise is farther from 1 than this logarithm, beyond which nothing is known.
_MOST: Final = 50.0

#: Variant, config, case and GPUs.
Cell = tuple[str, str, str, int]


class Group(NamedTuple):
    """Cells that are timed alike. `gpus` is at least 1."""

    workload: str
    scope: str
    cache: str
    gpus: int


class Level(NamedTuple):
    """A cell in a run, in logarithms: what each process gives, or one figure; its error and the degrees of freedom of that, and its samples."""

    logs: tuple[float, ...]
    error: float
    freedom: int
    n: int

    @property
    def log(self) -> float:
        return float(np.median(self.logs))


class Judged(NamedTuple):
    """The verdict about a cell. `noise` is NaN where it is not known, and None where other runs of the machine tell it."""

    ratio: float
    low: float
    high: float
    shift: float
    noise: float | None
    verdict: str

    @property
    def least_effect(self) -> float:
        return max(self.noise or math.nan, 1.01 * self.ratio / self.low) - 1


@cache
def student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t: where the integral of its density from 0 is 0.475, by Simpson's rule and halving."""
    if not freedom:
        return _NORMAL
    factor = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    weights = np.array([1, *[4, 2] * 999, 4, 1]) / 6000
    low, high = 1.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        density = factor * (1 + np.linspace(0, middle, len(weights)) ** 2 / freedom) ** (-(freedom + 1) / 2)
        low, high = (middle, high) if middle * float(weights @ density) < 0.475 else (low, middle)
    return low


# -- one run ---------------------------------------------------------------------------------------------------------


@cache
def _cells(run: Shipped, group: Group) -> tuple[Cell, ...]:
    """The cells of a group that ended well."""
    return tuple(
        (variant, config, case, gpus)
        for workload, variant, config, case, gpus, cache_, scope, twin in run._rounds
        if (workload, scope, cache_, max(gpus, 1), twin) == (*group, 0)
        and run.result(workload, variant, config, case).get("status", "ok") == "ok"
    )


@cache
def _process_of(run: Shipped, workload: str, case: str) -> dict[int, int]:
    table = run.table("samples")
    table = table[(table["workload"] == workload) & (table["case"] == case)]
    return dict(zip(table["round"], table["process"], strict=True)) if "process" in table else {}


def _by_process(run: Shipped, group: Group, case: str, times: "pd.Series[float]") -> "dict[int, pd.Series[float]]":
    """The times of each process that has three."""
    process = _process_of(run, group.workload, case)
    parts = times.groupby([process.get(each, 0) for each in times.index])
    return {int(str(number)): part for number, part in parts if len(part) >= _THREE}


def _like(log: float, every: Sequence[tuple[float, float]], least: int) -> list[float] | None:
    """The values of the cells of like times, from a third to three times; None where they are fewer.

    Args:
        every: the logarithm of the time of a cell, and its value.
    """
    found = [value for other, value in every if abs(other - log) <= math.log(3)]
    return found if len(found) >= least else None


@cache
def typical(run: Shipped, group: Group) -> dict[Cell, Level]:
    """The medians of the cells of a group, with the error that samples and processes show."""
    found: dict[Cell, Level] = {}
    apart: dict[Cell, tuple[float, float]] = {}
    for cell in _cells(run, group):
        variant, config, case, gpus = cell
        times = run.steady((group.workload, variant, config, case), gpus, group.scope, group.cache)
        _, low, high = of.median_interval(times)
        parts = list(_by_process(run, group, case, times).values())
        several = len(parts) >= _THREE
        logs = np.log([part.median() for part in (parts if several else [times])])
        found[cell] = Level(tuple(logs), math.log(high / low) / (2 * _NORMAL), len(logs) - 1, len(times))
        if several:
            apart[cell] = float(np.median(logs)), float(((logs - np.median(logs)) ** 2).sum() / (len(logs) - 1))
    for cell in apart:
        found[cell] = _of_processes(found[cell], *apart[cell], list(apart.values()))
    return found


def _of_processes(level: Level, log: float, variance: float, every: list[tuple[float, float]]) -> Level:
    """With at least the error that processes show: together with that of cells of like times, where there are eight others."""
    count = len(level.logs)
    distance = float(np.median(np.abs(np.array(level.logs) - log)))
    own = (_OF_NORMAL * _OF_FEW.get(count, _OF_MANY) * distance) ** 2
    alike = _like(log, every, 9)
    if alike is None:
        shown = max(own, variance)
    else:
        # A median of variances is as many times too small as that of chi squared is below its mean (Wilson and Hilferty).
        shown = max(own, (own + float(np.median(alike)) / (1 - 2 / (9 * (count - 1))) ** 3) / 2)
    return level._replace(error=max(level.error, math.sqrt(shown / count)), freedom=(count - 1) * (1 if alike is None else 2))


def _quartile(ordered: Floats) -> float:
    """The lower quartile of times in their order: one of them, the nearest to a quarter of the way."""
    return float(ordered[round((len(ordered) - 1) / 4)])


@cache
def quiet(run: Shipped, group: Group) -> dict[Cell, Level]:
    """The lower quartiles of the cells of a group, of all samples as they were taken."""
    quartiles: dict[Cell, dict[int, float]] = {}
    found: dict[Cell, Level] = {}
    for cell in _cells(run, group):
        variant, config, case, gpus = cell
        times = np.log(run.rounds((group.workload, variant, config, case), gpus, group.scope, group.cache))
        parts = _by_process(run, group, case, times)
        quartiles[cell] = {number: _quartile(np.sort(part.to_numpy())) for number, part in parts.items()}
        ordered, n = np.sort(times.to_numpy()), len(times)
        middle, half = (n - 1) / 4, _NORMAL * math.sqrt(n * 3 / 16)
        low, high = (min(max(round(place), 0), n - 1) for place in (middle - half, middle + half))
        found[cell] = Level((_quartile(ordered),), float(ordered[high] - ordered[low]) / (2 * _NORMAL), 0, n)
    for cell, own in quartiles.items():
        others = [each for other, each in quartiles.items() if other[2] == cell[2] and other != cell]
        shown = 1.4 * _error_of_mean(own, others)
        found[cell] = found[cell]._replace(error=max(found[cell].error, shown))
    return found


def _error_of_mean(own: dict[int, float], others: list[dict[int, float]]) -> float:
    """The standard error of the mean over processes, each without what it did to the other cells of the case; 0 of one process."""
    centred = [{number: log - float(np.median(list(each.values()))) for number, log in each.items()} for each in others]
    common = {number: [each[number] for each in centred if number in each] for number in own}
    without = [log - (float(np.median(common[number])) if common[number] else 0.0) for number, log in own.items()]
    return float(np.std(without, ddof=1)) / math.sqrt(len(without)) if len(without) > 1 else 0.0


# -- two runs --------------------------------------------------------------------------------------------------------


class _Equal(NamedTuple):
    """A cell of equal source in two runs: its time in A and its ratio, as logarithms, and the error of that ratio."""

    cell: Cell
    log: float
    moved: float
    error: float


def _moved(before: Level, after: Level) -> float:
    """The logarithm of B over A: the median over every process of B and every process of A."""
    return float(np.median([late - early for late in after.logs for early in before.logs]))


def source(run: Shipped, workload: str, variant: str) -> str:
    return str(run.variant(workload, variant)["source_sha256"])


class Pair:
    """Two runs, in cells that are timed alike.

    Args:
        by_quartile: judged by the lower quartiles.
    """

    def __init__(self, before: Shipped, after: Shipped, group: Group, *, by_quartile: bool = False) -> None:
        level = quiet if by_quartile else typical
        self._before, self._after = level(before, group), level(after, group)
        self._host = group.scope != "device"
        self._equal = [
            _Equal(cell, a.log, _moved(a, b), math.hypot(a.error, b.error))
            for cell, b in self._after.items()
            if (a := self._before.get(cell))
            and source(before, group.workload, cell[0]) == source(after, group.workload, cell[0])
        ]
        self._apart = [each._replace(moved=each.moved - (self._shift(each.cell) or 0.0)) for each in self._equal]

    def _shift(self, cell: Cell) -> float | None:
        """How far the other cells of equal sources moved, of the case, or all where the case has no other."""
        every = [each for each in self._equal if each.cell != cell]
        of_case = [each.moved for each in every if each.cell[2] == cell[2]]
        return float(np.median(of_case or [each.moved for each in every])) if every else None

    def others(self, cell: Cell) -> int:
        """How many other cells have equal sources."""
        return sum(each.cell != cell for each in self._equal)

    def _like(self, cell: Cell, a: Level) -> list[_Equal]:
        """The other cells of equal sources that tell the noise: those of like times, or all where fewer than eight are such."""
        others = [each for each in self._apart if each.cell != cell]
        like = [each for each in others if abs(each.log - a.log) <= math.log(3)]
        return like if len(like) >= 8 else others

    def _noise(self, like: list[_Equal], a: Level, b: Level) -> float:
        """The noise between runs around a cell, a standard deviation of logarithms. A time of the host has that beyond its own error."""
        if not like:
            return 0.0
        if not self._host:
            return float(np.quantile([abs(each.moved) for each in like], 0.75)) / _MOST_OF_NORMAL
        errors = np.array([max(each.error, _LEAST_ERROR) for each in like])
        times = float(np.quantile([abs(each.moved) for each in like] / errors, 0.75)) / _MOST_OF_NORMAL
        own = math.hypot(a.error, b.error)
        least = max(own, math.sqrt(float(np.median(errors**2))) / 2)
        return math.sqrt(max((times * least) ** 2 - own**2, 0.0))

    def judge(self, cell: Cell, *, equal: bool) -> Judged:
        """The verdict by this figure alone."""
        a, b, shift = self._before[cell], self._after[cell], self._shift(cell)
        pairs = [late - early - (shift or 0.0) for late in b.logs for early in a.logs]
        value, told = math.exp(float(np.median(pairs))), math.nan if shift is None else math.exp(shift)
        like, several = self._like(cell, a), a.freedom > 0 and b.freedom > 0
        if len(like) < _THREE and not several:
            return Judged(value, math.nan, math.nan, told, None, "")
        t = student(len(like) + (a.freedom + b.freedom if several else 0))
        wide = t * math.hypot(a.error, b.error, self._noise(like, a, b))
        half = min(wide, _MOST)
        low = math.exp(min(math.log(value) - half, float(np.quantile(pairs, 0.2))))
        high = math.exp(max(math.log(value) + half, float(np.quantile(pairs, 0.8))))
        noise = math.exp(min((2.2 if self._host else 1.6) * wide, _MOST))
        slower, faster = low > 1.01 and value > noise, high < 1 / 1.01 and value < 1 / noise
        verdict = "tied" if not slower and not faster else "drifted" if equal else "slower" if slower else "faster"
        return Judged(value, low, high, told, noise, verdict if min(a.n, b.n) >= of.FEWEST else "unknown")


@cache
def _pair(before: Shipped, after: Shipped, group: Group, by_quartile: bool) -> Pair:
    return Pair(before, after, group, by_quartile=by_quartile)


@cache
def judge(before: Shipped, after: Shipped, group: Group, cell: Cell) -> Judged:
    """The verdict about a cell of two runs: of times that the host sees, by the median or by the lower quartile."""
    equal = source(before, group.workload, cell[0]) == source(after, group.workload, cell[0])
    by_median = _pair(before, after, group, False)
    first = by_median.judge(cell, equal=equal)
    if group.scope == "device" or by_median.others(cell) < _THREE or first.verdict == "unknown":
        return first
    second = _pair(before, after, group, True).judge(cell, equal=equal)
    sees = [each.verdict != "tied" for each in (first, second)]
    if sees[0] != sees[1]:
        return first if sees[0] else second
    if sees[0] and (first.ratio > 1) != (second.ratio > 1):
        return first
    assert first.noise and second.noise
    return min(first, second, key=lambda each: each.noise or math.inf)
