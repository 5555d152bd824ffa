"""The agreement of CUDA events, CUPTI, Nsight Systems and Nsight Compute on the device times of the same cells."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.intervals import grouped_median_intervals
from warpladder.dashboard.core.run_data import VERDICT_CELL, RunData
from warpladder.data import metrics
from warpladder.data.names import Source
from warpladder.data.statistics import AGREE_ABOVE_NS, AGREE_WITHIN

COLLECTORS: Final = ("cuda_events", "cupti", "nsight_systems", "nsight_compute")
_KEY: Final = [*VERDICT_CELL, "cache", "gpus"]
_NS: Final = {"ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}
_TIMES: Final = ["n", "median_ns", "low_ns", "high_ns"]


def device_times(data: RunData) -> pd.DataFrame:
    """The device time of every cell of a run.

    It is the median of the cell's samples, or the time of the one execution that Nsight Compute counted with flushed caches.

    Returns:
        One row for each (workload, variant, config, case, cache, gpus): `n`, `median_ns`, `low_ns` and `high_ns` (the ends of
        the median's interval; both equal the median where n is 1), and `source_sha256` of the variant's source as measured.
    """
    groups = data.grouped
    intervals = grouped_median_intervals(groups.durations, groups.keys["n"].to_numpy())
    timed = groups.keys.assign(**{f"{end}_ns": figures for end, figures in intervals.items()})
    timed = timed[(timed["scope"] == "device") & (timed["twin"] == 0) & (timed["gpus"] > 0)]
    counted = data.counters[data.counters["metric"] == metrics.TIME]
    value = counted["value"].astype(float) * counted["unit"].map(_NS).astype(float)
    sums = (
        value.groupby([counted[name] for name in VERDICT_CELL], sort=False).sum(min_count=1).rename("median_ns").reset_index()
    )
    sums = sums.assign(cache="cold", gpus=1, n=1, low_ns=sums["median_ns"], high_ns=sums["median_ns"])
    columns = [*_KEY, *_TIMES]
    found = pd.concat([frame[columns] for frame in (timed, sums) if len(frame)] or [timed[columns]], ignore_index=True)
    sources = data.variants[["workload", "variant", "source_sha256"]]
    return found.merge(sources, on=["workload", "variant"], how="left")


def within_the_run(data: RunData) -> list[str]:
    """The recording's comparison of its tracer with CUDA events around the same executions; empty for other runs."""
    found = data.diagnostics
    return [f"Within this run: {text}." for text in found.loc[found["source"] == Source.AGREEMENT, "text"]]


def compare(mine: pd.DataFrame, others: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The cells that this run and other runs have in common, with the same source.

    Args:
        mine: `device_times` of this run.
        others: `device_times` of other runs on the same device, by collector.

    Returns:
        One row for each cell and other collector: the key, `collector`, `n`, `median_ns` of this run, `other_n`, `other_ns`,
        and

        - `ratio`: the other median over this run's;
        - `low`, `high`: the interval of the ratio, from the relative half-widths of both medians, added as independent errors;
        - `difference_ns`: the other median less this run's;
        - `above`: this run's median is above `AGREE_ABOVE_NS`;
        - `agrees`: the ratio is within `AGREE_WITHIN` of 1.
    """
    pairs = [
        mine.merge(frame, on=[*_KEY, "source_sha256"], suffixes=("", "_other")).assign(collector=collector)
        for collector, frame in others.items()
    ]
    columns = [*_KEY, "collector", "n", "median_ns", "other_n", "other_ns"]
    if not pairs:
        return pd.DataFrame(columns=[*columns, "ratio", "low", "high", "difference_ns", "above", "agrees"])
    frame = pd.concat(pairs, ignore_index=True).rename(columns={"n_other": "other_n", "median_ns_other": "other_ns"})
    ratio = frame["other_ns"] / frame["median_ns"]
    down = np.hypot(_log(frame["other_ns"], frame["low_ns_other"]), _log(frame["high_ns"], frame["median_ns"]))
    up = np.hypot(_log(frame["high_ns_other"], frame["other_ns"]), _log(frame["median_ns"], frame["low_ns"]))
    return frame[columns].assign(
        ratio=ratio,
        low=ratio * np.exp(-down),
        high=ratio * np.exp(up),
        difference_ns=frame["other_ns"] - frame["median_ns"],
        above=frame["median_ns"] > AGREE_ABOVE_NS,
        # Rounded, because 1.02 - 1 is more than 0.02 in binary.
        agrees=(ratio - 1).abs().round(9) <= AGREE_WITHIN,
    )


def share_a_cell(mine: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether two frames of `device_times` have a cell in common with the same source."""
    return not mine.merge(other, on=[*_KEY, "source_sha256"]).empty


def left_out(mine: pd.DataFrame, others: Mapping[str, pd.DataFrame]) -> int:
    """The number of cells that both runs have, but whose source changed in between."""
    pairs = (mine.merge(frame, on=_KEY, suffixes=("", "_other")) for frame in others.values())
    return sum(int((pair["source_sha256"] != pair["source_sha256_other"]).sum()) for pair in pairs)


def by_collector(frame: pd.DataFrame) -> pd.DataFrame:
    """`compare` by the other collector.

    Returns:
        One row for each collector: `collector`, and

        - `above`, `agree`: number of cells above `AGREE_ABOVE_NS`, and of those that agree;
        - `below`, `less`: number of other cells, and of those in which the collector's median is less than this run's;
        - `difference_ns`: median absolute difference in the cells of `below`; null where there are none.
    """
    rows: list[dict[str, Any]] = []
    for collector, cells in frame.groupby("collector", sort=False):
        long, short = cells[cells["above"]], cells[~cells["above"]]
        rows.append(
            {
                "collector": collector,
                "above": len(long),
                "agree": int(long["agrees"].sum()),
                "below": len(short),
                "less": int((short["difference_ns"] < 0).sum()),
                "difference_ns": float(short["difference_ns"].abs().median()),
            }
        )
    return pd.DataFrame(rows, columns=["collector", "above", "agree", "below", "less", "difference_ns"])


def _log(over: "pd.Series[float]", under: "pd.Series[float]") -> npt.NDArray[np.float64]:
    """The distance of two times: the logarithm of their ratio, or 0 where a time is 0."""
    known = (over > 0) & (under > 0)
    return np.log((over / under).where(known, 1.0).to_numpy(dtype=float))
