"""Sums and order statistics of millions of durations by group, as `nsys stats` defines and prints them."""

from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dashboard.queries.trace_data import Int64s

_TENTH: Final = Decimal("0.1")


def describe(groups: Int64s, values: Int64s, count: int) -> pd.DataFrame:
    """Statistics of the values of each group that has any.

    Args:
        groups: number of each value's group, from 0 to `count` - 1.
        values: whole numbers.

    Returns:
        Indexed by the group's number: `total`, `n`, `mean`, `median`, `min`, `max`, `stddev` (of a sample, n - 1; 0 for one value).
    """
    n = np.bincount(groups, minlength=count)
    kept = np.flatnonzero(n)
    if not len(kept):
        return pd.DataFrame(columns=["total", "n", "mean", "median", "min", "max", "stddev"])
    ordered, n = _by_group(groups, values, count), n[kept]
    first = np.cumsum(n) - n
    total = np.add.reduceat(ordered, first)
    mean = total / n
    squares = ordered - np.repeat(mean, n)
    squares *= squares
    middle = first + n // 2
    below = np.where(n % 2, middle, middle - 1)
    return pd.DataFrame(
        {
            "total": total, "n": n, "mean": mean, "median": (ordered[below] + ordered[middle]) / 2, "min": ordered[first],
            "max": ordered[first + n - 1], "stddev": np.sqrt(np.add.reduceat(squares, first) / np.maximum(n - 1, 1)),
        }, index=kept,
    )  # fmt: skip


def rounded(values: "pd.Series[float]") -> npt.NDArray[np.float64]:
    """One decimal, half away from zero on the shortest decimal that names the number, as SQLite's `round` does it for `nsys stats`."""
    found = np.asarray(values, dtype=float)
    tenths = found * 10
    result = np.asarray(np.floor(tenths + 0.5) / 10)
    # Only near a tie does it matter how the number is written.
    for place in np.flatnonzero(np.abs(tenths - np.floor(tenths) - 0.5) < 1e-6 * np.maximum(1, np.abs(tenths))):
        result[place] = float(Decimal(repr(float(found[place]))).quantize(_TENTH, ROUND_HALF_UP))
    return result


def times(names: "pd.Categorical[Any]", durations: Int64s, count: str, name: str) -> pd.DataFrame:
    """A summary of durations by name, as `nsys stats` prints it, the longest total first.

    Args:
        count: heading of the number of rows.
        name: heading of the names.
    """
    found = describe(names.codes.astype(np.int64), durations, len(names.categories))
    frame = pd.DataFrame(
        {
            "Time (%)": rounded(100.0 * found["total"] / max(found["total"].sum(), 1)), "Total Time (ns)": found["total"],
            count: found["n"], "Avg (ns)": rounded(found["mean"]), "Med (ns)": rounded(found["median"]), "Min (ns)": found["min"],
            "Max (ns)": found["max"], "StdDev (ns)": rounded(found["stddev"]), name: np.asarray(names.categories)[found.index],
        }
    )  # fmt: skip
    return frame.sort_values(["Total Time (ns)", count, name], ascending=[False, True, True], ignore_index=True)


def _by_group(groups: Int64s, values: Int64s, count: int) -> Int64s:
    """Values sorted by group, then by value."""
    low = int(values.min())
    bits = (int(values.max()) - low).bit_length()
    if bits + count.bit_length() > 62:
        return values[np.lexsort((values, groups))]
    # One sort of plain integers is several times faster than one by two keys.
    packed = groups.astype(np.int64) << bits
    packed |= values - low
    packed.sort()
    packed &= (1 << bits) - 1
    packed += low
    return packed
