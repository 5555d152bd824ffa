"""Finds the ranks for which the others wait, and why they are late.

A **straggler** is the rank with the least total wait in matched collectives: it arrives last, and the others wait for it. Time by itself
names nobody, since collectives make all ranks equally slow.

**Uncertainty.** The total wait of a rank is a sum over n collectives, each with an error of the rank's aligned start. The random part of
the errors grows with sqrt(n). The systematic part grows with n, and cannot be measured: a rank that always leaves a collective a little
later than the others, for its place in the ring, has that time in its clock's offset. It is taken to be as large as the spread of the
rank's aligned ends, so the standard deviation of the total wait is n times the spread. The random part is small beside it. Ranks whose
total waits differ by less than two standard deviations of the difference are not told apart.

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

There is no cause where the largest excess is below a quarter of the rank's lateness. That is the median total wait of its peers less its
own or, if it is less, the same difference of exposed communication: where collectives overlap with compute, a rank is late for several
of them at once, and each counts the same lateness.
The same number of executions of the same kernel on larger inputs counts as `compute`, since kernels are known by name and count.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.jobs.clocks import Clocks
from warpladder.data.texts import coded

Int64s: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Booleans: TypeAlias = npt.NDArray[np.bool_]

_DEVIATIONS: Final = 2.0
_LEAST_SHARE: Final = 0.25
_LEAST_FACTOR: Final = 1.03
_LIKE_FACTOR: Final = (0.5, 1.5)
_NEARLY_ALL_TIME, _NEARLY_ALL_KERNELS, _FEWEST_KERNELS = 0.9, 0.8, 3


@dataclass(frozen=True)
class Stragglers:
    """Result of `find`.

    Attributes:
        ranks: ranks with collectives in ascending order. The next five have a value for each.
        collectives: matched collectives of the rank.
        wait_ns: its total wait in them.
        last: how often it came last.
        uncertainty_ns: standard deviation of its total wait where it is compared with others'; NaN without matched collectives.
        cause: why it is late, one of the words above; empty where it is not late or the cause is not known.
        late: the rank with the least total wait, and those that cannot be told from it, by total wait; empty if no rank stands out.
        reason: why no rank stands out; empty if one does.
    """

    ranks: Int64s
    collectives: Int64s
    wait_ns: Int64s
    last: Int64s
    uncertainty_ns: Floats
    cause: list[str]
    late: tuple[int, ...]
    reason: str


class _Profiles(NamedTuple):
    """Sums of all ranks over the same iterations. Arrays are kernels x ranks, or by rank."""

    compute_ns: Floats
    compute_count: Floats
    copies_ns: Floats
    host_wait_ns: Floats
    wait_ns: Floats
    exposed_ns: Floats


def find(
    collectives: pa.Table,
    clocks: Clocks,
    iterations: pa.Table,
    kernels: pa.Table,
    copy_calls_ns: Mapping[int, int] = MappingProxyType({}),
) -> Stragglers:
    """Find stragglers and causes.

    Args:
        collectives: rows of `job_tables.COLLECTIVES` of all ranks, with the columns from `match` on.
        clocks: the ranks' clocks.
        iterations: rows of `job_tables.ITERATIONS`; `rank`, `iteration`, `host_wait_ns` and `exposed_ns` are read. Without rows, nobody's cause
            is `host`.
        kernels: rows of `job_tables.RANK_KERNELS`; `rank`, `iteration`, `name`, `kind`, `count` and `total_ns` are read.
        copy_calls_ns: rank -> time of its host in calls that copy.
    """
    ranks = clocks.ranks
    matched = collectives.filter(pc.is_valid(collectives["wait_ns"]))
    at = np.searchsorted(ranks, _integers(matched, "rank"))
    event, wait = _integers(matched, "match"), _integers(matched, "wait_ns")
    count = np.bincount(at, minlength=len(ranks))
    total = np.zeros(len(ranks), np.int64)
    np.add.at(total, at, wait)
    last = np.bincount(at[_last_of_each(event, wait)], minlength=len(ranks))
    uncertainty = np.where(count > 0, count * clocks.uncertainty_ns, np.nan)
    late, reason = _late(total, count, uncertainty, clocks)
    cause = [""] * len(ranks)
    if len(late):
        calling = np.array([copy_calls_ns.get(number, 0) for number in ranks.tolist()], np.float64)
        profiles = _profiles(ranks, matched, iterations, kernels, calling)
        is_late = np.isin(np.arange(len(ranks)), late)
        for number in late.tolist():
            peers = np.isin(np.arange(len(ranks)), at[np.isin(event, event[at == number])]) & ~is_late
            cause[number] = _cause(profiles, number, np.flatnonzero(peers))
    return Stragglers(ranks, count, total, last, uncertainty, cause, tuple(ranks[late].tolist()), reason)


def _integers(table: pa.Table, name: str) -> Int64s:
    values: Int64s = table[name].to_numpy().astype(np.int64)
    return values


def _last_of_each(event: Int64s, wait: Int64s) -> Int64s:
    """Return for each event the row that waits least, the first of several."""
    order = np.lexsort((wait, event))
    return order[np.flatnonzero(np.diff(event[order], prepend=-1))]


def _late(total: Int64s, count: Int64s, uncertainty: Floats, clocks: Clocks) -> tuple[Int64s, str]:
    """Return the indices of late ranks, or the reason why no rank stands out."""
    nobody = np.empty(0, np.int64)
    if clocks.refused:
        return nobody, f"Cannot be told: {clocks.refused}."
    at = np.flatnonzero(count)
    if len(at) < 2:
        return nobody, "Cannot be told: no collective was matched between ranks."
    at = at[np.argsort(total[at], kind="stable")]
    beyond = total[at] - total[at[0]]
    limit = _DEVIATIONS * np.hypot(uncertainty[at], uncertainty[at[0]])
    middle = len(at) // 2
    if beyond[middle] < limit[middle]:
        return nobody, (
            f"Cannot be told: the total wait of rank {clocks.ranks[at[0]]} is {beyond[middle] / 1e6:.3g} ms below the median rank's, "
            f"and the uncertainty of the difference is {limit[middle] / 1e6:.3g} ms."
        )
    late = at[beyond < limit]
    return (late if len(late) else at[:1]), ""


def _profiles(ranks: Int64s, matched: pa.Table, iterations: pa.Table, kernels: pa.Table, calling: Floats) -> _Profiles:
    """Sum the tables by rank over the iterations that all ranks have, or over everything if they share none."""
    known = pa.array(ranks)
    iterations, kernels = (table.filter(pc.is_in(table["rank"].cast(pa.int64()), known)) for table in (iterations, kernels))
    numbers, count = np.unique(_integers(iterations, "iteration"), return_counts=True)
    common = pa.array(numbers[count == len(ranks)])
    if len(common):
        matched, iterations, kernels = (
            table.filter(pc.is_in(table["iteration"].cast(pa.int64()), common)) for table in (matched, iterations, kernels)
        )

    def by_rank(table: pa.Table, column: str) -> Floats:
        at = np.searchsorted(ranks, _integers(table, "rank"))
        return np.bincount(at, _integers(table, column), len(ranks)).astype(np.float64)

    kind, kinds = coded(kernels["kind"])
    of_kind = {text: kernels.filter(pa.array(kind == place)) for place, text in enumerate(kinds)}
    compute, memory = (of_kind.get(text, kernels.slice(0, 0)) for text in ("compute", "memory"))
    name, names = coded(compute["name"])
    cell = name * len(ranks) + np.searchsorted(ranks, _integers(compute, "rank"))

    def by_kernel(column: str) -> Floats:
        sums = np.bincount(cell, _integers(compute, column), len(names) * len(ranks)).astype(np.float64)
        return sums.reshape(len(names), len(ranks))

    return _Profiles(
        by_kernel("total_ns"),
        by_kernel("count"),
        np.maximum(by_rank(memory, "total_ns"), calling),
        np.maximum(by_rank(iterations, "host_wait_ns") - calling, 0.0),
        by_rank(matched, "wait_ns"),
        by_rank(iterations, "exposed_ns"),
    )


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
    lateness = -_above_median(profiles.wait_ns, late, peers)
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
