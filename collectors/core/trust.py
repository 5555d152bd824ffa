"""Finds doubtful results of a recorded run, after all of it has been measured. `warpladder.data.limits` has the limits."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.collectors.core.cells import RowDicts
from warpladder.data import limits
from warpladder.data.arrays import Bools
from warpladder.data.limits import Memories, arithmetic_ns, reads_and_writes
from warpladder.data.names import Source, diagnostic_row

#: If the work grows by at least WORK_GROWS, the time must grow by at least TIME_GROWS.
WORK_GROWS: Final = 8.0
TIME_GROWS: Final = 1.3

_CELL: Final = ["workload", "variant", "config", "case"]


def check(
    samples: pd.DataFrame, cases: RowDicts, variants: RowDicts, ceilings: RowDicts, l2_bytes: int | None
) -> list[dict[str, Any]]:
    """Rows of `diagnostics` about the samples. `l2_bytes`: size of the GPU's L2 cache; None if no GPU was measured."""
    if samples.empty:
        return []
    slowed = [*_slowed(samples)]
    alone = samples[(samples["twin"] == 0) & (samples["gpus"] <= 1)]  # of several ranks, each has only a share of the case
    medians = alone.groupby([*_CELL, "gpus", "scope", "cache"], as_index=False)["duration_ns"].median()
    medians = medians[medians["scope"].isin(["device", "operation", "end_to_end"])].rename(columns={"duration_ns": "median_ns"})
    medians = medians.merge(pd.DataFrame(cases), on=["workload", "case"])
    medians = medians.merge(pd.DataFrame(variants)[["workload", "variant", "kind", "precision"]], on=["workload", "variant"])
    if medians.empty:
        return slowed
    values = {row["name"]: row["value"] for row in ceilings}
    return [
        *slowed,
        *_above_ceiling(medians, values, l2_bytes or 0),
        *_not_growing(medians[medians["scope"] != "end_to_end"], limits.memories(values)),
        *_repeats_skipped(medians[(medians["scope"] == "device") & (medians["kind"] != "host")], values, l2_bytes or 0),
    ]


def _slowed(samples: pd.DataFrame) -> Iterable[dict[str, Any]]:
    """Find cells of whose samples at least half stayed throttled: the median is then one of them, or next to one.

    A slowdown makes a time doubtful. The power limit does not: the cell reaches it wherever it runs.
    """
    own = samples[(samples["twin"] == 0) & samples["throttle_reasons"].notna()]
    if own.empty:
        return
    reasons = own["throttle_reasons"].astype("int64")
    slowed = (reasons & limits.SLOWDOWN) > 0
    throttled = pd.DataFrame({"slowed": slowed, "limited": ((reasons & limits.POWER_LIMIT) > 0) & ~slowed, "size": 1})
    timing = [*_CELL, "gpus", "scope", "cache"]
    counts = pd.concat([own[timing], throttled], axis=1).groupby(timing, as_index=False)[["slowed", "limited", "size"]].sum()
    for row in counts[2 * counts["slowed"] >= counts["size"]].to_dict("records"):
        text = f"{row['slowed']} of {row['size']} samples stayed throttled, so the time is that of a slowed clock"
        yield _finding(Source.THROTTLING, text, row)
    for row in counts[(2 * counts["slowed"] < counts["size"]) & (2 * counts["limited"] >= counts["size"])].to_dict("records"):
        text = (
            f"at the power limit in {row['limited']} of {row['size']} samples, so the time is that of the clock at this limit"
        )
        yield {**_finding(Source.THROTTLING, text, row), "severity": "info"}


def _above_ceiling(medians: pd.DataFrame, values: Mapping[str, float], l2_bytes: int) -> Iterable[dict[str, Any]]:
    """Find cells whose time is below a floor by more than its margin; see `limits.beyond`."""
    beyond = limits.beyond(medians, values, l2_bytes)
    memories = limits.memories(values)
    for row in _rows(medians, beyond["memory"]):
        memory = memories["host" if row["kind"] == "host" else "gpu", row["cache"]]
        rate = row["min_bytes"] / max(row["median_ns"], 1)
        least = row["min_bytes"] / memory.time_ns(*reads_and_writes(row), row["passes"])
        l2 = f" with a {memory.cache} L2" if row["kind"] != "host" else ""
        such = f"so many bytes{l2}" if memory.curves else "such reads and writes"
        text = (
            f"{rate:,.0f} GB/s, where memory was measured to move {least:,.0f} GB/s of {such}: "
            "the work is not done, or not waited for"
        )
        yield _finding(Source.ABOVE_CEILING, text, row)
    least_ns, names = arithmetic_ns(medians, values)
    cells = medians.assign(least_ns=least_ns, ceiling=names)
    for row in _rows(cells, beyond["arithmetic"]):
        rate, least = (row["flops"] / max(time, 1) / 1000 for time in (row["median_ns"], row["least_ns"]))
        text = (
            f"{_rate(rate)} TFLOP/s, where {row['ceiling']} was measured to reach {_rate(least)}: the work is not done, not waited for, "
            f"or not done in {row['precision']}, or the case counts more operations than it needs"
        )
        yield _finding(Source.ABOVE_CEILING, text, row)
    least_ns, names = limits.copies_ns(medians, values)
    cells = medians.assign(least_ns=least_ns, ceiling=names)
    for row in _rows(cells, beyond["copies"]):
        text = (
            f"{row['median_ns']:,.0f} ns, where the copies alone take {row['least_ns']:,.0f} ns at the rate of {row['ceiling']}"
        )
        yield _finding(Source.ABOVE_CEILING, text, row)


def _not_growing(medians: pd.DataFrame, memories: Memories) -> Iterable[dict[str, Any]]:
    """Find variants whose time does not grow with their work: the work is not done, or not timed.

    A small case may leave most of the device idle, so that more work takes no more time. So a pair of cases counts only if
    memory needs at least the small case's time for the added bytes.
    """
    timed = medians.assign(axes=[_axes_but_size(params) for params in medians["params"]])
    timed = timed[timed["min_bytes"] > 0]  # empty arrays are no work that could grow
    for _, group in timed.groupby(["workload", "variant", "config", "scope", "cache", "axes"]):
        if len(group) == 1:
            continue
        by_work = group.sort_values("min_bytes").to_dict("records")
        small, large = by_work[0], by_work[-1]
        key = "host" if large["kind"] == "host" else "gpu", large["cache"]
        if key not in memories:
            continue
        work, duration = large["min_bytes"] / small["min_bytes"], large["median_ns"] / max(small["median_ns"], 1)
        least_ns = [
            memories[key].time_ns(*reads_and_writes(each), each["passes"]) / limits.margin(memories, key)
            for each in (small, large)
        ]
        added_ns = least_ns[1] - least_ns[0]
        if work >= WORK_GROWS and duration < TIME_GROWS and added_ns >= small["median_ns"]:
            text = (
                f"{_rate(work)} times the bytes of {small['case']} take {duration:.2g} times as long: "
                "the work is not done, or not waited for"
            )
            yield _finding(Source.NOT_GROWING, text, large)


def _repeats_skipped(device: pd.DataFrame, values: Mapping[str, float], l2_bytes: int) -> Iterable[dict[str, Any]]:
    """Find kernels that are faster in a hot batch than a hot L2 can explain: executions after the first do less work.

    They find their output already right, or their input in a state that they left. This check needs times of memory by size.
    """
    if device.empty:
        return
    gain = limits.hot_gain(values)
    cells = device[device["cache"] == "cold"].merge(
        device.loc[device["cache"] == "hot", [*_CELL, "gpus", "median_ns"]], on=[*_CELL, "gpus"], suffixes=("", "_hot")
    )
    cells["most"] = limits.most_from_l2(cells["min_bytes"] / cells["passes"], l2_bytes, gain)
    skipped = cells["median_ns"] - limits.COLD_START_NS > cells["most"] * np.maximum(cells["median_ns_hot"], 1)
    for row in _rows(cells, skipped.to_numpy()):
        text = (
            f"{row['median_ns_hot']:,.0f} ns in a batch, and {row['median_ns']:,.0f} ns with a cold L2, where the L2 explains "
            f"{row['most']:.3g} times: executions after the first of a batch do less work"
        )
        yield _finding(Source.REPEATS_SKIPPED, text, {**row, "cache": "hot"})


def _rows(cells: pd.DataFrame, chosen: Bools) -> list[dict[Any, Any]]:
    """The chosen rows. To ask pandas for none takes it a millisecond for each column."""
    return cells[chosen].to_dict("records") if chosen.any() else []


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _finding(source: str, text: str, row: Mapping[Any, Any]) -> dict[str, Any]:
    return diagnostic_row("warning", source, f"{row['scope']} {row['cache']}: {text}", row)


def _axes_but_size(params: str) -> str:
    """Return the case's axes other than sizes, i.e. those whose value is text, as JSON."""
    return json.dumps({key: value for key, value in json.loads(params).items() if isinstance(value, str)})
