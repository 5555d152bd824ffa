"""Collectives of a job in its timeline: the kernels of several ranks that are parts of one collective."""

import numpy as np
import pandas as pd

from warpladder.dashboard.core.numbers import format_duration
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import within
from warpladder.data.arrays import NONE, Int64s, numbered

_COLUMNS = ("rank", "device", "stream", "match", "arrival_ns", "finish_ns")


def matches(data: RunData) -> Int64s:
    """The collective of the job that each kernel of the shown ranks is a part of; `NONE` for any other kernel.

    A kernel is found by its rank, GPU and stream, and by its times on the job's clock, which are within those of its collective.

    Returns:
        An array of the rows of `kernels`; without any where the trace is not of ranks of a job, or has no kernel.
    """
    traces = data.traces
    if not traces.of_ranks or "kernels" not in traces.tables:
        return np.empty(0, dtype=np.int64)
    known = (
        data.job.frame("collectives", *_COLUMNS)
        .dropna(subset="match")
        .fillna({"device": NONE, "stream": NONE})
        .astype(np.int64)
    )
    own = [traces.numbers("kernels", name) for name in ("process", "device", "stream")]
    rank, start, end = own[0], *(traces.numbers("kernels", name) for name in ("start_ns", "end_ns"))
    lane, _ = numbered(*(np.append(each, known[name]) for each, name in zip(own, ("rank", "device", "stream"), strict=True)))
    spans = lane[len(rank) :], *(known[name].to_numpy() for name in ("arrival_ns", "finish_ns"))
    place = within(lane[: len(rank)], start, end, *spans)
    return np.append(known["match"].to_numpy(), NONE)[place]


def parts(data: RunData, match: int) -> pd.DataFrame:
    """The parts of a collective on all ranks of the job, the last to arrive first.

    Returns:
        `rank`, `after_ns` (from the arrival of the first rank to its own), `wait_ns`, `transfer_ns`, `collective`, `group` and `bytes`.
    """
    wanted = ("rank", "match", "arrival_ns", "wait_ns", "transfer_ns", "collective", "group", "bytes")
    every = data.job.frame("collectives", *wanted)
    found = every[(every["match"] == match).fillna(False).astype(bool)]
    found = found.assign(after_ns=found["arrival_ns"] - found["arrival_ns"].min())
    ordered = found.sort_values(["after_ns", "rank"], ascending=[False, True], ignore_index=True)
    return ordered[["rank", "after_ns", "wait_ns", "transfer_ns", "collective", "group", "bytes"]]


def sentence(found: pd.DataFrame, rank: int) -> str:
    """Which rank came last to the collective of `parts`, and how long a rank waited for it."""
    last, first = found.iloc[0], found.iloc[-1]
    own = found[found["rank"] == rank].iloc[0]
    return (
        f"{last['collective']} of {len(found)} ranks of group {last['group']}: rank {last['rank']} came last, "
        f"{format_duration(last['after_ns'])} after rank {first['rank']}. Rank {rank} waited {format_duration(own['wait_ns'])}, "
        f"then transferred for {format_duration(own['transfer_ns'])}."
    )
