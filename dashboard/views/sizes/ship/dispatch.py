"""The choice between shipped variants by size: crossover sizes, and the dispatch with the fewest branches."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, Final

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
class Crossing:
    """A size at which a ratio passes 1.

    Attributes:
        size: interpolated, linear in the logarithms of the size and of the ratio.
        between: the measured sizes around it at which the interval of the ratio does not hold 1.
    """

    size: float
    between: tuple[float, float]
    rises: bool


@dataclass(frozen=True)
class Crossover:
    """The size at which one variant overtakes another.

    Attributes:
        below, above: the faster variant at smaller and at larger sizes.
    """

    below: str
    above: str
    at: Crossing


@dataclass(frozen=True)
class Branch:
    """The variant and config for the sizes below a limit.

    Attributes:
        limit: the first size of the next branch; infinite for the last branch.
        first, last: the smallest and the largest measured size of the branch.
        crossing: of this variant and the next one at the limit; None where the two are tied or unmeasured on a side of it.
    """

    variant: str
    config: str
    limit: float
    first: float
    last: float
    crossing: Crossing | None = None


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
        sizes, ratios = [], []
        for case in sorted(contest.cases, key=lambda case: case.size_value):
            both = [contest.places.get((case.case, variant)) for variant in pair]
            if both[0] and both[1]:
                rounds = data.rounds(contest.workload, case.case, contest.timing.scope, contest.timing.cache)
                ratios.append(paired_ratio(rounds[both[0].entry], rounds[both[1].entry]).estimate)
                sizes.append(case.size_value)
        every += [Crossover(*(pair if each.rises else pair[::-1]), each) for each in crossings(sizes, ratios)]
    return tuple(sorted(every, key=lambda each: each.at.size))


def crossings(sizes: Sequence[float], ratios: Sequence[Estimate]) -> list[Crossing]:
    """The sizes at which a ratio passes 1. Sizes at which its interval holds 1 decide nothing.

    Args:
        sizes: positive, ascending.
        ratios: at each size.
    """
    sure = [
        (size, math.log(ratio.value)) for size, ratio in zip(sizes, ratios, strict=True) if not ratio.low <= 1 <= ratio.high
    ]
    found = []
    for (left, before), (right, after) in pairwise(sure):
        if before * after < 0:
            size = left * (right / left) ** (before / (before - after))
            found.append(Crossing(size, (left, right), rises=after > 0))
    return found


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
        limit, crossing = math.inf, None
        if end < len(cases):
            limit, crossing = _limit(cases, picked[end - 1], picked[end], end)
        sizes = cases[start].case.size_value, cases[end - 1].case.size_value
        branches.append(Branch(picked[start].variant, picked[start].config, limit, *sizes, crossing))
    return tuple(branches)


def _limit(cases: Sequence[_CaseCosts], below: Entry, above: Entry, end: int) -> tuple[float, Crossing | None]:
    """The size between cases `end - 1` and `end` from which the entry `above` is taken, and the crossing of the two entries there.

    Without a crossing, the size is the geometric mean of the two sizes. Whole sizes give a whole limit.
    """
    both = [each for each in cases if below in each.times.rounds and above in each.times.rounds]
    ratios = [paired_ratio(each.times.rounds[below], each.times.rounds[above]).estimate for each in both]
    left, right = cases[end - 1].case.size_value, cases[end].case.size_value
    every = crossings([each.case.size_value for each in both], ratios)
    crossing = next((each for each in every if each.rises and left < each.size <= right), None)
    size = crossing.size if crossing else math.sqrt(left * right)
    if all(each.case.size_value.is_integer() for each in cases):
        return float(min(max(math.ceil(size), left + 1), right)), crossing
    rounded = float(f"{size:.4g}")
    return rounded if left < rounded <= right else right, crossing
