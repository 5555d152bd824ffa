"""Finds the ranks for which the others wait, and why they are late.

A **straggler** is a rank that comes later than the others to the collectives that it shares with them, as told below, by at least
1 % of the mean span of a rank. Time by itself names nobody, since collectives make all ranks equally slow.

**Cause.** A late rank is compared with its peers, which are the ranks that share collectives with it and are not late. For each figure, the
excess is its own less the median of the peers', over the iterations that all ranks have. The largest excess names the cause:

=========  =============================================================================================================
`compute`  kernels take longer: for each kernel, own time less own count times the peers' time an execution
`work`     other kernels or more of them: for each kernel, difference of counts times the peers' time an execution; for a
           kernel that the peers lack, its whole time
`host`     idle time in which the next work was not launched yet
`copies`   time of copies and sets, or, where it is longer, of the host in calls that copy, such as from pageable memory;
           `host` does not count this time
`clock`    `compute`, and nearly every kernel is slower by about the same factor, as at a lower SM clock: the factor is 1.03
           or more, and kernels with 90 % of the time, and 80 % of them, exceed 1 by half to one and a half times as much
=========  =============================================================================================================

There is no cause where the largest excess is below a quarter of the rank's lateness. That is how much longer the median of its peers waits
in the collectives that they share or, if it is less, the same difference of exposed communication: where collectives overlap with compute,
a rank is late for several of them at once, and each counts the same lateness.
The same number of executions of the same kernel on larger inputs counts as `compute`, since kernels are known by name and count.

Two ranks are compared group by group. A group is all matched collectives with the same ranks: a rank with further groups of its own waits
in them too, so that sums over all its collectives compare different things. In a group, a rank is **later** than another if that one waits
longer than it in sum, beyond the uncertainty. A rank is **late** if

1. in some group it is later than more than half of the other ranks;
2. over all its groups, it is later than others in more collectives than others are later than it. Each pair of ranks of a group counts
   with the number of its collectives;
3. no other such rank is later than it, in all the collectives that the two share. A rank that waited for a late rank of one group comes
   late to its next group.

**Uncertainty.** The difference of two ranks is a sum over n collectives, with two kinds of error:

- Clocks. A rank that always leaves a collective a little later than the others, for its place in the ring, has that time in its clock's
  offset. This cannot be measured. It is taken to be as large as the spread of the rank's aligned ends, or half of the
  resolution of its times. It is the same in each collective, so it grows with n: two standard deviations of it are one part of the limit.
- Chance. Arrivals vary from collective to collective, which gives sums of ranks without a cause. The scatter of the rank's arrivals about
  the mean of the group is measured. It grows with sqrt(n): Student's t of it, with n - 1 degrees of freedom, is the other part.

A single collective of a group has no scatter, and is not compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.jobs.clocks import Clocks, blocks_of, time_text
from warpladder.data.arrays import Bools, Floats, Int64s, coded, integers, least_of_groups
from warpladder.data.statistics import OVER_MEDIAN_DEVIATION

_US_NS: Final = 1000
_LEAST_SHARE: Final = 0.25
_LEAST_FACTOR: Final = 1.03
_LIKE_FACTOR: Final = (0.5, 1.5)
_NEARLY_ALL_TIME, _NEARLY_ALL_KERNELS, _FEWEST_KERNELS = 0.9, 0.8, 3
#: A rank is late from this part of the mean span of a rank on.
_LEAST_LATE: Final = 0.01


_DEVIATIONS: Final = 2.0
#: A normal distribution exceeds so many standard deviations with a probability of 0.001.
_CHANCE: Final = 3.09
_FEWEST: Final = 2


@dataclass(frozen=True)
class Comparison:
    """How much longer ranks wait than others. Arrays of pairs are ranks x ranks: the value of [r, s] is about how much later r comes than s.

    Attributes:
        longer_ns: how much longer s waits than r, in all collectives that the two share.
        limit_ns: the uncertainty of it; infinite where they share none.
        shared: the two share collectives, more than a single one of a group.
        told_ns: the part of it that is of groups in which r is later than s beyond the uncertainty.
        leads: r is later than more than half of the other ranks of some group.
        won, lost: in how many collectives r is later than others, and others are later than r; each pair of ranks counts.
    """

    longer_ns: Floats
    limit_ns: Floats
    shared: Bools
    told_ns: Floats
    leads: Bools
    won: Int64s
    lost: Int64s

    @property
    def late(self) -> Int64s:
        """Indices of the late ranks, the latest first; none if no rank stands out."""
        found = np.flatnonzero(self.leads & (self.won > self.lost))
        beaten = (self.longer_ns > self.limit_ns)[np.ix_(found, found)].any(axis=0)
        found = found[~beaten]
        return found[np.argsort(-self.told_ns[found].sum(axis=1), kind="stable")]


def compare(rank: Int64s, event: Int64s, wait_ns: Int64s, uncertainty_ns: Floats) -> Comparison:
    """Compare the ranks.

    Args:
        rank, event, wait_ns: index of the rank, collective of the job and wait in it, for each matched collective of a rank.
        uncertainty_ns: spread of the aligned ends of each rank, or half of the resolution of its times where that is larger.
    """
    ranks = len(uncertainty_ns)
    longer, told, systematic, random = (np.zeros((ranks, ranks)) for _ in range(4))
    shared = np.zeros((ranks, ranks), bool)
    leads, won, lost = np.zeros(ranks, bool), np.zeros(ranks, np.int64), np.zeros(ranks, np.int64)
    order = np.lexsort((rank, event))
    waits = wait_ns[order].astype(np.float64)
    for block in blocks_of(rank[order], event[order]):
        own, count = waits[block.rows], len(block.rows)
        if count < _FEWEST:
            continue
        sums = own.sum(axis=0)
        apart = sums - sums[:, None]
        clocks = _DEVIATIONS * count * _both(uncertainty_ns[block.members])
        chance = _student(count - 1) * np.sqrt(count) * _both(_scatter(own))
        is_later = apart > np.hypot(clocks, chance)
        pairs = np.ix_(block.members, block.members)
        shared[pairs] = True
        longer[pairs] += apart
        told[pairs] += np.where(is_later, apart, 0.0)
        systematic[pairs] += clocks
        random[pairs] += chance**2
        leads[block.members] |= 2 * is_later.sum(axis=1) > len(block.members) - 1
        won[block.members] += count * is_later.sum(axis=1)
        lost[block.members] += count * is_later.sum(axis=0)
    limit = np.where(shared, np.hypot(systematic, np.sqrt(random)), np.inf)
    return Comparison(longer, limit, shared & ~np.eye(ranks, dtype=bool), told, leads, won, lost)


def _both(deviation: Floats) -> Floats:
    """The standard deviation of the difference of each pair of ranks."""
    both: Floats = np.hypot(deviation[:, None], deviation)
    return both


def _scatter(waits: Floats) -> Floats:
    """Robust standard deviation of each rank's arrivals about the mean of the group, or the usual one of the group
    where that is larger. `waits`: collectives x ranks."""
    ranks = waits.shape[1]
    apart = waits - waits.mean(axis=1, keepdims=True)
    own = OVER_MEDIAN_DEVIATION * np.median(np.abs(apart - np.median(apart, axis=0)), axis=0) * np.sqrt(ranks / (ranks - 1))
    scatter: Floats = np.maximum(own, np.median(own))
    return scatter


def _student(freedom: int) -> float:
    """The value of Student's t that is as rare as `_CHANCE` of a normal distribution (D. L. Wallace, Ann. Math. Stat. 30, 1959)."""
    normal = _CHANCE * (8 * freedom + 3) / (8 * freedom + 1)
    return float(np.sqrt(freedom * np.expm1(normal**2 / freedom)))


@dataclass(frozen=True)
class Stragglers:
    """Result of `find`.

    Attributes:
        ranks: ranks with collectives in ascending order. The next ones have a value for each.
        collectives: matched collectives of the rank.
        wait_ns: its total wait in them.
        uncertainty_ns: standard deviation of its total wait where it is compared with others'; NaN without matched collectives.
        lateness_ns: how much longer others wait than it, in sum over the ranks and groups where that is beyond the uncertainty.
        exposed_ns: the part of it in which nothing else ran on the device of the rank that waits.
        limit_ns: how much longer the median of its peers has to wait for it to be late; infinite without peers.
        cause: why it is late, one of the words above; empty where it is not late or the cause is not known.
        late: the late ranks, the latest first; empty if no rank stands out.
        reason: why no rank stands out; empty if one does.
    """

    ranks: Int64s
    collectives: Int64s
    wait_ns: Int64s
    uncertainty_ns: Floats
    lateness_ns: Int64s
    exposed_ns: Int64s
    limit_ns: Floats
    cause: list[str]
    late: tuple[int, ...]
    reason: str


class Totals(NamedTuple):
    """Sums of a rank over its whole profile: exposed communication, time of its host in calls that copy, waits for the host, and span."""

    exposed_ns: int
    copy_calls_ns: int
    host_wait_ns: int = 0
    span_ns: int = 0


_NOTHING: Final = Totals(0, 0)


class _Profiles(NamedTuple):
    """Sums of all ranks over the same iterations. Arrays are kernels x ranks, by rank, or `lateness.Comparison.longer_ns`."""

    compute_ns: Floats
    compute_count: Floats
    copies_ns: Floats
    host_wait_ns: Floats
    longer_ns: Floats
    exposed_ns: Floats


def find(
    collectives: pa.Table,
    clocks: Clocks,
    iterations: pa.Table,
    kernels: pa.Table,
    totals: Mapping[int, Totals] = MappingProxyType({}),
) -> Stragglers:
    """Find stragglers and causes.

    Args:
        collectives: rows of `job_tables.COLLECTIVES` of all ranks, with the columns from `match` on.
        clocks: the ranks' clocks.
        iterations: rows of `job_tables.ITERATIONS`; `rank`, `iteration`, `device_start_ns`, `device_end_ns`, `host_wait_ns` and
            `exposed_ns` are read.
        kernels: rows of `job_tables.RANK_KERNELS`; `rank`, `iteration`, `name`, `kind`, `count` and `total_ns` are read.
        totals: sums of each rank over its whole profile.
    """
    ranks = clocks.ranks
    matched = collectives.filter(pc.is_valid(collectives["wait_ns"]))
    compared = _compared(matched, clocks)
    at = np.searchsorted(ranks, integers(matched["rank"]))
    count = np.bincount(at, minlength=len(ranks))
    total = np.zeros(len(ranks), np.int64)
    np.add.at(total, at, integers(matched["wait_ns"]))
    of_ranks = [totals.get(number, _NOTHING) for number in ranks.tolist()]
    late, reason = _late(compared, clocks, float(np.mean([each.span_ns for each in of_ranks])) if of_ranks else 0.0)
    cause = [""] * len(ranks)
    if len(late):
        profiles = _profiles(clocks, matched, iterations, kernels, of_ranks)
        for number in late.tolist():
            cause[number] = _cause(profiles, number, np.setdiff1d(np.flatnonzero(compared.shared[number]), late))
    exposed = np.array([each.exposed_ns for each in of_ranks], np.float64)
    return Stragglers(
        ranks,
        count,
        total,
        np.where(count > 0, count * clocks.uncertainty_ns, np.nan),
        compared.told_ns.sum(axis=1).astype(np.int64),
        np.minimum(compared.told_ns, np.maximum(exposed - exposed[:, None], 0)).sum(axis=1).astype(np.int64),
        _median_of_peers(compared, compared.limit_ns),
        cause,
        tuple(ranks[late].tolist()),
        reason,
    )


def _compared(matched: pa.Table, clocks: Clocks) -> Comparison:
    at = np.searchsorted(clocks.ranks, integers(matched["rank"]))
    spread = np.fmax(clocks.uncertainty_ns, _resolutions(matched, at, len(clocks.ranks)) / 2)
    return compare(at, integers(matched["match"]), integers(matched["wait_ns"]), spread)


def _resolutions(matched: pa.Table, at: Int64s, ranks: int) -> Floats:
    """The resolution of the times of each rank: 1000 ns where they are whole microseconds from its earliest on, else 1 ns."""
    start, end = integers(matched["start_ns"]), integers(matched["end_ns"])
    first = least_of_groups(at, start, ranks)
    is_finer = ((start - first[at]) % _US_NS != 0) | ((end - first[at]) % _US_NS != 0)
    return np.where(np.bincount(at, is_finer, ranks) > 0, 1.0, float(_US_NS))


def _median_of_peers(compared: Comparison, values: Floats) -> Floats:
    """The median of each row over the ranks with which the rank shares collectives; infinite without any."""
    medians = [np.median(row[peers]) if peers.any() else np.inf for row, peers in zip(values, compared.shared, strict=True)]
    return np.array(medians, np.float64)


def _late(compared: Comparison, clocks: Clocks, span_ns: float) -> tuple[Int64s, str]:
    """Return the indices of late ranks, or the reason why no rank stands out. `span_ns` is that of a rank, 0 where it is not known."""
    nobody = np.empty(0, np.int64)
    if clocks.refused:
        return nobody, clocks.refused
    if not compared.shared.any():
        return nobody, "no two ranks share more than one matched collective"
    later, limits = (_median_of_peers(compared, values) for values in (compared.longer_ns, compared.limit_ns))
    late = compared.late
    if len(late) and later[late].max() >= _LEAST_LATE * span_ns:
        return late[later[late] >= _LEAST_LATE * span_ns], ""
    if not compared.longer_ns.any():
        return nobody, "the ranks of each group wait equally long"
    first = int(late[0]) if len(late) else int(np.argmax(np.where(np.isfinite(limits), later, -np.inf)))
    others = int(compared.shared[first].sum())
    who = "the other rank waits" if others == 1 else "the median of the other ranks waits"
    longer = f"{who} {time_text(later[first])} longer than rank {clocks.ranks[first]}"
    if len(late):
        return (
            nobody,
            f"{longer}, {100 * later[first] / span_ns:.2g} % of its time; a rank is late from {100 * _LEAST_LATE:g} % on",
        )
    within = compared.shared[first] & (compared.longer_ns[first] <= compared.limit_ns[first])
    limit = limits[first] if later[first] <= limits[first] else compared.limit_ns[first][within].max()
    return nobody, f"{longer}, with an error of up to {time_text(limit)}"


def _profiles(
    clocks: Clocks, matched: pa.Table, iterations: pa.Table, kernels: pa.Table, of_ranks: Sequence[Totals]
) -> _Profiles:
    """Sum the tables by rank over the iterations that all ranks have, or over everything if they share none.

    Waits for the host between iterations count, too: those of the whole profile where all ranks have the same iterations, else the time
    between two iterations that follow each other.
    """
    ranks = clocks.ranks
    known = pa.array(ranks)
    iterations, kernels = (table.filter(pc.is_in(table["rank"].cast(pa.int64()), known)) for table in (iterations, kernels))
    numbers, count = np.unique(integers(iterations["iteration"]), return_counts=True)
    common = pa.array(numbers[count == len(ranks)])
    if len(common):
        matched, iterations, kernels = (
            table.filter(pc.is_in(table["iteration"].cast(pa.int64()), common)) for table in (matched, iterations, kernels)
        )

    calling = np.array([each.copy_calls_ns for each in of_ranks], np.float64)
    of_all = np.array([each.host_wait_ns for each in of_ranks], np.float64) * (len(common) == len(numbers))

    def by_rank(table: pa.Table, column: str) -> Floats:
        at = np.searchsorted(ranks, integers(table["rank"]))
        return np.bincount(at, integers(table[column]), len(ranks)).astype(np.float64)

    kind, kinds = coded(kernels["kind"])
    of_kind = {text: kernels.filter(pa.array(kind == place)) for place, text in enumerate(kinds)}
    compute, memory = (of_kind.get(text, kernels.slice(0, 0)) for text in ("compute", "memory"))
    name, names = coded(compute["name"])
    cell = name * len(ranks) + np.searchsorted(ranks, integers(compute["rank"]))

    def by_kernel(column: str) -> Floats:
        sums = np.bincount(cell, integers(compute[column]), len(names) * len(ranks)).astype(np.float64)
        return sums.reshape(len(names), len(ranks))

    return _Profiles(
        by_kernel("total_ns"),
        by_kernel("count"),
        np.maximum(by_rank(memory, "total_ns"), calling),
        np.maximum(np.maximum(by_rank(iterations, "host_wait_ns") + _between_ns(ranks, iterations), of_all) - calling, 0.0),
        _compared(matched, clocks).longer_ns,
        by_rank(iterations, "exposed_ns"),
    )


def _between_ns(ranks: Int64s, iterations: pa.Table) -> Floats:
    """The time of each rank between iterations that follow each other, in which its devices do nothing."""
    at, number, start, end = (
        integers(iterations[name], -1) for name in ("rank", "iteration", "device_start_ns", "device_end_ns")
    )
    order = np.lexsort((number, at))
    at, number, start, end = np.searchsorted(ranks, at[order]), number[order], start[order], end[order]
    follows = (at[1:] == at[:-1]) & (number[1:] == number[:-1] + 1) & (start[1:] >= 0) & (end[:-1] >= 0)
    return np.bincount(at[1:][follows], np.maximum(start[1:] - end[:-1], 0)[follows], len(ranks)).astype(np.float64)


def _cause(profiles: _Profiles, late: int, peers: Int64s) -> str:
    """Name the cause of a rank's lateness; `late` and `peers` are indices of ranks."""
    if not len(peers):
        return ""
    count, time = profiles.compute_count[:, late], profiles.compute_ns[:, late]
    usual_count, usual_time = (
        np.median(profiles.compute_count[:, peers], axis=1),
        np.median(profiles.compute_ns[:, peers], axis=1),
    )
    is_shared = (count > 0) & (usual_count > 0)
    each = usual_time / np.maximum(usual_count, 1)
    expected = np.where(is_shared, count * each, time)
    excess = {
        "compute": float((time - expected).sum()),
        "work": float((expected - usual_time).sum()),
        "host": _above_median(profiles.host_wait_ns, late, peers),
        "copies": _above_median(profiles.copies_ns, late, peers),
    }
    cause = max(excess, key=lambda name: excess[name])
    lateness = float(np.median(profiles.longer_ns[late, peers]))
    if profiles.exposed_ns.any():
        lateness = min(lateness, -_above_median(profiles.exposed_ns, late, peers))
    if excess[cause] <= max(_LEAST_SHARE * lateness, 0):
        return ""
    if cause == "compute" and _is_uniform(time[is_shared], expected[is_shared]):
        return "clock"
    return cause


def _above_median(values: Floats, late: int, peers: Int64s) -> float:
    return float(values[late] - np.median(values[peers]))


def _is_uniform(time: Floats, expected: Floats) -> bool:
    """Return whether nearly every kernel takes longer than expected by about the same factor."""
    time, expected = time[expected > 0], expected[expected > 0]
    factor = time.sum() / expected.sum()
    if len(time) < _FEWEST_KERNELS or factor < _LEAST_FACTOR:
        return False
    low, high = (1 + (factor - 1) * share for share in _LIKE_FACTOR)
    is_like = (time >= low * expected) & (time <= high * expected)
    return bool(expected[is_like].sum() >= _NEARLY_ALL_TIME * expected.sum() and is_like.mean() >= _NEARLY_ALL_KERNELS)
