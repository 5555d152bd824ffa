"""The one rule by which a cell of two runs is judged: its ratio over the unchanged variants, against the noise between runs.

What a machine does to all variants of a case cancels: a cell counts relative to the cells of equal code of its case. The noise is how
far those are from each other, in the same two runs or in other recordings of the machine. Compare and Trends use the same functions.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from warpladder.dashboard.compare.levels import (
    ENOUGH_ALIKE,
    LIKE,
    Level,
    Medians,
    TimedCell,
    half_width,
    medians,
    moved,
    several_processes,
    timing_group,
)
from warpladder.dashboard.compare.levels import ratio as ratio_of
from warpladder.dashboard.core.cell import Estimate, Timing
from warpladder.dashboard.core.intervals import MIN_SAMPLES, MOST_LOG, is_single
from warpladder.data import store
from warpladder.data.arrays import Bools, Floats

Verdict = Literal["slower", "faster", "tied", "drifted", "unknown"]
VERDICTS: Final[tuple[Verdict, ...]] = ("slower", "tied", "faster", "drifted", "unknown")

#: A difference smaller than this is `tied`, however narrow its interval is.
SMALLEST_EFFECT: Final = 0.01
#: The fewest distances, of cells or of pairs of runs, from which a noise or a common shift is computed.
FEWEST: Final = 3
#: The part of the distances that tells the noise, and below how many standard deviations that part of normal distances lies.
MOST: Final = 0.75
MOST_OVER_DEVIATION: Final = 1.1503
#: The noise is so many times as wide as a 95 % interval, which heavy tails need: of times by a device's clock, and of those that the host
#: sees, which other programs lengthen. `benchmarks/verdicts.py` counts what lies beyond it.
_HEAVY_TAILS: Final = 1.6
_HEAVY_TAILS_OF_HOST: Final = 2.2
#: The scope of times by a device's own clock.
_OF_DEVICE: Final = "device"
#: The newest runs of a machine from which its noise is taken.
MOST_RUNS: Final = 30

#: The least variance of a ratio, of the clock; and the least part of the median variance of the cells of equal code that a cell has.
_LEAST_VARIANCE: Final = 1e-8
_LEAST_PART: Final = 0.25


def tails_of(scope: str) -> float:
    """How many times as wide as a 95 % interval the noise of times of a scope is."""
    return _HEAVY_TAILS if scope == _OF_DEVICE else _HEAVY_TAILS_OF_HOST


class Spread(NamedTuple):
    """The noise between runs: a variance of logarithms, and its degrees of freedom."""

    variance: float
    freedom: int

    @classmethod
    def of(cls, distances: Floats) -> "Spread":
        """The noise with which three quarters of normal distances lie within 1.15 standard deviations.

        Up to a quarter of the cells may have moved by themselves, however far: they do not hide what the others tell.
        """
        if not len(distances):
            return cls(0.0, 0)
        return cls((float(np.quantile(np.abs(distances), MOST)) / MOST_OVER_DEVIATION) ** 2, len(distances))


@dataclass(frozen=True)
class EqualCode:
    """The cells of equal code in two runs, of one workload, timing and number of GPUs.

    Attributes:
        places: the place of each cell in the other two.
        logs: logarithms of the times in the first run.
        moved: logarithms of the ratios of the two times.
        variances: of `moved`, that the errors of both levels give.
    """

    places: Mapping[TimedCell, int]
    logs: Floats
    moved: Floats
    variances: Floats

    def shift(self, case: str, without: TimedCell | None = None) -> float:
        """The logarithm of the common shift around a cell: the median of `moved` over its case, or over all cases where that has none.

        NaN without any cell.

        Args:
            without: a cell to leave out.
        """
        own = [place for place in self._of_case.get(case, ()) if self._cells[place] != without]
        every = own or [place for place, cell in enumerate(self._cells) if cell != without]
        return float(np.median(self.moved[every])) if every else math.nan

    @cached_property
    def _cells(self) -> tuple[TimedCell, ...]:
        return tuple(self.places)

    @cached_property
    def _of_case(self) -> Mapping[str, Sequence[int]]:
        places: dict[str, list[int]] = {}
        for cell, place in self.places.items():
            places.setdefault(cell.case, []).append(place)
        return places

    @cached_property
    def relative(self) -> "EqualCode":
        """The same cells, each relative to the shift that the others have; as it moved where there is no other."""
        shifts = np.array([self.shift(cell.case, cell) for cell in self._cells])
        return replace(self, moved=self.moved - np.nan_to_num(shifts))

    def excess(self, before: Level, after: Level, cell: TimedCell) -> Spread:
        """The noise around a cell beyond the errors of its levels: these are as many times too small as those of the other cells of like times. So
        a cell that scatters more than others, such as one with large temporary arrays, widens its own interval and no other's.

        Args:
            before, after: levels of the cell, whose own distance is left out.
        """
        chosen = self._like(before.log, cell)
        errors = np.maximum(self.variances[chosen], _LEAST_VARIANCE)
        own, found = before.error**2 + after.error**2, Spread.of(self.moved[chosen] / np.sqrt(errors))
        least = max(own, _LEAST_PART * float(np.median(errors))) if found.freedom else own
        return found._replace(variance=max(found.variance * least - own, 0.0))

    def spread(self, log: float, without: TimedCell | None = None) -> Spread:
        """The noise between the runs, from the cells of like times, from a third to three times a time; from all if fewer than eight are alike.

        Args:
            log: the logarithm of the time.
            without: a cell to leave out.
        """
        return Spread.of(self.moved[self._like(log, without)])

    def _like(self, log: float, without: TimedCell | None) -> Bools:
        """The cells of like times but one; all if fewer than eight are alike."""
        others = np.ones(len(self.moved), dtype=bool)
        if without is not None and without in self.places:
            others[self.places[without]] = False
        like = others & (np.abs(self.logs - log) <= math.log(LIKE))
        return like if like.sum() >= ENOUGH_ALIKE else others


def equal_code(before: Medians, after: Medians, timing: Timing, gpus: int, *, quiet: bool = False) -> EqualCode:
    """The cells of equal code of two runs of a workload, in one timing and number of GPUs. Those too short for the clock are left out. Of runs
    without any source, as imports are, all cells; of programs, those whose files are equal.

    Args:
        quiet: by the lower quartiles.
    """
    with_sources = before.tells_unchanged and after.tells_unchanged
    levels = [each.levels.quiet if quiet and each.levels.quiet else each.levels for each in (before, after)]
    of_before = {cell: row for row, cell in enumerate(before.cells) if timing_group(cell) == (timing, gpus)}
    every = [
        (cell, of_before[cell], row)
        for row, cell in enumerate(after.cells)
        if cell in of_before
        and (source := before.source(cell.variant)) == after.source(cell.variant)
        and (source or not with_sources)
    ]
    first, second = (np.array([each[side] for each in every], dtype=np.int64) for side in (1, 2))
    far = moved(levels[0].logs[first], levels[1].logs[second])
    known = np.flatnonzero(np.isfinite(far))
    places = {every[place][0]: row for row, place in enumerate(known.tolist())}
    variances = levels[0].error[first] ** 2 + levels[1].error[second] ** 2
    return EqualCode(places, levels[0].log[first][known], far[known], variances[known])


class Machine:
    """The noise of a machine: how far its neighbouring runs are apart in equal code.

    Args:
        runs: of a workload on one device and by one collector, the oldest first. The newest `MOST_RUNS` count.
        timing, gpus: of the cells.
        absolute: of the times as they are, not relative to the common shift.
    """

    def __init__(self, runs: Sequence[Medians], timing: Timing, gpus: int, *, absolute: bool = False) -> None:
        newest = runs[-MOST_RUNS:]
        equal = [(frozenset((a.run_id, b.run_id)), equal_code(a, b, timing, gpus)) for a, b in pairwise(newest)]
        self._pairs = [(runs_of_pair, each if absolute else each.relative) for runs_of_pair, each in equal]
        self._known: dict[float, list[tuple[frozenset[str], float]]] = {}

    def spread(self, log: float, without: frozenset[str]) -> Spread:
        """The noise between neighbouring runs, from the cells of like times.

        A pair of runs counts once, however many cells it has, because all cells of a run may shift alike.

        Args:
            log: the logarithm of the time of the cell that is judged.
            without: the two runs that are judged; their pair is left out.
        """
        about = round(log, 1)
        if about not in self._known:
            every = [(runs, equal.spread(about)) for runs, equal in self._pairs]
            self._known[about] = [(runs, found.variance) for runs, found in every if found.freedom]
        variances = [variance for runs, variance in self._known[about] if runs != without]
        return Spread(float(np.quantile(variances, MOST)) if variances else 0.0, len(variances))


class Judgement(NamedTuple):
    """A cell of two runs.

    Attributes:
        ratio: the second time over the first, relative to the unchanged variants of the case where there are any.
        noise: see `ratio_and_noise`.
        shift: the factor that was taken out: how many times as long the unchanged variants take; NaN where nothing was.
    """

    ratio: Estimate
    noise: float
    verdict: Verdict
    shift: float = math.nan

    def or_quiet(self, quiet: "Judgement") -> "Judgement":
        """This judgement, or that by the lower quartiles: the one that sees a difference, of two that do or do not the one with less noise."""
        if self.verdict == "unknown" or quiet.verdict == "unknown":
            return self
        sees, quiet_sees = self.verdict != "tied", quiet.verdict != "tied"
        if sees != quiet_sees:
            return self if sees else quiet
        is_same = not sees or (self.ratio.value > 1) == (quiet.ratio.value > 1)
        return quiet if is_same and quiet.noise < self.noise else self


class Pair:
    """Two runs of a workload, in one timing and number of GPUs. Compare and Trends judge cells by this class alone.

    Args:
        machine: the noise between other runs of the machine.
        absolute: judge the times as they are, not relative to the unchanged variants. Runs without sources, and of programs, are judged so, because
            nothing tells which of their variants are unchanged.
    """

    def __init__(
        self,
        before: Medians,
        after: Medians,
        timing: Timing,
        gpus: int,
        machine: Callable[[], Machine],
        *,
        absolute: bool = False,
    ) -> None:
        absolute = absolute or not (before.tells_unchanged and after.tells_unchanged)
        self._moved = equal_code(before, after, timing, gpus)
        self._equal = self._moved if absolute else self._moved.relative
        self._seen_by_host = not absolute and timing.scope != _OF_DEVICE
        self._quiet_moved = equal_code(before, after, timing, gpus, quiet=True) if self._seen_by_host else self._moved
        self._quiet = self._quiet_moved.relative
        self._machine, self._runs, self._absolute = machine, frozenset((before.run_id, after.run_id)), absolute
        self._clock_ns = max(before.scatter_ns, after.scatter_ns) if is_single(timing.scope, timing.cache) else 0.0

    def judge(self, before: Level, after: Level, cell: TimedCell, smallest: float, *, equal: bool) -> Judgement:
        """The verdict about a cell.

        A time that the host sees is also judged by its lower quartile, where three other cells of equal code tell the noise of that. A time that is
        longer in all calls shows in both, and one that is longer in a part of them in the median alone.

        Args:
            before, after: levels of the cell.
            cell: the cell in the second run; its own distance counts neither as noise nor as shift.
            smallest: see `judge`.
            equal: see `judge`.
        """
        known = self._equal
        between = noise_between(
            known.excess(before, after, cell) if self._seen_by_host else known.spread(before.log, cell),
            lambda: self._machine().spread(before.log, self._runs),
            several_processes=several_processes(before, after),
            shared=self._absolute and equal,
        )
        tails = _HEAVY_TAILS if self._absolute else tails_of(cell.scope)
        of_clock = 1 + self._clock_ns / math.exp(min(before.log, after.log)) if self._clock_ns else 1.0

        def judged(before: Level, after: Level, shift: float, between: Spread) -> Judgement:
            """The verdict about two levels, without a shift that is not NaN."""
            after = after if math.isnan(shift) else after.moved(-shift)
            ratio, noise = ratio_and_noise(before, after, between, tails)
            noise = max(noise, of_clock)  # NaN where it is not known
            verdict = judge(ratio, noise, smallest, n=min(before.n, after.n), equal=equal)
            return Judgement(ratio, noise, verdict, math.exp(shift))

        typical = judged(before, after, math.nan if self._absolute else self._moved.shift(cell.case, cell), between)
        others = len(known.places) - (cell in known.places)
        if not (self._seen_by_host and before.quiet and after.quiet) or others < FEWEST:
            return typical
        between = self._quiet.excess(before.quiet, after.quiet, cell)
        return typical.or_quiet(judged(before.quiet, after.quiet, self._quiet_moved.shift(cell.case, cell), between))


def noise_between(own: Spread, shown: Callable[[], Spread], *, several_processes: bool, shared: bool = False) -> Spread:
    """The noise around a cell: from the other cells of equal code, or from at least three pairs of other runs of the machine.

    Other runs tell it where a change that all cells share is looked for, and where there are fewer than three cells and processes. Without
    them, the distances of one or two cells, which may be small by luck, count as the smallest effect.

    Args:
        own: see `EqualCode.spread`.
        shown: see `Machine.spread`.
        several_processes: whether the errors of the levels hold the noise from one process to the next.
        shared: whether a change that all cells share is looked for.
    """
    few = own.freedom < FEWEST and not several_processes
    if (shared or few) and (of_others := shown()).freedom >= FEWEST:
        return of_others
    return own._replace(variance=max(own.variance, math.log1p(SMALLEST_EFFECT) ** 2)) if few else own


def ratio_and_noise(before: Level, after: Level, between: Spread, tails: float = _HEAVY_TAILS) -> tuple[Estimate, float]:
    """The ratio of two levels of a cell with an interval that holds the noise between runs, and the factor, at least 1, that bounds further
    ratios of equal code; NaN where neither processes nor other cells tell it.

    Args:
        tails: the noise is so many times as wide as the interval.
    """
    ratio = ratio_of(before, after, *between)
    if not ratio.known or not (between.freedom or several_processes(before, after)):
        return ratio, math.nan
    return ratio, math.exp(min(tails * half_width(before, after, *between), MOST_LOG))


def judge(ratio: Estimate, noise: float, smallest: float, *, n: int, equal: bool) -> Verdict:
    """The verdict about a cell of two runs.

    Args:
        ratio: time of the second run over the time of the first.
        noise: a factor of at least 1; NaN where it is not known.
        smallest: smaller differences are tied, a fraction.
        n: samples of the smaller side.
        equal: whether the code is known to be equal on both sides, so that a change of code cannot be the reason.

    Returns:
        `unknown` below six samples, and where the noise or the interval is not known. `tied` unless the whole interval is beyond
        the smallest effect, and the ratio beyond the noise. Then `drifted` for equal code, else `slower` or `faster`.
    """
    if not ratio.known or math.isnan(noise) or n < MIN_SAMPLES:
        return "unknown"
    slower = ratio.low > 1 + smallest and ratio.value > noise
    faster = ratio.high < 1 / (1 + smallest) and ratio.value < 1 / noise
    if not slower and not faster:
        return "tied"
    if equal:
        return "drifted"
    return "slower" if slower else "faster"


def slowness(verdict: Verdict, ratio: Estimate) -> tuple[int, float]:
    """The order of rows: the slower ones, then those with another verdict, then the faster ones; each part by its ratio."""
    return {"slower": 0, "faster": 2}.get(verdict, 1), -ratio.value if ratio.known else math.inf


def least_effect(ratio: Estimate, noise: float, smallest: float) -> float:
    """The smallest slowdown, as a fraction, that would have been called with this interval and noise."""
    return max(noise, (1 + smallest) * ratio.value / ratio.low) - 1 if ratio.known and ratio.low > 0 else math.nan


def same_machine(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two runs have the same device and collector, from their rows of table `run`."""
    return bool((a["device_name"] or a["cpu_name"]) == (b["device_name"] or b["cpu_name"]) and a["collector"] == b["collector"])


def runs_of(every: Sequence[store.Run], info: Mapping[str, Any], workload: str) -> list[store.Run]:
    """The newest runs with samples of a workload on the machine of a run, the oldest first. Copies of a run count once."""
    by_id: dict[str, store.Run] = {}
    for run in sorted(every, key=lambda run: (run.info["started_at"], run.run_id), reverse=True):
        if len(by_id) == MOST_RUNS:
            break
        try:
            if run.run_id not in by_id and same_machine(run.info, info) and "samples" in run.tables and workload in run.timed:
                by_id[run.run_id] = run
        except store.StoreError:
            continue
    return list(by_id.values())[::-1]


class Recordings:
    """The other runs in some folders, read once and only when needed.

    Args:
        folders: folders of runs.
        info: the row of table `run` of a run of the machine.
    """

    def __init__(self, folders: Sequence[Path], info: Mapping[str, Any]) -> None:
        self._folders, self._info = folders, info
        self._known: dict[str, list[Medians]] = {}

    def __call__(self, workload: str) -> list[Medians]:
        """The medians of a workload in the runs, the oldest first. Runs that cannot be read are left out."""
        if workload not in self._known:
            found = self._known[workload] = []
            for run in runs_of(store.list_runs(self._folders)[0], self._info, workload):
                with suppress(store.StoreError):
                    found.append(medians(run, workload))
        return self._known[workload]
