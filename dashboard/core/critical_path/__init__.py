"""The critical path of an iteration of a job, and what a faster kernel would give.

The critical path is a chain of activities, each of which waited for the one before it. It covers the iteration from its start to its end, so
that nothing else can shorten the iteration. The notion is that of Yang and Miller, Critical Path Analysis for the Execution of Parallel
and Distributed Programs (1988), https://doi.org/10.1109/DCS.1988.12538. As with Böhme and others, Scalable Critical-Path Based
Performance Analysis (2012), https://doi.org/10.1109/IPDPS.2012.120, the path is found backwards, from the activity that ends last: where one
waited for another rank, the path goes on there. HolisticTraceAnalysis has the same edges between host and device, within one rank.

An iteration lasts from the end of the last device work of the iteration before to the end of its own. Backwards from there,

- device work waited for the work before it on its stream, for its launch, or for an event of another stream, whichever came last. A
  kernel that starts before the end of the one before it, as programmatic dependent launch permits, waited for that end: it is on the path
  from there on. Nodes of one launch of a graph that overlap by more than half of the shorter one are branches, which do not wait for each
  other. Where the profile names the event, work waited for what had been launched on the event's stream when the event was recorded. Else
  a launch behind a call of `cudaStreamWaitEvent` waited for the work of another stream that was launched before and ended last before it
  started, which is inferred. It is inferred, too, that other work that started more than 10 us after all that it is known to wait for
  waited for other work of the rank that ended within 10 us before, or within a twentieth of the time that it waited;
- a matched collective waited for the rank that arrived last, if that can be told from the path's own rank by the uncertainty of their
  clocks. From there to its end, it transfers;
- a launch waited for the calls of its thread before it. A call that returns when device work has ended (a synchronisation, or a
  copy of pageable memory) waited for its own copy, for the stream or event that the profile names, or else for the work of the rank that
  ended last before the call did, which is inferred where the rank has several streams;
- a thread without a call for more than 50 us waited for another launching thread of its rank, if that one ended a call meanwhile, and makes
  nine of ten of its calls in such times. This is inferred.

A segment is of one of these kinds:

- `compute`, `memory`: a kernel; a copy or set;
- `communication`: the transfer of a collective; of one that was not matched, all of its kernel;
- `graph`: a CUDA graph that was traced as a whole, so that what ran in it is not known;
- `launch`: from the end of a launch call to the start of its work;
- `host`: calls, operators and what else a thread did;
- `idle`: from the end of work to the start of the work that waited for it, and what has no known cause.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.critical_path.replay import Contradiction, Gains, replay
from warpladder.dashboard.core.critical_path.spans import Arrivals, Ranks, Span, spans
from warpladder.dashboard.core.critical_path.walk import KINDS, walk
from warpladder.dashboard.core.traces import Job
from warpladder.data.arrays import NONE

__all__ = ["KINDS", "CriticalPath", "critical_path", "iterations", "typical"]

#: By which part of its time a kernel is made faster.
PART: Final = 0.1
#: Ranks are replayed while their profiles have no more events in sum; to open and replay a million takes about 2 s.
_MOST_EVENTS: Final = 3_000_000
#: The same for ranks that only make the bound tighter.
_FURTHER_EVENTS: Final = 1_000_000
#: The kinds of device work.
_WORK: Final = ("compute", "communication", "memory", "graph")


@dataclass(frozen=True)
class CriticalPath:
    """The critical path of an iteration.

    Attributes:
        span: the iteration.
        segments: `rank`, `kind`, `name`, `start_ns`, `end_ns` on the job's clock, by time, without gap or overlap. `overlap_ns`: how long
            a kernel ran before `start_ns`, while the work that it waited for still ran. `inferred`: the profile does not name it as what the
            next segment waited for.
        kernels: a row for each kernel, kind of copy and set on the path, the longest first: `name`, `kind`, `time_ns` on the path,
            `percent` of the iteration, `executions` and `ranks` on the path, `inferred` of the executions, `tenth_ns`, a tenth of the time and of the overlap, which is
            the gain if the path stayed where it is, and `gain_ns`, the gain of the replay if it took 10 % less time on all ranks.
        ranks: all ranks whose times can be compared.
        replayed: the ranks that were replayed. Without any, `gain_ns` is null. If they are not all ranks, it is an upper bound of how much
            earlier the iteration ends. Else it is how much shorter the iteration is, if the iteration before has the faster kernel too.
        aligned: the clocks of the ranks are aligned; else the path stays in one rank, and its communication holds waits.
        without_clock: ranks that no path can run through.
        has_launches: the profile of the rank at which the path ends has calls that launched work.
    """

    span: Span
    segments: pd.DataFrame
    kernels: pd.DataFrame
    ranks: tuple[int, ...]
    replayed: tuple[int, ...]
    aligned: bool
    without_clock: tuple[int, ...]
    has_launches: bool


def iterations(job: Job) -> pd.DataFrame:
    """The iterations with device work: `iteration`, null for the whole of profiles without iterations, `start_ns`, `end_ns`, `duration_ns`."""
    every = [(each.iteration, each.start_ns, each.end_ns, each.duration_ns) for each in spans(Ranks(job))]
    return pd.DataFrame(every, columns=["iteration", "start_ns", "end_ns", "duration_ns"]).astype({"iteration": "Int64"})


def typical(frame: pd.DataFrame) -> int | None:
    """The iteration with the median duration, the lower one of two; None for profiles without iterations.

    Args:
        frame: of `iterations`; not empty.
    """
    ordered = frame.sort_values(["duration_ns", "iteration"])["iteration"]
    middle = ordered.iloc[(len(ordered) - 1) // 2]
    return None if pd.isna(middle) else int(middle)


def critical_path(job: Job, iteration: int | None) -> CriticalPath:
    """The critical path of an iteration. Opens the ranks that it runs through, and those that are replayed.

    Args:
        iteration: its number; None where the profiles have no iterations.

    Raises:
        ValueError: no rank has device work of such an iteration.
        StoreError: the profile of a rank cannot be read.
    """
    ranks = Ranks(job)
    every = spans(ranks)
    place = next((place for place, each in enumerate(every) if each.iteration == iteration), None)
    if place is None:
        raise ValueError(f"no device work in iteration {iteration}")
    span = every[place]
    arrivals = Arrivals.of(ranks, span)
    segments = walk(ranks, span, arrivals)
    kernels = _kernels(segments, span)
    chosen = _chosen(job, ranks, span, segments, arrivals)
    before = every[place - 1] if place and every[place - 1].end_ns == span.start_ns else None
    try:
        kernels["gain_ns"] = _gains(ranks, chosen, before, span, kernels)
    except Contradiction:
        chosen, kernels["gain_ns"] = [], np.nan
    has_launches = bool((ranks.of(span.rank).work.thread != NONE).any())
    return CriticalPath(span, segments, kernels, ranks.ranks, tuple(chosen), ranks.aligned, ranks.without_clock, has_launches)


def _gains(ranks: Ranks, chosen: list[int], before: Span | None, span: Span, kernels: pd.DataFrame) -> Gains:
    """The gain of the iteration for each kernel, NaN where no rank is chosen."""
    names = kernels["name"].tolist()
    if not chosen:
        return np.full(len(names), np.nan)
    if before and set(chosen) == set(ranks.ranks):
        earlier, end = replay(ranks, chosen, [before, span], names, PART)
        return np.asarray(np.maximum(end - earlier, 0))
    return np.asarray(np.minimum(replay(ranks, chosen, [span], names, PART)[0], kernels["tenth_ns"]))


def _kernels(segments: pd.DataFrame, span: Span) -> pd.DataFrame:
    work = segments[segments["kind"].isin(_WORK)].assign(time_ns=segments["end_ns"] - segments["start_ns"])
    work["tenth_ns"] = PART * (work["time_ns"] + work["overlap_ns"])
    groups = work.groupby("name", sort=False)
    frame = groups.agg(
        kind=("kind", "first"),
        time_ns=("time_ns", "sum"),
        executions=("rank", "size"),
        ranks=("rank", "nunique"),
        inferred=("inferred", "sum"),
        tenth_ns=("tenth_ns", "sum"),
    )
    frame = frame.reset_index().sort_values(["time_ns", "name"], ascending=[False, True], ignore_index=True)
    frame.insert(3, "percent", 100 * frame["time_ns"] / span.duration_ns)
    return frame


def _chosen(job: Job, ranks: Ranks, span: Span, segments: pd.DataFrame, arrivals: Arrivals) -> list[int]:
    """The ranks to replay; none where too many are needed.

    Those of the path come first, then others so that of each collective one is among them that came last, then those that wait the least.
    """
    if not ranks.aligned:
        return [span.rank]
    chosen = arrivals.covering(segments["rank"].unique().tolist())
    events = job.frame("ranks", "rank", "events").set_index("rank")["events"]
    if events[chosen].sum() > _MOST_EVENTS:
        return []
    waits = arrivals.rows.groupby("rank")["wait_ns"].sum().reindex(ranks.ranks, fill_value=0).sort_values(kind="stable")
    for rank in waits.index.difference(chosen, sort=False).tolist():
        if events[[*chosen, rank]].sum() > _FURTHER_EVENTS:
            break
        chosen.append(rank)
    return chosen
