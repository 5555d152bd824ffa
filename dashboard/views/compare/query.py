"""Two runs cell by cell: the cells that became slower or faster, and the differences between the recordings."""

import difflib
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from warpladder.dashboard.core import axes
from warpladder.dashboard.core.cell import name_of
from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.facts import Fact, of_ceilings, of_clocks, of_runs, said
from warpladder.dashboard.core.intervals import paired_ratio
from warpladder.dashboard.core.noise import SMALLEST_EFFECT, UNMEASURED_NOISE, between_runs, noise_of
from warpladder.dashboard.core.run_data import Entry, RunData
from warpladder.dashboard.core.timing import Timing

#: The fewest variants of a case from which its common shift is taken.
FEWEST_FOR_SHIFT: Final = 3

Verdict = Literal["slower", "faster", "unchanged", "unknown"]
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
        variant, config: of B; `of_a` has those of A where they differ.
        a_ns, b_ns: medians with 95 % intervals, in nanoseconds.
        ratio: the median of B over that of A; above 1, B is slower.
        shift: median ratio of the variants of the case whose source is equal on both sides; NaN where they are too few.
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
    of_a: tuple[str, str]
    a_ns: Estimate
    b_ns: Estimate
    ratio: Estimate
    shift: float
    noise: float
    same_source: bool
    verdict: Verdict

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
        changes: every matched cell, the slowest of B first.
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


_Key = tuple[str, str, str, str, str, str, int]


def compare(a: Side, b: Side, options: Options = Options()) -> Comparison:
    """Compare B with A.

    The interval of a ratio resamples the rounds of each run on its own. All rounds of a run are of one process, so the interval
    does not hold the noise from one process to the next. That noise is taken from the cells whose sources are equal on both
    sides. A cell is slower or faster where its whole interval is outside the noise. Two variants of one run are compared round by
    round, without noise between runs.

    Raises:
        NotComparable: no cell is in both, or the GPUs differ and `options.any_device` is False.
    """
    if a.data.info["device_name"] != b.data.info["device_name"] and not options.any_device:
        raise NotComparable(
            f"{_title(a)} was recorded on {a.data.device}, {_title(b)} on {b.data.device}; "
            "record both on one device, or add --any-device"
        )
    of_a, of_b = ({each.key: each for each in _timed(side, other, options)} for side, other in ((a, b), (b, a)))
    shared = [key for key in of_b if key in of_a]
    if not shared:
        raise NotComparable(
            f"{_title(a)} and {_title(b)} have no cell in common; `warpladder answer RUN` shows the workloads and cases of a run"
        )
    changes = [_change(a, b, of_a[key], of_b[key]) for key in shared]
    if not _same_run(a, b):
        changes = _with_noise(_with_shifts(changes), options)
    judged = [_judged(change, options) for change in changes]
    judged.sort(key=lambda change: -change.ratio.value if change.ratio.known else math.inf)
    facts = sorted(_facts(a.data, b.data), key=lambda fact: not fact.warning)
    sources = dict.fromkeys((each.workload, each.variant) for each in judged if not each.same_source)
    return Comparison(tuple(facts), tuple(sources), tuple(judged), len(of_a) - len(shared), len(of_b) - len(shared))


def only(found: Comparison, workload: str) -> Comparison:
    """The comparison of one workload."""
    changes = tuple(change for change in found.changes if change.workload == workload)
    sources = tuple(each for each in found.changed_sources if each[0] == workload)
    return replace(found, changes=changes, changed_sources=sources)


def sentence(found: Comparison) -> str:
    """`3 slower, 61 unchanged, 1 faster; the worst: conv2d n=512 v03_tile, 1.04×`."""
    counts = Counter(change.verdict for change in found.changes)
    said = ", ".join(f"{counts[each]} {each}" for each in ("slower", "unchanged", "faster", "unknown") if counts[each])
    slower = found.of("slower")
    if not slower:
        return said
    worst = slower[0]
    return f"{said}; the worst: {worst.workload} {worst.case} {name_of(worst.variant, worst.config)}, {worst.ratio.value:.3f}x"


def source_difference(a: RunData, b: RunData, workload: str, of_a: str, of_b: str) -> str:
    """The sources of a variant as they were measured, as a unified diff; empty where they are equal or not recorded."""
    before, after = (_source(data, workload, variant)[1] for data, variant in ((a, of_a), (b, of_b)))
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"A: {of_a}", f"B: {of_b}", lineterm="")
    return "\n".join(lines)


@dataclass(frozen=True)
class _Timed:
    """A cell with samples, and the key by which it is matched."""

    key: _Key
    variant: str
    config: str
    median_ns: Estimate


def _timed(side: Side, other: Side, options: Options) -> Iterator[_Timed]:
    """The cells of a side that the options ask for."""
    every = cells(side.data)
    every = every[(every["n"] > 0) & (every["status"] == "ok")]
    if side.variant:
        every = every[every["variant"] == side.variant]
    every = every[_chosen(side.data, other.data, every, options.scope)]
    if options.match == "best":
        every = best_config(every)
    names = ["workload", "case", "scope", "cache", "variant", "config", "gpus", "median_ns", "low_ns", "high_ns"]
    for workload, case, scope, cache, variant, config, gpus, *figures in every[names].itertuples(index=False, name=None):
        matched = "" if side.variant and other.variant else variant
        key = (workload, case, scope, cache, matched, "" if options.match == "best" else config, int(gpus))
        yield _Timed(key, variant, config, Estimate(*figures))


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


def _change(a: Side, b: Side, of_a: _Timed, of_b: _Timed) -> Change:
    workload, case, scope, cache, _, _, gpus = of_b.key
    sides = [(side.data, side.data.rounds(workload, case, scope, cache)) for side in (a, b)]
    before, after = (
        rounds[Entry(each.variant, each.config, gpus, 0)] for (_, rounds), each in zip(sides, (of_a, of_b), strict=True)
    )
    noises = [
        noise_of(rounds, data.hosts(workload)).between(each.variant)
        for (data, rounds), each in zip(sides, (of_a, of_b), strict=True)
    ]
    sources = [_source(side.data, workload, each.variant) for side, each in ((a, of_a), (b, of_b))]
    return Change(
        workload,
        case,
        Timing(scope, cache),
        of_b.variant,
        of_b.config,
        (of_a.variant, of_a.config),
        of_a.median_ns,
        of_b.median_ns,
        paired_ratio(after, before, independent=not _same_run(a, b)).estimate,
        math.nan,
        max(noises),
        sources[0] == sources[1],
        "unknown",
    )


def _source(data: RunData, workload: str, variant: str) -> tuple[str, str]:
    """Hash and text of a variant's source, as it was measured."""
    found = data.variants[(data.variants["workload"] == workload) & (data.variants["variant"] == variant)]
    for sha256, text in found[["source_sha256", "source_text"]].itertuples(index=False, name=None):
        return ("" if pd.isna(sha256) else str(sha256), "" if pd.isna(text) else str(text))
    return "", ""


def _with_shifts(changes: Sequence[Change]) -> list[Change]:
    """The changes with the common shift of their case and timing, of variants that run on the same device."""
    together: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for change in changes:
        if change.same_source and change.ratio.known:
            together[change.workload, change.case, change.timing].append(change.ratio.value)
    shifts = {key: float(pd.Series(found).median()) for key, found in together.items() if len(found) >= FEWEST_FOR_SHIFT}
    return [replace(each, shift=shifts.get((each.workload, each.case, each.timing), math.nan)) for each in changes]


def _with_noise(changes: Sequence[Change], options: Options) -> list[Change]:
    """The changes with the noise between the runs, where it is larger than that within them."""
    times = np.array([change.a_ns.value for change in changes])
    apart = np.abs(np.log([_ratio(change, options).value for change in changes]))
    timings = np.array([f"{change.timing.scope} {change.timing.cache}" for change in changes])
    known = np.array([change.same_source for change in changes]) & np.isfinite(apart)
    found = []
    for place, change in enumerate(changes):
        others = known & (timings == timings[place])
        others[place] = False
        (between,) = between_runs(apart[others, None], times[others], times[place])
        found.append(replace(change, noise=max(change.noise, UNMEASURED_NOISE if np.isnan(between) else float(between))))
    return found


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


def _facts(a: RunData, b: RunData) -> Iterator[Fact]:
    yield from of_runs(a.info, b.info)
    yield from of_ceilings(a.ceilings, b.ceilings)
    yield from of_clocks(*(data.samples["sm_clock_mhz"].median() for data in (a, b)))


def _same_run(a: Side, b: Side) -> bool:
    return bool(a.data.info["run_id"] == b.data.info["run_id"])


def _title(side: Side) -> str:
    return said(side.data.info["label"]) or str(side.data.info["run_id"])
