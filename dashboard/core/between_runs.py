"""The one rule by which a cell of two runs is judged: its ratio against the noise between runs.

The noise is how far the times of cells of equal code differ, in the same two runs or in other recordings of the same machine.
Compare, Trends and `record --watch` use the same functions.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from warpladder.dashboard.core.cell import Estimate, Timing
from warpladder.dashboard.core.history import (
    ENOUGH_ALIKE,
    LIKE,
    Level,
    Medians,
    TimedCell,
    medians,
    several_processes,
    student,
    timing_group,
)
from warpladder.dashboard.core.history import ratio as ratio_of
from warpladder.dashboard.core.intervals import MIN_SAMPLES
from warpladder.data import store

Verdict = Literal["slower", "faster", "tied", "drifted", "unknown"]
VERDICTS: Final[tuple[Verdict, ...]] = ("slower", "tied", "faster", "drifted", "unknown")

#: A difference smaller than this is `tied`, however narrow its interval is.
SMALLEST_EFFECT: Final = 0.01
#: The fewest distances, of cells or of pairs of runs, from which a noise or a common shift is computed.
FEWEST: Final = 3
_WITHIN: Final = 0.95
#: From so many distances on, the order statistic alone holds 95 %: the largest of n others is exceeded in 1 of n + 1.
_FOR_ORDER: Final = 19
#: Below that number, Student's prediction interval is widened by this factor. With factor 1 it holds 95 % of normal distances.
#: With factor 1.25 it also holds 95 % of the distances between values of Student's t with three degrees of freedom.
#: `benchmarks/verdicts.py` counts both.
_HEAVY_TAILS: Final = 1.25
#: A larger factor is no noise between processes where the cells of equal code are nearer: two standard deviations of the ratio of two
#: times, relative to a third that is equal, of processes that differ by 10 %.
_LARGE: Final = 1.5
#: The logarithm of the largest factor, beyond which `exp` would overflow.
_MOST_LOG: Final = 50.0
#: The newest runs of a machine from which its noise is taken.
MOST_RUNS: Final = 30

Floats = npt.NDArray[np.float64]


def noise_of(distances: Floats) -> float:
    """The factor, at least 1, that bounds 95 % of further distances.

    Args:
        distances: distances of logarithms, without their signs.
    """
    n = len(distances)
    if n >= _FOR_ORDER:
        return math.exp(float(np.sort(distances)[math.ceil(_WITHIN * (n + 1)) - 1]))
    return math.exp(min(_HEAVY_TAILS * student(n) * math.sqrt(float(np.mean(distances**2))), _MOST_LOG))


@dataclass(frozen=True)
class EqualCode:
    """The cells of equal code in two runs, of one workload, timing and number of GPUs.

    Attributes:
        places: the place of each cell in the other two.
        logs: logarithms of the times in the first run.
        moved: logarithms of the ratios of the two times.
    """

    places: Mapping[TimedCell, int]
    logs: Floats
    moved: Floats

    def shifts(self) -> dict[str, float]:
        """Case -> the common shift of its cells, the median of `moved`, of cases with enough of them."""
        by_case: dict[str, list[float]] = {}
        for cell, place in self.places.items():
            by_case.setdefault(cell.case, []).append(float(self.moved[place]))
        return {case: float(np.median(moved)) for case, moved in by_case.items() if len(moved) >= FEWEST}

    def without(self, shifts: Mapping[str, float]) -> "EqualCode":
        """The same cells without the shift of each case."""
        return replace(self, moved=self.moved - [shifts.get(cell.case, 0.0) for cell in self.places])

    def over(self, variant: str) -> "EqualCode":
        """The cells of other variants relative to one, in the cases that have it."""
        of_variant: dict[str, list[float]] = {}
        for cell, place in self.places.items():
            if cell.variant == variant:
                of_variant.setdefault(cell.case, []).append(float(self.moved[place]))
        places = {cell: place for cell, place in self.places.items() if cell.variant != variant and cell.case in of_variant}
        rows = list(places.values())
        moved = self.moved[rows] - [float(np.median(of_variant[cell.case])) for cell in places]
        return EqualCode({cell: place for place, cell in enumerate(places)}, self.logs[rows], moved)

    def like(self, log: float, without: TimedCell | None = None) -> Floats:
        """How far the cells of like times are apart, from a third to three times a time; all cells if fewer than eight are alike.

        Args:
            log: the logarithm of the time.
            without: a cell to leave out.
        """
        others = np.ones(len(self.moved), dtype=bool)
        if without is not None and without in self.places:
            others[self.places[without]] = False
        like = others & (np.abs(self.logs - log) <= math.log(LIKE))
        # Sorted, so that the order of the cells changes no last digit.
        return np.sort(np.abs(self.moved[like if like.sum() >= ENOUGH_ALIKE else others]))


def equal_code(before: Medians, after: Medians, timing: Timing, gpus: int) -> EqualCode:
    """The cells of equal code of two runs of a workload, in one timing and number of GPUs. Those too short for the clock are left out."""
    of_before = {cell: row for row, cell in enumerate(before.cells) if timing_group(cell) == (timing, gpus)}
    places: dict[TimedCell, int] = {}
    logs, moved = [], []
    for cell, log in zip(after.cells, after.levels.log, strict=True):
        if cell in of_before and before.sources.get(cell.variant, "") == after.sources.get(cell.variant, ""):
            first = float(before.levels.log[of_before[cell]])
            if math.isfinite(log - first):
                places[cell] = len(places)
                logs.append(first)
                moved.append(float(log) - first)
    return EqualCode(places, np.array(logs), np.array(moved))


class Machine:
    """What a machine has shown: how far its neighbouring runs are apart in equal code.

    Args:
        runs: of a workload on one device and by one collector, the oldest first. The newest `MOST_RUNS` count.
        timing, gpus: of the cells.
    """

    def __init__(self, runs: Sequence[Medians], timing: Timing, gpus: int) -> None:
        newest = runs[-MOST_RUNS:]
        self._pairs = [
            (frozenset((before.run_id, after.run_id)), equal_code(before, after, timing, gpus))
            for before, after in pairwise(newest)
        ]
        self._known: dict[float, list[tuple[frozenset[str], float]]] = {}

    def distances(self, log: float, without: frozenset[str]) -> Floats:
        """The root mean square of the distances of each pair of runs, of the cells of like times.

        A pair of runs counts once, however many cells it has, because all cells of a run may shift alike.

        Args:
            log: the logarithm of the time of the cell that is judged.
            without: the two runs that are judged; their pair is left out.
        """
        about = round(log, 1)
        if about not in self._known:
            of_pairs = [(runs, equal.like(about)) for runs, equal in self._pairs]
            self._known[about] = [
                (runs, math.sqrt(float(np.mean(distances**2)))) for runs, distances in of_pairs if len(distances)
            ]
        return np.array([distances for runs, distances in self._known[about] if runs != without])


def noise(own: Floats, shown: Callable[[], Floats], *, several_processes: bool, equal: bool) -> float:
    """The noise between two runs around a cell, a factor of at least 1; NaN where it is not known.

    For equal code, the noise comes from at least three pairs of other runs of the machine, so that a drift of all cells shows.
    Otherwise it comes from the other cells of equal code of the two runs, if they are at least eight. With fewer cells, and three
    processes in both runs, the noise is the largest of their distances, because the interval holds the rest. With fewer
    processes, it comes from three cells, or from other runs of the machine, or from one or two cells. The distances of one or
    two cells count at least as the smallest effect, and their noise is at most 1.5, or the square of their largest distance.

    Args:
        own: distances of the other cells of equal code of the two runs; see `EqualCode.like`.
        shown: see `Machine.distances`.
        several_processes: whether the interval of the ratio holds the noise from one process to the next.
        equal: whether the code of the cell itself is equal.
    """
    if equal and len(distances := shown()) >= FEWEST:
        return noise_of(distances)
    if len(own) >= ENOUGH_ALIKE:
        return noise_of(own)
    least = math.exp(float(own.max(initial=0.0)))
    if several_processes:
        return least
    distances = own if len(own) >= FEWEST else shown()
    if len(distances) < FEWEST:
        if not len(own):
            return math.nan
        # A small distance of one or two cells may be luck, or a coarse clock.
        return min(noise_of(np.maximum(own, math.log1p(SMALLEST_EFFECT))), max(_LARGE, least**2))
    return max(noise_of(distances), least)


def ratio_and_noise(
    before: Level, after: Level, own: Floats, shown: Callable[[], Floats], *, equal: bool
) -> tuple[Estimate, float]:
    """The ratio of two levels of a cell with an interval that holds the noise between runs, and that noise.

    Where both runs have three processes, the processes give the interval. The noise of fewer than eight cells is then a shift
    that all cells may share, and is added to the interval. With fewer processes the noise is added as squares, where it is
    known. The arguments are documented at `levels.ratio` and `noise`.
    """
    several = several_processes(before, after)
    ratio, around = ratio_of(before, after), noise(own, shown, several_processes=several, equal=equal)
    if math.isnan(around) or not ratio.known or (several and len(own) >= ENOUGH_ALIKE):
        return ratio, around
    added = math.log(around)
    down, up = math.log(ratio.value / ratio.low), math.log(ratio.high / ratio.value)
    down, up = (down + added, up + added) if several else (math.hypot(down, added), math.hypot(up, added))
    return Estimate(ratio.value, ratio.value * math.exp(-down), ratio.value * math.exp(up)), around


class Judgement(NamedTuple):
    """A cell of two runs: the ratio of the second over the first, the noise, and the verdict."""

    ratio: Estimate
    noise: float
    verdict: Verdict


class Pair:
    """Two runs of a workload, in one timing and number of GPUs. Compare and Trends judge cells by this class alone.

    Args:
        machine: the noise between other runs of the machine.
        without_shift: judge without the common shift of each case.
    """

    def __init__(
        self,
        before: Medians,
        after: Medians,
        timing: Timing,
        gpus: int,
        machine: Callable[[], Machine],
        *,
        without_shift: bool = False,
    ) -> None:
        equal = equal_code(before, after, timing, gpus)
        self.shifts: Final = equal.shifts()
        self._equal = equal.without(self.shifts) if without_shift else equal
        self._machine, self._runs, self._without_shift = machine, frozenset((before.run_id, after.run_id)), without_shift

    def judge(self, before: Level, after: Level, cell: TimedCell, smallest: float, *, equal: bool) -> Judgement:
        """The verdict about a cell.

        Args:
            before, after: levels of the cell.
            cell: the cell in the second run; its own distance does not count as noise.
            smallest: see `judge`.
            equal: see `judge`.
        """
        own = self._equal.like(before.log, cell)
        ratio, around = ratio_and_noise(
            before, after, own, lambda: self._machine().distances(before.log, self._runs), equal=equal
        )
        estimate = ratio.times(math.exp(-self.shifts.get(cell.case, 0.0))) if self._without_shift else ratio
        return Judgement(ratio, around, judge(estimate, around, smallest, n=min(before.n, after.n), equal=equal))


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
            every, _ = store.list_runs(self._folders)
            self._known[workload] = [
                medians for run in runs_of(every, self._info, workload) if (medians := _read(run, workload)) is not None
            ]
        return self._known[workload]


def _read(run: store.Run, workload: str) -> Medians | None:
    try:
        return medians(run, workload)
    except store.StoreError:
        return None
