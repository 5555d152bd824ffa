"""The noise of a case, and whether a difference is more than that."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pandas as pd

from warpladder.dashboard.core.intervals import MIN_SAMPLES, RatioInterval, paired_ratio
from warpladder.dashboard.core.run_data import Entry, RunData
from warpladder.data.names import PHASE

#: The verdicts that call neither of two cells faster.
UNDECIDED: Final = ("tied", "unknown")
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


def verdict(low: float, high: float, n: int, noise: float = 1.0) -> str:
    """The verdict from the interval of a speedup: `faster`, `slower`, `tied` or `unknown`; empty for a null.

    All words about two cells of one run come from here.

    Args:
        low: lower end of the interval.
        high: upper end of the interval.
        n: samples of the smaller side. Fewer than `MIN_SAMPLES` have no 95 % interval, so that nothing is known.
        noise: a ratio is a tie where its interval holds 1, or lies between 1/noise and noise.
    """
    if pd.isna(low) or pd.isna(high):
        return ""
    if n < MIN_SAMPLES:
        return "unknown"
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
