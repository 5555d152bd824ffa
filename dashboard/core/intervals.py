"""Medians and ratios with 95 % intervals."""

import math
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.estimate import Estimate
from warpladder.data.statistics import median_interval, median_ranks

__all__ = [
    "MIN_SAMPLES",
    "RESAMPLES",
    "RatioInterval",
    "grouped_median_intervals",
    "interval_kind",
    "median_interval",
    "paired_ratio",
]

#: The fewest samples that give a two-sided 95 % interval of the median. Five give 1 - 2 / 2**5 = 93.75 %.
MIN_SAMPLES: Final = 6
RESAMPLES: Final = 2_000
_SEED: Final = 20_250_101
_PERCENTILES: Final = (2.5, 97.5)

Floats = npt.NDArray[np.float64]


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


def grouped_median_intervals(values: Floats, n: npt.NDArray[np.int64]) -> dict[str, Floats]:
    """Median intervals of every group at once, by `data.statistics.median_ranks`.

    Args:
        values: the samples of the first group, then those of the second, and so on.
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
    top, bottom = numerator.to_numpy(dtype=float), denominator.to_numpy(dtype=float)
    resampled = _resampled_medians(top, _SEED) / _resampled_medians(bottom, _SEED if paired else _SEED + 1)
    ratio, n = float(np.median(top) / np.median(bottom)), min(len(top), len(bottom))
    low, high = map(float, np.percentile(resampled, _PERCENTILES))
    if n > 1 and 0 < ratio < math.inf:
        wider = math.sqrt(n / (n - 1))
        low, high = (ratio * (end / ratio) ** wider for end in (low, high))
    return RatioInterval(ratio, low, high, n, paired)


def _one_a_round(by_round: "pd.Series[float]") -> "pd.Series[float]":
    return by_round if by_round.index.is_unique else by_round.groupby(level=0).median()


@lru_cache(maxsize=64)
def _draws(n: int, seed: int) -> npt.NDArray[np.uint32]:
    """The rounds of each resample, shape (RESAMPLES, n). Equal n and seed give equal rounds, which pairs the two sides."""
    return np.random.default_rng(seed).integers(0, n, (RESAMPLES, n), dtype=np.uint32)


def _resampled_medians(values: npt.NDArray[Any], seed: int) -> Floats:
    """Median of each resample, shape (RESAMPLES,).

    Ranks are sorted instead of values, because NumPy sorts 16-bit integers about ten times faster than doubles.
    """
    n = len(values)
    order = np.argsort(values, kind="stable")
    rank = np.empty(n, dtype=np.uint16 if n <= 65_536 else np.uint32)
    rank[order] = np.arange(n)
    drawn = rank[_draws(n, seed)]
    drawn.sort(axis=1)
    ordered = values[order]
    medians: Floats = (ordered[drawn[:, (n - 1) // 2]] + ordered[drawn[:, n // 2]]) / 2
    return medians
