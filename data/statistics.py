"""Statistics that collectors and dashboard share: sampling stops by the same interval that the pages show."""

import math
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

CONFIDENCE: Final = 0.95
#: All collectors must agree on device times of this length and more, within this share of the time. The recorder and a page
#: both check it.
AGREE_ABOVE_NS: Final = 20_000
AGREE_WITHIN: Final = 0.02
#: The standard deviation of a normal distribution over its median absolute deviation.
OVER_MEDIAN_DEVIATION: Final = 1.4826


@lru_cache(maxsize=4096)
def median_ranks(n: int) -> tuple[int, int]:
    """Ranks, from 0, of the sorted samples that bound the median's 95 % confidence interval.

    Distribution-free, from the binomial distribution of the number of samples below the median (Conover, Practical
    Nonparametric Statistics, section 3.2). Below 6 samples no pair of ranks reaches 95 %, and the interval is the range.

    Args:
        n: number of samples, at least 1.
    """
    tail, below = (1 - CONFIDENCE) / 2, 0.0
    for rank in range(n // 2):
        # Not math.comb(...) / 2**n, which overflows a float above a thousand samples.
        below += math.exp(math.lgamma(n + 1) - math.lgamma(rank + 1) - math.lgamma(n - rank + 1) - n * math.log(2))
        if below > tail:
            return max(rank - 1, 0), min(n - rank, n - 1)
    return max(n // 2 - 1, 0), min(n - n // 2, n - 1)


def median_interval(samples: ArrayLike) -> tuple[float, float, float]:
    """Median of the samples and the 95 % confidence interval of the median. Returns median, low, high, in the unit of
    the samples."""
    ordered = np.sort(np.asarray(samples, dtype=float))
    low, high = median_ranks(len(ordered))
    return float(np.median(ordered)), float(ordered[low]), float(ordered[high])
