"""The choice between shipped variants by size: crossover sizes, and the dispatch with the fewest branches."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.compare.within_run import UNDECIDED, CaseTimes
from warpladder.dashboard.core.cell import Cell, Entry, Estimate
from warpladder.dashboard.core.cells import cells, in_timing, is_trusted
from warpladder.dashboard.core.intervals import paired_ratio
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.views.sizes.ship.query import Contest, loss_of, mean_loss

#: The losses in percent that a dispatch may accept to save a branch.
TOLERANCES: Final = (0.0, 1.0, 2.0, 5.0)


@dataclass(frozen=True)
class Crossover:
    """The size at which one variant overtakes another.

    Attributes:
        below, above: the faster variant at smaller and at larger sizes.
        size: the size at which the ratio is 1, with its interval; see `crossings`.
        between: the measured sizes around the interval; 0 and infinite where no size is measured.
    """

    below: str
    above: str
    size: Estimate
    between: tuple[float, float]


@dataclass(frozen=True)
class Branch:
    """The variant and config for the sizes below a limit.

    Attributes:
        limit: the first size of the next branch; infinite for the last branch. The interval is the interval of the crossover;
            both ends are NaN where the two are tied on both sides of the limit, so that there is no crossover.
        first, last: the smallest and the largest measured size of the branch.
        between: the measured sizes around the interval of the limit.
    """

    variant: str
    config: str
    limit: Estimate
    first: float
    last: float
    between: tuple[float, float] = (0.0, math.inf)


@dataclass(frozen=True)
class Dispatch:
    """The shipped variant to run at each case.

    Attributes:
        axis: name of the axis that branches test; empty where the cases vary in several axes, or in no axis of numbers.
        branches: branches by size; empty without an axis.
        chosen: case -> variant and config.
        mean, worst: loss in percent against the fastest contender of each case.
        missing: cases in which no shipped variant has a time.
    """

    axis: str
    integral: bool
    branches: tuple[Branch, ...]
    chosen: Mapping[str, tuple[str, str]]
    mean: Estimate
    worst: Estimate
    worst_case: str
    missing: tuple[str, ...]


@dataclass(frozen=True)
class _CaseCosts:
    """The entries that can run at a case, with the ratio of each to the fastest contender of the case.

    Attributes:
        good: the entries that may be chosen: tied with the fastest shipped entry, or slower by at most the tolerance.
    """

    case: Cell
    times: CaseTimes
    ratios: Mapping[Entry, Estimate]
    good: frozenset[Entry]


def axis_of(contest: Contest) -> str:
    """The one axis of numbers along which all cases lie, such as `n`; empty without such an axis."""
    axes = {case.size.partition("=")[0] for case in contest.cases}
    one = len({case.series for case in contest.cases}) == 1 and len(axes) == 1
    sizes = pd.to_numeric(pd.Series([case.size.partition("=")[2] for case in contest.cases]), errors="coerce")
    numeric = all(size == case.size_value for size, case in zip(sizes, contest.cases, strict=True))
    return axes.pop() if one and numeric else ""


def crossovers(data: RunData, contest: Contest, variants: Sequence[str]) -> tuple[Crossover, ...]:
    """The sizes at which these variants, each with its fastest config, overtake each other; empty without an axis."""
    if not axis_of(contest):
        return ()
    every = []
    for pair in combinations(variants, 2):
        sizes, ratios, times = [], [], []
        for case in sorted(contest.cases, key=lambda case: case.size_value):
            both = [contest.places.get((case.case, variant)) for variant in pair]
            if both[0] and both[1]:
                rounds = data.rounds(contest.workload, case.case, contest.timing.scope, contest.timing.cache)
                ratios.append(paired_ratio(rounds[both[0].entry], rounds[both[1].entry]).estimate)
                sizes.append(case.size_value)
                times.append(both[1].median_ns.value)
        for size, rises in crossings(sizes, ratios, times):
            every.append(Crossover(*(pair if rises else pair[::-1]), size, _around(sizes, size)))
    return tuple(sorted(every, key=lambda each: each.size.value))


def _around(sizes: Sequence[float], size: Estimate) -> tuple[float, float]:
    """The measured sizes around the interval of a crossover."""
    left = max((each for each in sizes if each <= size.low), default=0.0)
    return left, min((each for each in sizes if each >= size.high), default=math.inf)


def crossings(sizes: Sequence[float], ratios: Sequence[Estimate], times: Sequence[float] = ()) -> list[tuple[Estimate, bool]]:
    """The sizes at which a ratio passes 1, with the interval of each size, and whether the ratio rises.

    Between two sizes, the logarithms of the ratio and of its ends are linear in the logarithm of the size. Nothing was measured
    there, so the interval also holds the size from another rule: times that are linear in the size. Sizes without a gap at
    which the interval holds 1 give one crossing, in the middle of the crossings of the ratio, or no crossing where the ratio
    comes back. An end of the interval that no size shows is 0 or infinite.

    Args:
        sizes: positive, ascending.
        ratios: at each size.
        times: the denominators of the ratios; empty to leave the second rule out.
    """
    if len(sizes) < 2:
        return []
    ends = np.array([(each.value, max(each.low, 1e-12), each.high) for each in ratios]).T
    powers = [
        (Estimate(*(float(np.exp(end)) for end in (each.value, each.low, each.high))), rises)
        for each, rises in _passing(np.log(sizes), np.log(ends))
    ]
    if not len(times):
        return powers
    lines = _passing(np.array(sizes, dtype=float), (ends - 1) * np.array(times))
    return [
        (Estimate(one.value, max(min(one.low, line.low, line.value), 0.0), max(one.high, line.high, line.value)), rises)
        for (one, rises), (line, _) in zip(powers, lines, strict=True)
    ]


def _passing(at: np.ndarray, values: np.ndarray) -> list[tuple[Estimate, bool]]:
    """The places on the axis of `at` where lines through points pass 0; an end that no point shows is infinite.

    Args:
        values: the middle and the ends of an interval at each point; shape (3, points).
    """
    middle, low, high = values
    zeros = _zeros(at, middle)
    ends = np.unique(np.concatenate([at, zeros, _zeros(at, low), _zeros(at, high)]))
    centres = (ends[:-1] + ends[1:]) / 2
    unsure = (np.interp(centres, at, low) <= 0) & (np.interp(centres, at, high) >= 0)
    regions: list[tuple[float, float]] = []
    for left, right, inside in zip(ends[:-1], ends[1:], unsure, strict=True):
        if inside and regions and regions[-1][1] == left:
            regions[-1] = regions[-1][0], right
        elif inside:
            regions.append((left, right))
    # Where the interval has no width, the region is a point.
    regions += [(zero, zero) for zero in zeros if not any(left <= zero <= right for left, right in regions)]
    result = []
    for left, right in sorted(regions):
        passed = [zero for zero in zeros if left <= zero <= right]
        if len(passed) % 2 == 0:
            continue
        value = float(passed[len(passed) // 2])
        before = max((end for end in ends if end < left), default=ends[0])
        after = min((end for end in ends if end > right), default=ends[-1])
        rises = bool(np.interp(before, at, middle) < np.interp(after, at, middle))
        first = -math.inf if left == at[0] and low[0] <= 0 <= high[0] else float(left)
        last = math.inf if right == at[-1] and low[-1] <= 0 <= high[-1] else float(right)
        result.append((Estimate(value, first, last), rises))
    return result


def _zeros(at: np.ndarray, values: np.ndarray) -> list[float]:
    """The places where a line through the points changes its sign. A run of zeros counts once, at its start."""
    zeros: list[float] = []
    sign, zero_from = 0.0, 0.0
    for place, (x, y) in enumerate(zip(at, values, strict=True)):
        if y and sign and np.sign(y) != sign:
            before = values[place - 1]
            zeros.append(float(at[place - 1] + (x - at[place - 1]) * before / (before - y)) if before else zero_from)
        if y:
            sign = float(np.sign(y))
        elif place == 0 or values[place - 1]:
            zero_from = float(x)
    return zeros


def dispatch(data: RunData, contest: Contest, variants: tuple[str, ...], tolerance: float = 1.0) -> Dispatch:
    """The dispatch among these variants and their configs that has the fewest branches; among several, the fastest.

    At each case it takes an entry that is tied with the fastest shipped entry of the case, or slower by at most the tolerance.
    With an axis, branches are ranges of sizes, found by dynamic programming. Without one, each case takes the entry that
    serves the most cases, so that few entries are needed.

    Args:
        tolerance: in percent.
    """
    usable = _usable(data, contest, variants)
    every = [_at(data, contest, case, usable.get(case.case, []), tolerance) for case in contest.cases]
    cases = [each for each in every if each is not None]
    axis = axis_of(contest)
    if axis:
        cases.sort(key=lambda each: each.case.size_value)
    picked = _along(cases) if axis else _by_case(cases)
    branches = _branches(cases, picked) if axis else ()
    ratios = [each.ratios[entry] for each, entry in zip(cases, picked, strict=True)]
    worst = max(range(len(cases)), key=lambda number: ratios[number].value)
    return Dispatch(
        axis,
        all(each.case.size_value.is_integer() for each in cases),
        branches,
        {each.case.case: (entry.variant, entry.config) for each, entry in zip(cases, picked, strict=True)},
        mean_loss(ratios),
        loss_of(ratios[worst]),
        cases[worst].case.case,
        tuple(case.case for case, each in zip(contest.cases, every, strict=True) if each is None),
    )


def _at(data: RunData, contest: Contest, case: Cell, shipped: Sequence[Entry], tolerance: float) -> _CaseCosts | None:
    """The entries that can run at a case; None where no shipped entry was timed."""
    if not shipped:
        return None
    times = CaseTimes.of(data, contest.workload, case.case, contest.timing)
    fastest = next(place.entry for (name, _), place in contest.places.items() if name == case.case)
    ratios = {entry: paired_ratio(times.rounds[entry], times.rounds[fastest]).estimate for entry in shipped}
    leader = min(shipped, key=lambda entry: ratios[entry].value)
    good = set()
    for entry in shipped:
        ratio, _, word = times.judge(leader, entry)
        if word in UNDECIDED or ratio.ratio <= 1 + tolerance / 100 + 1e-9:
            good.add(entry)
    return _CaseCosts(case, times, ratios, frozenset(good))


def _usable(data: RunData, contest: Contest, variants: Sequence[str]) -> dict[str, list[Entry]]:
    """Case -> every config of these variants that may be called best, on as many GPUs as the variant's place."""
    every = in_timing(cells(data), contest.workload, contest.timing)
    chosen = (every["status"] == "ok") & (every["n"] > 0) & every["variant"].isin(variants)
    rows: Any = every.loc[chosen & is_trusted(every), ["case", "variant", "config", "gpus"]].itertuples(index=False, name=None)
    entries: dict[str, list[Entry]] = {}
    for case, variant, config, gpus in rows:
        place = contest.places.get((case, variant))
        if place and place.entry.gpus == gpus:
            entries.setdefault(case, []).append(Entry(variant, config, int(gpus), 0))
    return entries


def _along(cases: Sequence[_CaseCosts]) -> list[Entry]:
    """An entry for each size: the choice of good entries with the fewest changes, and then the least loss."""
    best: dict[Entry, tuple[int, float, tuple[Entry, ...]]] = {}
    for number, each in enumerate(cases):
        step: dict[Entry, tuple[int, float, tuple[Entry, ...]]] = {}
        for entry in sorted(each.good):
            loss = math.log(each.ratios[entry].value)
            if number == 0:
                step[entry] = 0, loss, (entry,)
                continue
            changes, so_far, path = min(
                (changes + (before != entry), so_far, path) for before, (changes, so_far, path) in best.items()
            )
            step[entry] = changes, so_far + loss, (*path, entry)
        best = step
    return list(min(best.values())[2])


def _by_case(cases: Sequence[_CaseCosts]) -> list[Entry]:
    """A good entry for each case, chosen greedily: the entry that serves most remaining cases, and the faster of two."""
    picked: dict[int, Entry] = {}
    while remaining := [number for number in range(len(cases)) if number not in picked]:
        serves: dict[Entry, list[int]] = {}
        for number in remaining:
            for entry in cases[number].good:
                serves.setdefault(entry, []).append(number)

        def rank(entry: Entry, serves: Mapping[Entry, list[int]] = serves) -> tuple[float, float, Entry]:
            loss = sum(math.log(cases[number].ratios[entry].value) for number in serves[entry])
            return -len(serves[entry]), loss, entry

        most = min(serves, key=rank)
        picked |= dict.fromkeys(serves[most], most)
    return [picked[number] for number in range(len(cases))]


def _branches(cases: Sequence[_CaseCosts], picked: Sequence[Entry]) -> tuple[Branch, ...]:
    """Neighbouring sizes of one entry as a branch, up to the size where the next entry overtakes it."""
    starts = [0, *(number for number in range(1, len(cases)) if picked[number] != picked[number - 1])]
    branches = []
    for start, end in pairwise([*starts, len(cases)]):
        limit, between = Estimate(math.inf, math.nan, math.nan), (0.0, math.inf)
        if end < len(cases):
            limit, between = _limit(cases, picked[end - 1], picked[end], end)
        sizes = cases[start].case.size_value, cases[end - 1].case.size_value
        branches.append(Branch(picked[start].variant, picked[start].config, limit, *sizes, between))
    return tuple(branches)


def _limit(cases: Sequence[_CaseCosts], below: Entry, above: Entry, end: int) -> tuple[Estimate, tuple[float, float]]:
    """The size between cases `end - 1` and `end` from which the entry `above` is taken, and the measured sizes around its interval.

    The size is the crossover of the two entries between these sizes, or the geometric mean of the sizes without a crossover.
    Whole sizes give a whole limit.
    """
    both = [each for each in cases if below in each.times.rounds and above in each.times.rounds]
    sizes = [each.case.size_value for each in both]
    ratios = [paired_ratio(each.times.rounds[below], each.times.rounds[above]).estimate for each in both]
    times = [float(np.median(each.times.rounds[above])) for each in both]
    left, right = cases[end - 1].case.size_value, cases[end].case.size_value
    within = [size for size, rises in crossings(sizes, ratios, times) if rises and left < size.value <= right]
    crossing = within[0] if within else Estimate(math.sqrt(left * right), math.nan, math.nan)
    between = _around(sizes, crossing) if within else (left, right)
    if all(each.case.size_value.is_integer() for each in cases):
        return Estimate(float(min(max(math.ceil(crossing.value), left + 1), right)), crossing.low, crossing.high), between
    rounded = float(f"{crossing.value:.4g}")
    return Estimate(rounded if left < rounded <= right else right, crossing.low, crossing.high), between
