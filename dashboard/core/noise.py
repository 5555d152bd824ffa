"""The noise of a case and that between runs, and whether a difference is more than that."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.intervals import RatioInterval, paired_ratio
from warpladder.dashboard.core.run_data import Entry, RunData
from warpladder.data.names import PHASE

#: A difference smaller than this is `unchanged`, however narrow its interval is.
SMALLEST_EFFECT: Final = 0.01
#: The fewest cells with equal sources from which the noise between two runs is taken, how far their times may be from that of the
#: cell that is judged, and the part of them that lies within the noise.
FEWEST_FOR_NOISE: Final = 8
_LIKE: Final = 3.0
_WITHIN_NOISE: Final = 0.95
#: The noise between two runs where too few sources are equal. On one H200, kernels of 5 to 20 µs differ by 0.5 to 1.3 % from one
#: process to the next.
UNMEASURED_NOISE: Final = 1.015
_NOISE_COLUMNS: Final = [
    "workload",
    "case",
    "scope",
    "cache",
    "variant",
    "config",
    "gpus",
    "ratio",
    "low",
    "high",
    "n",
    "holds_one",
]


@dataclass(frozen=True)
class Noise:
    """The noise floors of a case, as factors of at least 1: how far the baseline's second entry is from the first.

    A factor is the far end of the interval of the ratio of the two copies. Host and device have one each, because a processor's
    times scatter for other reasons than a GPU's.
    """

    hosts: frozenset[str]
    on_device: float
    on_host: float

    def between(self, *variants: str) -> float:
        """The noise floor for a ratio of these variants: the larger one where one runs on the device and one on the host."""
        return max(self.on_host if variant in self.hosts else self.on_device for variant in variants)


def verdict(low: float, high: float, noise: float = 1.0) -> str:
    """The verdict from the interval of a speedup: `faster`, `slower` or `tied`; empty for a null.

    Args:
        low: lower end of the interval.
        high: upper end of the interval.
        noise: a ratio is a tie where its interval holds 1, or lies between 1/noise and noise.
    """
    if pd.isna(low) or pd.isna(high):
        return ""
    if low <= 1 <= high or (low >= 1 / noise and high <= noise):
        return "tied"
    return "faster" if low > 1 else "slower"


def noise_floors(data: RunData) -> pd.DataFrame:
    """The baseline's second entry against the first, without phases.

    Returns:
        One row for each (workload, case, scope, cache) with a second entry: `variant`, `config`, `gpus`, `ratio`, `low`, `high`,
        `n` and `holds_one`.
    """
    keys = data.grouped.keys
    twins = keys[(keys["twin"] == 1) & ~keys["scope"].str.startswith(PHASE)]
    rows = []
    for where in twins[["workload", "case", "scope", "cache"]].drop_duplicates().itertuples(index=False, name=None):
        for entry, ratio in _self_ratios(data.rounds(*where)).items():
            ends = (ratio.ratio, ratio.low, ratio.high)
            rows.append((*where, entry.variant, entry.config, entry.gpus, *ends, ratio.n, ratio.low <= 1 <= ratio.high))
    return pd.DataFrame(rows, columns=_NOISE_COLUMNS)


def noise_of(rounds: "Mapping[Entry, pd.Series[float]]", hosts: frozenset[str]) -> Noise:
    """The noise floors of a case in a timing; 1 for a place where no variant has a second entry.

    Args:
        rounds: `RunData.rounds`.
        hosts: `RunData.hosts`. The number of GPUs does not tell them, because a host variant on several processes has one too.
    """
    bands = {True: 1.0, False: 1.0}
    for entry, ratio in _self_ratios(rounds).items():
        if ratio.n and ratio.low > 0:
            on_host = entry.variant in hosts
            bands[on_host] = max(bands[on_host], ratio.high, 1 / ratio.low)
    return Noise(hosts, on_device=bands[False], on_host=bands[True])


def _self_ratios(rounds: "Mapping[Entry, pd.Series[float]]") -> dict[Entry, RatioInterval]:
    twins = [entry for entry in rounds if entry.twin]
    return {twin: paired_ratio(rounds[twin], rounds[first]) for twin in twins if (first := twin._replace(twin=0)) in rounds}


def between_runs(apart: npt.NDArray[np.float64], times_ns: npt.NDArray[np.float64], time_ns: float) -> npt.NDArray[np.float64]:
    """The noise between the two runs of each pair, as a factor of at least 1: 95 % of the cells with equal sources are less apart.

    Args:
        apart: distances of the logarithms of both times, shape (cells, pairs), without the cell that is judged; NaN where a cell
            is not in both runs, or its source is not equal.
        times_ns: of the cells.
        time_ns: of the cell that is judged. Where at least eight cells have times from a third to three times of it, only they
            count.

    Returns:
        Shape (pairs,). NaN where fewer than eight cells are known.
    """
    like = (times_ns >= time_ns / _LIKE) & (times_ns <= time_ns * _LIKE)
    near, every = _within_noise(apart[like]), _within_noise(apart)
    return np.exp(np.where(np.isnan(near), every, near))


def _within_noise(apart: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The 95 % quantile of each column without its NaN; NaN where fewer than eight values are left."""
    known = np.isfinite(apart).sum(axis=0)
    found = np.full(apart.shape[1], np.nan)
    enough = known >= FEWEST_FOR_NOISE
    if enough.any():
        # Column by column NumPy's own `nanquantile` takes seconds. NaN is sorted behind all numbers.
        ordered = np.sort(apart[:, enough], axis=0)
        place = _WITHIN_NOISE * (known[enough] - 1)
        low, pairs = place.astype(np.int64), np.arange(enough.sum())
        below, above = ordered[low, pairs], ordered[low + 1, pairs]
        found[enough] = below + (place - low) * (above - below)
    return found
