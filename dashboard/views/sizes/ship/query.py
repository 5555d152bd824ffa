"""Which variants to ship: the ranking of each case, and the loss of shipping one, two or three variants.

The loss of a variant at a case says how much slower it is than the fastest variant of the case, in percent. Loss is computed
from samples paired by round, and a mean loss is geometric: 100 * (exp(mean(log(ratio))) - 1).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations, islice
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from warpladder.dashboard.compare.within_run import UNDECIDED, CaseTimes, compared, precisions
from warpladder.dashboard.core.cell import Cell, Entry, Estimate, Timing, records
from warpladder.dashboard.core.cells import best_of_charted, cells, charted_cases, doubt, is_trusted, passed_over
from warpladder.dashboard.core.intervals import paired_ratio
from warpladder.dashboard.core.run_data import RunData
from warpladder.data.arrays import Floats, Int64s

Among = Literal["rungs", "peers", "hosts"]
#: Choice -> the roles that can be shipped.
ROLES: Final[Mapping[Among, tuple[str, ...]]] = {
    "rungs": ("rung",),
    "peers": ("rung", "peer"),
    "hosts": ("rung", "peer", "host"),
}
#: The most variants that are shipped together.
MOST: Final = 3
#: One more variant is worth shipping where it reduces the loss by more than this, in percent.
WORTHWHILE: Final = 1.0
#: All series of a workload together.
ALL: Final = "all"
_CHUNK: Final = 50_000
#: The columns of cells that a place has.
_OF_PLACE: Final = ("workload", "variant", "config", "case", "gpus", "n", *Estimate.names("median_ns"))


@dataclass(frozen=True)
class Contest:
    """The variants that are compared in one precision, at every case at which at least one variant was timed.

    Attributes:
        cases: with `case`, `size`, `series` and `size_value` of `axes.charted_cases`.
        variants: in the order of the run.
        places: by case and variant, each case from the fastest to the slowest: the variant with its fastest config. A variant that was not
            timed at a case has no place. Besides columns of `cells`, a place has `group`, 1 for the variants that are tied for first,
            then 2 and so on (see `contest`); `leader`, the fastest variant of the group; and the estimate `ratio`, its time over the
            time of the fastest variant of the case, paired by round.
        reasons: why a variant has no place, by case and variant, such as `skipped` or `distrusted: above_ceiling`.
        untimed: charted cases at which no variant was timed.
        doubts: words about a faster cell that may not be called best, by case.
        among: what may be shipped, such as `rung`, where other variants were timed too; else empty.
        faster: by case, the fastest of these others where it is faster than all that may be shipped, with the estimate `ratio`, the time
            of the fastest of them over its own.
    """

    workload: str
    timing: Timing
    precision: str
    cases: tuple[Cell, ...]
    variants: tuple[str, ...]
    places: Mapping[tuple[str, str], Cell]
    reasons: Mapping[tuple[str, str], str]
    untimed: tuple[str, ...]
    doubts: Mapping[str, str]
    among: str = ""
    faster: Mapping[str, Cell] = field(default_factory=dict)

    def logs(self) -> Floats:
        """Logarithm of the ratio of each place; shape (variants, cases); infinite without a place."""
        matrix = np.full((len(self.variants), len(self.cases)), np.inf)
        for row, variant in enumerate(self.variants):
            for column, case in enumerate(self.cases):
                if place := self.places.get((case.case, variant)):
                    matrix[row, column] = math.log(place.ratio.value)
        return matrix

    @property
    def ranking(self) -> tuple[Cell, ...]:
        """Every place, case by case."""
        return tuple(self.places.values())

    @cached_property
    def first(self) -> Mapping[str, frozenset[str]]:
        """The variants that are tied for first, by case."""
        return {
            case.case: frozenset(each.variant for each in self.ranking if each.case == case.case and each.group == 1)
            for case in self.cases
        }


@dataclass(frozen=True)
class Shipment:
    """A set of variants that are shipped together, with its regret.

    The regret is the loss of the fastest variant of the set at each case, in percent.

    Attributes:
        variants: in the order of the run.
        first: cases in which a variant of the set is the fastest, or tied with the fastest.
        wins: the cases among them in which no other variant is.
        surpassed: the worst loss of the other cases, in percent; 0 without such cases. The loss of a tie may be noise.
        missing: cases that no variant of the set has a time of. The regret is computed from the other cases.
    """

    variants: tuple[str, ...]
    mean: Estimate
    worst: Estimate
    worst_case: str
    first: int
    wins: int
    surpassed: float
    missing: tuple[str, ...]

    @property
    def regret(self) -> tuple[float, ...]:
        """What a better set has less of, the first figure that differs deciding."""
        return len(self.missing), round(self.mean.value, 9), round(self.worst.value, 9)


@lru_cache(maxsize=4)
def _candidates(data: RunData, workload: str, timing: Timing, among: Among) -> pd.DataFrame:
    """The rows of `best_of_charted` that can be shipped, by role.

    Where no rung was timed, they are all rows that compute the result.

    Host variants of a run on a GPU count only among `hosts`, or where nothing else was timed.
    """
    best = best_of_charted(data, workload, timing)
    best = best[best["role"].isin(ROLES["hosts"])]
    chosen = best[best["role"].isin(ROLES[among])]
    if chosen.empty:
        chosen = best if not (best["role"] == "peer").any() else best[best["role"] == "peer"]
    # A program that used several GPUs is taken with the fewest.
    chosen = chosen.sort_values(["gpus", "median_ns"], kind="stable").drop_duplicates(["variant", "case"])
    return chosen.sort_values("median_ns", kind="stable")


def choices(data: RunData, workload: str, timing: Timing) -> tuple[Among, ...]:
    """The choices of `ROLES` that differ in this timing."""
    best = best_of_charted(data, workload, timing)
    roles = set(best["role"])
    if "rung" not in roles:
        return ("rungs",)
    further: dict[Among, str] = {"peers": "peer", "hosts": "host"}
    return ("rungs", *(among for among, role in further.items() if role in roles))


def precisions_of(data: RunData, workload: str, timing: Timing) -> tuple[str, ...]:
    """The precisions in which variants are compared, fp32 first; empty where nothing was timed."""
    return tuple(precisions(_candidates(data, workload, timing, "rungs")))


@lru_cache(maxsize=8)
def contest(data: RunData, workload: str, timing: Timing, precision: str, among: Among = "rungs", series: str = ALL) -> Contest:
    """Rank the variants at every charted case. Only what may be called best is ranked; see `core.trusted`.

    Ties are groups with a leader. The fastest variant of a case leads the first group. A variant belongs to it if the
    interval of their ratio holds 1, or the ratio is within the noise floor of the case (`within_run.verdict`). The fastest of the others
    leads the next group, and so on. So members are tied with their leader, and not always with each other.

    Args:
        precision: one of `precisions_of`.
        series: one series of the workload, or `ALL`.
    """
    every, others = (
        each if series == ALL else each[each["series"] == series]
        for each in (compared(_candidates(data, workload, timing, of), precision) for of in (among, "hosts"))
    )
    others = others[~others["role"].isin(every["role"])]
    rows = every[is_trusted(every)]
    charted = charted_cases(data, workload)
    chosen_cases = charted if series == ALL else charted[charted["series"] == series]
    all_cases = records(chosen_cases[["case", "size", "series", "size_value"]])
    timed = {str(case): group for case, group in rows.groupby("case", sort=False)}
    places = {
        (place.case, place.variant): place
        for case in all_cases
        if case.case in timed
        for place in _ranked(data, timing, timed[case.case])
    }
    variant_names = set(rows["variant"])
    doubts = {}
    for case, of_case in every.groupby("case", sort=False):
        good = of_case[is_trusted(of_case)].head(1)
        doubts[str(case)] = passed_over(of_case, good)
    of_run = data.variants.loc[data.variants["workload"] == workload, "variant"]
    variants = tuple(str(name) for name in of_run if name in variant_names)
    cases = tuple(case for case in all_cases if case.case in timed)
    missing = {(case.case, variant) for case in cases for variant in variants} - places.keys()
    untimed = tuple(case.case for case in all_cases if case.case not in timed)
    reasons = _reasons(data, workload, missing)
    doubtful = every.loc[~is_trusted(every), ["case", "variant", "n", "flags"]].itertuples(index=False, name=None)
    reasons |= {(case, variant): doubt(n, flags) for case, variant, n, flags in doubtful if (case, variant) in missing}
    doubts_of = {case: words for case, words in doubts.items() if words}
    shippable = " or ".join(role for role in ROLES["hosts"] if role in set(every["role"])) if len(others) else ""
    faster = _faster(data, timing, others[is_trusted(others)], timed)
    return Contest(workload, timing, precision, cases, variants, places, reasons, untimed, doubts_of, shippable, faster)


def _faster(data: RunData, timing: Timing, others: pd.DataFrame, timed: Mapping[str, pd.DataFrame]) -> dict[str, Cell]:
    """`Contest.faster`.

    Args:
        others: rows of variants that may not be shipped, by time.
        timed: those that may by case, by time.
    """
    found = {}
    for other in records(others.drop_duplicates("case")[list(_OF_PLACE)]):
        if other.case in timed:
            (first,) = records(timed[other.case].head(1)[list(_OF_PLACE)])
            judged = CaseTimes.of(data, other.workload, other.case, timing).judge(other.entry, first.entry)
            if judged.verdict == "faster":
                found[other.case] = Cell(**vars(other), ratio=judged.ratio.estimate)
    return found


def _ranked(data: RunData, timing: Timing, rows: pd.DataFrame) -> Iterator[Cell]:
    """The places of one case, from the fastest to the slowest.

    Args:
        rows: of the case, by time.
    """
    cells = records(rows[list(_OF_PLACE)])
    times, entries = CaseTimes.of(data, cells[0].workload, cells[0].case, timing), [cell.entry for cell in cells]
    series = {entry: times.rounds[entry] for entry in entries}
    ratios = {entry: paired_ratio(series[entry], series[entries[0]]).estimate for entry in entries}
    groups: dict[Entry, tuple[int, Entry]] = {}
    remaining = entries
    for number in range(1, len(entries) + 1):
        if not remaining:
            break
        leader = remaining[0]
        for entry in remaining:
            band = times.band(entry, leader)
            # Every resampled median lies among the samples, so the interval of such a ratio is above the noise.
            disjoint = series[entry].min() > band * series[leader].max()
            if entry == leader or (not disjoint and times.judge(leader, entry).verdict in UNDECIDED):
                groups[entry] = number, leader
        remaining = [entry for entry in remaining if entry not in groups]
    for cell, entry in zip(cells, entries, strict=True):
        group, leader = groups[entry]
        yield Cell(**vars(cell), group=group, leader=leader.variant, ratio=ratios[entry])


def _reasons(data: RunData, workload: str, missing: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The status of each missing cell; `not timed` for a cell without a status."""
    every = cells(data)
    of_workload = every[(every["workload"] == workload) & (every["status"] != "ok")]
    words: dict[Any, str] = {}
    for row in of_workload[["case", "variant", "status"]].itertuples(index=False, name=None):
        words.setdefault(row[:2], str(row[2]).replace("_", " "))
    return {key: words.get(key, "not timed") for key in sorted(missing)}


def standings(contest: Contest) -> tuple[Shipment, ...]:
    """Each variant by itself: those timed in all cases by mean loss, then the others by their number of cases."""
    alone = [shipment(contest, [variant]) for variant in contest.variants]
    return tuple(sorted(alone, key=lambda each: (len(each.missing), each.mean.value, each.worst.value)))


def shipments(contest: Contest) -> tuple[Shipment, ...]:
    """The best set of one variant, of two and of three, by exact search over all sets; no set where no case was timed.

    A set that covers more cases is better. Among sets that cover equally many, the one with the lower mean regret is better,
    then the one with the lower worst regret. The list ends before a set that gains nothing over the set before it.
    """
    offers: list[Shipment] = []
    for count in range(1, min(MOST, len(contest.variants)) + 1):
        offer = _best_set(contest, count)
        if offers and offer.regret >= offers[-1].regret:
            break
        offers.append(offer)
    return tuple(offers)


def _best_set(contest: Contest, count: int) -> Shipment:
    best: tuple[tuple[float, ...], tuple[int, ...]] | None = None
    sets = combinations(range(len(contest.variants)), count)
    logs = contest.logs()
    while chunk := list(islice(sets, _CHUNK)):
        keys = _keys(logs, np.array(chunk))
        first = int(np.lexsort(keys.T[::-1])[0])
        key = tuple(keys[first].tolist())
        if best is None or key < best[0]:
            best = key, chunk[first]
    assert best is not None
    return shipment(contest, [contest.variants[row] for row in best[1]])


def _keys(logs: Floats, sets: Int64s) -> Floats:
    """The keys by which sets are compared, where less is better: missing cases, then the two regrets; shape (sets, 3).

    Args:
        logs: `Contest.logs`.
        sets: rows of `logs`, shape (sets, variants of a set).
    """
    least = logs[sets].min(axis=1)
    covered = np.isfinite(least)
    losses = np.where(covered, least, 0.0)
    mean = losses.sum(axis=1) / np.maximum(covered.sum(axis=1), 1)
    worst = np.where(covered, least, -np.inf).max(axis=1)
    # Sums in another order differ in their last digits.
    return np.column_stack([(~covered).sum(axis=1), np.round(mean, 12), np.round(worst, 12)]).astype(float)


def shipment(contest: Contest, variants: Sequence[str]) -> Shipment:
    """The regret of shipping these variants, of which at each case the fastest runs."""
    shipped: list[Cell] = []
    losses: list[float] = []
    missing: list[str] = []
    for case in contest.cases:
        places = [contest.places[case.case, variant] for variant in variants if (case.case, variant) in contest.places]
        if not places:
            missing.append(case.case)
            continue
        shipped.append(min(places, key=lambda place: place.ratio.value))
        if all(place.group > 1 for place in places):
            losses.append(loss_of(shipped[-1].ratio).value)
    worst = max(shipped, key=lambda place: place.ratio.value)
    return Shipment(
        tuple(variants),
        mean_loss([place.ratio for place in shipped]),
        loss_of(worst.ratio),
        worst.case,
        len(shipped) - len(losses),
        sum(contest.first[place.case] <= set(variants) for place in shipped),
        max(losses, default=0.0),
        tuple(missing),
    )


def recommended(offers: Sequence[Shipment]) -> Shipment:
    """The smallest set that misses no more cases than the largest set and hardly loses more.

    Only losses at cases where a set is not tied for first count. The limit is the worst such loss of the largest set plus
    `WORTHWHILE`.
    """
    largest = offers[-1]
    return next(
        offer
        for offer in offers
        if len(offer.missing) == len(largest.missing) and offer.surpassed <= largest.surpassed + WORTHWHILE
    )


def loss_of(ratio: Estimate) -> Estimate:
    """A ratio of times as a loss in percent: 3 for 1.03."""
    return Estimate(*(100 * (end - 1) for end in (ratio.value, ratio.low, ratio.high)))


def mean_loss(ratios: Sequence[Estimate]) -> Estimate:
    """The geometric mean of ratios as a loss in percent.

    Cases are measured apart from each other, so the halves of their intervals are added in quadrature, in logarithms.
    """
    if not ratios:
        return Estimate.unknown()
    middle, low, high = np.log([(each.value, max(each.low, 1e-12), each.high) for each in ratios]).T
    down, up = (math.sqrt(float(np.sum(half**2))) / len(ratios) for half in (middle - low, high - middle))
    mean = float(middle.mean())
    return Estimate(*(100 * math.expm1(end) for end in (mean, mean - down, mean + up)))
