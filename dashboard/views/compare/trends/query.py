"""The variants of a workload over runs in time: their levels, the steps between them, and what changed at each step."""

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

import numpy as np

from warpladder.dashboard.compare import differences
from warpladder.dashboard.compare.between_runs import SMALLEST_EFFECT, Judgement, Machine, Pair, Verdict
from warpladder.dashboard.compare.differences import Fact
from warpladder.dashboard.compare.levels import Medians, TimedCell, timing_group
from warpladder.dashboard.core.cell import Estimate, Timing, name_of
from warpladder.dashboard.core.numbers import format_ratio
from warpladder.dashboard.core.steps import Level, find_levels
from warpladder.data.arrays import Floats

#: The half width of a 95 % interval, for one value and for a difference of two values, in standard deviations.
_OF_ONE: Final = 1.96
_OF_TWO: Final = _OF_ONE * math.sqrt(2)
#: The least noise of a run, a fraction; kernels above 100 µs differ by as much between processes.
_LEAST_NOISE: Final = 0.0005
#: Median distance over standard deviation, of normal noise.
_MEDIAN_OVER_DEVIATION: Final = 0.6745
#: The fewest distances of a variant from itself from which its scatter is computed.
_FEWEST_FOR_SCATTER: Final = 8
_TO_TELL: Final = "record in three processes, or with more variants that stay"
_MOST_FAILING: Final = 3  # that a sentence names
_COMMIT: Final = ("commit", "changes beyond the commit")


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """A run with its medians of a workload.

    Attributes:
        name: name of the run in a URL.
        info: the row of table `run`.
    """

    name: str
    info: Mapping[str, Any]
    medians: Medians

    @property
    def title(self) -> str:
        return str(self.info["label"] or f"{self.info['started_at']:%Y-%m-%d %H:%M}")

    @property
    def started_at(self) -> datetime:
        started: datetime = self.info["started_at"]
        return started

    @property
    def commit(self) -> str:
        """The first letters of the commit, with a `+` where the tree had further changes; empty where no commit is known."""
        short = str(self.info["git_commit"])[:7] if self.info["kind"] == "recording" else ""
        return f"{short}+" if short and self.info["git_dirty"] else short


@dataclass(frozen=True)
class Point:
    """A variant in one run.

    Attributes:
        run: the place of the run in `Trends.runs`.
        source: hash of the variant's source; empty where no source was recorded.
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
        verdict: the verdict of Compare about the two runs beside the step.
        ratio: the new level over the old one, with the noise between runs in its interval; above 1, the variant became slower.
        new_source: whether the source text differs after the step.
        facts: the other differences between the two runs beside the step; the commit is the last.
        runs: points of the new level. A level of one run may be an outlier.
    """

    place: int
    verdict: Verdict
    ratio: Estimate
    new_source: bool
    facts: tuple[Fact, ...]
    runs: int


@dataclass(frozen=True)
class Series:
    """A variant with a config over the runs that have it.

    Attributes:
        judged: the verdicts about each two neighbouring points, as on Compare.
        noise: the noise between two runs, a factor of at least 1: 95 % of the pairs of runs without a change differ by less; NaN
            where it is not known.
        since_first: the last time over the first one, with the noise between runs in its interval.
        failed: the runs in which the cell has a status other than `ok`: each its place in `Trends.runs` with the status.
    """

    variant: str
    config: str
    gpus: int
    points: tuple[Point, ...]
    levels: tuple[Level, ...]
    steps: tuple[Step, ...]
    judged: tuple[Judgement, ...]
    noise: float
    since_first: Estimate
    failed: tuple[tuple[int, str], ...] = ()

    @property
    def failing(self) -> tuple[tuple[int, str], ...]:
        """The runs of `failed` that are newer than every point, and so the present state of the variant."""
        return tuple(each for each in self.failed if each[0] > self.last.run)

    @property
    def is_unknown(self) -> bool:
        """Whether no two neighbouring points could be judged, so that a change would not be seen."""
        return all(each.verdict == "unknown" for each in self.judged)

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
        runs: the runs that have a cell of the case, the oldest first.
        series: the variants; the variant with the latest step comes first.
    """

    workload: str
    case: str
    timing: Timing
    runs: tuple[RecordedRun, ...]
    series: tuple[Series, ...]


def counts(recorded: Iterable[RecordedRun], of: Callable[[TimedCell], Any]) -> dict[Any, int]:
    """The number of runs that have a case, timing or other part of a cell, in the order in which the runs have them."""
    return Counter(each for run in recorded for each in dict.fromkeys(map(of, run.medians.cells)))


def cases_of(recorded: Sequence[RecordedRun]) -> dict[str, str]:
    """The cases on the size axis of any run, by size, with the JSON of their parameters."""
    cases: dict[str, tuple[int, str]] = {}
    for run in recorded:
        cases |= run.medians.cases
    return {case: params for case, (_, params) in sorted(cases.items(), key=lambda each: each[1][0])}


def trends(recorded: Sequence[RecordedRun], workload: str, case: str, timing: Timing) -> Trends:
    """The variants of a case over the runs, on one device and by one collector.

    Each two neighbouring runs of a variant are judged as `compare --absolute` does, because a driver that slows all variants is a
    step too; see `between_runs.Pair`. Where one of them is distrusted, nothing is known, as on Compare. A verdict `slower` or `faster` is a step. A verdict `drifted` is a step where the fit to the whole series has a step too (`steps.find_levels`), and at the newest
    run, because no later run contradicts it.

    Args:
        recorded: the runs in any order.
    """
    ordered = sorted(recorded, key=lambda run: (run.started_at, str(run.info["run_id"])))
    runs = [
        run
        for run in ordered
        if any((cell.case, cell.timing) == (case, timing) for cell in run.medians.cells)
        or any(of == case for of, *_ in run.medians.failed)
    ]
    judge = _Judge(ordered, runs, timing)
    cells = dict.fromkeys(each for run in runs for each in run.medians.cells if each.case == case and each.timing == timing)
    all_series = [series for cell in cells if (series := _series(runs, judge, cell))]
    all_series.sort(key=_latest)
    return Trends(workload, case, timing, tuple(runs), tuple(all_series))


def _latest(series: Series) -> tuple[float, bool, float, str, str]:
    """A sort key: series that fail now, then series by their latest step, and then the others by name.

    Steps at the same run are ordered by a new source, and then by size.
    """
    if series.failing:
        return -math.inf, False, 0.0, series.variant, series.config
    if not series.steps:
        return math.inf, False, 0.0, series.variant, series.config
    step = series.steps[-1]
    size = abs(math.log(step.ratio.value))
    return -series.points[step.place].run, not step.new_source, -size, series.variant, series.config


class _Judge:
    """The verdicts about cells of a timing in pairs of runs.

    Args:
        every: the runs of the machine that have the workload, the oldest first.
        runs: the runs with the case.
    """

    def __init__(self, every: Sequence[RecordedRun], runs: Sequence[RecordedRun], timing: Timing) -> None:
        self._runs, self._timing = runs, timing
        self._machine = functools.cache(lambda gpus: Machine([run.medians for run in every], timing, gpus, absolute=True))
        self._pairs: dict[tuple[int, int, int], Pair] = {}

    def of(self, before: int, after: int, cell: TimedCell) -> Judgement:
        """The verdict about a cell in two runs, by their places."""
        a, b = self._runs[before].medians, self._runs[after].medians
        _, gpus = timing_group(cell)
        key = (before, after, gpus)
        if key not in self._pairs:
            self._pairs[key] = Pair(a, b, self._timing, gpus, functools.partial(self._machine, gpus), absolute=True)
        source = b.sources.get(cell.variant, "")
        equal = bool(source) and a.sources.get(cell.variant, "") == source
        judged = self._pairs[key].judge(a.level(cell), b.level(cell), cell, SMALLEST_EFFECT, equal=equal)
        doubts = [each.doubts.get((cell.case, cell.variant, cell.config)) for each in (a, b)]
        return judged if doubts[0] == doubts[1] else judged._replace(verdict="unknown")


def _series(runs: Sequence[RecordedRun], judge: _Judge, cell: TimedCell) -> Series | None:
    """The variant over the runs in which its result is right and its work was done; None without such a run."""
    key = (cell.case, cell.variant, cell.config)
    failed = tuple((place, run.medians.failed[key]) for place, run in enumerate(runs) if key in run.medians.failed)
    points, logs = [], []
    for place, medians in enumerate(run.medians for run in runs):
        if cell in medians.places and place not in dict(failed):
            row = medians.places[cell]
            n = int(medians.levels.n[row])
            points.append(Point(place, Estimate(*medians.figures[row].tolist()), n, medians.sources.get(cell.variant, "")))
            logs.append(float(medians.levels.log[row]))
    if not points:
        return None
    judged = tuple(judge.of(before.run, after.run, cell) for before, after in pairwise(points))
    noise, scatter = _noise(judged, points, logs)
    sigmas = _sigmas(points, noise)
    moved = np.abs(np.diff(logs))
    certain = [False, *(each.verdict in ("slower", "faster") for each in judged)]
    possible = [False, *(each.verdict == "drifted" for each in judged)]
    certain[-1] |= possible[-1] and float(moved[-1]) > math.log(scatter)
    levels = find_levels(np.array(logs), sigmas, certain, possible)
    return Series(
        cell.variant,
        cell.config,
        cell.gpus,
        tuple(points),
        levels,
        tuple(_step(runs, points, judged, before, after) for before, after in pairwise(levels)),
        judged,
        noise,
        _ratio(logs[-1] - logs[0], math.hypot(sigmas[0], sigmas[-1])) if len(points) > 1 else Estimate.unknown(),
        failed,
    )


def _noise(judged: Sequence[Judgement], points: Sequence[Point], logs: Sequence[float]) -> tuple[float, float]:
    """The noise between two runs, and how the variant itself scatters between runs of equal source; factors of at least 1."""
    noises = [each.noise for each in judged if not math.isnan(each.noise)]
    own = [
        abs(after - before)
        for (before, after), (old, new) in zip(pairwise(logs), pairwise(points), strict=True)
        if old.source == new.source
    ]
    scatter = 1.0
    if len(own) >= _FEWEST_FOR_SCATTER:
        scatter = math.exp(_OF_ONE * float(np.median(own)) / _MEDIAN_OVER_DEVIATION)
    return max(float(np.median(noises)), scatter) if noises else math.nan, scatter


def _sigmas(points: Sequence[Point], noise: float) -> Floats:
    """The noise of each run as a standard deviation of the logarithm: between runs, and within the run."""
    between = _LEAST_NOISE if math.isnan(noise) else max(math.log(noise) / _OF_TWO, _LEAST_NOISE)
    ends = np.array([(point.time_ns.low, point.time_ns.high) for point in points])
    within: Floats = np.log(ends[:, 1] / ends[:, 0]) / (2 * _OF_ONE)
    return np.hypot(between, within, out=within)


def _step(
    runs: Sequence[RecordedRun], points: Sequence[Point], judged: Sequence[Judgement], before: Level, after: Level
) -> Step:
    beside = judged[after.first - 1]
    ratio = _ratio(after.log - before.log, math.hypot(before.error, after.error))
    if (ratio.value > 1) != (beside.ratio.value > 1):  # distant runs scatter, so only the two runs beside the step count
        ratio = beside.ratio
    old, new = points[after.first - 1], points[after.first]
    of_old, of_new = runs[old.run], runs[new.run]
    facts = [
        *differences.of_runs(of_old.info, of_new.info),
        *differences.of_clocks(of_old.medians.clock_mhz, of_new.medians.clock_mhz),
    ]
    if of_new.info["kind"] != "recording":  # the commit of an import is the importer's commit
        facts = [fact for fact in facts if fact.what not in _COMMIT]
    facts.sort(key=lambda fact: (fact.what in _COMMIT, not fact.warning))
    new_source, points_of_level = old.source != new.source, after.end - after.first
    return Step(after.first, beside.verdict, ratio, new_source, tuple(facts), points_of_level)


def _ratio(log: float, sigma: float) -> Estimate:
    return Estimate(math.exp(log), math.exp(log - _OF_ONE * sigma), math.exp(log + _OF_ONE * sigma))


def cause(series: Series, step: Step) -> str:
    """What changed at a step: `new source 1a2b3c4 → 5d6e7f8` or `same source; driver 580.0 → 590.1, commit c0ffee0 → decaf00`."""
    old, new = (series.points[place].source for place in (step.place - 1, step.place))
    source = f"new source {short_hash(old)} → {short_hash(new)}" if step.new_source else "same source"
    facts = ", ".join(f"{fact.what} {_short(fact, fact.a)} → {_short(fact, fact.b)}" for fact in step.facts)
    return source if step.new_source and not facts else f"{source}; {facts or 'no recorded fact changed'}"


def short_hash(source: str) -> str:
    return source[:7] or "none"


def _short(fact: Fact, text: str) -> str:
    if fact.what == "commit":
        return text[:7] or "none"
    return {"True": "yes", "False": "no", "": "none"}.get(text, text)


def sentence(trends: Trends) -> str:
    """`7 of 11 variants became 2.5 to 2.8 % slower on 2026-09-18: same source; driver 580.65 → 590.11. 2 others changed earlier.`"""
    changed = [series for series in trends.series if series.steps and not series.failing]
    if failing := [series for series in trends.series if series.failing]:
        words = "; ".join(f"{series.name} {fails(series)}" for series in failing[:_MOST_FAILING])
        more = f" and {len(failing) - _MOST_FAILING} others fail" if len(failing) > _MOST_FAILING else ""
        rest = replace(trends, series=tuple(series for series in trends.series if not series.failing))
        return f"{words}{more}.{f' {sentence(rest)}' if rest.series else ''}"
    if not changed and all(series.is_unknown for series in trends.series):
        return f"Too little is known to tell changes of {trends.workload} over {len(trends.runs)} runs: {_TO_TELL}."
    if not changed:
        return f"No variant of {trends.workload} changed by more than the noise over {len(trends.runs)} runs."
    run = changed[0].points[changed[0].steps[-1].place].run
    last = [series for series in changed if series.points[series.steps[-1].place].run == run]
    steps_then = [series.steps[-1] for series in last]
    who = last[0].name if len(last) == 1 else f"{len(last)} of {len(trends.series)} variants"
    doubt = ", by one run so far" if all(step.runs == 1 for step in steps_then) else ""
    words = f"{who} became {_changes(steps_then)} on {trends.runs[run].started_at:%Y-%m-%d}{doubt}"
    causes = {cause(series, series.steps[-1]) for series in last}
    if len(causes) == 1:
        words += f": {causes.pop()}"
    earlier = len(changed) - len(last)
    more = f" {earlier} {'other' if earlier == 1 else 'others'} changed earlier." if earlier else ""
    return f"{words}.{more}"


def fails(series: Series) -> str:
    """`ended with wrong_result in the 2 newest runs`, of a series that fails now."""
    status = " or ".join(dict.fromkeys(status for _, status in series.failing))
    count = len(series.failing)
    return f"ended with {status} in the {f'{count} newest runs' if count > 1 else 'newest run'}"


def _changes(of_variants: Sequence[Step]) -> str:
    """`2.5 to 2.8 % slower`; `3 slower, 2 faster`."""
    ratios = sorted(step.ratio.value for step in of_variants)
    if ratios[0] < 1 < ratios[-1]:
        slower = sum(ratio > 1 for ratio in ratios)
        return f"slower ({slower}) or faster ({len(ratios) - slower})"
    most = sorted((ratios[0], ratios[-1]), key=lambda ratio: max(ratio, 1 / ratio))
    ends = list(dict.fromkeys(map(change_words, most)))
    if len(ends) == 1 or ends[0].split(" ")[1] != ends[-1].split(" ")[1]:
        return ends[-1] if len(ends) == 1 else f"{ends[0]} to {ends[-1]}"
    return f"{ends[0].split(' ')[0]} to {ends[-1]}"


def change_words(ratio: float) -> str:
    """`4.1 % slower`, `3.9 % faster`; from twice on, `2.10× as slow`."""
    if max(ratio, 1 / ratio) >= 2:
        return f"{format_ratio(max(ratio, 1 / ratio))} as {'slow' if ratio > 1 else 'fast'}"
    return f"{abs(100 * (ratio - 1)):.1f} % {'slower' if ratio > 1 else 'faster'}"
