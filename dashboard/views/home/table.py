"""The table of the page: a row for each workload and precision, with the words of its figures."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from warpladder.dashboard.compare.overview import Line
from warpladder.dashboard.compare.within_run import word
from warpladder.dashboard.core.numbers import (
    NOTHING,
    format_duration,
    format_half_width,
    format_percent,
    format_ratio,
)

#: After a rung that is tied with the next one.
TIED: Final = " ≈"
#: Columns whose figures sort a row, and which show words instead.
_WORDED: Final = ("floor", "time", "speedup", "peer")


def frame_of(lines: Sequence[Line], runs: Sequence[str]) -> pd.DataFrame:
    """The figures by which the table is sorted.

    Args:
        runs: name and date of the run of each line. `1 GPU` stands before them where the run has times of several too.

    Returns:
        `workload`, `precision`, `sizes` (percent of floor at each size), `floor` (percent), `best`, `time` (nanoseconds),
        `speedup`, `peer` (its time over the best rung's), `checks` (number of reasons to distrust) and `run`.
    """
    return pd.DataFrame(
        {
            "workload": line.summary.workload,
            "precision": word(line.summary.precision),
            "sizes": list(line.by_size),
            "floor": line.summary.percent_of_floor.value,
            "best": f"{line.summary.best or NOTHING}{TIED if line.summary.tied_with else ''}",
            "time": line.summary.best_ns.value,
            "speedup": line.summary.speedup.value,
            "peer": line.summary.over_peer.value,
            "checks": f"⚠ {len(line.badges)}" if line.badges else "",
            "run": " · ".join(filter(None, (line.summary.on, run))),
        }
        for line, run in zip(lines, runs, strict=True)
    )


def styled(frame: pd.DataFrame, lines: Sequence[Line]) -> Styler:
    """The frame with words in place of figures: units, intervals and names."""
    distinct = {name: _distinct(frame[name].astype(float)) for name in _WORDED}
    # One formatter a column, because a subset for each cell takes a second in pandas.
    words: Any = zip(*map(_words, lines), strict=True)
    texts: dict[Any, Any] = {
        name: dict(zip(distinct[name], of_name, strict=True)).__getitem__ for name, of_name in zip(_WORDED, words, strict=True)
    }
    return frame.assign(**distinct).style.format(texts, na_rep=NOTHING)


def _distinct(values: "pd.Series[float]") -> "pd.Series[float]":
    """The figures with equal ones moved apart by the least that a float can, so that each has its own words."""
    numbers = values.to_numpy(copy=True)
    for place, value in enumerate(numbers):
        while (numbers[:place] == value).any():
            value = np.nextafter(value, np.inf)
        numbers[place] = value
    return pd.Series(numbers, values.index)


def _words(line: Line) -> tuple[str, ...]:
    """The words of each column of `_WORDED`."""
    summary, time = line.summary, line.summary.best_ns
    is_baseline = bool(summary.best) and summary.best == summary.baseline
    peer = "tied with" if summary.over_peer_verdict == "tied" else format_ratio(summary.over_peer.value)
    speedup = "tied" if summary.speedup_verdict == "tied" else format_ratio(summary.speedup.value)
    return (
        format_percent(summary.percent_of_floor.value),
        f"{format_duration(time.value)} {format_half_width(time.value, time.low, time.high)}" if time.known else NOTHING,
        "itself" if is_baseline else speedup,
        f"{peer} {summary.peer}" if summary.peer else NOTHING,
    )
