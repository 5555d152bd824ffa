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
#: The same against times by size, which say what caches do. Hot times differ more between buffers of the same sizes, and those of a
#: processor between one moment and another.
BY_SIZE_MARGIN: Final = {("gpu", "cold"): 1.1, ("gpu", "hot"): 1.25, ("host", "hot"): 4.0}
#: If the work grows by at least WORK_GROWS, the time must grow by at least TIME_GROWS.
WORK_GROWS: Final = 8.0
TIME_GROWS: Final = 1.3

RowDicts = Sequence[Mapping[str, Any]]


_Memories = Mapping[tuple[str, str], Memory]


def check(
    samples: pd.DataFrame, cases: RowDicts, variants: RowDicts, ceilings: RowDicts, l2_bytes: int | None
) -> list[dict[str, Any]]:
    """Rows of `diagnostics` about the samples.

    Args:
        samples: table `samples`.
        cases, variants, ceilings: rows of the tables of that name.
        l2_bytes: size of the GPU's L2 cache; None if no GPU was measured. It counts where no time by size was measured.
    """
    if samples.empty:
        return []
    keys = ["workload", "variant", "config", "case", "scope", "cache"]
    alone = samples[(samples["twin"] == 0) & (samples["gpus"] <= 1)]  # of several ranks, each has only a share of the case
    medians = alone.groupby(keys, as_index=False)["duration_ns"].median()
    medians = medians[medians["scope"].isin(["device", "operation"])]
    medians = medians.merge(pd.DataFrame(cases), on=["workload", "case"])
    medians = medians.merge(pd.DataFrame(variants)[["workload", "variant", "kind", "role"]], on=["workload", "variant"])
    memories = _memories(ceilings)
    medians["memory"] = [
        ("host" if kind == "host" else "gpu", cache) for kind, cache in zip(medians["kind"], medians["cache"], strict=True)
    ]
    medians = medians[medians["memory"].isin(list(memories))]
    if medians.empty:
        return []
    medians["margin"] = [_margin(memories, key) for key in medians["memory"]]
    return [*_above_ceiling(medians, memories, l2_bytes or 0), *_not_growing(medians, memories)]


def _memories(ceilings: RowDicts) -> _Memories:
    """The memories that were measured, by place and cache."""
    values = {row["name"]: row["value"] for row in ceilings}
    memories = {("gpu", cache): device_memory(values, cache) for cache in ("cold", "hot")} | {
        ("host", "hot"): host_memory(values)
    }
    return {key: memory for key, memory in memories.items() if memory.names}


def _margin(memories: _Memories, key: tuple[str, str]) -> float:
    return (BY_SIZE_MARGIN if memories[key].curves else CEILING_MARGIN)[key]


def _above_ceiling(medians: pd.DataFrame, memories: _Memories, l2_bytes: int) -> Iterable[dict[str, Any]]:
    """Find cells whose time is below the floor of memory by more than the margin.

    Outputs may still be in the L2 when the clock stops, even with a cold cache. Times by size tell what that saves. By rates, writes
    of the size of the L2 are not counted, but no more than half of min_bytes.
    """
    for row in medians.to_dict("records"):
        memory, (read, written) = memories[row["memory"]], reads_and_writes(row)
        in_l2 = min(l2_bytes, row["min_bytes"] / 2) if row["memory"][0] == "gpu" and not memory.curves else 0
        least_ns = memory.time_ns(read, written)
        if least_ns * (1 - in_l2 / max(row["min_bytes"], 1)) > row["margin"] * max(row["duration_ns"], 1):
            rate, least = row["min_bytes"] / max(row["duration_ns"], 1), row["min_bytes"] / least_ns
            l2 = f" with a {memory.cache} L2" if row["memory"][0] == "gpu" else ""
            such = f"so many bytes{l2}" if memory.curves else "such reads and writes"
            text = (
                f"{row['scope']} {row['cache']}: {rate:,.0f} GB/s, where memory was measured to move {least:,.0f} GB/s of {such}: "
                "the work is not done, or not waited for"
            )
            yield diagnostic_row("warning", Source.ABOVE_CEILING, text, row)


def _not_growing(medians: pd.DataFrame, memories: _Memories) -> Iterable[dict[str, Any]]:
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
        memory = memories[large["memory"]]
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
