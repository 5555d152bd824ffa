"""The medians of cells in many runs, their levels, and the ratios of levels."""

import json
import math
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from warpladder.dashboard.compare.within_run import CaseTimes
from warpladder.dashboard.core import intervals
from warpladder.dashboard.core.cell import Cell, Estimate, Timing
from warpladder.dashboard.core.cells import cells, in_timing, measured
from warpladder.dashboard.core.intervals import grouped_median_intervals
from warpladder.dashboard.core.run_data import CELL, RunData
from warpladder.data import store
from warpladder.data.arrays import Floats, Int64s, coded, heads, ordered
from warpladder.data.names import NOT_DONE, WHOLE_PROGRAM
from warpladder.data.statistics import OVER_MEDIAN_DEVIATION


def steadied(durations: Floats, n: Int64s, rounds: npt.NDArray[np.integer], groups: Sequence[Hashable]) -> Floats:
    """Samples without the common part of their round, in their unit; as they are where that part is smaller than their own scatter.

    Every variant of a case runs once in each round, so a neighbour that takes the processor, a clock that falls, or a process whose memory
    lies badly lengthens several samples of the round. The common part of a round is the median, over the other cells, of how far each is
    from its own median. A cell has no part in what is taken out of it, so that its own change cannot hide itself.

    Args:
        durations: the samples of the first cell, then the samples of the second, and so on; below 1 counts as 1.
        n: samples of each cell.
        rounds: the round of each sample.
        groups: cells with equal values here are sampled in the same rounds.
    """
    steady = durations.copy()
    ends = np.cumsum(n)
    for of_case in places_by(groups):
        if len(of_case) > 1:
            places = np.concatenate([np.arange(ends[cell] - n[cell], ends[cell]) for cell in of_case])
            column = np.repeat(np.arange(len(of_case)), n[of_case])
            row = np.unique(rounds[places], return_inverse=True)[1]
            apart = np.full((int(row.max()) + 1, len(of_case)), np.nan)
            apart[row, column] = np.log(np.maximum(durations[places], 1.0))
            apart -= medians_of_columns(apart)
            common = np.nan_to_num(median_of_others(apart))
            if _scatter_of_columns(apart - common) < _scatter_of_columns(apart):
                steady[places] *= np.exp(-common[row, column])
    return steady


def _scatter_of_columns(apart: Floats) -> float:
    """The median distance from 0 of the typical cell."""
    return float(np.median(medians_of_columns(np.abs(apart))))


def medians_of_columns(values: Floats) -> Floats:
    """The median of each column, where NaN is no value and a column without one has NaN; `np.nanmedian` takes ten times as long for small arrays."""
    count, columns = np.isfinite(values).sum(axis=0), np.arange(values.shape[1])
    ordered = np.sort(values, axis=0)  # NaN last
    medians: Floats = (ordered[(count - 1) // 2, columns] + ordered[count // 2, columns]) / 2
    return medians


def median_of_others(values: Floats) -> Floats:
    """For each value the median of the other values of its row; NaN where there is no other. NaN is no value."""
    order = np.argsort(values, axis=1, kind="stable")  # NaN last
    ordered = np.take_along_axis(values, order, axis=1)
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.broadcast_to(np.arange(values.shape[1]), order.shape), axis=1)
    others = np.isfinite(values).sum(axis=1, keepdims=True) - np.isfinite(values)
    middle = []
    for rank in ((others - 1) // 2, others // 2):
        # Behind the value itself, the other values are one place further.
        found = np.clip(rank + (rank >= place), 0, values.shape[1] - 1)
        middle.append(np.take_along_axis(ordered, found, axis=1))
    medians: Floats = np.where(others > 0, (middle[0] + middle[1]) / 2, np.nan)
    return medians


def places_by(groups: Iterable[Hashable]) -> Iterable[list[int]]:
    """The places of each group, in the order in which the groups first occur."""
    places: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)
    return places.values()


#: Cells are alike if their times differ by at most this factor, and so many alike cells give a noise.
LIKE: Final = 3.0
ENOUGH_ALIKE: Final = 8
#: The fewest processes of each run from which the interval of a ratio holds the noise from one process to the next.
FEWEST_PROCESSES: Final = 3
#: The fewest samples of a process, whose median then withstands one bad sample.
FEWEST_OF_PROCESS: Final = 3
_NORMAL: Final = NormalDist().inv_cdf(0.975)
#: By which factor more than `OVER_MEDIAN_DEVIATION` it is of 0, 1, 2, 3 … 9 values (Croux and Rousseeuw, Time-efficient algorithms for two
#: highly robust estimators of scale, 1992).
_FEW_PROCESSES: Final = np.array([1, 1, 1.196, 1.495, 1.363, 1.206, 1.2, 1.14, 1.129, 1.107])
#: The part of the samples that are shorter than the lower quartile; and how many times as much that of all samples scatters as the mean of
#: those of its processes, about.
_QUARTILE: Final = 0.25
_OF_QUARTILES: Final = 1.4
#: The share of pairs of processes that may contradict a verdict.
_FEW_PAIRS: Final = 0.2


class Level(NamedTuple):
    """A cell in one run, in natural logarithms of nanoseconds.

    Attributes:
        logs: the median of each process with three samples; of all samples where there are fewer than three such processes; NaN if the clock is too coarse. What a
            round did to all cells of the case alike is taken out of the samples; see `common_mode`.
        error: standard error of their median.
        freedom: degrees of freedom of `error` over the processes; 0 where it is of the samples.
        n: samples.
        quiet: of the lower quartile of all samples. What else a machine does only lengthens a time, so that on a busy machine this scatters
            less than the median.
    """

    logs: tuple[float, ...]
    error: float
    freedom: float
    n: int
    quiet: "Level | None" = None

    @property
    def log(self) -> float:
        return float(np.median(self.logs))

    def moved(self, by: float) -> "Level":
        """The level of a time that is longer by a factor, given as its logarithm."""
        return self._replace(logs=tuple(log + by for log in self.logs))


class Levels(NamedTuple):
    """The levels of many cells, see `Level`. `logs` has the shape (cells, most processes), with NaN behind the last process of a cell."""

    logs: Floats
    error: Floats
    freedom: Floats
    n: Int64s
    quiet: "Levels | None" = None

    @property
    def log(self) -> Floats:
        """The median over the processes, of each cell."""
        return medians_of_columns(self.logs.T)

    def at(self, place: int) -> Level:
        logs = self.logs[place]
        known = logs[np.isfinite(logs)]
        return Level(
            tuple(known.tolist()) or (math.nan,),
            float(self.error[place]),
            float(self.freedom[place]),
            int(self.n[place]),
            self.quiet.at(place) if self.quiet else None,
        )

    def moved(self, by: Floats) -> "Levels":
        """The levels of times that are longer by factors, given as logarithms, one for each cell."""
        quiet = self.quiet.moved(by) if self.quiet else None
        return self._replace(logs=self.logs + by[:, None], quiet=quiet)


def levels(
    durations: Floats,
    n: Int64s,
    processes: npt.NDArray[np.integer],
    rounds: npt.NDArray[np.integer],
    cases: Sequence[Hashable],
    groups: Sequence[Hashable],
) -> Levels:
    """The levels of cells.

    The error is at least as large as the median of all samples has it. Over three processes it also follows from how far they are
    apart: from the median distance from their median, so that one bad process counts little. The variance of three processes is
    uncertain. So it is averaged with the median variance of at least eight other cells of like times, from a third to three times the
    cell's, where that is larger; this doubles the degrees of freedom.

    Args:
        durations: in nanoseconds, the samples of the first cell, then the samples of the second, and so on.
        n: samples of each cell, at least 1.
        processes, rounds: the process and the round of each sample.
        cases: the cells with equal values here are of one case, and timed in the same rounds.
        groups: the cells with equal values here are timed alike.
    """
    quiet = _quiet(durations, n, processes, cases)
    durations = steadied(durations, n, rounds, cases)
    ends = grouped_median_intervals(durations, n)
    cell = np.repeat(np.arange(len(n)), n)
    order = np.lexsort((processes, cell))
    first = heads(cell[order], processes[order])
    of_process = np.diff(np.append(first, len(cell)))
    medians = grouped_median_intervals(durations[order], of_process)["median"]
    of_cell, medians = cell[order][first][of_process >= FEWEST_OF_PROCESS], medians[of_process >= FEWEST_OF_PROCESS]
    count = np.bincount(of_cell, minlength=len(n))
    several = count >= FEWEST_PROCESSES
    logs = np.full((len(n), max(int(count.max(initial=1)), 1)), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs[of_cell, np.arange(len(of_cell)) - (np.cumsum(count) - count)[of_cell]] = np.log(medians)
        logs[~several] = np.nan
        logs[~several, 0] = np.log(ends["median"])[~several]
        logs[~(ends["low"] > 0)] = np.nan
        error = np.log(ends["high"] / ends["low"]) / (2 * _NORMAL)
    freedom = np.zeros(len(n))
    if several.any():
        middle = medians_of_columns(logs.T)
        apart = np.abs(logs - middle[:, None])
        own = (
            OVER_MEDIAN_DEVIATION * _FEW_PROCESSES[np.minimum(count, len(_FEW_PROCESSES) - 1)] * medians_of_columns(apart.T)
        ) ** 2
        variance = np.nansum(apart**2, axis=1) / np.maximum(count - 1, 1)
        typical = _typical(middle, np.where(several, variance, np.nan), groups) / (1 - 2 / (9 * np.maximum(count - 1, 1))) ** 3
        shared = np.where(np.isfinite(typical), np.maximum(own, (own + typical) / 2), np.maximum(own, variance))
        error = np.where(several, np.maximum(error, np.sqrt(shared / np.maximum(count, 1))), error)
        freedom = np.where(several, (count - 1) * np.where(np.isfinite(typical), 2.0, 1.0), 0.0)
    return Levels(logs, error, freedom, n, quiet)


def _quiet(durations: Floats, n: Int64s, processes: npt.NDArray[np.integer], cases: Sequence[Hashable]) -> Levels:
    """The lower quartile of the samples of each cell. Its error is that of the binomial distribution of the samples below it, or the larger one
    that the quartiles of its processes show."""
    with np.errstate(divide="ignore"):
        logs = np.log(durations)
    ordered, first = logs[np.lexsort((logs, np.repeat(np.arange(len(n)), n)))], np.cumsum(n) - n
    middle, half = (n - 1) * _QUARTILE, _NORMAL * np.sqrt(n * _QUARTILE * (1 - _QUARTILE))
    low, high = (np.clip(np.rint(middle + side), 0, n - 1).astype(np.int64) for side in (-half, half))
    error = (ordered[first + high] - ordered[first + low]) / (2 * _NORMAL)
    shown = _OF_QUARTILES * _scatter(_quartiles_of_processes(logs, n, processes), cases)
    return Levels(_quartiles(ordered, n)[:, None], np.maximum(error, shown), np.zeros(len(n)), n)


def _quartiles_of_processes(logs: Floats, n: Int64s, processes: npt.NDArray[np.integer]) -> Floats:
    """The lower quartile of the samples of each cell in each process; NaN below three samples. The shape is (cells, processes)."""
    cell = np.repeat(np.arange(len(n)), n)
    order = np.lexsort((logs, processes, cell))
    cell, process = cell[order], processes[order]
    starts = heads(cell, process)
    count = np.diff(np.append(starts, len(cell)))
    enough = count >= FEWEST_OF_PROCESS
    found = np.full((len(n), int(processes.max(initial=0)) + 1), np.nan)
    found[cell[starts][enough], process[starts][enough]] = _quartiles(logs[order], count)[enough]
    return found


def _scatter(values: Floats, cases: Sequence[Hashable]) -> Floats:
    """The standard error of the mean of each row, without what a column does to the other rows of the case; 0 of one value."""
    values = values.copy()
    for of_case in places_by(cases):
        rows = values[of_case]
        values[of_case] -= np.nan_to_num(median_of_others((rows - medians_of_columns(rows.T)[:, None]).T)).T
    known = np.isfinite(values).sum(axis=1)
    apart = values - (np.nansum(values, axis=1) / np.maximum(known, 1))[:, None]
    errors: Floats = np.sqrt(np.nansum(apart**2, axis=1) / np.maximum(known - 1, 1) / np.maximum(known, 1))
    return errors


def _quartiles(ordered: Floats, n: Int64s) -> Floats:
    """The lower quartile of each group of ordered values; of a group without values another value."""
    places = np.cumsum(n) - n + np.rint((np.maximum(n, 1) - 1) * _QUARTILE).astype(np.int64)
    found: Floats = np.append(ordered, np.nan)[np.minimum(places, len(ordered))]
    return found


def _typical(logs: Floats, variances: Floats, groups: Sequence[Hashable]) -> Floats:
    """The median variance of the cells of like times of each cell; NaN where fewer than eight others are known."""
    typical = np.full(len(logs), np.nan)
    known_places = np.flatnonzero(np.isfinite(variances) & np.isfinite(logs))
    for group in places_by(groups[place] for place in known_places.tolist()):
        own = known_places[group]
        ordered = own[np.argsort(logs[own], kind="stable")]
        times, known = logs[ordered], variances[ordered]
        low = np.searchsorted(times, times - math.log(LIKE), "left")
        high = np.searchsorted(times, times + math.log(LIKE), "right")
        for place, start, end in zip(ordered.tolist(), low.tolist(), high.tolist(), strict=True):
            if end - start > ENOUGH_ALIKE:
                typical[place] = np.median(known[start:end])
    return typical


def moved(before: Floats, after: Floats) -> Floats:
    """How far each cell moved: the median, over pairs of a process before and a process after, of the differences of their logarithms
    (Hodges and Lehmann, Estimates of location based on rank tests, Annals of Mathematical Statistics 34, 1963).

    Args:
        before, after: see `Levels.logs`; equal rows are of equal cells.
    """
    return medians_of_columns((after[:, :, None] - before[:, None, :]).reshape(len(after), after.shape[1] * before.shape[1]).T)


def several_processes(before: Level, after: Level) -> bool:
    """Whether the errors of both levels hold the noise from one process to the next."""
    return before.freedom > 0 and after.freedom > 0


def half_width(before: Level, after: Level, variance: float = 0.0, freedom: float = 0.0) -> float:
    """Half of the 95 % interval of the logarithm of the ratio of two levels, by Student's t.

    Args:
        variance: of the noise between runs.
        freedom: of that noise, in addition to the degrees of freedom of the levels.
    """
    own = before.freedom + after.freedom if several_processes(before, after) else 0.0
    return intervals.students_t(own + freedom or math.inf) * math.sqrt(before.error**2 + after.error**2 + variance)


def ratio(before: Level, after: Level, variance: float = 0.0, freedom: float = 0.0) -> Estimate:
    """The later level over the earlier level, in two independent runs, with a 95 % interval. Unknown where a level is not finite.

    Where both runs have three processes, the interval also holds the middle three fifths of the ratios of two of their processes. So
    where processes differ, at least four of five pairs agree with a verdict.

    Args:
        variance, freedom: see `half_width`.
    """
    pairs = np.subtract.outer(after.logs, before.logs)
    log, half = float(np.median(pairs)), half_width(before, after, variance, freedom)
    if not math.isfinite(log + half):
        return Estimate.unknown()
    half = min(half, intervals.MOST_LOG)
    low, high = np.quantile(pairs, [_FEW_PAIRS, 1 - _FEW_PAIRS])
    return Estimate(math.exp(log), math.exp(min(log - half, low)), math.exp(max(log + half, high)))


_KEY: Final = ("case", "scope", "cache", "variant", "config")
_NUMBERS: Final = ("gpus", "rank", "twin", "process", "round", "duration_ns")


class TimedCell(NamedTuple):
    """A cell and how it was timed; see `cells.cells`."""

    case: str
    scope: str
    cache: str
    variant: str
    config: str
    gpus: int

    @classmethod
    def of(cls, cell: Cell) -> "TimedCell":
        return cls(*(getattr(cell, name) for name in cls._fields))

    @property
    def timing(self) -> Timing:
        return Timing(self.scope, self.cache)


def timing_group(cell: TimedCell) -> tuple[Timing, int]:
    """The timing and the number of GPUs, at least one. Cells with equal groups are timed in the same way."""
    return cell.timing, max(cell.gpus, 1)


@dataclass(frozen=True, eq=False)
class Medians:
    """The medians of a run for one workload.

    Attributes:
        run_id: of the run.
        cells: cells that ended well and have samples. Samples that several ranks took together are left out.
        levels: of the cells.
        figures: median, and ends of its interval with the error of the clock, in nanoseconds; shape (cells, 3).
        sources: variant -> hash of its source, as it was measured; empty where no source was recorded.
        cases: case -> size_rank, and the JSON of its parameters, of the cases on the size axis.
        clock_mhz: median SM clock of the samples; NaN where it is not known.
        failed: (case, variant, config) -> status of the cells that ended badly, but for skipped ones; `distrusted` for cells of
            `cells` whose work was not done.
        doubts: (case, variant, config) -> the sources of the findings about a cell for which it is distrusted.
        scatter_ns: see `intervals.scatter_ns`.
        of_programs: whether the variants are whole programs.
    """

    run_id: str
    cells: tuple[TimedCell, ...]
    levels: Levels
    figures: Floats
    sources: Mapping[str, str]
    cases: Mapping[str, tuple[int, str]]
    clock_mhz: float
    failed: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    scatter_ns: float = 0.0
    doubts: Mapping[tuple[str, str, str], frozenset[str]] = field(default_factory=dict)
    of_programs: bool = False

    @cached_property
    def tells_unchanged(self) -> bool:
        """Whether equal sources tell that the code is equal. A program may load what its source does not tell."""
        return any(self.sources.values()) and not self.of_programs

    def source(self, variant: str) -> str:
        return self.sources.get(variant, "")

    @cached_property
    def places(self) -> Mapping[TimedCell, int]:
        return {cell: place for place, cell in enumerate(self.cells)}

    def level(self, cell: TimedCell) -> Level:
        return self.levels.at(self.places[cell])


def medians(run: store.Run, workload: str) -> Medians:
    """The medians of a workload. The run is not checked as in `store.open_run`.

    Raises:
        StoreError: a file is damaged or is not of this schema.
    """
    filters = {"workload": workload}
    samples = run.arrow("samples", [*_KEY, *_NUMBERS, "sm_clock_mhz"], filters)
    if any(samples.column(name).null_count for name in (*_KEY, *_NUMBERS)):
        raise store.StoreError(f"{run.path}: table samples has nulls where none may be; record or import the run again")
    results = _rows(run.arrow("results", ["case", "variant", "config", "status"], filters))
    statuses = {(case, variant, config): status for case, variant, config, status in results}
    bad = {cell: status for cell, status in statuses.items() if status != "ok"}
    cells, of_cells, figures = _medians(samples, bad)
    single = np.array([intervals.is_single(cell.scope, cell.cache) for cell in cells], dtype=bool)
    ceilings = dict(_rows(run.arrow("ceilings", ["name", "value"])))
    error_ns = intervals.error_ns(run.info["collector"], ceilings)
    figures[:, 1], figures[:, 2] = intervals.widened(figures[:, 1], figures[:, 2], error_ns, single)
    cases = {case: (rank, params) for case, rank, params in _rows(run.arrow("cases", ["case", "size_rank", "params"], filters))}
    doubts = _doubts(run, workload, statuses)
    clocks = samples.column("sm_clock_mhz").drop_null().to_numpy()
    variants = run.arrow("variants", ["variant", "source_sha256", "source"], filters)
    return Medians(
        run.run_id,
        tuple(cells),
        of_cells,
        figures,
        {variant: source or "" for variant, source, _ in _rows(variants)},
        {case: (rank, params) for case, (rank, params) in cases.items() if rank is not None and _is_object(params)},
        float(np.median(clocks)) if len(clocks) else float("nan"),
        {cell: status for cell, status in bad.items() if status != "skipped"}
        | {cell: "distrusted" for cell, sources in doubts.items() if sources & NOT_DONE},
        intervals.scatter_ns(run.info["collector"], ceilings),
        doubts,
        WHOLE_PROGRAM in variants.column("source").to_pylist(),
    )


def _doubts(run: store.Run, workload: str, cells: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str, str], frozenset[str]]:
    """`Medians.doubts`. A null in a diagnostic about a cell stands for any value."""
    columns = ["case", "variant", "config", "source", "severity"]
    rows = _rows(run.arrow("diagnostics", columns, {"workload": workload}))
    about = [(each, source) for *each, source, severity in rows if severity != "info" and (each[0], each[1]) != (None, None)]
    found = {
        cell: frozenset(
            source for each, source in about if all(name in (None, value) for name, value in zip(each, cell, strict=True))
        )
        for cell in (cells if about else ())
    }
    return {cell: sources for cell, sources in found.items() if sources}


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _rows(table: pa.Table) -> "zip[tuple[Any, ...]]":
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _medians(samples: pa.Table, bad: Container[tuple[str, str, str]]) -> tuple[list[TimedCell], Levels, Floats]:
    """The cells that did not end badly, with their levels, and the medians with their ends."""
    gpus, rank, twin = (samples.column(name).to_numpy() for name in ("gpus", "rank", "twin"))
    alone = twin == 0
    if (rank > 0).any():
        alone &= gpus <= 1
    keys = [coded(samples.column(name)) for name in _KEY]
    number = ordered(*(codes[alone] for codes, _ in keys), gpus[alone])
    _, first, place, n = np.unique(number, return_index=True, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(alone)[first]
    parts = [[texts[code] for code in codes[rows]] for codes, texts in keys]
    cells = list(map(TimedCell._make, zip(*parts, gpus[rows].tolist(), strict=True)))
    order = np.argsort(place, kind="stable")
    durations = samples.column("duration_ns").to_numpy()[alone].astype(float)[order]
    ends = grouped_median_intervals(durations, n)
    well = np.array([(cell.case, cell.variant, cell.config) not in bad for cell in cells], dtype=bool) & (ends["low"] > 0)
    kept = np.repeat(well, n)
    processes, rounds = (samples.column(name).to_numpy()[alone][order][kept] for name in ("process", "round"))
    cells = [cell for cell, is_well in zip(cells, well.tolist(), strict=True) if is_well]
    figures = np.column_stack([ends["median"], ends["low"], ends["high"]])[well]
    return cells, _levels(cells, durations[kept], n[well], processes, rounds), figures


def _levels(
    cells: Sequence[TimedCell], durations: Floats, n: Int64s, processes: npt.NDArray[Any], rounds: npt.NDArray[Any]
) -> Levels:
    groups = [timing_group(cell) for cell in cells]
    cases = [(cell.case, group) for cell, group in zip(cells, groups, strict=True)]
    return levels(durations, n, processes, rounds, cases, groups)


@dataclass(frozen=True, eq=False)
class Reading:
    """A run whose samples of one process and of several ranks are in one frame, with the figures of each cell."""

    data: RunData
    _times: dict[tuple[str, str, str, str, int], CaseTimes] = field(default_factory=dict)
    _medians: dict[tuple[str, Timing | None], Medians] = field(default_factory=dict)

    def durations(self, cell: Cell) -> "pd.Series[float]":
        """Durations of a cell in nanoseconds, by round."""
        return self.data.rounds(cell.workload, cell.case, cell.scope, cell.cache)[cell.entry]

    def noise(self, cell: Cell) -> float:
        """The noise floor of a cell, from the baseline's two copies on as many ranks."""
        where, ranks = (cell.workload, cell.case, cell.scope, cell.cache), max(cell.gpus, 1)
        if (*where, ranks) not in self._times:
            rounds = self.data.rounds(*where)
            same = {entry: rounds[entry] for entry in rounds if max(entry.gpus, 1) == ranks}
            self._times[*where, ranks] = CaseTimes(same, self.data.hosts(cell.workload))
        return self._times[*where, ranks].noise(cell.variant)

    def level(self, cell: Cell) -> Level:
        """The level of a cell."""
        timed = TimedCell.of(cell)
        return self.medians(cell.workload, timed.timing).level(timed)

    def source(self, cell: Cell) -> str:
        """Hash of the source of a cell's variant; empty where no source was recorded."""
        return self.medians(cell.workload).source(cell.variant)

    def medians(self, workload: str, timing: Timing | None = None) -> Medians:
        """The medians of a workload, as `levels.medians` reads them, including the samples that ranks took together.

        Args:
            timing: of the cells; None for every timing. A level follows from cells of its own timing alone.
        """
        if (workload, timing) not in self._medians:
            self._medians[workload, timing] = _medians_of(self.data, workload, timing)
        return self._medians[workload, timing]


def _medians_of(data: RunData, workload: str, timing: Timing | None) -> Medians:
    every = cells(data)
    every = in_timing(every, workload, timing) if timing else every[every["workload"] == workload]
    every = every[(every["n"] > 0) & (every["status"] == "ok")]
    grouped = data.grouped
    keys = grouped.keys[(grouped.keys["workload"] == workload) & (grouped.keys["twin"] == 0)]
    places = dict(zip(keys[CELL].itertuples(index=False, name=None), keys.index, strict=True))
    rows = [places[key] for key in every[CELL].itertuples(index=False, name=None)]
    n = grouped.keys["n"].to_numpy()[rows]
    first = np.repeat(grouped.first[rows] - np.cumsum(n) + n, n)
    positions = first + np.arange(len(first))
    variants = data.variants[data.variants["workload"] == workload]
    of_run = tuple(map(TimedCell._make, every[list(TimedCell._fields)].itertuples(index=False, name=None)))
    return Medians(
        str(data.info["run_id"]),
        of_run,
        _levels(of_run, grouped.durations[positions], n, grouped.processes[positions], grouped.rounds[positions]),
        every[["median_ns", "low_ns", "high_ns"]].to_numpy(dtype=float),
        dict(zip(variants["variant"], variants["source_sha256"].fillna(""), strict=True)),
        {},
        float("nan"),
        scatter_ns=intervals.scatter_ns(data.info["collector"], measured(data)),
        of_programs=bool((variants["source"] == WHOLE_PROGRAM).any()),
    )


@lru_cache(maxsize=4)
def reading(data: RunData) -> Reading:
    """The reading of a run, made once."""
    if len(data.together):
        samples = pd.concat([data.samples, data.together], ignore_index=True)
        full = data.selected_from and reading(data.selected_from).data
        data = replace(data, samples=samples, together=data.together.iloc[:0], selected_from=full)
    return Reading(data)
