"""Statistics of many overlapping windows of one array, which are never laid out beside one another: n log n, however much they share."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.traces import NONE, Int64s


class Windows(NamedTuple):
    """For each group, in ascending order, pieces `values[first:last]` of an array, not empty; each counts `times` times."""

    group: Int64s
    first: Int64s
    last: Int64s
    times: Int64s

    @property
    def heads(self) -> Int64s:
        """Where the windows of each group begin."""
        return np.flatnonzero(np.diff(self.group, prepend=NONE))


def least(values: Int64s, first: Int64s, last: Int64s) -> Int64s:
    """The least of each `values[first:last]`, none of them empty: that of two blocks, whose length is a power of two."""
    power_of = np.frexp((last - first).astype(np.float64))[1] - 1
    found = np.empty(len(first), dtype=np.int64)
    for power in range(int(power_of.max(initial=NONE)) + 1):
        block = 1 << power
        rows = np.flatnonzero(power_of == power)
        found[rows] = np.minimum(values[first[rows]], values[last[rows] - block])
        values = np.minimum(values[:-block], values[block:])
    return found


def statistics(values: Int64s, windows: Windows) -> pd.DataFrame:
    """As `describe.describe`, of the values in each group's windows."""
    heads, (_, first, last, times) = windows.heads, windows
    if not len(heads):
        return pd.DataFrame(columns=["total", "n", "mean", "median", "min", "max", "stddev"])

    def summed(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        before = _before(numbers)
        return np.add.reduceat((before[last] - before[first]) * times, heads)

    n, total = np.add.reduceat((last - first) * times, heads), summed(values)
    mean = total / n
    below, above = (_of_rank(values, windows, heads, rank) for rank in ((n - 1) // 2, n // 2))
    return pd.DataFrame(
        {
            "total": total, "n": n, "mean": mean, "median": (below + above) / 2,
            "min": np.minimum.reduceat(least(values, first, last), heads),
            "max": -np.minimum.reduceat(least(-values, first, last), heads),
            "stddev": np.sqrt(_squares(values, summed, n, total) / np.maximum(n - 1, 1)),
        }, index=windows.group[heads],
    )  # fmt: skip


def covered(windows: Windows) -> Int64s:
    """How many places of the array lie in a window of each group; one in several of them counts once. Those of a group ascend by `first`."""
    _, first, last, _ = windows
    # Groups are laid one behind the other, so that one running maximum serves them all.
    shift = windows.group * (int(last.max(initial=0)) + 1)
    reached = np.maximum.accumulate(last + shift) - shift
    before = np.concatenate(([0], reached[:-1]))
    before[windows.heads] = 0
    gained = np.maximum(last - np.maximum(first, before), 0)
    return np.add.reduceat(gained, windows.heads) if len(gained) else gained


def _before(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Sum of the numbers before each place, and of all of them."""
    sums = np.zeros(len(numbers) + 1, dtype=np.int64 if numbers.dtype == bool else numbers.dtype)
    np.cumsum(numbers, out=sums[1:])
    return sums


def _squares(values: Int64s, summed: Any, n: Int64s, total: Int64s) -> npt.NDArray[np.float64]:
    """Sum of the squared distances from each group's mean.

    Sums of squares wrap around in 64 bits, and are exact but for how often. That is told by the same sums of floats, whose error is far
    below 2^64.
    """
    middle = np.rint(values.mean())
    rough = summed((values - middle) ** 2) - (total - n * middle) ** 2 / n
    near = np.rint(total / n).astype(np.int64)
    rest = total - n * near
    wrapped = (summed(values * values) - near * (total + rest)).astype(np.float64)
    exact = wrapped + 2.0**64 * np.rint((rough - wrapped) / 2.0**64)
    return np.asarray(np.maximum(exact - rest.astype(np.float64) ** 2 / n, 0), dtype=np.float64)


def _of_rank(values: Int64s, windows: Windows, heads: Int64s, rank: Int64s) -> Int64s:
    """The value of that rank, from 0, in each group: bit by bit, as the groups' windows are followed through a wavelet matrix."""
    distinct, code = np.unique(values, return_inverse=True)
    _, first, last, times = windows
    group = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(first))))
    rank, found = rank.copy(), np.zeros(len(heads), dtype=np.int64)
    for bit in reversed(range((len(distinct) - 1).bit_length())):
        low = (code >> bit & 1) == 0
        before = _before(low)
        left, right = before[first], before[last]
        lower = np.add.reduceat((right - left) * times, heads)
        up = rank >= lower
        rank -= np.where(up, lower, 0)
        found |= up.astype(np.int64) << bit
        moved = up[group]
        first = np.where(moved, before[-1] + first - left, left)
        last = np.where(moved, before[-1] + last - right, right)
        code = np.concatenate((code[low], code[~low]))
    return np.asarray(distinct[found], dtype=np.int64)
