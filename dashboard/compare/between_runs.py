"""The one rule by which a cell of two runs is judged: its ratio over the unchanged variants, against the noise between runs.

What a machine does to all variants of a case cancels: a cell counts relative to the cells of equal code of its case. The noise is how
far those are from each other, in the same two runs or in other recordings of the machine. Compare, Trends and `record --watch` use
the same functions.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from warpladder.dashboard.compare.levels import (
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
from warpladder.dashboard.compare.levels import ratio as ratio_of
from warpladder.dashboard.core.cell import Estimate, Timing
from warpladder.dashboard.core.intervals import MIN_SAMPLES
from warpladder.data import store

Verdict = Literal["slower", "faster", "tied", "drifted", "unknown"]
VERDICTS: Final[tuple[Verdict, ...]] = ("slower", "tied", "faster", "drifted", "unknown")

#: A difference smaller than this is `tied`, however narrow its interval is.
SMALLEST_EFFECT: Final = 0.01
#: The fewest distances, of cells or of pairs of runs, from which a noise or a common shift is computed.
FEWEST: Final = 3
#: Distances that are so many times as large as the median one are of cells that moved by themselves, and are no noise.
_MOVED: Final = 6.0
#: The median of normal distances over their standard deviation.
_MEDIAN_OVER_DEVIATION: Final = 0.6745
#: Student's prediction interval is widened by this factor. Then 99.8 % of normal distances lie within, and 99 % of distances between values
#: of Student's t with three degrees of freedom. `benchmarks/verdicts.py` counts both.
_HEAVY_TAILS: Final = 1.6
#: A larger factor is no noise between processes where the cells of equal code are nearer: two standard deviations of the ratio of two
#: times, relative to a third that is equal, of processes that differ by 10 %.
_LARGE: Final = 1.5
#: The logarithm of the largest factor, beyond which `exp` would overflow.
_MOST_LOG: Final = 50.0
#: The newest runs of a machine from which its noise is taken.
MOST_RUNS: Final = 30

Floats = npt.NDArray[np.float64]


def usual(distances: Floats) -> Floats:
    """The distances without those of cells that moved by themselves: more than six standard deviations, from the median distance."""
    if not len(distances):
        return distances
    most = _MOVED * float(np.median(distances)) / _MEDIAN_OVER_DEVIATION
    return distances[distances <= max(most, math.log1p(SMALLEST_EFFECT))]


def noise_of(distances: Floats) -> float:
    """The factor, at least 1, that bounds further distances: Student's prediction interval from the root mean square of the usual ones.

    Args:
        distances: distances of logarithms, without their signs, at least one.
    """
    found = usual(distances)
    return math.exp(min(_HEAVY_TAILS * student(len(found)) * _root_mean_square(found), _MOST_LOG))


def _root_mean_square(values: Floats) -> float:
    return math.sqrt(float(np.mean(values**2)))


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

    def distances(self, log: float, without: frozenset[str]) -> Floats:
        """The root mean square of the usual distances of each pair of runs, of the cells of like times.

        A pair of runs counts once, however many cells it has, because all cells of a run may shift alike.

        Args:
            log: the logarithm of the time of the cell that is judged.
            without: the two runs that are judged; their pair is left out.
        """
        about = round(log, 1)
        if about not in self._known:
            of_pairs = [(runs, equal.like(about)) for runs, equal in self._pairs]
            self._known[about] = [(runs, _root_mean_square(usual(distances))) for runs, distances in of_pairs if len(distances)]
        return np.array([distances for runs, distances in self._known[about] if runs != without])


def noise(own: Floats, shown: Callable[[], Floats], *, several_processes: bool, shared: bool = False) -> float:
    """The noise between two runs around a cell, a factor of at least 1; NaN where it is not known.

    A change that all cells share is told from noise by at least three pairs of other runs of the machine. Else the noise comes from the other cells of equal code of the two runs, if they are at least eight. With fewer cells, and three processes in
    both runs, the noise is the largest of their usual distances, because the interval holds the rest. With fewer processes, it comes
    from three cells, or from other runs of the machine, or from one or two cells. The distances of one or two cells count at least as
    the smallest effect, and their noise is at most 1.5, or the square of their largest distance.

    Args:
        own: distances of the other cells of equal code of the two runs; see `EqualCode.like`.
        shown: see `Machine.distances`.
        several_processes: whether the interval of the ratio holds the noise from one process to the next.
        shared: whether a change that all cells share is looked for.
    """
    if shared and len(distances := shown()) >= FEWEST:
        return noise_of(distances)
    if len(own) >= ENOUGH_ALIKE:
        return noise_of(own)
    least = math.exp(float(usual(own).max(initial=0.0)))
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
    before: Level, after: Level, own: Floats, shown: Callable[[], Floats], *, shared: bool = False
) -> tuple[Estimate, float]:
    """The ratio of two levels of a cell with an interval that holds the noise between runs, and that noise.

    Where both runs have three processes, the processes give the interval. The noise of fewer than eight cells is then a shift
    that all cells may share, and is added to the interval. With fewer processes the noise is added as squares, where it is
    known. The arguments are documented at `levels.ratio` and `noise`.
    """
    several = several_processes(before, after)
    ratio, around = ratio_of(before, after), noise(own, shown, several_processes=several, shared=shared)
    if math.isnan(around) or not ratio.known or (several and len(own) >= ENOUGH_ALIKE):
        return ratio, around
    added = math.log(around)
    down, up = math.log(ratio.value / ratio.low), math.log(ratio.high / ratio.value)
    down, up = (down + added, up + added) if several else (math.hypot(down, added), math.hypot(up, added))
    return Estimate(ratio.value, ratio.value * math.exp(-down), ratio.value * math.exp(up)), around


class Judgement(NamedTuple):
    """A cell of two runs.

    Attributes:
        ratio: the second time over the first, relative to the unchanged variants of the case where there are any.
        noise: see `noise`.
        shift: the factor that was taken out: how many times as long the unchanged variants take; NaN where nothing was.
    """

    ratio: Estimate
    noise: float
    verdict: Verdict
    shift: float = math.nan


class Pair:
    """Two runs of a workload, in one timing and number of GPUs. Compare and Trends judge cells by this class alone.

    Args:
        machine: the noise between other runs of the machine.
        absolute: judge the times as they are, not relative to the unchanged variants.
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
        self._moved = equal_code(before, after, timing, gpus)
        self._equal = self._moved if absolute else self._moved.relative
        self._machine, self._runs, self._absolute = machine, frozenset((before.run_id, after.run_id)), absolute

    def judge(self, before: Level, after: Level, cell: TimedCell, smallest: float, *, equal: bool) -> Judgement:
        """The verdict about a cell.

        Args:
            before, after: levels of the cell.
            cell: the cell in the second run; its own distance counts neither as noise nor as shift.
            smallest: see `judge`.
            equal: see `judge`.
        """
        shift = math.nan if self._absolute else self._moved.shift(cell.case, cell)
        if not math.isnan(shift):
            after = after._replace(log=after.log - shift)
        own = self._equal.like(before.log, cell)
        ratio, around = ratio_and_noise(
            before, after, own, lambda: self._machine().distances(before.log, self._runs), shared=self._absolute and equal
        )
        verdict = judge(ratio, around, smallest, n=min(before.n, after.n), equal=equal)
        return Judgement(ratio, around, verdict, math.exp(shift))


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


class Judged(Protocol):
    """A row of a comparison."""

    @property
    def ratio(self) -> Estimate: ...
    @property
    def verdict(self) -> Verdict: ...


JudgedRow = TypeVar("JudgedRow", bound=Judged)


def slowest_first(changes: Iterable[JudgedRow]) -> list[JudgedRow]:
    """The slower rows, then rows with another verdict, then the faster ones; each part by its ratio."""
    places = {"slower": 0, "faster": 2}
    return sorted(changes, key=lambda each: (places.get(each.verdict, 1), -each.ratio.value if each.ratio.known else math.inf))


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
