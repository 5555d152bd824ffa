"""Two runs cell by cell: the cells that became slower or faster, and the differences between the recordings."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import pandas as pd

from warpladder.dashboard.core import axes
from warpladder.dashboard.core.between_runs import SMALLEST_EFFECT, Distance, Place, noise_between
from warpladder.dashboard.core.cell import name_of
from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.facts import Fact, facts, said
from warpladder.dashboard.core.intervals import independent_ratio, paired_ratio
from warpladder.dashboard.core.readings import Reading, Timed, reading
from warpladder.dashboard.core.run_data import Entry, RunData
from warpladder.dashboard.core.timing import Timing

#: The fewest variants of a case from which its common shift is taken.
FEWEST_FOR_SHIFT: Final = 3

Verdict = Literal["slower", "faster", "unchanged", "unknown"]
VERDICTS: Final[tuple[Verdict, ...]] = ("slower", "unchanged", "faster", "unknown")
Match = Literal["config", "best"]
MATCHES: Final[tuple[Match, ...]] = ("config", "best")


class NotComparable(Exception):
    """Two runs that cannot be compared. The message says why, and what to do, in one line."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a run, or one variant of it.

    Attributes:
        variant: compares this variant with that of the other side; empty for every variant with the one of its name.
    """

    data: RunData
    variant: str = ""


@dataclass(frozen=True)
class Options:
    """How two sides are compared.

    Attributes:
        scope: compares this scope, with every state of the caches, or `all`; empty for the first timing that both sides have.
        match: `config` compares equal configs; `best` compares the fastest config of each side.
        smallest: smallest effect of interest, a fraction: smaller differences are `unchanged`.
        without_shift: judge ratios after the common shift of their case is taken out.
        any_device: compare although the GPUs differ.
    """

    scope: str = ""
    match: Match = "config"
    smallest: float = SMALLEST_EFFECT
    without_shift: bool = False
    any_device: bool = False


@dataclass(frozen=True)
class Change:
    """A cell of both sides.

    Attributes:
        variant, config: of B; `of_a` has those of A.
        gpus: that worked together, or processes of a host variant; 0 for a host variant of one process.
        a_ns, b_ns: medians with 95 % intervals, in nanoseconds.
        ratio: the median of B over that of A; above 1, B is slower.
        shift: median ratio of the variants of the case whose source is equal in both runs; NaN where they are too few.
        noise: a factor of at least 1; ratios from 1/noise to noise are `unchanged`. It is the larger one of the noise floors of the
            two runs, and of the noise between them: 95 % of the cells with equal sources and like times differ by less.
        same_source: whether the source text is equal on both sides.
        verdict: of B.
    """

    workload: str
    case: str
    timing: Timing
    variant: str
    config: str
    gpus: int
    of_a: tuple[str, str]
    a_ns: Estimate
    b_ns: Estimate
    ratio: Estimate
    shift: float
    noise: float
    same_source: bool
    verdict: Verdict

    @property
    def key(self) -> tuple[str, ...]:
        """The texts that tell the cell of B from others of its run."""
        return (self.workload, self.case, self.timing.scope, self.timing.cache, self.variant, self.config, str(self.gpus))

    @property
    def alike(self) -> "_Alike":
        return self.workload, self.case, self.timing, max(self.gpus, 1)

    @property
    def name(self) -> str:
        """`v03_tile[block=16]`, with the GPUs where several worked together."""
        return f"{name_of(self.variant, self.config)}{f' on {self.gpus} GPUs' if self.gpus > 1 else ''}"

    @property
    def without_shift(self) -> Estimate:
        """The ratio after the common shift of the case is taken out; the ratio itself where there is none."""
        return self.ratio if math.isnan(self.shift) else self.ratio.times(1 / self.shift)


@dataclass(frozen=True)
class Comparison:
    """Two sides, compared.

    Attributes:
        facts: the differences between the recordings, warnings first.
        changed_sources: workload and variant of B for each source text that differs.
        changes: every matched cell: those slower in B first, then the unchanged ones, then the faster ones, each by the ratio.
        only_a, only_b: cells that one side alone has.
    """

    facts: tuple[Fact, ...]
    changed_sources: tuple[tuple[str, str], ...]
    changes: tuple[Change, ...]
    only_a: int
    only_b: int

    def of(self, *verdicts: Verdict) -> tuple[Change, ...]:
        """The changes with these verdicts, in their order."""
        return tuple(change for change in self.changes if change.verdict in verdicts)


def compare(a: Side, b: Side, options: Options = Options()) -> Comparison:
    """Compare B with A.

    The interval of a ratio resamples the processes of each run on its own, then the rounds of each. A run has few processes or
    one, so the interval does not hold all of the noise from one process to the next. That noise is taken from the variants whose
    sources are equal in both runs, each with itself, whichever variants are compared. A cell is slower or faster where its whole interval is outside the noise. Two variants of one run are compared round by
    round, without noise between runs. Of samples that several ranks took together, the slowest rank of a round counts, and cells
    of equal numbers of ranks are compared.

    Raises:
        NotComparable: no cell is in both, or the GPUs differ and `options.any_device` is False.
    """
    _refuse_other_devices(a, b, options)
    before, after = reading(a.data), reading(b.data)
    of_a, of_b = ({each.key: each for each in _timed(*sides, options)} for sides in ((a, b), (b, a)))
    shared = [key for key in of_b if key in of_a]
    if not shared:
        raise NotComparable(
            f"{_title(a)} and {_title(b)} have no cell in common; `warpladder answer RUN` shows the workloads and cases of a run"
        )
    judged = _slowest_first(_judge(before, after, [(of_a[key], of_b[key]) for key in shared], options))
    told = sorted(facts(a.data, b.data), key=lambda fact: not fact.warning)
    sources = dict.fromkeys((each.workload, each.variant) for each in judged if not each.same_source)
    return Comparison(tuple(told), tuple(sources), tuple(judged), len(of_a) - len(shared), len(of_b) - len(shared))


def _refuse_other_devices(a: Side, b: Side, options: Options) -> None:
    if a.data.info["device_name"] != b.data.info["device_name"] and not options.any_device:
        raise NotComparable(
            f"{_title(a)} was recorded on {a.data.device}, {_title(b)} on {b.data.device}; "
            "record both on one device, or add --any-device"
        )


def sentence(changes: Sequence[Change]) -> str:
    """`3 slower, 61 unchanged, 1 faster; the worst: conv2d n=512 v03_tile, 1.04×`, of changes with the slowest first."""
    counts = Counter(change.verdict for change in changes)
    words = ", ".join(f"{counts[each]} {each}" for each in VERDICTS if counts[each])
    worst = next((change for change in changes if change.verdict == "slower"), None)
    if worst is None:
        return words
    return f"{words}; the worst: {worst.workload} {worst.case} {worst.name}, {worst.ratio.value:.3f}x"


def durations(data: RunData, change: Change, cell: tuple[str, str]) -> "pd.Series[float]":
    """Durations in nanoseconds by round, of one side of a change.

    Args:
        data: the run of that side.
        cell: variant and config of that side.
    """
    rounds = reading(data).data.rounds(change.workload, change.case, change.timing.scope, change.timing.cache)
    return rounds[Entry(*cell, change.gpus, 0)]


def _timed(side: Side, other: Side, options: Options) -> Iterator[Timed]:
    """The cells of a side that the options ask for."""
    data = reading(side.data).data
    every = cells(data)
    every = every[(every["n"] > 0) & (every["status"] == "ok")]
    if side.variant:
        every = every[every["variant"] == side.variant]
    every = every[_chosen(data, reading(other.data).data, every, options.scope)]
    if options.match == "best":
        every = best_config(every)
    names = ["workload", "case", "scope", "cache", "variant", "config", "gpus", "median_ns", "low_ns", "high_ns"]
    for workload, case, scope, cache, variant, config, gpus, *figures in every[names].itertuples(index=False, name=None):
        matched = "" if side.variant and other.variant else variant
        key = (workload, case, scope, cache, matched, "" if options.match == "best" else config, int(gpus))
        yield Timed(key, variant, config, Estimate(*figures))


def _chosen(data: RunData, other: RunData, every: pd.DataFrame, scope: str) -> "pd.Series[bool]":
    if scope == "all":
        return pd.Series(True, every.index)
    if scope:
        return every["scope"] == scope
    found = pd.Series(False, every.index)
    for workload in data.workloads:
        both = [timing for timing in axes.timings(data, workload) if timing in axes.timings(other, workload)]
        for timing in both[:1]:
            same = (every["scope"] == timing.scope) & (every["cache"] == timing.cache)
            found |= (every["workload"] == workload) & same
    return found


def _judge(a: Reading, b: Reading, pairs: Sequence[tuple[Timed, Timed]], options: Options) -> list[Change]:
    """The changes of pairs of cells, in their order."""
    same_run = bool(a.data.info["run_id"] == b.data.info["run_id"])
    changes = [_change(a, b, *pair, same_run=same_run) for pair in pairs]
    if not same_run:
        equal = list(_equal_code(a, b, options))
        shifts = _shifts(equal)
        changes = [replace(change, shift=shifts.get(change.alike, math.nan)) for change in changes]
        changes = _with_noise(changes, equal, shifts if options.without_shift else {})
    return [_judged(change, options) for change in changes]


def _change(a: Reading, b: Reading, of_a: Timed, of_b: Timed, *, same_run: bool) -> Change:
    workload, case, scope, cache, _, _, gpus = of_b.key
    if same_run:
        ratio = paired_ratio(b.durations(of_b), a.durations(of_a))
    else:
        ratio = independent_ratio(a.by_process(of_a), b.by_process(of_b))
    return Change(
        workload,
        case,
        Timing(scope, cache),
        of_b.variant,
        of_b.config,
        gpus,
        (of_a.variant, of_a.config),
        of_a.median_ns,
        of_b.median_ns,
        ratio.estimate,
        math.nan,
        max(a.noise(of_a), b.noise(of_b)),
        a.source(of_a) == b.source(of_b),
        "unknown",
    )


#: What the cells of a common shift have in common: workload, case, timing, and the GPUs that work together.
_Alike = tuple[str, str, Timing, int]


@dataclass(frozen=True)
class _Equal:
    """A cell whose code is equal in both runs: its key, its median in A, and the median of B over that of A."""

    key: tuple[str, ...]
    alike: _Alike
    a_ns: float
    ratio: float


def _equal_code(a: Reading, b: Reading, options: Options) -> Iterator[_Equal]:
    """Every variant and config whose source is equal in both runs, in the scope of the options."""
    every = replace(options, match="config")
    of_a = {cell.key: cell for cell in _timed(Side(a.data), Side(b.data), every)}
    for of_b in _timed(Side(b.data), Side(a.data), every):
        cell = of_a.get(of_b.key)
        if cell and cell.median_ns.value > 0 and a.source(cell) == b.source(of_b):
            workload, case, scope, cache, variant, config, gpus = of_b.key
            key = (workload, case, scope, cache, variant, config, str(gpus))
            alike = (workload, case, Timing(scope, cache), max(gpus, 1))
            yield _Equal(key, alike, cell.median_ns.value, of_b.median_ns.value / cell.median_ns.value)


def _shifts(equal: Sequence[_Equal]) -> dict[_Alike, float]:
    """The median ratio of the cells of each case and timing, where they are enough."""
    together: dict[_Alike, list[float]] = defaultdict(list)
    for cell in equal:
        together[cell.alike].append(cell.ratio)
    return {alike: float(np.median(found)) for alike, found in together.items() if len(found) >= FEWEST_FOR_SHIFT}


def _with_noise(changes: Sequence[Change], equal: Sequence[_Equal], shifts: Mapping[_Alike, float]) -> list[Change]:
    """The changes with the noise between the runs, where it is larger than that within them.

    Args:
        shifts: taken out of the ratios before; empty for none.
    """
    distances = []
    for cell in equal:
        *_, timing, gpus = cell.alike
        apart = abs(math.log(cell.ratio / shifts.get(cell.alike, 1.0))) if cell.ratio > 0 else math.inf
        distances.append(Distance(cell.key, (timing, gpus), cell.a_ns, apart))
    places = [Place(change.key, change.alike[2:], change.a_ns.value) for change in changes]
    between = noise_between(places, distances)
    return [replace(change, noise=max(change.noise, noise)) for change, noise in zip(changes, between, strict=True)]


def _ratio(change: Change, options: Options) -> Estimate:
    return change.without_shift if options.without_shift else change.ratio


def _judged(change: Change, options: Options) -> Change:
    ratio = _ratio(change, options)
    if not ratio.known:
        return change
    band = max(change.noise, 1 + options.smallest)
    if ratio.low > band:
        return replace(change, verdict="slower")
    return replace(change, verdict="faster" if ratio.high < 1 / band else "unchanged")


def _slowest_first(changes: Iterable[Change]) -> list[Change]:
    """The slower cells, then those without a verdict of their own, then the faster ones; each part by its ratio."""
    places = {"slower": 0, "faster": 2}
    return sorted(changes, key=lambda each: (places.get(each.verdict, 1), -each.ratio.value if each.ratio.known else math.inf))


def _title(side: Side) -> str:
    return said(side.data.info["label"]) or str(side.data.info["run_id"])


def against_variant(a: Side, b: Side, options: Options = Options()) -> tuple[Change, ...]:
    """Every cell of B against the fastest config of A's variant, in the same case, timing and number of GPUs.

    A host variant of one process is compared with one GPU.

    Args:
        a: its variant is not empty.

    Raises:
        NotComparable: the GPUs differ and `options.any_device` is False.
    """
    _refuse_other_devices(a, b, options)
    ones = {_place(one): one for one in _timed(a, replace(b, variant=a.variant), replace(options, match="best"))}
    pairs = [(one, each) for each in _timed(b, replace(a, variant=""), options) if (one := ones.get(_place(each)))]
    return tuple(_slowest_first(_judge(reading(a.data), reading(b.data), pairs, options)))


def _place(cell: Timed) -> tuple[str, str, str, str, int]:
    workload, case, scope, cache, _, _, gpus = cell.key
    return workload, case, scope, cache, max(gpus, 1)
