"""The counters of each variant with its time by samples, its stalls, and all readings."""

from typing import Final

import pandas as pd

from warpladder.dashboard.core.cells import cells
from warpladder.dashboard.core.counters import by_config
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.trusted import is_trusted
from warpladder.data import metrics
from warpladder.data.names import Source

#: The most variants that a chart draws.
MOST_VARIANTS: Final = 24


def denied(data: RunData) -> tuple[str, ...]:
    """The reasons that the collector gave for reading no counters."""
    return tuple(data.diagnostics.loc[data.diagnostics["source"] == Source.COUNTERS, "text"])


def times(data: RunData, workload: str, case: str) -> pd.DataFrame:
    """The median times of a case by samples, of the cells that may be called best, in the first timing of the workload.

    Returns:
        The columns `variant`, `config`, `source_sha256` and `timed_ns`. No row where the run has no device time of the case.
    """
    every = cells(data)
    every = every[is_trusted(every) & (every["status"] == "ok") & (every["scope"] == "device") & (every["cache"] == "cold")]
    chosen = every[(every["workload"] == workload) & (every["case"] == case)].drop_duplicates(["variant", "config"])
    sources = data.variants.loc[data.variants["workload"] == workload, ["variant", "source_sha256"]]
    found = chosen[["variant", "config", "median_ns"]].merge(sources, on="variant")
    return found.rename(columns={"median_ns": "timed_ns"})


def best(data: RunData, workload: str, case: str, timed: pd.DataFrame) -> pd.DataFrame:
    """Of `counters.by_config`, the row of each variant's fastest config, with the column `timed_ns`.

    A time counts where the variant has the same source in both runs. Configs without one are compared by the time of their profiled
    execution.

    Args:
        timed: `times` of this run or of another one.
    """
    sources = data.variants.loc[data.variants["workload"] == workload, ["variant", "source_sha256"]]
    same = timed.merge(sources, on=["variant", "source_sha256"])[["variant", "config", "timed_ns"]]
    frame = by_config(data, workload, case).merge(same, on=["variant", "config"], how="left")
    fastest = frame.sort_values(["timed_ns", "time_ns"], kind="stable").drop_duplicates("variant")
    return fastest.sort_index().reset_index(drop=True)


def most_time(frame: pd.DataFrame, most: int = MOST_VARIANTS) -> pd.DataFrame:
    """The rows of `best` with the most time, in their order, because an imported program can have hundreds of kernels."""
    order = frame["time_ns"].fillna(0.0).sort_values(ascending=False, kind="stable").index[:most]
    return frame.loc[sorted(order)].reset_index(drop=True)


def stalls(frame: pd.DataFrame) -> pd.DataFrame:
    """The cycles between two instructions of a warp, by reason.

    Returns:
        One row for each variant of `best` and reason: `variant`, `config`, `reason`, `meaning`, `cycles`, and their `percent`.
        The reason with the most cycles of any variant is first. Reasons without waiting are last.
    """
    columns = {f"stall_{reason}": reason for reason in metrics.STALLS}
    long = frame.melt(["variant", "config"], list(columns), "reason", "cycles").dropna(subset="cycles")
    long["reason"] = long["reason"].map(columns)
    long["meaning"] = long["reason"].map(metrics.STALLS)
    total = long.groupby(["variant", "config"])["cycles"].transform("sum")
    long["percent"] = 100 * long["cycles"] / total.where(total > 0)
    most = long.groupby("reason")["percent"].max().sort_values(ascending=False)
    order = [reason for reason in most.index if reason not in metrics.ISSUING] + list(metrics.ISSUING)
    place = {reason: number for number, reason in enumerate(order)}
    variants = {pair: number for number, pair in enumerate(zip(frame["variant"], frame["config"], strict=True))}
    long["place"] = [variants[pair] for pair in zip(long["variant"], long["config"], strict=True)]
    long["rank"] = long["reason"].map(place)
    return long.sort_values(["place", "rank"]).drop(columns=["place", "rank"]).reset_index(drop=True)


def every_metric(data: RunData, workload: str, case: str) -> pd.DataFrame:
    """The rows of table `counters` of a case, with the meaning of each metric.

    The columns are `variant`, `config`, `kernel`, `launch_index`, `group`, `metric`, `meaning`, `value` and `unit`.
    """
    rows = data.counters[(data.counters["workload"] == workload) & (data.counters["case"] == case)].copy()
    known = rows["metric"].map(metrics.BY_NAME)
    rows["group"] = [metric.group if isinstance(metric, metrics.Metric) else "" for metric in known]
    rows["meaning"] = [metric.meaning if isinstance(metric, metrics.Metric) else "" for metric in known]
    columns = ["variant", "config", "kernel", "launch_index", "group", "metric", "meaning", "value", "unit"]
    return rows[columns].reset_index(drop=True)
