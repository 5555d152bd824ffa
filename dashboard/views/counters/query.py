"""The limit of each variant from its counters, as rows and as sentences."""

from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.cells import cells
from warpladder.dashboard.core.counters import BOUND_PERCENT, LATENCY_PERCENT, by_config
from warpladder.dashboard.core.numbers import format_percent, significant
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.trusted import is_trusted
from warpladder.data import metrics
from warpladder.data.names import Source

LABELS: Final = {"memory": "memory-bound", "compute": "compute-bound", "latency": "latency-bound", "neither": "short of a roof"}
THRESHOLDS: Final = (
    f"Bound by a roof: at {BOUND_PERCENT:.0f} % of it or more; latency-bound: below {LATENCY_PERCENT:.0f} % of compute and of "
    "memory."
)


def how_counted(data: RunData, drawn: int = 0, every: int = 0) -> str:
    """One or two sentences on how the counters of a run were taken.

    Args:
        drawn: the number of variants in the chart.
        every: the number of variants with counters.
    """
    less = f" The {drawn} variants with the most time are drawn, out of {every}." if drawn < every else ""
    version = str(data.info["collector_version"])
    tool = f"Nsight Compute {version}".rstrip()
    if data.info["kind"] == "import":
        return f"launches of the report {data.info['source']}, profiled by {tool}.{less}"
    return (
        f"counters of one execution of each variant by {tool}, which flushes the caches before each pass and does not "
        f"control the clocks.{less}"
    )


def where_timed(frame: pd.DataFrame, run: str) -> str:
    """A sentence on where the times of `query.best` are from; empty where it has none.

    Args:
        run: the run that has them; empty for the run of the counters.
    """
    return f" The fastest and its config by the samples of {run or 'this run'}." if frame["timed_ns"].notna().any() else ""


def reason_name(reason: str) -> str:
    """`long scoreboard`."""
    return reason.replace("_", " ")


def limit_clause(row: dict[Any, Any]) -> str:
    """The end of a sentence on what limits a row of `core.counters.by_config`. The sentence begins with the variant's name."""
    if not row["bound"]:
        return "was not measured against the roofs of the device"
    waits = ""
    if row["top_stall"]:
        waits = f"; {format_percent(row['top_stall_percent'])} of its time a warp {metrics.STALLS[row['top_stall']]}"
    if row["bound"] == "latency":
        few = f"; its {significant(row['waves'])} waves do not fill the device" if row["waves"] < 1 else ""
        both = (
            f"{format_percent(row['compute_percent'])} of compute and {format_percent(row['memory_percent'])} of memory "
            "throughput"
        )
        return f"reaches {both}: latency-bound{few}{waits}"
    percent = row["part_percent"] if row["part"] else row["compute_percent"]
    roof = f"{format_percent(percent)} of {row['part'] or 'compute'} throughput"
    return f"runs at {roof}: {LABELS[row['bound']]}" if row["bound"] != "neither" else f"runs at {roof}, short of a roof{waits}"


def limit_words(row: dict[Any, Any]) -> str:
    """The same in two or three words, for the end of a bar: `memory-bound: DRAM`."""
    if not row["bound"]:
        return "not measured"
    about = reason_name(row["top_stall"]) if row["bound"] in ("latency", "neither") else row["part"]
    return f"{LABELS[row['bound']]}{f': {about}' if about else ''}"


def answer(frame: pd.DataFrame) -> str:
    """One or two sentences on what limits the fastest variant of `query.best`, and the others.

    The samples decide which variant is fastest. Without samples, the sentence names the profiled execution with the least time
    as such. Ceilings and specimens count only where there are no other variants.
    """
    others = frame[~frame["role"].isin(["ceiling", "specimen"])]
    shown = (others if len(others) else frame).sort_values(["timed_ns", "time_ns"], kind="stable")
    first, *rest = shown.to_dict("records")
    role = ", the fastest," if pd.notna(first["timed_ns"]) else ", with the least time under the profiler,"
    lead = f"{first['variant']}{role if rest else ''} {limit_clause(first)}."
    counts = {label: sum(row["bound"] == bound for row in rest) for bound, label in LABELS.items()}
    parts = [f"{count} {label}" for label, count in counts.items() if count]
    return f"{lead} The others: {', '.join(parts)}." if parts else lead


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
    frame = chosen[["variant", "config", "median_ns"]].merge(sources, on="variant")
    return frame.rename(columns={"median_ns": "timed_ns"})


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
    metric_of = rows["metric"].map(metrics.BY_NAME)
    rows["group"] = [metric.group if isinstance(metric, metrics.Metric) else "" for metric in metric_of]
    rows["meaning"] = [metric.meaning if isinstance(metric, metrics.Metric) else "" for metric in metric_of]
    columns = ["variant", "config", "kernel", "launch_index", "group", "metric", "meaning", "value", "unit"]
    return rows[columns].reset_index(drop=True)
