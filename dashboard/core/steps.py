"""Steps of a series of times: where its level changes by more than noise.

A verdict about two neighbouring runs comes first; see `between_runs`. Of those with equal code, only the ones that a fit to the
whole series has too are steps, so that a lone outlier is none.

The fit is the best sequence of levels in the sense of optimal partitioning: each run costs the squared distance from its level in
units of its noise, at most `_MOST_COST`, and each step costs a penalty. The bounded cost keeps a lone outlier from being taken for
two steps, but lets the newest run be one (Fearnhead and Rigaill, Changepoint detection in the presence of outliers, JASA 114,
2019). asv uses absolute distances for the same reason (Friedrich et al., Complexity penalized M-estimation, 2008).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from warpladder.data.arrays import Floats

#: Cost of a step: three standard deviations of one run, and more for the logarithm of the number of places to search. Two units
#: of it leave a false step in one of some hundred series of noise.
_STEP: Final = 9.0
_SEARCHED: Final = 2.0
#: The most that a run costs, in penalties of a step. Below 2, a lone outlier is cheaper than a step there and one back.
_MOST_COST: Final = 1.75


@dataclass(frozen=True)
class Level:
    """Runs with one level.

    Attributes:
        first, end: the places of its runs, the end exclusive.
        log: the logarithm of the level, in nanoseconds.
        error: the standard deviation of `log`.
    """

    first: int
    end: int
    log: float
    error: float

    @property
    def last(self) -> int:
        return self.end - 1

    @property
    def time_ns(self) -> float:
        return math.exp(self.log)


def find_levels(logs: Floats, sigmas: Floats, certain: Sequence[bool], possible: Sequence[bool]) -> tuple[Level, ...]:
    """The levels of a series, in order; a step is between each two of them.

    Args:
        logs: logarithms of the times of the runs, not empty.
        sigmas: the noise of each, as a standard deviation of the logarithm, above 0.
        certain: whether a step is at a run in any case; not at the first one.
        possible: whether a step may be at a run; others that the fit has are left out.
    """
    ends = [*np.flatnonzero(certain).tolist(), len(logs)]
    firsts = []
    for first, end in pairwise([0, *ends]):
        inner = _partition(logs[first:end], sigmas[first:end]) if end - first > 1 else [0]
        firsts += [first, *(first + place for place in inner[1:] if possible[first + place])]
    most = math.sqrt(_MOST_COST * _penalty(len(logs)))
    return tuple(_level(logs, sigmas, first, end, most) for first, end in pairwise([*firsts, len(logs)]))


def _penalty(n: int) -> float:
    return _STEP + _SEARCHED * math.log(n)


def _partition(logs: Floats, sigmas: Floats) -> list[int]:
    """The first run of each level: the cheapest path through candidates of levels, run by run (the algorithm of Viterbi)."""
    levels = _candidates(logs)
    penalty = _penalty(len(logs))
    costs = np.minimum(((logs[:, None] - levels) / sigmas[:, None]) ** 2, _MOST_COST * penalty)
    total = costs[0]
    stepped = np.zeros(costs.shape, dtype=bool)
    best = np.zeros(len(logs), dtype=np.int64)
    for run in range(1, len(logs)):
        best[run] = np.argmin(total)
        by_step = total[best[run]] + penalty
        stepped[run] = by_step < total
        total = np.where(stepped[run], by_step, total) + costs[run]
    firsts, level = [0], int(np.argmin(total))
    for run in range(len(logs) - 1, 0, -1):
        if stepped[run, level]:
            firsts.insert(1, run)
            level = int(best[run])
    return firsts


def _candidates(logs: Floats) -> Floats:
    """The levels that a fit may have: the means of neighbouring runs, over windows of 1, 2, 3, 4, 6, 8, 12, 16 and so on."""
    sums = np.concatenate([[0.0], np.cumsum(logs - logs[0])])
    widths = sorted({width for power in range(len(logs).bit_length()) for width in (2**power, 3 * 2**power)})
    means = [(sums[width:] - sums[:-width]) / width + logs[0] for width in widths if width <= len(logs)]
    return np.unique(np.concatenate(means))


def _level(logs: Floats, sigmas: Floats, first: int, end: int, most: float) -> Level:
    """The weighted mean of the runs without outliers, which are more than `most` standard deviations from the median."""
    own, spread = logs[first:end], sigmas[first:end]
    near = np.abs(own - np.median(own)) <= most * spread
    weights = np.where(near, spread**-2, 0.0) if near.any() else spread**-2
    return Level(first, end, float(weights @ own / weights.sum()), float(weights.sum() ** -0.5))
