"""Finds doubtful results of a recorded run, after all of it has been measured."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from warpladder.data.bandwidths import Memory, device_memory, host_memory, reads_and_writes
from warpladder.data.diagnostics import diagnostic_row
from warpladder.data.names import Source

#: How many times faster than its floor of memory a case may plausibly be. It is slightly above 1 for a cold cache, since two
#: measurements of the same device differ, and larger if data can stay in a cache of the GPU or the processor.
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
    memories = _memories(ceilings, l2_bytes)
    medians["memory"] = ["host" if kind == "host" else "gpu" for kind in medians["kind"]]
    medians = medians[medians["memory"].isin(memories)]
    if medians.empty:
        return []
    medians["margin"] = [CEILING_MARGIN[key] for key in zip(medians["memory"], medians["cache"], strict=True)]
    return [*_above_ceiling(medians, memories), *_not_growing(medians, memories)]


def _memories(ceilings: RowDicts, l2_bytes: int | None) -> dict[str, Memory]:
    """The memories that were measured."""
    values = {row["name"]: row["value"] for row in ceilings}
    memories = {"gpu": device_memory(values, l2_bytes), "host": host_memory(values)}
    return {place: memory for place, memory in memories.items() if memory.names}


def _above_ceiling(medians: pd.DataFrame, memories: Mapping[str, Memory]) -> Iterable[dict[str, Any]]:
    """Find cells whose time is below the floor of memory by more than the margin.

    Outputs may still be in the L2 when the clock stops, even with a cold cache. The floor does not count them, but for half of
    min_bytes, which the L2 does not take in no time either.
    """
    for row in medians.to_dict("records"):
        memory, moved = memories[row["memory"]].keeping_at_most(row["min_bytes"] / 2), reads_and_writes(row)
        if memory.time_ns(*moved) > row["margin"] * max(row["duration_ns"], 1):
            rate = row["min_bytes"] / max(row["duration_ns"], 1)
            least = row["min_bytes"] / memory.keeping_at_most(0).time_ns(*moved)
            text = (
                f"{row['scope']} {row['cache']}: {rate:,.0f} GB/s, where memory was measured to move {least:,.0f} GB/s of such "
                "reads and writes: the work is not done, or not waited for"
            )
            yield diagnostic_row("warning", Source.ABOVE_CEILING, text, row)


def _not_growing(medians: pd.DataFrame, memories: Mapping[str, Memory]) -> Iterable[dict[str, Any]]:
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
        memory = memories[large["memory"]].keeping_at_most(0)
        least_ns = [memory.time_ns(*reads_and_writes(each)) / large["margin"] for each in (small, large)]
        added_ns = least_ns[1] - least_ns[0]
        if work >= WORK_GROWS and duration < TIME_GROWS and added_ns >= small["duration_ns"]:
            text = (
                f"{large['scope']} {large['cache']}: {work:.3g} times the bytes of {small['case']} take {duration:.2g} times "
                "as long: the work is not done, or not waited for"
            )
            yield diagnostic_row("warning", Source.NOT_GROWING, text, large)


def _axes_but_size(params: str) -> str:
    """Return the case's axes other than sizes, i.e. those whose value is text, as JSON."""
    return json.dumps({key: value for key, value in json.loads(params).items() if isinstance(value, str)})
