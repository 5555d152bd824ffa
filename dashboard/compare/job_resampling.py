"""Ratios of two jobs with their intervals, from times by rank and iteration."""

import math
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

from warpladder.dashboard.compare.levels import ENOUGH_ALIKE
from warpladder.dashboard.core.intervals import MOST_LOG, RESAMPLES, students_t
from warpladder.data.arrays import Floats

#: The standard deviation of a normal distribution over its median absolute deviation.
ROBUST: Final = 1 / NormalDist().inv_cdf(0.75)
#: The standard deviations of a normal distribution that nine in ten stay within.
_NINE_IN_TEN: Final = NormalDist().inv_cdf(0.95)
_SEED: Final = 20_250_701
_PERCENTILES: Final = (2.5, 97.5)
_NORMAL: Final = NormalDist().inv_cdf(0.975)
#: Most numbers of one step of the resampling: 32 MB.
_AT_ONCE: Final = 4_000_000
_MOST_FREEDOM: Final = 1000.0
#: The degrees of freedom that the median variance of all rows counts as.
_SHARED_FREEDOM: Final = 4
_HALVINGS: Final = 40


class Ratios(NamedTuple):
    """Ratios of sums, B over A; arrays of shape (rows,), NaN where a side has no time.

    Attributes:
        low, high: ends of the intervals.
        error: standard error of the logarithm.
    """

    value: Floats
    low: Floats
    high: Floats
    error: Floats

    def with_noise(self, noise: float) -> "Ratios":
        """The same with a noise between the jobs, a factor of at least 1, which is added to the intervals as squares."""
        with np.errstate(over="ignore"):
            down, up = (np.hypot(np.log(each), math.log(noise)) for each in (self.value / self.low, self.high / self.value))
            return self._replace(low=self.value * np.exp(-down), high=self.value * np.exp(up))

    def noise(self) -> tuple[float, float]:
        """The noise between the jobs, a factor of at least 1 that bounds all rows, and the median ratio; NaN below eight rows.

        Most kernels of two jobs have equal code. So what they scatter around their median ratio beyond their errors is noise between
        the jobs. Its variance is the one with which the median kernel is as far from the median ratio as it should be. A change of
        a smaller part of the kernels does not count.
        """
        known = np.isfinite(self.error) & (self.error > 0)
        if known.sum() < ENOUGH_ALIKE:
            return 1.0, math.nan
        logs, error = np.log(self.value[known]), self.error[known]
        shift = float(np.median(logs))
        apart = np.abs(logs - shift)
        low, high = 0.0, ROBUST * float(apart.max())
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if np.median(apart / np.hypot(error, middle)) > 1 / ROBUST else (low, middle)
        return math.exp(min(NormalDist().inv_cdf(1 - 0.025 / len(logs)) * low, MOST_LOG)), math.exp(shift)


def ratios(a: Floats, b: Floats, *, alike: bool) -> Ratios:
    """Resample ranks, and iterations, 2,000 times, and give each row its ratio with an interval.

    All ranks of a job meet in its collectives, so that an iteration is long or short on all of them. So a resample draws ranks,
    and then the same iterations of each drawn rank (Owen, The pigeonhole bootstrap, Annals of Applied Statistics 1, 2007). A cell
    of A and the cell of B of the same rank and iteration are drawn together.

    Percentiles of few iterations are too near, and of many rows some miss. So the ends are wider than the percentiles, on a
    logarithmic scale: by the quantile of Student's t that holds for all rows together (Bonferroni) over that of a normal
    distribution, and by sqrt(n / (n - 1)) of n iterations, as in `intervals.paired_ratio`. The variance of a row is averaged
    with the median variance of the rows, which counts as much as four degrees of freedom (as moderated t statistics do: Smyth,
    Linear models and empirical Bayes methods, Statistical Applications in Genetics 3, 2004).

    Args:
        a, b: times, shape (rows, ranks, iterations).
        alike: the rows are of one kind, such as kernels, so that the variances of at least eight are averaged.
    """
    ranks, iterations = a.shape[1:]
    sums = a.sum(axis=(1, 2)), b.sum(axis=(1, 2))
    known = (sums[0] > 0) & (sums[1] > 0) & (iterations > 1)
    value = np.divide(sums[1], sums[0], out=np.full(len(a), np.nan), where=known)
    ends = np.full((2, len(a)), np.nan)
    rng = np.random.default_rng(_SEED)
    of_ranks, of_iterations = (rng.multinomial(n, np.full(n, 1 / n), RESAMPLES).astype(float) for n in (ranks, iterations))
    rows, step = np.flatnonzero(known), max(1, _AT_ONCE // (RESAMPLES * iterations))
    for some in (rows[first : first + step] for first in range(0, len(rows), step)):
        top, bottom = (_resampled(side[some], of_ranks, of_iterations) for side in (b, a))
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(top / bottom)
        ends[:, some] = np.nanpercentile(np.where(np.isfinite(logs), logs, np.nan), _PERCENTILES, axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        down, up = (np.maximum(way, 0) for way in (np.log(value) - ends[0], ends[1] - np.log(value)))
        of_few = math.sqrt(iterations / max(iterations - 1, 1))
        shrunk, freedom = _scatter(a, b, value)
        down, up = down * shrunk, up * shrunk
        factor, quantile = _wider((down + up) / 2, freedom, alike=alike)
        wider = of_few * factor * quantile / _NORMAL
        error = of_few * factor * (down + up) / 2 / _NORMAL
        return Ratios(value, value * np.exp(-wider * down), value * np.exp(wider * up), error)


def _wider(half: Floats, freedom: Floats, *, alike: bool) -> tuple[Floats, Floats]:
    """The factor by which the averaged variance lengthens the error of each row, and its quantile of Student's t.

    Args:
        half: half the width of the interval, on a logarithmic scale; NaN where it is not known.
    """
    known = np.isfinite(half) & (half > 0)
    factor = np.ones(len(half))
    if alike and known.sum() >= ENOUGH_ALIKE:
        typical = np.median(half[known] ** 2)
        moderated = np.sqrt((freedom * half**2 + _SHARED_FREEDOM * typical) / (freedom + _SHARED_FREEDOM))
        factor[known], freedom = (moderated / half)[known], freedom + _SHARED_FREEDOM
    tail = 0.025 / max(len(half), 1)
    return factor, np.array([students_t(each, tail) for each in freedom.tolist()])


def _resampled(times: Floats, of_ranks: Floats, of_iterations: Floats) -> Floats:
    """The sum of each resample, shape (RESAMPLES, rows)."""
    rows, ranks, iterations = times.shape
    by_rank = of_ranks @ times.transpose(1, 0, 2).reshape(ranks, rows * iterations)
    summed: Floats = np.einsum("drt,dt->dr", by_rank.reshape(RESAMPLES, rows, iterations), of_iterations)
    return summed


def _scatter(a: Floats, b: Floats, ratio: Floats) -> tuple[Floats, Floats]:
    """How much too wide the resamples are, and the degrees of freedom of each ratio (Satterthwaite).

    Resamples of ranks and of iterations count the scatter of single cells three times (Owen, as in `ratios`). The variances of the sums
    of ranks and of those of iterations have it once each.

    Args:
        a, b: times, shape (rows, ranks, iterations).
        ratio: of their sums, shape (rows,).

    Returns:
        A factor of at most 1 for half widths, and the degrees of freedom, each of shape (rows,).
    """
    _, ranks, iterations = a.shape
    apart = b - np.nan_to_num(ratio)[:, None, None] * a
    of_ranks, of_iterations = (  # the variance of the total of sums; 0 of a single one
        n * apart.sum(axis=axis).var(axis=1, ddof=1) if n > 1 else np.zeros(len(a)) for n, axis in ((ranks, 2), (iterations, 1))
    )
    rest = (
        apart - apart.mean(axis=1, keepdims=True) - apart.mean(axis=2, keepdims=True) + apart.mean(axis=(1, 2), keepdims=True)
    )
    of_cells = ranks * iterations * (rest**2).sum(axis=(1, 2)) / max((ranks - 1) * (iterations - 1), 1)
    right = np.maximum(np.maximum(of_ranks, of_iterations), of_ranks + of_iterations - of_cells)
    resampled = of_ranks + of_iterations + of_cells
    squares = of_ranks**2 / max(ranks - 1, 1) + of_iterations**2 / max(iterations - 1, 1)
    one, most = np.ones(len(a)), np.full(len(a), _MOST_FREEDOM)
    factor = np.sqrt(np.divide(right, resampled, out=one, where=resampled > 0))
    freedom = np.divide((of_ranks + of_iterations) ** 2, squares, out=most, where=squares > 0)
    return factor, np.clip(freedom, 1, _MOST_FREEDOM)


class Alone(NamedTuple):
    """How the ranks of each row differ from the other ranks.

    Attributes:
        log: logarithm of the ratio of each rank, shape (rows, ranks); NaN where the rank has no time.
        apart: how far this logarithm is from the median of the ranks, in the sum or in the median iteration.
        reach: half the width of the interval of `apart`, which holds for all rows and ranks together.
    """

    log: Floats
    apart: Floats
    reach: Floats


def alone(a: Floats, b: Floats) -> Alone:
    """Compare the ratio of each rank, B over A, with the ratios of the other ranks of the same row.

    A rank is as far from the others as in its sum or in its median iteration, whichever is nearer, so that one long iteration does not
    count. Its error is the largest of four: the scatter over the ranks of its row as the median absolute deviation, that of the median
    row, the distance that nine in ten of the other ranks stay within, and the rank's own scatter over iterations. So a second rank
    that is slow hides no rank where there are at least eight.

    Args:
        a, b: times, shape (rows, ranks, iterations) with at least two iterations.
    """
    rows, ranks, iterations = a.shape
    of_a, of_b = a.sum(axis=2), b.sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((of_a > 0) & (of_b > 0), of_b / of_a, np.nan)
        own = np.sqrt(iterations * (b - ratio[:, :, None] * a).var(axis=2, ddof=1)) / of_b
        cells = np.log(np.where((a > 0) & (b > 0), b / a, np.nan))
    log = np.log(ratio)
    in_sum, in_median = log - _median(log, 1)[:, None], _median(cells - _median(cells, 1)[:, None, :], 2)
    nearer = np.where(np.sign(in_sum) == np.sign(in_median), np.minimum(np.abs(in_sum), np.abs(in_median)), 0.0)
    apart = np.where(np.isfinite(in_sum), np.sign(in_sum) * nearer, np.nan)
    scatter = ROBUST * _median(np.abs(in_sum), 1)
    typical = _median(scatter[None], 1)
    error = np.fmax(np.fmax(np.fmax(scatter, typical)[:, None], own), _of_others(np.abs(in_sum)) / _NINE_IN_TEN)
    return Alone(log, apart, students_t(float(ranks + iterations - 2), 0.025 / max(rows * ranks, 1)) * error)


def _of_others(distances: Floats) -> Floats:
    """For each rank the distance that nine in ten of the other ranks of its row stay within, shape (rows, ranks)."""
    place = np.argsort(np.argsort(distances, axis=1), axis=1)  # NaN last
    others = np.isfinite(distances).sum(axis=1, keepdims=True) - 1
    wanted = np.maximum(9 * (others - 1) // 10, 0)
    ordered = np.sort(distances, axis=1)
    found: Floats = np.take_along_axis(ordered, np.minimum(wanted + (place <= wanted), distances.shape[1] - 1), axis=1)
    return found


def _median(values: Floats, axis: int) -> Floats:
    """The median along an axis without NaN; NaN where there is nothing else."""
    found: Floats = np.nanmedian(np.where(np.isfinite(values).any(axis=axis, keepdims=True), values, 0.0), axis=axis)
    return np.where(np.isfinite(values).any(axis=axis), found, np.nan)
