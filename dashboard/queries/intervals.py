"""Medians and ratios with 95 % intervals."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

#: Fewer samples hold no two-sided 95 % interval of the median: 1 - 2 / 2**5 = 0.9375.
MIN_SAMPLES: Final = 6
RESAMPLES: Final = 2_000
SEED: Final = 20_250_101

Floats = npt.NDArray[np.float64]


class MedianInterval(NamedTuple):
    """A median and the ends of its interval, in the unit of the values."""

    median: float
    low: float
    high: float


class RatioInterval(NamedTuple):
    """A ratio of medians, the ends of its 95 % interval, the samples of the smaller side, and whether rounds were paired."""

    ratio: float
    low: float
    high: float
    n: int
    paired: bool


def interval_ranks(n: int) -> tuple[int, int]:
    """Ranks, from 1, of the order statistics that enclose the median with at least 95 % confidence.

    The k-th smallest and k-th largest of n values enclose the median of any continuous distribution with probability
    1 - 2 P(Binomial(n, 1/2) < k); k is the largest that keeps this at 95 % (Conover, Practical Nonparametric Statistics,
    section 3.2). Below `MIN_SAMPLES` no k does, and the ranks are those of the least and the greatest value.

    Raises:
        ValueError: n is less than 1.
    """
    raise NotImplementedError


def interval_kind(n: int) -> str:
    """What the interval of n samples is, as charts say it: `95 % interval`, or `least to greatest` where n < 6."""
    return "95 % interval" if n >= MIN_SAMPLES else "least to greatest"


def median_interval(values: Sequence[float] | Floats) -> MedianInterval:
    """Median of one group of values (shape (n,), any unit) with its distribution-free interval.

    Raises:
        ValueError: there is no value.
    """
    raise NotImplementedError


def grouped_median_intervals(frame: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """Median intervals of every group at once.

    Returns:
        One row a group: the columns `by`, then `n`, `median`, `low`, `high` in the unit of `value`. Empty for no rows.
    """
    raise NotImplementedError


def paired_ratio(numerator_by_round: pd.Series, denominator_by_round: pd.Series) -> RatioInterval:
    """Ratio of two medians with a bootstrap percentile interval (2,000 resamples, seeded).

    Args:
        numerator_by_round: durations indexed by round; several of one round count as their median.
        denominator_by_round: likewise.

    Returns:
        Rounds that both have are resampled together, so that drift common to both cancels. Where fewer than half of the
        rounds of either are shared, each side is resampled on its own and `paired` is False. All NaN with n = 0 where a side is empty.
    """
    raise NotImplementedError
