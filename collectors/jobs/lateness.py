"""Compares ranks in the collectives that they share, and finds those that come later than the others.

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

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from warpladder.collectors.jobs.clocks import blocks_of
from warpladder.data.arrays import Bools, Int64s

Floats: TypeAlias = npt.NDArray[np.float64]

_DEVIATIONS: Final = 2.0
#: A normal distribution exceeds so many standard deviations with a probability of 0.001.
_CHANCE: Final = 3.09
#: A median absolute deviation times this is the standard deviation of a normal distribution.
_NORMAL: Final = 1.4826
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
    """Robust standard deviation of each rank's arrivals about the mean of the group, or the usual one of the group where that is larger.

    Args:
        waits: collectives x ranks.
    """
    ranks = waits.shape[1]
    apart = waits - waits.mean(axis=1, keepdims=True)
    own = _NORMAL * np.median(np.abs(apart - np.median(apart, axis=0)), axis=0) * np.sqrt(ranks / (ranks - 1))
    scatter: Floats = np.maximum(own, np.median(own))
    return scatter


def _student(freedom: int) -> float:
    """The value of Student's t that is as rare as `_CHANCE` of a normal distribution (D. L. Wallace, Ann. Math. Stat. 30, 1959)."""
    normal = _CHANCE * (8 * freedom + 3) / (8 * freedom + 1)
    return float(np.sqrt(freedom * np.expm1(normal**2 / freedom)))
