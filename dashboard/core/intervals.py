"""Medians and ratios with their intervals, and the error of the clock by which the intervals grow."""

import math
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.cell import Estimate
from warpladder.data.arrays import Bools, Floats, Int64s
from warpladder.data.limits import event_error_ns
from warpladder.data.names import Ceiling
from warpladder.data.statistics import median_ranks

#: The fewest samples that give a two-sided 95 % interval of the median. Five give 1 - 2 / 2**5 = 93.75 %.
MIN_SAMPLES: Final = 6
RESAMPLES: Final = 2_000
_SEED: Final = 20_250_101


class RatioInterval(NamedTuple):
    """A ratio of medians, the ends of its 95 % interval, the samples of the smaller side, and whether rounds were paired."""

    ratio: float
    low: float
    high: float
    n: int
    paired: bool

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.ratio, self.low, self.high)


def interval_kind(n: int) -> str:
    """The kind of the interval of n samples: `95 % interval`, or `least to greatest` where n < 6."""
    return "95 % interval" if n >= MIN_SAMPLES else "least to greatest"


def grouped_median_intervals(values: Floats, n: Int64s) -> dict[str, Floats]:
    """Median intervals of every group at once, by `data.statistics.median_ranks`.

    Args:
        values: the samples of the first group, then the samples of the second, and so on.
        n: samples in each group, at least 1.

    Returns:
        `median`, `low` and `high`, each of the shape of `n` and in the unit of the values.
    """
    group = np.repeat(np.arange(len(n)), n)
    ordered = values[np.lexsort((values, group))]
    first = np.cumsum(n) - n
    ranks = np.array([median_ranks(int(count)) for count in n], dtype=int).reshape(-1, 2)
    return {
        "median": (ordered[first + (n - 1) // 2] + ordered[first + n // 2]) / 2,
        "low": ordered[first + ranks[:, 0]],
        "high": ordered[first + ranks[:, 1]],
    }


def paired_ratio(
    numerator_by_round: "pd.Series[float]", denominator_by_round: "pd.Series[float]", *, independent: bool = False
) -> RatioInterval:
    """Ratio of two medians with a bootstrap percentile interval (2,000 resamples, seeded).

    The interval of n rounds is wider than its percentiles by sqrt(n / (n - 1)) on a logarithmic scale, because resamples scatter
    less than samples by as much (Hesterberg, What teachers should know about the bootstrap, section 3.2, The American Statistician
    69, 2015).

    Args:
        numerator_by_round: durations indexed by round; several of one round count as their median.
        denominator_by_round: the same for the denominator.
        independent: the two sides were not measured in the same rounds, though round numbers may be equal.

    Returns:
        The shared rounds are resampled together, so that common drift cancels. Where fewer than half of the rounds of a side
        are shared, each side is resampled on its own, and `paired` is False. All figures are NaN, and n is 0, where a side is
        empty.
    """
    numerator, denominator = _one_a_round(numerator_by_round), _one_a_round(denominator_by_round)
    if numerator.empty or denominator.empty:
        return RatioInterval(np.nan, np.nan, np.nan, 0, False)
    same = numerator.index.equals(denominator.index)
    shared = numerator.index if same else numerator.index.intersection(denominator.index)
    paired = not independent and 2 * len(shared) >= max(len(numerator), len(denominator))
    if paired and not same:
        numerator, denominator = numerator.loc[shared], denominator.loc[shared]
    top, bottom = (side.to_numpy(dtype=float).tobytes() for side in (numerator, denominator))
    return RatioInterval(*_ratio(top, bottom, paired=paired), paired)


#: Pages and texts ask for the ratios of a run again and again. A ratio is a few hundred bytes, and its rounds some thousands.
@lru_cache(maxsize=2_048)
def _ratio(numerator: bytes, denominator: bytes, *, paired: bool) -> tuple[float, float, float, int]:
    """Ratio, the ends of its interval, and the samples of the smaller side, of float64 in bytes."""
    top, tops = _medians(numerator, _SEED)
    bottom, bottoms = _medians(denominator, _SEED if paired else _SEED + 1)
    ratio, n = float(top / bottom), min(len(numerator), len(denominator)) // top.itemsize
    low, high = (float(end) for end in np.percentile(tops / bottoms, (2.5, 97.5)))
    if n > 1 and 0 < ratio < math.inf:
        wider = math.sqrt(n / (n - 1))
        low, high = (ratio * (end / ratio) ** wider for end in (low, high))
    return ratio, low, high, n


def _one_a_round(by_round: "pd.Series[float]") -> "pd.Series[float]":
    rounds = by_round.index.to_numpy()
    if (rounds[1:] > rounds[:-1]).all() or by_round.index.is_unique:  # the former is found in a tenth of the time
        return by_round
    return by_round.groupby(level=0).median()


@lru_cache(maxsize=64)
def _drawn(n: int, seed: int) -> npt.NDArray[np.uint16]:
    """How often each resample draws each round, shape (n, RESAMPLES). Equal n and seed give equal counts, which pairs the two sides."""
    rounds = np.random.default_rng(seed).integers(0, n, (RESAMPLES, n), dtype=np.uint32)
    places = rounds.astype(np.int64) * RESAMPLES + np.arange(RESAMPLES)[:, None]
    return np.bincount(places.ravel(), minlength=n * RESAMPLES).astype(np.uint16).reshape(n, RESAMPLES)


@lru_cache(maxsize=256)
def _medians(samples: bytes, seed: int) -> tuple[np.float64, Floats]:
    """Median of float64 in bytes, and of each of its resamples, shape (RESAMPLES,). All variants of a case are compared with one reference.

    No resample is sorted: the k-th of its values is the sample up to which, in the order of the samples, it drew k.
    """
    values = np.frombuffer(samples)
    n = len(values)
    order = np.argsort(values, kind="stable")
    counts = np.uint16 if n <= 65_535 else np.uint32
    drawn_up_to: npt.NDArray[Any] = _drawn(n, seed)[order].astype(counts, copy=False)
    for before, here in pairwise(drawn_up_to):  # a tenth of the time of a cumulative sum over the first axis
        here += before
    ordered = values[order]
    lower = upper = ordered[(drawn_up_to <= (n - 1) // 2).sum(axis=0, dtype=counts)]
    if n % 2 == 0:
        upper = ordered[(drawn_up_to <= n // 2).sum(axis=0, dtype=counts)]
    median = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    return ordered[-1] if np.isnan(ordered[-1]) else median, (lower + upper) / 2


#: Points and weights of Gauss and Legendre between -1 and 1, and halvings until an angle has all the digits of a double.
_POINTS: Final = np.polynomial.legendre.leggauss(64)
_HALVINGS: Final = 52


@lru_cache(maxsize=1 << 14)
def students_t(freedom: float, tail: float = 0.025) -> float:
    """The value that Student's t exceeds with the probability `tail`; that of a normal distribution for infinitely many degrees of freedom.

    With t = sqrt(freedom) * tan(angle), the density of the angle is proportional to cos(angle) ** (freedom - 1).
    """
    if math.isinf(freedom):
        return NormalDist().inv_cdf(1 - tail)
    up_to_right_angle = math.sqrt(math.pi) / 2 * math.exp(math.lgamma(freedom / 2) - math.lgamma((freedom + 1) / 2))
    points, weights = _POINTS
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        angle = (low + high) / 2
        area = angle / 2 * float(weights @ np.cos(angle / 2 * (points + 1)) ** (freedom - 1))
        low, high = (angle, high) if area < (1 - 2 * tail) * up_to_right_angle else (low, angle)
    return math.sqrt(freedom) * math.tan(low)


#: The logarithm of the largest factor that an interval or a noise has: where few values tell them, `exp` would overflow.
MOST_LOG: Final = 50.0
#: The collector whose device times are read between two events.
BY_EVENTS: Final = "cuda_events"
#: Collectors whose device times come from a trace. Both read the same records of the driver.
BY_TRACE: Final = frozenset({"cupti", "nsight_systems"})
#: The error in ns of a run by events that did not measure it: how much more they read than CUPTI, in the median of 74 cold cells below
#: 20 us of two runs that ship (`h200-by-cuda-events` and `h200-by-cupti`).
UNMEASURED_NS: Final = 400.0
#: The scatter in ns of a run by events that did not measure it: the most that a shipped run measured is 193 ns. Of 193 verdicts about pairs of
#: variants below 5 us in the run by events above, 3 then contradict the one by CUPTI; without it, 23 of 258.
UNMEASURED_SCATTER_NS: Final = 200.0


def error_ns(collector: object, ceilings: Mapping[str, float]) -> float:
    """The error of one device time between two events, in ns: the ceiling `event_uncertainty`, and at least that between two runs; 0
    where no events took the times.

    Args:
        collector: of the run.
        ceilings: values by name in their units.
    """
    if collector != BY_EVENTS:
        return 0.0
    return UNMEASURED_NS if Ceiling.EVENT_UNCERTAINTY not in ceilings else event_error_ns(ceilings)


def scatter_ns(collector: object, ceilings: Mapping[str, float]) -> float:
    """How far two device times between events of one run may be from their true difference, in ns: the ceiling `event_uncertainty`; 0 where
    no events took the times.

    Args:
        collector: of the run.
        ceilings: values by name in their units.
    """
    if collector != BY_EVENTS:
        return 0.0
    return 1e3 * ceilings.get(Ceiling.EVENT_UNCERTAINTY, UNMEASURED_SCATTER_NS / 1e3)


def widened(low_ns: Floats, high_ns: Floats, error_ns: float, single: Bools) -> tuple[Floats, Floats]:
    """The ends of intervals with the error of the clock, in ns.

    Args:
        low_ns, high_ns: the ends without it.
        single: whether the samples are single executions or means of such: cold device times. A hot sample divides the error among its
            batch, so that it does not count there.
    """
    error = np.where(single, error_ns, 0.0)
    return np.maximum(low_ns - error, np.minimum(low_ns, 1.0)), high_ns + error


def is_single(scope: str, cache: str) -> bool:
    """Whether samples of this timing are single executions on the device; see `widened`."""
    return scope == "device" and cache == "cold"


def differ(a: object, b: object) -> bool:
    """Whether two collectors take device times of different spans: one between two events, the other from a trace.

    Events include what a kernel needs to start with a cold device, and tracing lengthens some kernels up to twofold, so that no margin
    makes the two alike; docs/collectors.md has the figures.
    """
    return (a == BY_EVENTS and b in BY_TRACE) or (b == BY_EVENTS and a in BY_TRACE)
