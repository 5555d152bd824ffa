"""Two jobs compared: what an iteration takes on a rank, and what each kernel takes in it, over all ranks and on one rank alone."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pandas as pd

from warpladder.dashboard.compare import between_runs, job_resampling
from warpladder.dashboard.compare.between_runs import VERDICTS, Verdict
from warpladder.dashboard.compare.changes import BLIND, NotComparable
from warpladder.dashboard.compare.differences import Fact, of_runs
from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.intervals import MIN_SAMPLES, MOST_LOG
from warpladder.data import store
from warpladder.data.arrays import Floats, Int64s, lookup
from warpladder.data.words import counted, first_of

Kind = Literal["figure", "compute", "communication", "memory", "graph"]

#: The figure of graphs that were traced as a whole.
GRAPHS: Final = "CUDA graphs, traced whole"
#: Figure -> its column in table `iterations`. The first one is the range of the step on the host.
FIGURES: Final[Mapping[str, str]] = {
    "iteration": "lasts_ns",
    "device span": "span_ns",
    "busy": "busy_ns",
    "compute": "compute_ns",
    "communication": "communication_ns",
    "copies and sets": "memory_ns",
    "exposed communication": "exposed_ns",
    "idle: waits for the host": "host_wait_ns",
    "idle: waits for a kernel": "kernel_wait_ns",
    "idle: other": "other_idle_ns",
    "waits for other ranks": "wait_ns",
    GRAPHS: "graph_ns",
}
#: The figure of the host's time from the end of an iteration to the start of the next, which no other figure has.
BETWEEN: Final = "between iterations"
#: The figures that have all others as parts.
_WHOLE: Final = ("iteration", "device span", BETWEEN)
#: Figures that are not known where graphs were traced as a whole, since what runs inside of them is not.
_NOT_IN_GRAPHS: Final = ("compute", "communication", "exposed communication", "waits for other ranks")
OTHER_KERNELS: Final = "all other kernels"
#: A kernel is judged by itself from this share of the busy time of the ranks that run it, in A or in B.
SHARE: Final = 0.005
#: The fewest iterations that give a verdict.
FEWEST_ITERATIONS: Final = 3
#: The fewest ranks that one of them is compared with.
_FEWEST_RANKS: Final = 4
#: The least change by which a kernel of one rank differs from the other ranks, a fraction.
ALONE: Final = 0.1
_KEY: Final = ["name", "kind"]
#: Facts about the program that imported a job, not about the job.
_OF_IMPORTER: Final = ("commit", "changes beyond the commit", "Python")


@dataclass(frozen=True, eq=False)
class JobData:
    """The small tables of a job, or of a trace as a job of one rank.

    Attributes:
        iterations: with `lasts_ns` of the step's range on the host, and `between_ns` until the next one of the rank; NaN of its last.
    """

    info: Mapping[str, Any]
    iterations: pd.DataFrame
    kernels: pd.DataFrame
    waits: pd.DataFrame

    @classmethod
    def of(cls, run: store.Run) -> "JobData":
        """Read the tables. Raises StoreError."""
        iterations = run.table("iterations", ["rank", "iteration", "start_ns", "end_ns", *list(FIGURES.values())[1:]])
        kernels = run.table("rank_kernels", ["rank", "iteration", *_KEY, "count", "total_ns"], categories=True)
        waits = run.table("collectives", ["rank", "iteration", "kernel", "wait_ns"], categories=True)
        return cls.of_tables(run.info, iterations, kernels, waits)

    @classmethod
    def of_tables(
        cls, info: Mapping[str, Any], iterations: pd.DataFrame, kernels: pd.DataFrame, waits: pd.DataFrame
    ) -> "JobData":
        """The same from tables `iterations`, `rank_kernels` and `collectives`."""
        ordered = iterations.sort_values(["rank", "start_ns"])
        until_next = ordered.groupby("rank")["start_ns"].shift(-1) - ordered["end_ns"]
        lasts = iterations["end_ns"] - iterations["start_ns"]
        iterations = iterations.assign(lasts_ns=lasts, between_ns=until_next.clip(lower=0))
        return cls(info, iterations, kernels.dropna(subset="iteration"), waits.dropna(subset=["iteration", "wait_ns"]))

    @property
    def title(self) -> str:
        """The label, or the id of the run."""
        return str(self.info["label"] or self.info["run_id"])


class Pairing(NamedTuple):
    """The ranks of both jobs, the iterations that all of these ranks have, `a[i]` compared with `b[i]`, that in words, and the ranks that A alone has."""

    ranks: Int64s
    a: Int64s
    b: Int64s
    sentence: str
    lost: Int64s


@dataclass(frozen=True)
class JobChange:
    """A figure or a kernel of both jobs.

    Attributes:
        rank: the rank that differs from the others; None for all ranks.
        a_ns, b_ns: mean time of an iteration and rank. Communication kernels are without the wait for other ranks if both jobs have it.
        a_count, b_count: executions of an iteration and rank; NaN for a figure.
        ratio: B over A, with an interval that holds for all rows together in 95 % of comparisons.
        noise: a factor of at least 1; ratios from 1/noise to noise are `tied`.
        least_effect: the smallest slowdown that would have been called, a fraction.
    """

    name: str
    kind: Kind
    rank: int | None
    a_ns: float
    b_ns: float
    a_count: float
    b_count: float
    ratio: Estimate
    noise: float
    verdict: Verdict
    least_effect: float

    @property
    def recounted(self) -> bool:
        """Whether the executions differ."""
        return not math.isnan(self.a_count) and self.a_count != self.b_count


@dataclass(frozen=True)
class OneSided:
    """A kernel that one job alone has, with its time an iteration and rank, and its share of the busy time."""

    name: str
    kind: Kind
    ns: float
    share: float


@dataclass(frozen=True)
class JobComparison:
    """Two jobs, compared.

    Attributes:
        pairing: the sentence about ranks and iterations.
        lost: ranks that A alone has.
        smallest: smaller changes are tied, a fraction.
        shift: median ratio of the kernels; NaN where they are fewer than eight.
        figures: in the order of `FIGURES`.
        kernels: slower first, then tied, then faster, each part by the ratio; the kernels of one rank alone are among them.
        new, gone: kernels that B alone or A alone has, the longest first.
    """

    facts: tuple[Fact, ...]
    pairing: str
    lost: tuple[int, ...]
    smallest: float
    shift: float
    figures: tuple[JobChange, ...]
    kernels: tuple[JobChange, ...]
    new: tuple[OneSided, ...]
    gone: tuple[OneSided, ...]

    @property
    def changes(self) -> tuple[JobChange, ...]:
        return (*self.figures, *self.kernels)

    @property
    def sentence(self) -> str:
        """`2 slower, 24 tied; the worst: gemm on rank 3, 1.200x; less than 1 to 3 % could not be told`."""
        counts = Counter(each.verdict for each in self.changes)
        parts = [", ".join(f"{counts[each]} {each}" for each in VERDICTS if counts[each])]
        slower = [each for each in self.changes if each.verdict == "slower"]
        if slower:
            worst = max(slower, key=lambda each: (each.kind != "figure", each.ratio.value))
            parts.append(f"the worst: {where(worst)}, {worst.ratio.value:.3f}x")
        effects = [each.least_effect for each in self.changes if each.verdict == "tied" and math.isfinite(each.least_effect)]
        if effects:
            ends = dict.fromkeys(f"{float(f'{100 * effect:.2g}'):g}" for effect in (min(effects), max(effects)))
            parts.append(f"less than {' to '.join(ends)} % could not be told")
        return "; ".join(parts)


def where(change: JobChange) -> str:
    """The name of a figure or a kernel, with the rank where it is about one."""
    return change.name if change.rank is None else f"{change.name} on rank {change.rank}"


def compare(
    a: JobData, b: JobData, smallest: float = between_runs.SMALLEST_EFFECT, *, any_device: bool = False
) -> JobComparison:
    """Compare job B with job A.

    Args:
        smallest: smaller changes are tied, a fraction. A part of the iteration must also change the iteration by as much.
        any_device: compare although the GPUs differ.

    Raises:
        NotComparable: the jobs have no rank or no iteration in common, or the GPUs differ and `any_device` is False.
    """
    devices = [str(job.info["device_name"]) for job in (a, b)]
    if devices[0] != devices[1] and not any_device:
        raise NotComparable(
            f"{a.title} ran on {devices[0] or 'no GPU'}, {b.title} on {devices[1] or 'no GPU'}; "
            "compare runs of one device, or add --any-device"
        )
    pairing = pair(a, b)
    names, figures = _figures(a, b, pairing)
    kernels = _Kernels(a, b, pairing, figures[:, names.index("busy")])
    rules = _Rules(smallest, float(figures[0, 0].mean()))
    of_kernels = job_resampling.ratios(*kernels.times, alike=True)
    noise, shift = of_kernels.noise()
    of_figures = job_resampling.ratios(*figures, alike=False)
    judged = [rules.judged(name, "figure", times, each) for name, times, each in _rows(names, figures, of_figures)]
    judged += [
        rules.judged(name, kind, times, each, noise, counts)
        for (name, times, each), kind, counts in zip(
            _rows(kernels.names, kernels.times, of_kernels.with_noise(noise)),
            kernels.kinds,
            kernels.counts.swapaxes(0, 1),
            strict=True,
        )
    ]
    enough = figures.shape[3] >= FEWEST_ITERATIONS
    alone = tuple(_alone(kernels, pairing.ranks, smallest)) if enough else ()
    ordered = sorted((*judged[len(names) :], *alone), key=lambda each: between_runs.slowness(each.verdict, each.ratio))
    facts = (each for each in of_runs(a.info, b.info) if each.what not in _OF_IMPORTER)
    return JobComparison(
        tuple(sorted(facts, key=lambda each: not each.warning)),
        pairing.sentence,
        tuple(pairing.lost.tolist()),
        smallest,
        shift,
        (*judged[: len(names)], *_between(a, b, pairing, rules)),
        tuple(ordered),
        kernels.only(1),
        kernels.only(0),
    )


class _Rules(NamedTuple):
    """What a verdict needs besides times: the smallest change that counts, a fraction, and the mean time of an iteration in A."""

    smallest: float
    iteration_ns: float

    def judged(
        self, name: str, kind: Kind, times: Floats, ratio: Estimate, noise: float = 1.0, counts: Floats | None = None
    ) -> JobChange:
        """A row with its verdict.

        Args:
            times, counts: shape (2, ranks, iterations).
        """
        cells = times[0].size if times.shape[2] >= FEWEST_ITERATIONS else 0
        (a_ns, b_ns), (a_count, b_count) = (
            (math.nan, math.nan) if each is None else each.mean(axis=(1, 2)).tolist() for each in (times, counts)
        )
        verdict = between_runs.judge(ratio, noise, self.smallest, n=cells, equal=False)
        if kind == "figure" and verdict in ("slower", "faster") and abs(b_ns - a_ns) < self.smallest * self.iteration_ns:
            verdict = "tied"
        least = between_runs.least_effect(ratio, noise, self.smallest)
        return JobChange(name, kind, None, a_ns, b_ns, a_count, b_count, ratio, noise, verdict, least)


def _rows(names: list[str], times: Floats, ratios: job_resampling.Ratios) -> Iterator[tuple[str, Floats, Estimate]]:
    """The name, the times (2, ranks, iterations) and the ratio of each row."""
    for row, name in enumerate(names):
        yield name, times[:, row], Estimate(*(float(each[row]) for each in ratios[:3]))


def _between(a: JobData, b: JobData, pairing: Pairing, rules: _Rules) -> Iterator[JobChange]:
    """The figure `BETWEEN`, where it is as long as what counts."""
    times = _grids(a, b, pairing, ["between_ns"])
    times = times[..., np.isfinite(times).all(axis=(0, 1, 2))]
    if times.size and times.mean(axis=(1, 2, 3)).max() >= rules.smallest * rules.iteration_ns:
        for name, of_row, ratio in _rows([BETWEEN], times, job_resampling.ratios(*times, alike=False)):
            yield rules.judged(name, "figure", of_row, ratio)


def unseen(comparison: JobComparison, detect: float | None) -> tuple[JobChange, ...]:
    """The rows that a gate cannot see: those without a verdict, and those in which a slowdown by `detect` would have been tied.

    Of the figures, the iteration, the device span and the time between iterations count, as a part of the iteration; the others are parts of
    these. A kernel counts where it could hide the smallest change of an iteration.

    Args:
        detect: a fraction; None where no sensitivity is asked for, so that `BLIND` counts.
    """
    iteration_ns, least = comparison.figures[0].a_ns, BLIND if detect is None else detect
    counts_ns = comparison.smallest * iteration_ns

    def is_unseen(change: JobChange) -> bool:
        is_figure = change.kind == "figure"
        if is_figure and change.name not in _WHOLE:
            return False
        if change.verdict == "unknown":
            return change.b_ns >= counts_ns
        hidden = change.least_effect if math.isfinite(change.least_effect) else math.inf
        part = change.a_ns / iteration_ns if is_figure else 1.0
        return change.verdict == "tied" and hidden * part > least and hidden * change.a_ns >= counts_ns

    return tuple(each for each in comparison.changes if is_unseen(each))


def pair(a: JobData, b: JobData) -> Pairing:
    """Match ranks by their numbers. Match iterations by their numbers if those of one job contain those of the other, else by position.

    Raises:
        NotComparable: there is nothing in common.
    """
    for job in (a, b):
        if job.iterations.empty:
            raise NotComparable(
                f"{job.title}: has no numbered iterations; profile with steps (ProfilerStep#N, or ranges such as `step 3`)"
            )
    every = [np.unique(job.iterations["rank"]) for job in (a, b)]
    ranks = np.intersect1d(every[0], every[1])
    if not len(ranks):
        raise NotComparable(f"{a.title} and {b.title} have no rank in common: {_some(every[0])} and {_some(every[1])}")
    of_a, of_b = (_on_every_rank(job, ranks) for job in (a, b))
    both = np.intersect1d(of_a, of_b)
    by_number = len(both) == min(len(of_a), len(of_b))
    n = len(both) if by_number else min(len(of_a), len(of_b))
    pairs = (both, both) if by_number else (of_a[:n], of_b[:n])
    parts = [f"{counted(len(ranks), 'rank')} and {counted(n, 'iteration')}, matched by "]
    parts[0] += "number" if by_number else f"position ({_some(pairs[0])} with {_some(pairs[1])})"
    for name, own, job, used in (("A", every[0], a, pairs[0]), ("B", every[1], b, pairs[1])):
        if len(own) > len(ranks):
            parts.append(f"not compared: {_some(np.setdiff1d(own, ranks), 'rank')} of {name}")
        of_ranks = job.iterations[job.iterations["rank"].isin(ranks)]
        left = np.setdiff1d(of_ranks["iteration"], used)
        if len(left):
            parts.append(f"not compared: {_some(left, 'iteration')} of {name}")
    needed = max(FEWEST_ITERATIONS, math.ceil(MIN_SAMPLES / len(ranks)))
    if n < needed:
        parts.append(f"too few for a verdict: profile at least {needed} iterations")
    return Pairing(ranks, *pairs, "; ".join(parts), np.setdiff1d(every[0], ranks))


def _on_every_rank(job: JobData, ranks: Int64s) -> Int64s:
    """The iterations that all of these ranks have. Raises NotComparable."""
    of_ranks = job.iterations[job.iterations["rank"].isin(ranks)]
    number, count = np.unique(of_ranks["iteration"], return_counts=True)
    found: Int64s = number[count == len(ranks)]
    if not len(found):
        raise NotComparable(f"{job.title}: no iteration is on all of its {len(ranks)} ranks that the other job has too")
    return found


def _some(numbers: Int64s, noun: str = "") -> str:
    """`ranks 3, 4, 5 and 9 more`, or without a noun `3, 4, 5 …`."""
    if noun:
        return f"{noun}{'' if len(numbers) == 1 else 's'} {first_of(numbers.tolist(), 3)}"
    return ", ".join(map(str, numbers[:3].tolist())) + (" …" if len(numbers) > 3 else "")


def _places(frame: pd.DataFrame, ranks: Int64s, iterations: Int64s) -> Int64s:
    """The place of each row in a grid of ranks and iterations; -1 beyond it."""
    row, column = lookup(ranks, frame["rank"].to_numpy(np.int64)), lookup(iterations, frame["iteration"].to_numpy(np.int64))
    return np.where((row >= 0) & (column >= 0), row * len(iterations) + column, -1)


def _figures(a: JobData, b: JobData, pairing: Pairing) -> tuple[list[str], Floats]:
    """The figures that both jobs have, and their times, shape (2, figures, ranks, iterations)."""
    both = _grids(a, b, pairing, list(FIGURES.values()))
    known = np.isfinite(both).all(axis=(0, 2, 3)) & (both.sum(axis=(0, 2, 3)) > 0)
    names = list(FIGURES)
    if np.nansum(both[:, names.index(GRAPHS)]):
        known[[names.index(name) for name in _NOT_IN_GRAPHS]] = False
    known[names.index("busy")] = True
    return [name for name, has in zip(FIGURES, known, strict=True) if has], both[:, known]


def _grids(a: JobData, b: JobData, pairing: Pairing, columns: list[str]) -> Floats:
    """Columns of table `iterations`, shape (2, columns, ranks, iterations), with NaN where nothing is known."""
    sides = []
    for job, iterations in ((a, pairing.a), (b, pairing.b)):
        places = _places(job.iterations, pairing.ranks, iterations)
        inside = places >= 0
        times = np.full((len(columns), len(pairing.ranks) * len(iterations)), np.nan)
        times[:, places[inside]] = job.iterations.loc[inside, columns].to_numpy(float, na_value=np.nan).T
        sides.append(times.reshape(len(columns), len(pairing.ranks), len(iterations)))
    return np.stack(sides)


class _Kernels:
    """The kernels of two jobs.

    Attributes:
        names, kinds: of the kernels that are judged, and `OTHER_KERNELS` last if there are any.
        times, counts: shape (2, kernels, ranks, iterations).
    """

    def __init__(self, a: JobData, b: JobData, pairing: Pairing, busy: Floats) -> None:
        self._shape = (len(pairing.ranks), len(pairing.a))
        self._cells = math.prod(self._shape)
        sides = ((a, pairing.a), (b, pairing.b))
        places = [_places(job.kernels, pairing.ranks, iterations) for job, iterations in sides]
        rows = [job.kernels[inside >= 0] for (job, _), inside in zip(sides, places, strict=True)]
        places = [inside[inside >= 0] for inside in places]
        both = pd.concat([each[_KEY].astype(str) for each in rows], ignore_index=True)
        code = np.asarray(both.groupby(_KEY, sort=False).ngroup(), np.int64)
        self._all = both.drop_duplicates().reset_index(drop=True)
        codes = code[: len(rows[0])], code[len(rows[0]) :]
        self._totals = np.stack([np.bincount(c, each["total_ns"], len(self._all)) for c, each in zip(codes, rows, strict=True)])
        self._shares = np.stack([self._share(codes[side], places[side], self._totals[side], busy[side]) for side in (0, 1)])
        has = np.stack([np.bincount(c, minlength=len(self._all)) > 0 for c in codes])
        shared = has.all(axis=0)
        self._alone = shared ^ has
        judged = shared & (self._shares.max(axis=0, initial=0) >= SHARE)
        chosen = self._all[judged]
        row = np.full(len(self._all), -1)
        row[judged] = np.arange(len(chosen))
        others = shared & ~judged
        row[others] = len(chosen)
        self.names: list[str] = chosen["name"].tolist()
        self.kinds: list[Kind] = chosen["kind"].tolist()
        if others.any():
            self.names.append(OTHER_KERNELS)
            self.kinds.append("compute")
        grids = [
            [self._grid(row[c], place, each[column]) for column in ("total_ns", "count")]
            for c, place, each in zip(codes, places, rows, strict=True)
        ]
        self.times, self.counts = (np.stack([grid[place] for grid in grids]) for place in (0, 1))
        if len(a.waits) and len(b.waits):
            for side, (job, iterations) in enumerate(sides):
                self.times[side] -= self._waits(job, pairing.ranks, iterations)
            np.maximum(self.times, 0, out=self.times)

    def _share(self, code: Int64s, place: Int64s, total: Floats, busy: Floats) -> Floats:
        """The share of each kernel in the busy time of the ranks that run it."""
        ranks, iterations = self._shape
        on = np.unique(code * ranks + place // iterations)
        of_ranks = np.bincount(on // ranks, busy.sum(axis=1)[on % ranks], len(total))
        return np.divide(total, of_ranks, out=np.zeros(len(total)), where=of_ranks > 0)

    def _grid(self, row: Int64s, place: Int64s, values: "pd.Series[Any]") -> Floats:
        """Sums by judged kernel, rank and iteration."""
        inside = row >= 0
        size = len(self.names) * self._cells
        sums: Floats = np.bincount((row * self._cells + place)[inside], values.to_numpy(float)[inside], size).astype(float)
        return sums[:size].reshape(len(self.names), *self._shape)

    def _waits(self, job: JobData, ranks: Int64s, iterations: Int64s) -> Floats:
        """The wait for other ranks in each judged communication kernel."""
        rows = {
            name: row for row, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True)) if kind == "communication"
        }
        row = np.array(job.waits["kernel"].astype(str).map(rows).fillna(-1), np.int64)
        place = _places(job.waits, ranks, iterations)
        row[place < 0] = -1
        return self._grid(row, place, job.waits["wait_ns"])

    def only(self, side: int) -> tuple[OneSided, ...]:
        """The kernels that one side alone has, the longest first."""
        total, share = self._totals[side], self._shares[side]
        places = np.flatnonzero(self._alone[side])
        return tuple(
            OneSided(self._all["name"][place], self._all["kind"][place], float(total[place] / self._cells), float(share[place]))
            for place in places[np.argsort(-total[places], kind="stable")].tolist()
        )


def _alone(kernels: _Kernels, ranks: Int64s, smallest: float) -> Iterator[JobChange]:
    """The kernels that became slower or faster on a rank, and differ there from the other ranks."""
    own = [row for row, kind in enumerate(kernels.kinds) if kind != "communication" and kernels.names[row] != OTHER_KERNELS]
    if len(ranks) < _FEWEST_RANKS or not own:
        return
    a, b = kernels.times[:, own]
    found = job_resampling.alone(a, b)
    least = math.log1p(max(smallest, ALONE))
    with np.errstate(invalid="ignore"):
        far = (np.abs(found.apart) > found.reach) & (np.abs(found.apart) >= least)
        far &= (np.sign(found.log) == np.sign(found.apart)) & (np.abs(found.log) > math.log1p(smallest))
        far &= (np.isfinite(found.apart).sum(axis=1) >= _FEWEST_RANKS)[:, None]
    for row, place in zip(*np.nonzero(far), strict=True):
        log, reach = float(found.log[row, place]), min(float(found.reach[row, place]), MOST_LOG)
        kernel, rank = own[row], int(ranks[place])
        (a_ns, b_ns), (a_count, b_count) = (
            each[:, kernel, place].mean(axis=1).tolist() for each in (kernels.times, kernels.counts)
        )
        ratio = Estimate(math.exp(log), math.exp(log - reach), math.exp(log + reach))
        verdict: Verdict = "slower" if log > 0 else "faster"
        name, kind = kernels.names[kernel], kernels.kinds[kernel]
        yield JobChange(name, kind, rank, a_ns, b_ns, a_count, b_count, ratio, math.exp(least), verdict, math.nan)
