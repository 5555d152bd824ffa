"""The limit of each variant from its counters, as rows and as sentences."""

import re
from typing import Final

import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.why import Explanation
from warpladder.data import metrics
from warpladder.data.names import Source

#: The collector that reads counters.
COUNTER: Final = "nsight_compute"


def how_counted(data: RunData, drawn: int = 0, every: int = 0) -> str:
    """One or two sentences on how the counters of a run were taken.

    Args:
        drawn: the number of variants in the chart.
        every: the number of variants with counters.
    """
    less = f" The {drawn} variants with the most time are drawn, out of {every}." if drawn < every else ""
    tool = f"Nsight Compute {_version(data)}".rstrip()
    if data.info["kind"] == "import":
        return f"launches of the report {data.info['source']}, profiled by {tool}.{less}"
    return (
        f"counters of one execution of each variant by {tool}, which flushes the caches before each pass and does not "
        f"control the clocks.{less}"
    )


_BY: Final = re.compile(rf"{COUNTER} ([\d.]+);")


def _version(data: RunData) -> str:
    """The version of Nsight Compute: the collector's, or where the counters are of a further pass, as its diagnostic has it."""
    if data.info["collector"] == COUNTER:
        return str(data.info["collector_version"])
    texts = data.diagnostics.loc[data.diagnostics["source"] == Source.TRACING, "text"]
    return next((match[1] for text in texts if (match := _BY.search(text))), "")


def where_timed(frame: pd.DataFrame, run: str) -> str:
    """A sentence on where the times of `query.best` are from; empty where it has none.

    Args:
        run: the run that has them; empty for the run of the counters.
    """
    return f" The fastest and its config by the samples of {run or 'this run'}." if frame["timed_ns"].notna().any() else ""


#: The most variants that a chart draws.
MOST_VARIANTS: Final = 24


def denied(data: RunData) -> tuple[str, ...]:
    """The reasons that the collector gave for reading no counters."""
    return tuple(data.diagnostics.loc[data.diagnostics["source"] == Source.COUNTERS, "text"])


def most_time(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of `best` with the most time, in their order, because an imported program can have hundreds of kernels."""
    order = frame["time_ns"].fillna(0.0).sort_values(ascending=False, kind="stable").index[:MOST_VARIANTS]
    return frame.loc[sorted(order)].reset_index(drop=True)


def work_table(explanation: Explanation, *, changed: bool) -> pd.DataFrame:
    """The work of both variants of an explanation.

    Args:
        changed: only what differs.

    Returns:
        The columns `group`, `name`, `unit`, `a`, `b` and `ratio` (B over A).
    """
    chosen = [each for each in (*explanation.times, *explanation.work) if each.changed or not changed]
    rows = [(each.group, each.name, each.unit, each.a, each.b, each.ratio) for each in chosen]
    return pd.DataFrame(rows, columns=["group", "name", "unit", "a", "b", "ratio"])


def findings(data: RunData, workload: str, case: str, frame: pd.DataFrame) -> pd.DataFrame:
    """What the rules of Nsight Compute find about the rows of `best`.

    Returns:
        The columns `variant`, `config`, `launch_index`, `section`, `severity`, `title`, `text` and `speedup_percent`, without findings
        that have no words.
    """
    rules = data.code.rules
    rules = rules[(rules["workload"] == workload) & (rules["case"] == case) & (rules["text"] != "")]
    columns = ["variant", "config", "launch_index", "section", "severity", "title", "text", "speedup_percent"]
    return frame[["variant", "config"]].merge(rules, on=["variant", "config"])[columns].reset_index(drop=True)


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
    variants = list(zip(frame["variant"], frame["config"], strict=True))
    long["place"] = [variants.index(pair) for pair in zip(long["variant"], long["config"], strict=True)]
    long["rank"] = long["reason"].map(order.index)
    return long.sort_values(["place", "rank"]).drop(columns=["place", "rank"]).reset_index(drop=True)


def every_metric(data: RunData, workload: str, case: str) -> pd.DataFrame:
    """The rows of table `counters` of a case, with the meaning of each metric.

    The columns are `variant`, `config`, `kernel`, `launch_index`, `group`, `metric`, `meaning`, `value` and `unit`.
    """
    rows = data.counters[(data.counters["workload"] == workload) & (data.counters["case"] == case)].copy()
    for column in ("group", "meaning"):
        rows[column] = [getattr(metrics.BY_NAME.get(metric), column, "") for metric in rows["metric"]]
    columns = ["variant", "config", "kernel", "launch_index", "group", "metric", "meaning", "value", "unit"]
    return rows[columns].reset_index(drop=True)
