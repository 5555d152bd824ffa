"""Finds doubtful results of a recorded run, after all of it has been measured."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from warpladder.data.diagnostics import diagnostic_row
from warpladder.data.names import Ceiling, Source

#: Largest plausible ratio of a case's bandwidth (min_bytes over time) to the measured copy bandwidth. It is slightly above 1
#: for a cold cache, since reads are faster than copies, and larger if data can stay in a cache of the GPU or the processor.
CEILING_MARGIN: Final = {("gpu", "cold"): 1.1, ("gpu", "hot"): 4.0, ("host", "hot"): 20.0}
#: If the work grows by at least WORK_GROWS, the time must grow by at least TIME_GROWS.
WORK_GROWS: Final = 8.0
TIME_GROWS: Final = 1.3

RowDicts = Sequence[Mapping[str, Any]]


def check(
    samples: pd.DataFrame, cases: RowDicts, variants: RowDicts, ceilings: RowDicts, l2_bytes: int | None
) -> list[dict[str, Any]]:
    """Rows of `diagnostics` about the samples.

    Args:
        samples: table `samples`.
        cases, variants, ceilings: rows of the tables of that name.
        l2_bytes: size of the GPU's L2 cache; None if no GPU was measured.
    """
    if samples.empty:
        return []
    keys = ["workload", "variant", "config", "case", "scope", "cache"]
    alone = samples[(samples["twin"] == 0) & (samples["gpus"] <= 1)]  # of several ranks, each has only a share of the case
    medians = alone.groupby(keys, as_index=False)["duration_ns"].median()
    medians = medians[medians["scope"].isin(["device", "operation"])]
    medians = medians.merge(pd.DataFrame(cases), on=["workload", "case"])
    medians = medians.merge(pd.DataFrame(variants)[["workload", "variant", "kind", "role"]], on=["workload", "variant"])
    copies = {Ceiling.DEVICE_COPY: "gpu", Ceiling.HOST_COPY: "host"}
    memory = {copies[row["name"]]: row["value"] for row in ceilings if row["name"] in copies}
    medians["memory"] = ["host" if kind == "host" else "gpu" for kind in medians["kind"]]
    medians = medians[medians["memory"].isin(memory)]
    if medians.empty:
        return []
    medians["copy"] = medians["memory"].map(memory)
    medians["most"] = medians["copy"] * [CEILING_MARGIN[key] for key in zip(medians["memory"], medians["cache"], strict=True)]
    return [*_above_ceiling(medians, l2_bytes or 0), *_not_growing(medians)]


def _above_ceiling(medians: pd.DataFrame, l2_bytes: int) -> Iterable[dict[str, Any]]:
    """Find cells whose min_bytes over time exceeds the measured bandwidth of memory.

    Outputs may still be in the L2 when the clock stops, even with a cold cache. So half of min_bytes, or the size of the L2 if
    that is less, is not counted.
    """
    for row in medians.to_dict("records"):
        in_l2 = min(l2_bytes, row["min_bytes"] / 2) if row["memory"] == "gpu" else 0
        if (row["min_bytes"] - in_l2) / max(row["duration_ns"], 1) > row["most"]:
            rate = row["min_bytes"] / max(row["duration_ns"], 1)
            text = (
                f"{row['scope']} {row['cache']}: {rate:,.0f} GB/s, where memory was measured to copy {row['copy']:,.0f} GB/s: "
                "the work is not done, or not waited for"
            )
            yield diagnostic_row("warning", Source.ABOVE_CEILING, text, row)


def _not_growing(medians: pd.DataFrame) -> Iterable[dict[str, Any]]:
    """Find variants whose time does not grow with their work: the work is not done, or not timed.

    A small case may leave most of the device idle, so that more work takes no more time. So a pair of cases counts only if
    memory needs at least the small case's time for the added bytes.
    """
    timed = medians.copy()
    timed["axes"] = [_axes_but_size(params) for params in timed["params"]]
    for _, group in timed.groupby(["workload", "variant", "config", "scope", "cache", "axes"]):
        by_work = group.sort_values("min_bytes").to_dict("records")
        small, large = by_work[0], by_work[-1]
        work, duration = large["min_bytes"] / small["min_bytes"], large["duration_ns"] / max(small["duration_ns"], 1)
        added_ns = (large["min_bytes"] - small["min_bytes"]) / large["most"]
        if work >= WORK_GROWS and duration < TIME_GROWS and added_ns >= small["duration_ns"]:
            text = (
                f"{large['scope']} {large['cache']}: {work:.3g} times the bytes of {small['case']} take {duration:.2g} times "
                "as long: the work is not done, or not waited for"
            )
            yield diagnostic_row("warning", Source.NOT_GROWING, text, large)


def _axes_but_size(params: str) -> str:
    """Return the case's axes other than sizes, i.e. those whose value is text, as JSON."""
    return json.dumps({key: value for key, value in json.loads(params).items() if isinstance(value, str)})
