"""The shares of a trace's device time that are attributed to ranges."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from warpladder.dashboard.core.run_data import RunData
from warpladder.data.arrays import NONE

TABLES: Final = ("kernels", "memory_ops")


@dataclass(frozen=True)
class Shares:
    """Device time of all kernels and memory operations of a trace, in nanoseconds.

    Attributes:
        own_ns: launched inside a range of the launching thread.
        by_time_ns: launched by a thread without a range, and attributed to a range of another thread that was open at that
            time.
        none_ns: attributed to no range.
    """

    own_ns: int
    by_time_ns: int
    none_ns: int

    @property
    def percent(self) -> tuple[float, float, float]:
        """The three shares in percent with one decimal, which add up to 100; zeros where nothing ran."""
        total = self.own_ns + self.by_time_ns + self.none_ns
        if not total:
            return 0.0, 0.0, 0.0
        own, by_time = (round(100 * part / total, 1) for part in (self.own_ns, self.by_time_ns))
        return own, by_time, max(0.0, round(100 - own - by_time, 1))


def shares(data: RunData) -> Shares:
    """The shares of a run's device time; zeros where it has no device work."""
    sums = np.zeros(3, dtype=np.int64)
    for table in TABLES:
        if table in data.traces.tables:
            durations = data.traces.durations(table)
            own, by_time = (data.traces.numbers(table, name) != NONE for name in ("range_id", "time_range_id"))
            for place, chosen in enumerate((own, ~own & by_time, ~own & ~by_time)):
                sums[place] += durations[chosen].sum()
    return Shares(*sums.tolist())


def sentence(shares: Shares, ranges: str = "NVTX ranges") -> str:
    """The shares in words; empty where all work was launched inside ranges of its own thread, or where there is no work.

    Args:
        ranges: what the ranges of the profile are called.
    """
    if shares.by_time_ns + shares.none_ns == 0:
        return ""
    own, by_time, none = shares.percent
    return (
        f"Of the device time, {own:g} % was launched inside {ranges} of the launching thread, {by_time:g} % is attributed "
        f"by time to a range of another thread, and {none:g} % to no range."
    )
