"""The variants of a workload over runs in time: their levels, the steps between them, and what changed at each step."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from warpladder.dashboard.core import facts, steps
from warpladder.dashboard.core.between_runs import FEWEST_FOR_NOISE, SMALLEST_EFFECT, UNMEASURED_NOISE, noise_of_pairs
from warpladder.dashboard.core.cell import name_of
from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.facts import Fact
from warpladder.dashboard.core.history import Medians, TimedCell
from warpladder.dashboard.core.timing import Timing

Floats = npt.NDArray[np.float64]
#: The half width of a 95 % interval, and of that of a difference of two, in standard deviations.
_OF_ONE: Final = 1.96
_OF_TWO: Final = _OF_ONE * math.sqrt(2)
#: The least noise of a run, a fraction; kernels above 100 µs differ by as much between processes.
_LEAST_NOISE: Final = 0.0005
#: Median distance over standard deviation, of normal noise.
_MEDIAN_OVER_DEVIATION: Final = 0.6745
_COMMIT: Final = ("commit", "changes beyond the commit")


@dataclass(frozen=True, eq=False)
class Recorded:
    """A run with what it measured of a workload.

    Attributes:
        name: of the run in a URL.
        info: the row of table `run`.
    """

    name: str
    info: Mapping[str, Any]
    medians: Medians

    @property
    def title(self) -> str:
        return str(self.info["label"] or self.info["run_id"])

    @property
    def started_at(self) -> datetime:
        started: datetime = self.info["started_at"]
        return started

    @property
    def commit(self) -> str:
        """The first letters of the commit, with a `+` where there were changes beyond it; empty where none is known."""
        short = str(self.info["git_commit"])[:7] if self.info["kind"] == "recording" else ""
        return f"{short}+" if short and self.info["git_dirty"] else short


@dataclass(frozen=True)
class Point:
    """A variant in one run.

    Attributes:
        run: the place of the run in `Trends.runs`.
        source: hash of the variant's source; empty where none was recorded.
    """

    run: int
    time_ns: Estimate
    n: int
    source: str


@dataclass(frozen=True)
class Step:
    """A change between two neighbouring levels.

    Attributes:
        place: the first point of the new level; the point before it is the last of the old one.
        ratio: the new level over the old one, with the noise between runs in its interval; above 1, the variant became slower.
        new_source: whether the source text is another one after the step.
        facts: the other differences between the two runs beside the step; the commit is the last.
        runs: points of the new level. A level of one run may be an outlier.
    """

    place: int
    ratio: Estimate
    new_source: bool
    facts: tuple[Fact, ...]
    runs: int


@dataclass(frozen=True)
class Level:
    """Points between two steps.

    Attributes:
        first, last: places of its first and last point.
    """

    first: int
    last: int
    time_ns: float


@dataclass(frozen=True)
class Series:
    """A variant with a config over the runs that have it.

    Attributes:
        noise: the noise between two runs, a factor of at least 1: 95 % of the pairs of runs without a change differ by less.
        measured: whether the noise was measured; else it is the documented one.
        since_first: the last time over the first one, with the noise between runs in its interval.
    """

    variant: str
    config: str
    gpus: int
    points: tuple[Point, ...]
    levels: tuple[Level, ...]
    steps: tuple[Step, ...]
    noise: float
    measured: bool
    since_first: Estimate

    @property
    def name(self) -> str:
        several = f" on {self.gpus}" if self.gpus > 1 else ""
        return f"{name_of(self.variant, self.config)}{several}"

    @property
    def last(self) -> Point:
        return self.points[-1]


@dataclass(frozen=True)
class Trends:
    """The variants of a case and timing over runs.

    Attributes:
        runs: the runs that have a cell of it, the oldest first.
        series: the variants, that with the latest step first.
    """

    workload: str
    case: str
    timing: Timing
    runs: tuple[Recorded, ...]
    series: tuple[Series, ...]


def counts(recorded: Iterable[Recorded], of: Callable[[TimedCell], Any]) -> dict[Any, int]:
    """The number of runs that have a case, timing or other part of a cell, in the order in which the runs have them."""
    found: dict[Any, int] = {}
    for run in recorded:
        for each in dict.fromkeys(map(of, run.medians.cells)):
            found[each] = found.get(each, 0) + 1
    return found


def cases_of(recorded: Sequence[Recorded]) -> dict[str, str]:
    """The cases on the size axis of any run, by size, with the JSON of their parameters."""
    found: dict[str, tuple[int, str]] = {}
    for run in recorded:
        found |= run.medians.cases
    return {case: params for case, (_, params) in sorted(found.items(), key=lambda each: each[1][0])}


def trends(recorded: Sequence[Recorded], workload: str, case: str, timing: Timing) -> Trends:
    """The variants of a case over the runs, on one device and by one collector.

    Levels are fitted to the logarithms of the medians; see `steps.find_levels`. The noise of a run is that between runs and that
    within the run. The noise between runs is taken from pairs of neighbouring runs as in a comparison of two runs, from all cases
    of the timing: of each pair, 95 % of the cells with equal sources and like times are less apart. The median over the pairs is
    taken, so that one pair with another driver counts little. A change is expected where the source changed.

    Args:
        recorded: the runs in any order.
    """
    ordered = sorted(recorded, key=lambda run: (run.started_at, str(run.info["run_id"])))
    runs = [run for run in ordered if any(cell.case == case and cell.timing == timing for cell in run.medians.cells)]
    table = _Table.of(runs, timing)
    found = [_series(runs, table, place) for place, cell in enumerate(table.cells) if cell.case == case]
    found.sort(key=lambda series: _latest(runs, series))
    return Trends(workload, case, timing, tuple(runs), tuple(found))


def _latest(runs: Sequence[Recorded], series: Series) -> tuple[float, bool, float, str, str]:
    """A key that puts the latest step first, of one run those with a new source, then the largest; then the others by name."""
    if not series.steps:
        return math.inf, False, 0.0, series.variant, series.config
    step = series.steps[-1]
    size = abs(math.log(step.ratio.value))
    return -series.points[step.place].run, not step.new_source, -size, series.variant, series.config


@dataclass(frozen=True, eq=False)
class _Table:
    """Every cell of a timing in every run; NaN where a run lacks it.

    Attributes:
        logs: logarithms of the medians, shape (cells, runs).
        apart: distances between each run and the one before it that has the cell; NaN where the sources differ. Same shape.
        times_ns: of the cells, medians over the runs.
        figures: run by run, the row of each cell in `Medians.figures`.
    """

    cells: tuple[TimedCell, ...]
    logs: Floats
    apart: Floats
    times_ns: Floats
    figures: tuple[Mapping[TimedCell, int], ...]

    @classmethod
    def of(cls, runs: Sequence[Recorded], timing: Timing) -> "_Table":
        figures = tuple(
            {
                cell: row
                for row, cell in enumerate(run.medians.cells)
                if (cell.scope, cell.cache) == (timing.scope, timing.cache)
            }
            for run in runs
        )
        cells = tuple(dict.fromkeys(cell for of_run in figures for cell in of_run))
        places = {cell: place for place, cell in enumerate(cells)}
        logs = np.full((len(cells), len(runs)), np.nan)
        for column, (run, of_run) in enumerate(zip(runs, figures, strict=True)):
            logs[[places[cell] for cell in of_run], column] = np.log(run.medians.figures[list(of_run.values()), 0])
        apart = np.full(logs.shape, np.nan)
        for row, cell in enumerate(cells):
            sources = [run.medians.sources.get(cell.variant, "") for run in runs]
            for before, after in pairwise(np.flatnonzero(~np.isnan(logs[row]))):
                if sources[before] == sources[after]:
                    apart[row, after] = abs(logs[row, after] - logs[row, before])
        times = np.exp(np.nanmedian(logs, axis=1)) if len(cells) else np.zeros(0)
        return cls(cells, logs, apart, times, figures)

    def noise(self, place: int) -> tuple[float, bool]:
        """The noise between two runs for a cell, and whether it was measured."""
        others = np.arange(len(self.cells)) != place
        apart, times = self.apart[others], self.times_ns[others]
        each = noise_of_pairs(apart, times, self.times_ns[place])
        if np.isnan(each).all():  # too few cells of each pair; all pairs together may have enough
            each = noise_of_pairs(apart.reshape(-1, 1), np.repeat(times, self.apart.shape[1]), self.times_ns[place])
        own = self.apart[place][np.isfinite(self.apart[place])]
        scatter = math.exp(_OF_ONE * float(np.median(own)) / _MEDIAN_OVER_DEVIATION) if len(own) >= FEWEST_FOR_NOISE else 1.0
        if np.isnan(each).all():
            return max(UNMEASURED_NOISE, scatter), len(own) >= FEWEST_FOR_NOISE
        return max(float(np.nanmedian(each)), scatter), True


def _series(runs: Sequence[Recorded], table: _Table, place: int) -> Series:
    cell = table.cells[place]
    points = []
    for column in np.flatnonzero(~np.isnan(table.logs[place])).tolist():
        medians = runs[column].medians
        row = table.figures[column][cell]
        source = medians.sources.get(cell.variant, "")
        points.append(Point(column, Estimate(*medians.figures[row].tolist()), int(medians.n[row]), source))
    noise, measured = table.noise(place)
    sigmas = _sigmas(points, noise)
    logs = table.logs[place][[point.run for point in points]]
    expected = [False, *(before.source != after.source for before, after in pairwise(points))]
    levels = steps.find_levels(logs, sigmas, expected, math.log1p(SMALLEST_EFFECT))
    return Series(
        cell.variant,
        cell.config,
        cell.gpus,
        tuple(points),
        tuple(Level(level.first, level.end - 1, math.exp(level.log)) for level in levels),
        tuple(_step(runs, points, before, after) for before, after in pairwise(levels)),
        noise,
        measured,
        _ratio(logs[-1] - logs[0], math.hypot(sigmas[0], sigmas[-1])) if len(points) > 1 else Estimate.unknown(),
    )


def _sigmas(points: Sequence[Point], noise: float) -> Floats:
    """The noise of each run as a standard deviation of the logarithm: that between runs, and that within the run."""
    between = max(math.log(noise) / _OF_TWO, _LEAST_NOISE)
    ends = np.array([(point.time_ns.low, point.time_ns.high) for point in points])
    within: Floats = np.log(ends[:, 1] / ends[:, 0]) / (2 * _OF_ONE)
    return np.hypot(between, within, out=within)


def _step(runs: Sequence[Recorded], points: Sequence[Point], before: steps.Level, after: steps.Level) -> Step:
    old, new = points[after.first - 1], points[after.first]
    of_old, of_new = runs[old.run], runs[new.run]
    found = [*facts.of_runs(of_old.info, of_new.info), *facts.of_clocks(of_old.medians.clock_mhz, of_new.medians.clock_mhz)]
    if of_new.info["kind"] != "recording":  # the commit of an import is that of the importer
        found = [fact for fact in found if fact.what not in _COMMIT]
    found.sort(key=lambda fact: (fact.what in _COMMIT, not fact.warning))
    return Step(
        after.first,
        _ratio(after.log - before.log, math.hypot(before.error, after.error)),
        old.source != new.source,
        tuple(found),
        after.end - after.first,
    )


def _ratio(log: float, sigma: float) -> Estimate:
    return Estimate(math.exp(log), math.exp(log - _OF_ONE * sigma), math.exp(log + _OF_ONE * sigma))


def neighbours(found: Trends, shown: Sequence[Series], place: int) -> list[tuple[int, int, str]]:
    """Pairs of runs to compare for a run: it with the run before it, and the two runs beside the nearest step.

    Args:
        shown: the variants that are looked at.
        place: of the run in `found.runs`.

    Returns:
        The places of the earlier and the later run, and the words of a link.
    """
    pairs: dict[tuple[int, int], str] = {}
    having = sorted({point.run for series in shown for point in series.points})
    if earlier := [run for run in having if run < place]:
        pairs[earlier[-1], place] = "Compare with the run before →"
    beside = [tuple(series.points[at].run for at in (step.place - 1, step.place)) for series in shown for step in series.steps]
    if beside:
        old, new = min(beside, key=lambda pair: min(abs(run - place) for run in pair))
        pairs[old, new] = f"Compare the two runs beside the step of {found.runs[new].started_at:%Y-%m-%d} →"
    return [(old, new, words) for (old, new), words in pairs.items()]


def cause(series: Series, step: Step) -> str:
    """What changed at a step: `new source 1a2b3c4 → 5d6e7f8` or `same source; driver 580.0 → 590.1, commit c0ffee0 → decaf00`."""
    old, new = (series.points[place].source for place in (step.place - 1, step.place))
    source = f"new source {short_hash(old)} → {short_hash(new)}" if step.new_source else "same source"
    told = ", ".join(f"{fact.what} {_short(fact, fact.a)} → {_short(fact, fact.b)}" for fact in step.facts)
    return source if step.new_source and not told else f"{source}; {told or 'no recorded fact changed'}"


def short_hash(source: str) -> str:
    return source[:7] or "none"


def _short(fact: Fact, text: str) -> str:
    if fact.what == "commit":
        return text[:7] or "none"
    return {"True": "yes", "False": "no", "": "none"}.get(text, text)


def sentence(found: Trends) -> str:
    """`7 of 11 variants became 2.5 to 2.8 % slower on 2026-09-18: same source; driver 580.65 → 590.11. 2 others changed earlier.`"""
    changed = [series for series in found.series if series.steps]
    if not changed:
        return f"No variant of {found.workload} changed by more than the noise over {len(found.runs)} runs."
    run = changed[0].points[changed[0].steps[-1].place].run
    last = [series for series in changed if series.points[series.steps[-1].place].run == run]
    steps_then = [series.steps[-1] for series in last]
    who = last[0].name if len(last) == 1 else f"{len(last)} of {len(found.series)} variants"
    doubt = ", by one run so far" if all(step.runs == 1 for step in steps_then) else ""
    told = f"{who} became {_changes(steps_then)} on {found.runs[run].started_at:%Y-%m-%d}{doubt}"
    causes = {cause(series, series.steps[-1]) for series in last}
    if len(causes) == 1:
        told += f": {causes.pop()}"
    earlier = len(changed) - len(last)
    more = f" {earlier} {'other' if earlier == 1 else 'others'} changed earlier." if earlier else ""
    return f"{told}.{more}"


def _changes(found: Sequence[Step]) -> str:
    """`2.5 to 2.8 % slower`; `3 slower, 2 faster`."""
    ratios = sorted(step.ratio.value for step in found)
    if ratios[0] < 1 < ratios[-1]:
        slower = sum(ratio > 1 for ratio in ratios)
        return f"slower ({slower}) or faster ({len(ratios) - slower})"
    ends = sorted(
        {change_words(ratio) for ratio in (ratios[0], ratios[-1])}, key=lambda words: float(words.split(" ")[0].rstrip("x"))
    )
    if len(ends) == 1 or ends[0].split(" ")[1] != ends[-1].split(" ")[1]:
        return ends[-1] if len(ends) == 1 else f"{ends[0]} to {ends[-1]}"
    return f"{ends[0].split(' ')[0]} to {ends[-1]}"


def change_words(ratio: float) -> str:
    """`4.1 % slower`, `3.9 % faster`; beyond twice, `2.10x slower`."""
    word = "slower" if ratio > 1 else "faster"
    if max(ratio, 1 / ratio) >= 2:
        return f"{max(ratio, 1 / ratio):.2f}x {word}"
    return f"{abs(100 * (ratio - 1)):.1f} % {word}"
