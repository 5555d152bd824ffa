"""Sums and order statistics of millions of durations by group, as `nsys stats` defines and prints them."""

from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.traces import Int64s

_TENTH: Final = Decimal("0.1")
#: Cells of the table in which short durations are counted: 32 MB.
_CELLS: Final = 1 << 22
#: Few enough that what is made of them stays in the processor's cache.
_ROWS_AT_ONCE: Final = 1 << 16


class Tally(NamedTuple):
    """How often each value occurs in each group, sorted by group and value. A duration has few values among millions of rows."""

    group: Int64s
    value: Int64s
    n: Int64s


def tally(groups: npt.NDArray[Any], values: Int64s, count: int) -> Tally:
    """Counts equal values of each group: short ones in a table of cells, the others by sorting, which takes several times longer.

    Args:
        groups: number of each value's group, from 0 to `count` - 1.
        values: whole numbers.
    """
    if not len(values):
        return Tally(*[np.empty(0, dtype=np.int64)] * 3)
    low, width = int(values.min()), max(_CELLS // max(count, 1), 1)
    cells, far = np.zeros(count * width if count <= _CELLS else 0, dtype=np.int64), list[tuple[Int64s, Int64s]]()
    for first in range(0, len(values), _ROWS_AT_ONCE):
        group = groups[first : first + _ROWS_AT_ONCE].astype(np.int64)
        value = values[first : first + _ROWS_AT_ONCE] - low
        near = value < width if len(cells) else np.zeros(len(value), dtype=bool)
        if not near.all():
            far.append((group[~near], value[~near]))
            group, value = group[near], value[near]
        group *= width
        group += value
        if len(cells):
            np.add.at(cells, group, 1)
    place = np.flatnonzero(cells)
    group, value = np.divmod(place, width)
    found = Tally(group, value + low, cells[place])
    if not far:
        return found
    sorted_far = _by_sorting(np.concatenate([group for group, _ in far]), np.concatenate([value for _, value in far]), count)
    joined = Tally(
        *(np.concatenate(pair) for pair in zip(found, sorted_far._replace(value=sorted_far.value + low), strict=True))
    )
    # In each group what was sorted is longer than what was counted.
    order = np.argsort(joined.group, kind="stable")
    return Tally(*(column[order] for column in joined))


def describe(groups: npt.NDArray[Any], values: Int64s, count: int) -> pd.DataFrame:
    """Statistics of the values of each group that has any.

    Args:
        groups: number of each value's group, from 0 to `count` - 1.
        values: whole numbers.

    Returns:
        Indexed by the group's number: `total`, `n`, `mean`, `median`, `min`, `max`, `stddev` (of a sample, n - 1; 0 for one value).
    """
    return statistics(tally(groups, values, count))


def statistics(counted: Tally) -> pd.DataFrame:
    """As `describe`, of values that are counted already."""
    group, value, times_seen = counted
    if not len(group):
        return pd.DataFrame(columns=["total", "n", "mean", "median", "min", "max", "stddev"])
    first = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
    rows = np.diff(np.append(first, len(group)))
    n, total = np.add.reduceat(times_seen, first), np.add.reduceat(value * times_seen, first)
    mean = total / n
    squares = value - np.repeat(mean, rows)
    squares *= squares
    squares *= times_seen
    seen = np.cumsum(times_seen)
    middle = seen[first] - times_seen[first] + n // 2
    above, below = (value[np.searchsorted(seen, place, side="right")] for place in (middle, middle - (n % 2 == 0)))
    return pd.DataFrame(
        {
            "total": total, "n": n, "mean": mean, "median": (below + above) / 2, "min": value[first], "max": value[first + rows - 1],
            "stddev": np.sqrt(np.add.reduceat(squares, first) / np.maximum(n - 1, 1)),
        }, index=group[first],
    )  # fmt: skip


def rounded(values: "pd.Series[float]") -> npt.NDArray[np.float64]:
    """One decimal, half away from zero on the shortest decimal that names the number, as SQLite's `round` does it for `nsys stats`."""
    found = np.asarray(values, dtype=float)
    tenths = found * 10
    result = np.asarray(np.floor(tenths + 0.5) / 10)
    # Only near a tie does it matter how the number is written: within the last digits that a float holds.
    for place in np.flatnonzero(np.abs(tenths - np.floor(tenths) - 0.5) < 1e-14 * np.maximum(1, np.abs(tenths))):
        result[place] = float(Decimal(repr(float(found[place]))).quantize(_TENTH, ROUND_HALF_UP))
    return result


def times(
    groups: npt.NDArray[Any], durations: Int64s, count: str, names: Mapping[str, npt.NDArray[Any]], ties: Sequence[str]
) -> pd.DataFrame:
    """A summary of durations by group, as `nsys stats` prints it, the longest total first.

    Args:
        groups: number of each duration's group.
        count: heading of the number of rows.
        names: by heading, the name of each group.
        ties: headings of the columns that decide between equal totals.
    """
    width = max(len(values) for values in names.values())
    found = describe(groups, durations, width)
    frame = pd.DataFrame(
        {
            "Time (%)": rounded(100.0 * found["total"] / max(found["total"].sum(), 1)), "Total Time (ns)": found["total"],
            count: found["n"], "Avg (ns)": rounded(found["mean"]), "Med (ns)": rounded(found["median"]), "Min (ns)": found["min"],
            "Max (ns)": found["max"], "StdDev (ns)": rounded(found["stddev"]),
            **{heading: values[found.index] for heading, values in names.items()},
        }
    )  # fmt: skip
    return frame.sort_values(["Total Time (ns)", *ties], ascending=[False, *[True] * len(ties)], ignore_index=True)


def _by_sorting(groups: Int64s, values: Int64s, count: int) -> Tally:
    bits = int(values.max()).bit_length()
    if bits + count.bit_length() > 62:
        order = np.lexsort((values, groups))
        groups, values = groups[order], values[order]
        first = np.flatnonzero(np.concatenate(([True], (groups[1:] != groups[:-1]) | (values[1:] != values[:-1]))))
        return Tally(groups[first], values[first], np.diff(np.append(first, len(values))))
    # One sort of plain integers is several times faster than one by two keys, and of short ones twice as fast again.
    packed: npt.NDArray[Any] = groups << bits
    packed |= values
    if bits + count.bit_length() <= 32:
        packed = packed.astype(np.uint32)
    packed.sort()
    first = np.flatnonzero(np.concatenate(([True], packed[1:] != packed[:-1])))
    kept = packed[first].astype(np.int64)
    return Tally(kept >> bits, kept & ((1 << bits) - 1), np.diff(np.append(first, len(packed))))
