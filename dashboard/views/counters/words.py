"""Sentences on what limits a variant, from its counters."""

from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.counters import BOUND_PERCENT, LATENCY_PERCENT
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.numbers import format_percent, significant
from warpladder.data import metrics

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


def verdict(row: dict[Any, Any]) -> str:
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


def short_verdict(row: dict[Any, Any]) -> str:
    """The same in two or three words, for the end of a bar: `memory-bound: DRAM`."""
    if not row["bound"]:
        return "not measured"
    about = reason_name(row["top_stall"]) if row["bound"] in ("latency", "neither") else row["part"]
    return f"{LABELS[row['bound']]}{f': {about}' if about else ''}"


def answer(frame: pd.DataFrame) -> str:
    """One or two sentences on what limits the fastest variant of `query.best`, and the others.

    The fastest is that of the samples. Where none is known, the profiled execution with the least time is named as such. Ceilings
    and specimens count only where there are no other variants.
    """
    others = frame[~frame["role"].isin(["ceiling", "specimen"])]
    shown = (others if len(others) else frame).sort_values(["timed_ns", "time_ns"], kind="stable")
    first, *rest = shown.to_dict("records")
    which = ", the fastest," if pd.notna(first["timed_ns"]) else ", with the least time under the profiler,"
    lead = f"{first['variant']}{which if rest else ''} {verdict(first)}."
    counts = {label: sum(row["bound"] == bound for row in rest) for bound, label in LABELS.items()}
    parts = [f"{count} {label}" for label, count in counts.items() if count]
    return f"{lead} The others: {', '.join(parts)}." if parts else lead
