"""Times that a reader should doubt although nothing about the cell is distrusted: they scatter too much, or fall as the size grows."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.axes import charted_cases, timings
from warpladder.dashboard.core.cells import cells
from warpladder.dashboard.core.intervals import MIN_SAMPLES
from warpladder.dashboard.core.run_data import RunData
from warpladder.data.names import NOT_DONE

#: Half of a 95 % interval over the median, from which on the median says little.
WIDE: Final = 0.5
#: A time is falling where the interval of a smaller size lies above that of the larger one by more than this factor. Whole waves of
#: blocks and tiles that fit explain smaller differences.
FALLS: Final = 1.25
WIDE_INTERVAL: Final = "wide interval"
FALLING_TIME: Final = "falling time"
_CELL: Final = ["workload", "variant", "role", "config", "case"]
COLUMNS: Final = (*_CELL, "what", "text")


def unsteady(data: RunData) -> pd.DataFrame:
    """The doubtful times of rungs, peers and hosts, in the first timing of each workload.

    Cells whose work was not done are left out, since a finding is about them.

    Returns:
        One row for each doubt: `workload`, `variant`, `role`, `config`, `case`, `what` (`WIDE_INTERVAL` or `FALLING_TIME`), `text`.
        The frame is the caller's own copy.
    """
    return _unsteady(data).copy()


@lru_cache(maxsize=4)
def _unsteady(data: RunData) -> pd.DataFrame:
    every = cells(data)
    every = every[(every["n"] >= MIN_SAMPLES) & (every["status"] == "ok") & ~every["role"].isin(["ceiling", "specimen"])]
    every = every[~every["flags"].map(lambda flags: bool(NOT_DONE.intersection(flags))).astype(bool)]
    every = every.astype({"min_bytes": float, "flops": float})
    found: list[dict[str, Any]] = []
    for workload in data.workloads:
        for timing in timings(data, workload)[:1]:
            chosen = (every["workload"] == workload) & (every["scope"] == timing.scope) & (every["cache"] == timing.cache)
            charted = charted_cases(data, workload)[["case", "series"]]
            rows = every[chosen]
            found += _wide(rows)
            for _, line in rows.merge(charted, on="case").groupby(["variant", "config", "gpus", "series"], sort=False):
                found += _falling(line.sort_values("size_rank", kind="stable").to_dict("records"))
    return pd.DataFrame(found, columns=list(COLUMNS))


def _wide(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    half = (rows["high_ns"] - rows["low_ns"]) / 2 / rows["median_ns"]
    for row, share in zip(rows[half > WIDE].to_dict("records"), half[half > WIDE], strict=True):
        yield {
            **{name: row[name] for name in _CELL},
            "what": WIDE_INTERVAL,
            "text": f"its median is known to ±{100 * share:.0f} %",
        }


def _falling(line: list[dict[Any, Any]]) -> Iterator[dict[str, Any]]:
    """The cells of one variant and config, by size, that take less time than one of a smaller size, although the work grows."""
    for place, row in enumerate(line):
        slower = max(
            (
                before
                for before in line[:place]
                if before["size_rank"] < row["size_rank"]
                and row["high_ns"] * FALLS < before["low_ns"]
                and (row["min_bytes"] > before["min_bytes"] or row["flops"] > before["flops"])
            ),
            key=lambda before: float(before["low_ns"]),
            default=None,
        )
        if slower is not None:
            factor = slower["median_ns"] / row["median_ns"]
            text = f"{slower['case']} takes {factor:.2g} times as long, although it is smaller"
            yield {**{name: row[name] for name in _CELL}, "what": FALLING_TIME, "text": text}
