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

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.critical_path.activities import HostParts, RankActivities
from warpladder.dashboard.core.critical_path.gains import gains_ns
from warpladder.dashboard.core.critical_path.spans import Arrivals, Ranks, Span, spans
from warpladder.dashboard.core.critical_path.waits import LONG_AGO
from warpladder.dashboard.core.replay import Contradiction
from warpladder.dashboard.core.traces import Job
from warpladder.data.arrays import NONE, Floats

#: What a segment of the path is. The first ones are the kinds of `RankWork`, in their order.
KINDS: Final = ("compute", "communication", "memory", "graph", "launch", "host", "idle")
COLUMNS: Final = ("rank", "kind", "name", "start_ns", "end_ns", "overlap_ns", "inferred")


@dataclass
class _Path:
    """Segments from the end of the span on, each of which ends where the one before it starts.

    Attributes:
        now: start of the last segment.
        begin: of the span.
        rows: rank, kind, name, start, end, overlap, inferred.
        inferred: that the last segment waited for the next one, which is not in the profile.
    """

    now: int
    begin: int
    rows: list[tuple[int, str, str, int, int, int, bool]] = field(default_factory=list)
    inferred: bool = False

    def back_to(self, time: int, rank: int, kind: str, name: str, overlap: int = 0) -> None:
        """Add a segment that starts at a time; none where the path is there already.

        Args:
            overlap: how long it ran before that time, while what it waited for still ran.
        """
        overlap = overlap if time > self.begin else 0
        time = max(time, self.begin)
        if time < self.now:
            merges = kind in ("host", "idle") and not self.inferred
            if merges and self.rows and self.rows[-1][:3] == (rank, kind, name):
                self.rows[-1] = (rank, kind, name, time, *self.rows[-1][4:])
            else:
                self.rows.append((rank, kind, name, time, self.now, overlap, self.inferred))
            self.now, self.inferred = time, False


def walk(ranks: Ranks, span: Span, arrivals: Arrivals) -> pd.DataFrame:
    """The critical path of an iteration; `critical_path` has the definition.

    Returns:
        Its segments by time, `COLUMNS`. They cover the span without gap or overlap.
    """
    path = _Path(span.end_ns, span.start_ns)
    ends = ranks.of(span.rank).work.end
    last = np.where(ends <= span.end_ns, ends, LONG_AGO)
    rank, work = span.rank, int(np.argmax(last)) if (last > LONG_AGO).any() else NONE
    seen: set[tuple[int, int]] = set()
    while work != NONE and path.now > path.begin and (rank, work) not in seen:
        seen.add((rank, work))
        rank, work = _through_work(path, ranks, arrivals, rank, work)
        work = _before_work(path, ranks.of(rank), work)
    path.back_to(path.begin, rank, "idle", "")
    rows = pd.DataFrame(path.rows[::-1], columns=list(COLUMNS))
    return rows.astype({"rank": "int64", "start_ns": "int64", "end_ns": "int64", "overlap_ns": "int64", "inferred": bool})


def _through_work(path: _Path, ranks: Ranks, arrivals: Arrivals, rank: int, work: int) -> tuple[int, int]:
    """From the end of device work to its start, or to the end of the work before it if that is later; of a collective, on the rank that
    came last.

    Returns:
        The rank and its work at whose start the path is.
    """
    done = ranks.of(rank).work
    kind, name, match = int(done.kind[work]), done.names[done.name[work]], int(done.match[work])
    last = arrivals.rank.get(match, rank)
    if last != rank and arrivals.time[match] - int(done.start[work]) > float(ranks.doubt_ns(rank, last)):
        of_last = ranks.of(last).work
        there = np.flatnonzero(of_last.match == match)
        if len(there):
            begin, overlap = _begin(ranks.of(last), int(there[0]))
            path.back_to(begin, rank, "communication", name, overlap)
            return last, int(there[0])
    begin, overlap = _begin(ranks.of(rank), work)
    path.back_to(begin, rank, KINDS[kind], name, overlap)
    return rank, work


def _begin(activities: RankActivities, work: int) -> tuple[int, int]:
    """When work had nothing more to wait for, and how long it had run by then."""
    start = int(activities.work.start[work])
    begin = max(start, int(activities.waits.ready[work]))
    return begin, begin - start


def _before_work(path: _Path, activities: RankActivities, work: int) -> int:
    """From the start of device work to the end of the work that it waited for, through the host where it was launched late.

    Returns:
        The work; `NONE` where the path has arrived at the start of the span, or nothing is known.
    """
    waits, done = activities.waits, activities.work
    if waits.by_launch[work]:
        path.back_to(int(waits.ready[work]), activities.rank, "launch", done.names[done.name[work]])
        return _through_host(path, activities, int(done.thread[work]))
    path.back_to(int(waits.ready[work]), activities.rank, "idle", "")
    path.inferred = bool(waits.by_event[work] and waits.inferred[work])
    return int(waits.events[work, 0] if waits.by_event[work] else waits.before[work])


def _through_host(path: _Path, activities: RankActivities, thread: int) -> int:
    """From a moment of a thread to the end of the work that it last waited for, and from thread to thread.

    Returns:
        See `_before_work`.
    """
    while path.now > path.begin:
        resumptions = activities.resumptions[thread]
        place = int(np.searchsorted(resumptions.time, path.now, side="right")) - 1
        ready = int(resumptions.ready[place]) if place != NONE else path.begin
        _host(path, activities.rank, activities.host_parts(thread), max(ready, path.begin))
        if place == NONE:
            break
        path.inferred = bool(resumptions.inferred[place])
        if resumptions.work[place] != NONE:
            return int(resumptions.work[place])
        thread = int(resumptions.thread[place])
    return NONE


def _host(path: _Path, rank: int, parts: HostParts, begin: int) -> None:
    """Add what a thread did from a time to now."""
    place = int(np.searchsorted(parts.start, path.now, side="left")) - 1
    while path.now > begin:
        start = int(parts.start[place]) if place >= 0 else begin
        path.back_to(max(start, begin), rank, "host", parts.names[parts.name[place]] if place >= 0 else "")
        place -= 1


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


def _gains(ranks: Ranks, chosen: list[int], before: Span | None, span: Span, kernels: pd.DataFrame) -> Floats:
    """The gain of the iteration for each kernel, NaN where no rank is chosen."""
    names = kernels["name"].tolist()
    if not chosen:
        return np.full(len(names), np.nan)
    if before and set(chosen) == set(ranks.ranks):
        earlier, end = gains_ns(ranks, chosen, [before, span], names, PART)
        return np.asarray(np.maximum(end - earlier, 0))
    return np.asarray(np.minimum(gains_ns(ranks, chosen, [span], names, PART)[0], kernels["tenth_ns"]))


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
