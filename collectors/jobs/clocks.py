"""Fits the clocks of ranks to the ends of matched collectives, and computes how long each rank waited.

All ranks leave a collective at nearly the same moment. So the time at which rank r left collective c is

    end[r, c] = E[c] + offset[r] + drift[r] * (E[c] - t0) + noise,

where E is the end on the job's clock. All groups are fitted at once. The sum of Huber's losses is minimised by iteratively
reweighted least squares (P. J. Huber, Robust Statistics, 1981, section 7.8). E[c] is eliminated: given the clocks, it is the weighted
mean over the members. That leaves normal equations of two unknowns a rank. Ranks of one report have the same clock, and so the same two
unknowns.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from warpladder.data.arrays import Bools, Floats, Int64s, heads, least_of_groups, most_of_groups
from warpladder.data.statistics import OVER_MEDIAN_DEVIATION
from warpladder.data.words import named_ranks

Notes: TypeAlias = list[tuple[str, str]]

#: Of more ranks than these, a finding names the first.
RANKS_NAMED: Final = 8

_NS_A_S: Final = 1e9
#: Huber's limit, in standard deviations: residuals beyond it count linearly.
_HUBER: Final = 2.0
_ROUNDS: Final = 12
_CONVERGED: Final = 0.01
#: Quartz clocks drift by less. As a prior's standard deviation, it keeps drifts that a short trace cannot tell near 0.
_USUAL_DRIFT_NS_A_S: Final = 100_000.0
_LEAST_SPREAD_NS: Final = 1.0
#: Clocks of hosts are not so far apart.
_FAR_NS: Final = 60e9
#: Ends that spread by more than this share of the starts' spread show no common moment,
_MOST_OF_STARTS: Final = 0.5
#: unless they are close in comparison with the collectives' durations: then the ranks are merely in balance.
_MOST_OF_DURATION: Final = 0.1


@dataclass(frozen=True)
class Clocks:
    """The line of each rank's clock. A rank's clock shows `t0_ns + s + offset_ns + drift * s` at `t0_ns + s` of the job's.

    Ranks that collectives connect, directly or through others, are one component. The median rank of each has offset and drift 0.

    Attributes:
        ranks: ranks with collectives in ascending order. The arrays below have a value for each.
        offset_ns: how far the rank's clock is ahead of the job's at `t0_ns`.
        drift: how much faster it runs, in s/s.
        t0_ns: the middle of the job on the job's clock.
        uncertainty_ns: robust standard deviation of the rank's aligned ends from the collectives' common ends; NaN for a rank without
            matched collectives.
        spread_ns: the same over all ranks.
        component: number of the rank's component. Aligned times of different components cannot be compared.
        notes: severity and text of each finding.
        refused: why there are no clocks; then offsets, drifts and uncertainties are NaN. Empty if there are.
        contradicted: they are refused because the ends of collectives contradict each other, and not for a lack of collectives.
    """

    ranks: Int64s
    offset_ns: Floats
    drift: Floats
    t0_ns: int
    uncertainty_ns: Floats
    spread_ns: float
    component: Int64s
    notes: Notes
    refused: str = ""
    contradicted: bool = False

    def aligned(self, rank: Int64s, time_ns: Int64s) -> Int64s:
        """Convert times on the ranks' own clocks to the job's. Raises ValueError: the clocks were refused, or a rank
        has no collectives."""
        if self.refused:
            raise ValueError(self.refused)
        at = np.minimum(np.searchsorted(self.ranks, rank), len(self.ranks) - 1)
        if (unknown := rank[self.ranks[at] != rank]).size:
            raise ValueError(f"rank {unknown[0]}: no clock, since it has no collectives")
        since = (time_ns - self.t0_ns - self.offset_ns[at]) / (1 + self.drift[at])
        return self.t0_ns + np.rint(since).astype(np.int64)


@dataclass(frozen=True)
class Waits:
    """Times of matched collectives on the job's clock; one value a row, 0 where the row was not matched.

    Attributes:
        arrival_ns, finish_ns: aligned start and end.
        wait_ns: from the rank's arrival to the arrival of the last rank.
        transfer_ns: from the arrival of the last rank to the rank's end; below 0 where the clocks are off by more than it lasts.
        is_last: the rank came after all others of the collective. None did where several came last at the same moment.
    """

    arrival_ns: Int64s
    finish_ns: Int64s
    wait_ns: Int64s
    transfer_ns: Int64s
    is_last: Bools


def fit(
    rank: Int64s, match: Int64s, start_ns: Int64s, end_ns: Int64s, clock_of: Mapping[int, int] = MappingProxyType({})
) -> Clocks:
    """Fit the clocks of all ranks.

    Args:
        rank, start_ns, end_ns: rank and times of each collective, on the rank's own clock.
        match: the event that it is a part of, from 0; negative where it was not matched. An event has two ranks or more, each once.
        clock_of: number of the clock of ranks that share one; the others have a clock each.
    """
    ranks = np.unique(rank)
    order = np.lexsort((rank, match))
    order = order[match[order] >= 0]
    if not len(order):
        return _refuse(ranks, "clocks cannot be aligned: no collective was matched between ranks")
    events = _Events.of(np.searchsorted(ranks, rank[order]), match[order], _clocks(ranks, clock_of))
    unknowns = 2 * (len(np.unique(events.clock[events.rank])) - len(np.unique(events.component[events.rank])))
    freedom = len(order) - events.count - unknowns
    if freedom <= 0:
        return _refuse(
            ranks, f"clocks cannot be aligned: {events.count} matched collectives are too few for {len(ranks)} ranks"
        )
    origin = int(np.median(end_ns[order]))
    lines = _fitted(events, (end_ns[order] - origin).astype(np.float64))
    ends = lines.residuals(events)
    starts = _Lines((start_ns[order] - origin).astype(np.float64), lines.offset, lines.drift, np.ones(len(order)))
    # Each event takes a degree of freedom from its ranks, and the clocks two from each rank.
    correction = np.sqrt(len(order) / freedom)
    spread = _robust_deviation(ends) * correction
    spread_of_starts = _robust_deviation(starts.residuals(events)) * correction
    duration = float(np.median(end_ns[order] - start_ns[order]))
    if spread > _MOST_OF_STARTS * spread_of_starts and spread > _MOST_OF_DURATION * duration:
        refused = _refuse(
            ranks,
            f"clocks cannot be aligned: ranks should leave a collective together, and here they leave it {time_text(spread)} apart (and enter "
            f"it {time_text(spread_of_starts)} apart); profile the same steps on all ranks",
        )
        return replace(refused, contradicted=True)
    uncertainty = _deviation_by_rank(ends, events) * correction
    return _on_the_jobs_clock(ranks, events, lines, origin, uncertainty, spread)


def common(rank: Int64s, match: Int64s, end_ns: Int64s) -> Clocks:
    """The clocks of ranks that share one. Their uncertainty is the spread of the ends of collectives."""
    ranks = np.unique(rank)
    at = np.flatnonzero(match >= 0)
    origin = int(np.median(end_ns[at]))
    size = np.bincount(match[at])
    apart = (end_ns[at] - origin) - (np.bincount(match[at], end_ns[at] - origin) / np.maximum(size, 1))[match[at]]
    deviation = np.array([_robust_deviation(apart[rank[at] == each]) if (rank[at] == each).any() else 0.0 for each in ranks])
    nothing = np.zeros(len(ranks))
    return Clocks(
        ranks, nothing, nothing.copy(), origin, deviation, _robust_deviation(apart), np.zeros(len(ranks), np.int64), []
    )


def far(clocks: Clocks) -> Notes:
    """A warning about clocks that are farther from the clock in the middle than those of hosts usually are."""
    if clocks.refused:
        return []
    apart = np.abs(clocks.offset_ns - np.sort(clocks.offset_ns)[(len(clocks.ranks) - 1) // 2])
    ranks = clocks.ranks[apart > _FAR_NS].tolist()
    if not ranks:
        return []
    off = f"{named_ranks(ranks, RANKS_NAMED)} {'is' if len(ranks) == 1 else 'are'} off by {apart.max() / 1e9:,.0f} s"
    text = f"Clocks differ: {off}. If the clocks of the hosts are right, that is the profile of another run; give those of one run."
    return [("warning", text)]


def _clocks(ranks: Int64s, clock_of: Mapping[int, int]) -> Int64s:
    """Return a number from 0 for the clock of each rank."""
    own = [(True, rank) if rank not in clock_of else (False, clock_of[rank]) for rank in ranks.tolist()]
    number = {clock: place for place, clock in enumerate(dict.fromkeys(own))}
    return np.array([number[clock] for clock in own], np.int64)


def waits(clocks: Clocks, rank: Int64s, match: Int64s, start_ns: Int64s, end_ns: Int64s) -> Waits:
    """Compute arrivals, waits and transfers on the job's clock. Arguments are those of `fit`."""
    at = np.flatnonzero(match >= 0)
    event = match[at]
    arrival, finish = clocks.aligned(rank[at], start_ns[at]), clocks.aligned(rank[at], end_ns[at])
    count = int(event.max(initial=-1)) + 1
    last_arrival = most_of_groups(event, arrival, count)
    wait = last_arrival[event] - arrival
    is_last = np.zeros(len(match), bool)
    is_last[at] = (wait == 0) & (np.bincount(event, wait == 0, count)[event] == 1)

    def on_rows(values: Int64s) -> Int64s:
        result = np.zeros(len(match), np.int64)
        result[at] = values
        return result

    transfer = finish - last_arrival[event]
    return Waits(on_rows(arrival), on_rows(finish), on_rows(wait), on_rows(transfer), is_last)


class Block(NamedTuple):
    """Events with the same members: their numbers, the members, and the rows as events x members."""

    events: Int64s
    members: Int64s
    rows: Int64s


def blocks_of(rank: Int64s, match: Int64s) -> list[Block]:
    """Group rows, ordered by event and rank, by the members of their event.

    Args:
        rank: index of the rank, from 0.
        match: number of the event; those of the blocks count from 0 in the order of the rows.
    """
    first = heads(match)
    size = np.diff(np.append(first, len(match)))
    # Events have the same members if the sums of their members' random numbers are equal, but for one chance in 2^64.
    random = np.random.default_rng(0).integers(0, 1 << 63, int(rank.max(initial=-1)) + 1, dtype=np.uint64)
    members, block = np.unique(np.add.reduceat(random[rank], first) if len(rank) else random, return_inverse=True)
    by_block = np.argsort(block, kind="stable")
    blocks = []
    for events in np.split(by_block, np.cumsum(np.bincount(block, minlength=len(members)))[:-1]):
        if len(events):
            rows = first[events][:, None] + np.arange(size[events[0]])
            blocks.append(Block(events, rank[rows[0]], rows))
    return blocks


@dataclass(frozen=True)
class _Events:
    """Matched rows by event and rank; ranks, events and clocks count from 0. `clock` and `component` have a value for each rank."""

    rank: Int64s
    event: Int64s
    count: int
    blocks: list[Block]
    clock: Int64s
    component: Int64s

    @classmethod
    def of(cls, rank: Int64s, match: Int64s, clock: Int64s) -> "_Events":
        first, blocks = heads(match), blocks_of(rank, match)
        event = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(match))))
        return cls(rank, event, len(first), blocks, clock, _components(blocks, clock))

    def mean(self, values: Floats, weight: Floats) -> Floats:
        """Weighted mean of each event."""
        mean: Floats = np.bincount(self.event, weight * values) / np.bincount(self.event, weight)
        return mean


@dataclass
class _Lines:
    """Times on the ranks' clocks, the clocks' lines, and the weights of the rows. `drift` is in s/s."""

    time: Floats
    offset: Floats
    drift: Floats
    weight: Floats

    def aligned(self, events: _Events) -> Floats:
        aligned: Floats = (self.time - self.offset[events.rank]) / (1 + self.drift[events.rank])
        return aligned

    def residuals(self, events: _Events) -> Floats:
        """Return aligned times less the weighted mean of their event."""
        aligned = self.aligned(events)
        return aligned - events.mean(aligned, self.weight)[events.event]


def _components(blocks: list[Block], clock: Int64s) -> Int64s:
    """Return for each rank the least rank to which collectives or a common clock connect it."""
    component = np.arange(len(clock))
    changed = True
    while changed:
        before = component.copy()
        for block in blocks:
            component[block.members] = component[block.members].min()
        component = least_of_groups(clock, component, len(clock))[clock]
        changed = not np.array_equal(before, component)
    return component


def _fitted(events: _Events, end: Floats) -> _Lines:
    """Fit offsets first, so that times of different ranks can be compared, then offsets and drifts with new weights each round."""
    ranks = len(events.component)
    lines = _Lines(end, np.zeros(ranks), np.zeros(ranks), np.ones(len(end)))
    _improve(events, lines, _LEAST_SPREAD_NS, with_drift=False)
    spread = _reweigh(events, lines)
    for _ in range(_ROUNDS):
        _improve(events, lines, spread, with_drift=True)
        before, spread = spread, _reweigh(events, lines)
        if abs(spread - before) <= _CONVERGED * before:
            break
    return lines


def _reweigh(events: _Events, lines: _Lines) -> float:
    """Set Huber's weights, and return the residuals' standard deviation."""
    residual = np.abs(lines.residuals(events))
    spread = max(OVER_MEDIAN_DEVIATION * float(np.median(residual)), _LEAST_SPREAD_NS)
    lines.weight = np.minimum(1.0, _HUBER * spread / np.maximum(residual, _LEAST_SPREAD_NS))
    return spread


def _improve(events: _Events, lines: _Lines, spread: float, *, with_drift: bool) -> None:
    """Solve the weighted normal equations for the changes of offsets and drifts.

    Offsets and drifts of a component are told but for their mean, which is held at 0.
    """
    aligned = lines.aligned(events)
    common = events.mean(aligned, lines.weight)
    center = _center(events, common)
    second = (common - center[events.component[events.rank[_first_rows(events)]]]) / _NS_A_S
    pull = lines.weight * (aligned - common[events.event])
    clocks, of_clock = int(events.clock.max()) + 1, events.clock[events.rank]
    first = np.unique(events.clock, return_index=True)[1]
    component = events.component[first]
    right = np.bincount(of_clock, pull, clocks)
    matrix = _by_clock(_normal_matrix(events, lines.weight, second, with_drift), events.clock)
    weight = np.bincount(of_clock, lines.weight, clocks)
    same = component[:, None] == component[None, :]
    matrix[:clocks, :clocks] += same * weight.mean() + np.diag((weight == 0).astype(float))
    if with_drift:
        slope = lines.drift[first] * _NS_A_S
        prior = (spread / _USUAL_DRIFT_NS_A_S) ** 2
        matrix[clocks:, clocks:] += same * np.diag(matrix)[clocks:].mean() + np.diag(np.full(clocks, prior))
        right = np.concatenate((right, np.bincount(of_clock, pull * second[events.event], clocks) - prior * slope))
    change = np.linalg.solve(matrix, right)
    if with_drift:
        slope_change = change[clocks:][events.clock] / _NS_A_S
        lines.offset += change[:clocks][events.clock] - slope_change * center[events.component]
        lines.drift += slope_change
    else:
        lines.offset += change[events.clock]


def _by_clock(matrix: Floats, clock: Int64s) -> Floats:
    """Add the rows and columns of ranks that have the same clock. `matrix` has a block of ranks for each power."""
    clocks = int(clock.max()) + 1
    if clocks == len(clock):
        return matrix
    is_of = np.kron(np.eye(len(matrix) // len(clock)), clock[:, None] == np.arange(clocks))
    summed: Floats = is_of.T @ matrix @ is_of
    return summed


def _first_rows(events: _Events) -> Int64s:
    return np.searchsorted(events.event, np.arange(events.count))


def _center(events: _Events, common: Floats) -> Floats:
    """Return the mean of the events' ends for each component."""
    component = events.component[events.rank[_first_rows(events)]]
    count = np.bincount(component, minlength=len(events.component))
    center: Floats = np.bincount(component, common, len(events.component)) / np.maximum(count, 1)
    return center


def _normal_matrix(events: _Events, weight: Floats, second: Floats, with_drift: bool) -> Floats:
    """Return the matrix of the normal equations from which the events' ends are eliminated.

    For the powers p, q of an event's time that belong to two unknowns, an event adds `diag(w) - w w' / sum(w)`, times `second^(p + q)`.
    Events with the same members are added by one product of matrices.
    """
    ranks = len(events.component)
    powers = 2 if with_drift else 1
    matrix = np.zeros((powers, ranks, powers, ranks))
    for block in events.blocks:
        own = weight[block.rows]
        shared = own / np.sqrt(own.sum(1))[:, None]
        time = second[block.events][:, None]
        for p, q in ((0, 0), (0, 1), (1, 1))[: 2 * powers - 1]:
            part = np.diag((own * time ** (p + q)).sum(0)) - (shared * time**p).T @ (shared * time**q)
            matrix[p, block.members[:, None], q, block.members] += part
            if p != q:
                matrix[q, block.members[:, None], p, block.members] += part.T
    return matrix.reshape(powers * ranks, powers * ranks)


def _on_the_jobs_clock(
    ranks: Int64s, events: _Events, lines: _Lines, origin: int, uncertainty: Floats, spread: float
) -> Clocks:
    """Express the lines relative to the median rank of each component, with offsets at the middle of the largest."""
    ends = events.mean(lines.aligned(events), lines.weight)
    components, members = np.unique(events.component, return_counts=True)
    middle = round(float(_center(events, ends)[components[np.argmax(members)]]))
    offset, drift = lines.offset + lines.drift * middle, lines.drift.copy()
    for component in components[members > 1]:
        of = events.component == component
        faster = float(np.median(drift[of]))
        offset[of] -= np.median(offset[of]) * (1 + drift[of]) / (1 + faster)
        drift[of] = (1 + drift[of]) / (1 + faster) - 1
    return Clocks(
        ranks,
        offset,
        drift,
        origin + middle,
        uncertainty,
        spread,
        np.unique(events.component, return_inverse=True)[1],
        _notes(ranks, events.component, components, members),
    )


def _notes(ranks: Int64s, component: Int64s, components: Int64s, members: Int64s) -> Notes:
    """Report ranks whose clocks are not related to those of the largest component."""
    apart = ranks[component != components[np.argmax(members)]]
    if not len(apart):
        return []
    text = (
        f"No matched collective connects {named_ranks(apart.tolist(), RANKS_NAMED)} ({len(apart)} of {len(ranks)}) to the others; "
        "their times cannot be compared with those of the others."
    )
    return [("warning", text)]


def _refuse(ranks: Int64s, reason: str) -> Clocks:
    unknown = np.full(len(ranks), np.nan)
    return Clocks(ranks, unknown, unknown, 0, unknown, float("nan"), np.arange(len(ranks)), [("warning", reason)], reason)


def _robust_deviation(residuals: Floats) -> float:
    return OVER_MEDIAN_DEVIATION * float(np.median(np.abs(residuals)))


def _deviation_by_rank(residuals: Floats, events: _Events) -> Floats:
    """Return the robust standard deviation of each rank's residuals; NaN for a rank without any."""
    ranks = len(events.component)
    deviation = np.full(ranks, np.nan)
    order = np.argsort(events.rank, kind="stable")
    count = np.bincount(events.rank, minlength=ranks)
    for number, own in enumerate(np.split(residuals[order], np.cumsum(count)[:-1])):
        if len(own):
            deviation[number] = _robust_deviation(own)
    return deviation


def time_text(ns: float) -> str:
    """Write a time with three digits and its unit."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"
