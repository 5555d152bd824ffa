"""What a recorded run gives reason to distrust, found once all of it has been measured."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from warpladder.data.diagnostics import diagnostic_row

#: How far above the measured copy bandwidth a case's least bytes over its time may lie: a little from cold cache, where
#: reads are faster than copies; further where data can stay in a GPU's L2, or in a processor's caches.
CEILING_MARGIN: Final = {("gpu", "cold"): 1.1, ("gpu", "hot"): 4.0, ("host", "hot"): 20.0}
#: Work that grows by at least so much must take at least so much longer.
WORK_GROWS: Final = 8.0
TIME_GROWS: Final = 1.3

Rows = Sequence[Mapping[str, Any]]


def check(samples: pd.DataFrame, cases: Rows, variants: Rows, ceilings: Rows, l2_bytes: int | None) -> list[dict[str, Any]]:
    """Rows of `diagnostics` about the samples.

    Args:
        samples: table `samples`.
        cases, variants, ceilings: rows of the tables of that name.
        l2_bytes: size of the GPU's L2 cache; None where no GPU was measured.
    """
    if samples.empty:
        return []
    keys = ["workload", "variant", "config", "case", "scope", "cache"]
    alone = samples[(samples["twin"] == 0) & (samples["gpus"] <= 1)]  # a rank's share is not the case
    medians = alone.groupby(keys, as_index=False)["duration_ns"].median()
    medians = medians[medians["scope"].isin(["device", "operation"])]
    medians = medians.merge(pd.DataFrame(cases), on=["workload", "case"])
    medians = medians.merge(pd.DataFrame(variants)[["workload", "variant", "kind", "role"]], on=["workload", "variant"])
    copies = {"device_copy": "gpu", "host_copy": "host"}
    memory = {copies[row["name"]]: row["value"] for row in ceilings if row["name"] in copies}
    medians["memory"] = ["host" if kind == "host" else "gpu" for kind in medians["kind"]]
    medians = medians[medians["memory"].isin(memory)]
    medians["copy"] = medians["memory"].map(memory)
    medians["most"] = medians["copy"] * [CEILING_MARGIN[key] for key in zip(medians["memory"], medians["cache"], strict=True)]
    return [*_above_ceiling(medians, l2_bytes or 0), *_not_growing(medians)]


def _above_ceiling(medians: pd.DataFrame, l2_bytes: int) -> Iterable[dict[str, Any]]:
    """Cells that would have to move their least bytes faster than memory was measured to.

    From cold cache too, what is written may stay in the L2 until the clock has stopped: half of the least bytes, where it holds them.
    """
    for row in medians.to_dict("records"):
        in_l2 = min(l2_bytes, row["min_bytes"] / 2) if row["memory"] == "gpu" else 0
        if (row["min_bytes"] - in_l2) / max(row["duration_ns"], 1) > row["most"]:
            rate = row["min_bytes"] / max(row["duration_ns"], 1)
            text = (
                f"{row['scope']} {row['cache']}: {rate:,.0f} GB/s, where memory was measured to copy {row['copy']:,.0f} GB/s: "
                "the work is not done, or not waited for"
            )
            yield diagnostic_row("warning", "above_ceiling", text, row)


def _not_growing(medians: pd.DataFrame) -> Iterable[dict[str, Any]]:
    """Variants whose time stays the same while their work grows: they do not do it, or it is not in what is timed.

    A small case may leave the device almost idle, so that more work fits beside it: what is added counts only where memory takes at
    least as long for it as the small case takes.
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
            yield diagnostic_row("warning", "not_growing", text, large)


def _axes_but_size(params: str) -> str:
    """The case's axes that do not say how large it is: those whose value is text."""
    return json.dumps({key: value for key, value in json.loads(params).items() if isinstance(value, str)})
