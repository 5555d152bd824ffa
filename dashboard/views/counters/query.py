"""The counters of each variant, its stalls, and all readings."""

from typing import Final

import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.data import metrics
from warpladder.data.names import Source

#: The most variants that a chart draws.
MOST_VARIANTS: Final = 24


def denied(data: RunData) -> tuple[str, ...]:
    """The reasons that the collector gave for reading no counters."""
    return tuple(data.diagnostics.loc[data.diagnostics["source"] == Source.COUNTERS, "text"])


def best(frame: pd.DataFrame) -> pd.DataFrame:
    """Of `by_config`, the row of each variant's fastest config."""
    fastest = frame.sort_values("time_ns", kind="stable").drop_duplicates("variant")
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
