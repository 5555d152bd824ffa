"""Medians and ratios with 95 % intervals."""

from collections.abc import Sequence
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
    "independent_ratio",
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
    low, high = np.percentile(resampled, _PERCENTILES)
    return RatioInterval(float(np.median(top) / np.median(bottom)), float(low), float(high), min(len(top), len(bottom)), paired)


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


def independent_ratio(before: Sequence[npt.ArrayLike], after: Sequence[npt.ArrayLike]) -> RatioInterval:
    """Ratio of the medians of two runs, after over before, with a bootstrap percentile interval (2,000 resamples, seeded).

    Each side is resampled on its own. Where a side has several processes, a resample draws one process fewer with replacement, then
    the rounds of each drawn process with replacement (Davison and Hinkley, Bootstrap Methods and their Application, section 3.8,
    strategy 1). So the interval holds the difference from one process to the next. As many processes as there are would give
    intervals that are too narrow where they are few (Rao and Wu, Resampling inference with complex survey data, JASA 83, 1988).

    Args:
        before: the durations of each process of the denominator, one a round; one array for a run of one process.
        after: the same for the numerator.

    Returns:
        The ratio of the medians of all rounds of a side. All figures are NaN, and n is 0, where a side is empty.
    """
    bottom, top = ([each for each in map(_floats, side) if len(each)] for side in (before, after))
    if not bottom or not top:
        return RatioInterval(np.nan, np.nan, np.nan, 0, False)
    resampled = _medians_by_process(top, _SEED) / _medians_by_process(bottom, _SEED + 1)
    low, high = np.percentile(resampled, _PERCENTILES)
    above, below = np.concatenate(top), np.concatenate(bottom)
    ratio = float(np.median(above) / np.median(below))
    return RatioInterval(ratio, float(low), float(high), min(len(above), len(below)), False)


def _floats(values: npt.ArrayLike) -> Floats:
    return np.asarray(values, dtype=float)


def _medians_by_process(processes: Sequence[Floats], seed: int) -> Floats:
    """Median of each resample of processes, then of rounds; shape (RESAMPLES,)."""
    ordered = np.sort(np.concatenate(processes), kind="stable")
    if len(processes) == 1:
        low, high = _drawn_middles(len(ordered), seed)
    else:
        low, high = _pooled_middles(processes, seed)
    medians: Floats = (ordered[low] + ordered[high]) / 2
    return medians


@lru_cache(maxsize=256)
def _drawn_middles(n: int, seed: int) -> npt.NDArray[np.int64]:
    """Ranks, from 0, of the two middle values of each resample of n values; shape (2, RESAMPLES). They are equal for odd n.

    A draw of a rank is the whole part of n times a uniform number. The k-th smallest of n uniform numbers is Beta(k, n - k + 1),
    and the next one divides the rest up to 1 by Beta(1, n - k) (David and Nagaraja, Order Statistics, sections 2.3 and 2.5).
    So a median takes two draws instead of n.
    """
    random = np.random.default_rng(seed)
    k = (n + 1) // 2
    middle = random.beta(k, n - k + 1, RESAMPLES)
    after = middle if n % 2 else middle + (1 - middle) * random.beta(1, n - k, RESAMPLES)
    return np.minimum((n * np.stack([middle, after])).astype(np.int64), n - 1)


def _pooled_middles(processes: Sequence[Floats], seed: int) -> npt.NDArray[np.int64]:
    """Ranks, from 0, among the values of all processes, of the two middle values of each resample; shape (2, RESAMPLES)."""
    sizes = tuple(map(len, processes))
    counts, total = _drawn_counts(sizes, seed)
    owner = np.repeat(np.arange(len(sizes)), sizes)[np.argsort(np.concatenate(processes), kind="stable")]
    up_to = np.zeros((len(owner), RESAMPLES), dtype=counts[0].dtype)
    for process, count in enumerate(counts):
        up_to += count[np.cumsum(owner == process)]
    # The rank of the k-th value of a resample is the number of ranks up to which it has fewer than k values.
    return np.stack([(up_to < k).sum(axis=0, dtype=np.int64) for k in ((total + 1) // 2, total // 2 + 1)])


@lru_cache(maxsize=16)
def _drawn_counts(sizes: tuple[int, ...], seed: int) -> tuple[tuple[npt.NDArray[Any], ...], npt.NDArray[Any]]:
    """How many values each resample has of the k least values of each process; it draws one process fewer than there are.

    Returns:
        An array of shape (n + 1, RESAMPLES) for each process of n rounds, by k, and the number of values of each resample, of
        shape (RESAMPLES,).
    """
    random = np.random.default_rng(seed)
    small = np.uint16 if len(sizes) * max(sizes) < 65_536 else np.uint32
    drawn = random.multinomial(len(sizes) - 1, [1 / len(sizes)] * len(sizes), RESAMPLES)
    counts = []
    for times, n in zip(drawn.T, sizes, strict=True):
        of_rank = random.multinomial(times * n, [1 / n] * n)
        counts.append(np.pad(np.cumsum(of_rank, axis=1), ((0, 0), (1, 0))).T.astype(small, order="C"))
    return tuple(counts), (drawn @ np.array(sizes)).astype(small)
