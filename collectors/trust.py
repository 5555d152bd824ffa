"""What a recorded run gives reason to distrust, found once all of it has been measured."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from collectors.plan import Cell
from collectors.worker import diagnostic_row

#: How far above the measured copy bandwidth a case's least bytes over its time may lie: a little from cold cache, where
#: reads are faster than copies; further where data can stay in a GPU's L2, or in a processor's caches.
CEILING_MARGIN: Final = {("gpu", "cold"): 1.1, ("gpu", "hot"): 4.0, ("host", "hot"): 20.0}
#: Work that grows by at least so much must take at least so much longer.
WORK_GROWS: Final = 8.0
TIME_GROWS: Final = 1.3
#: Below this, launching and clocks hide what the work takes.
FLAT_BELOW_NS: Final = 3_000

Rows = Sequence[Mapping[str, Any]]


def check(samples: pd.DataFrame, cases: Rows, variants: Rows, ceilings: Rows) -> list[dict[str, Any]]:
    """Rows of `diagnostics` about the samples.

    Args:
        samples: table `samples`.
        cases, variants, ceilings: rows of the tables of that name.
    """
    if samples.empty:
        return []
    keys = ["workload", "variant", "config", "case", "scope", "cache"]
    alone = samples[(samples["twin"] == 0) & (samples["gpus"] <= 1)]  # a rank's share is not the case
    medians = alone.groupby(keys, as_index=False)["duration_ns"].median()
    medians = medians.merge(pd.DataFrame(cases), on=["workload", "case"])
    medians = medians.merge(pd.DataFrame(variants)[["workload", "variant", "kind", "role"]], on=["workload", "variant"])
    return [*_above_ceiling(medians, ceilings), *_not_growing(medians)]


def _above_ceiling(medians: pd.DataFrame, ceilings: Rows) -> Iterable[dict[str, Any]]:
    """Cells that would have to move their least bytes faster than memory was measured to."""
    copies = {"device_copy": "gpu", "host_copy": "host"}
    measured = {copies[row["name"]]: row["value"] for row in ceilings if row["name"] in copies}
    for row in medians[medians["scope"].isin(["device", "operation"])].to_dict("records"):
        where = "host" if row["kind"] == "host" else "gpu"
        rate = row["min_bytes"] / max(row["duration_ns"], 1)
        if where in measured and rate > CEILING_MARGIN[where, row["cache"]] * measured[where]:
            text = (
                f"{row['scope']} {row['cache']}: {rate:,.0f} GB/s, where memory was measured to copy {measured[where]:,.0f} GB/s: "
                "the work is not done, or not waited for"
            )
            yield diagnostic_row("warning", "above_ceiling", text, Cell.of(row))


def _not_growing(medians: pd.DataFrame) -> Iterable[dict[str, Any]]:
    """Variants whose time stays the same while their work grows: they do not do it, or it is not in what is timed."""
    timed = medians[medians["scope"].isin(["device", "operation"])].copy()
    timed["axes"] = [_axes_but_size(params) for params in timed["params"]]
    for _, group in timed.groupby(["workload", "variant", "config", "scope", "cache", "axes"]):
        by_work = group.sort_values("min_bytes").to_dict("records")
        small, large = by_work[0], by_work[-1]
        work, duration = large["min_bytes"] / small["min_bytes"], large["duration_ns"] / max(small["duration_ns"], 1)
        launch_bound = small["kind"] != "host" and large["duration_ns"] < FLAT_BELOW_NS
        if work >= WORK_GROWS and duration < TIME_GROWS and not launch_bound:
            text = (
                f"{large['scope']} {large['cache']}: {work:.3g} times the bytes of {small['case']} take {duration:.2g} times "
                "as long: the work is not done, or not waited for, or the small case leaves the device almost idle"
            )
            yield diagnostic_row("warning", "not_growing", text, Cell.of(large))


def _axes_but_size(params: str) -> str:
    """The case's axes that do not say how large it is: those whose value is text."""
    return json.dumps({key: value for key, value in json.loads(params).items() if isinstance(value, str)})
