"""The device work of one rank, and what each work waited for before it started. Works on arrays, without a loop over events."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from warpladder.dashboard.core.traces import ended_last
from warpladder.data.arrays import NONE, Bools, Int64s

#: A time before any other.
LONG_AGO: Final = np.iinfo(np.int64).min // 4
#: Device work that starts later than this after all that it is known to wait for has waited for something else, which ended at most as long
#: before, or at most this part of the time that it waited.
_UNEXPLAINED_NS: Final = 10_000
_UNEXPLAINED_PART: Final = 0.05
#: Profiles may round starts and durations to 1 us, so that work may seem to end as much later than work that waited for it starts.
_ROUNDING_NS: Final = 1_000
#: Nodes of one launch of a graph that overlap by more than this part of the shorter one are on branches that do not wait for each other.
_BRANCHES: Final = 0.5


@dataclass(frozen=True)
class RankWork:
    """Kernels, copies and sets of a rank, in the order of their starts. Times are ns on the job's clock.

    Attributes:
        start, end: times on the device. No end is before its start.
        stream: index into `streams`, which has the process, device and number of each.
        kind: index into `job_tables.WORK_KINDS`.
        name: index into `names`.
        match: the collective of the job that a communication kernel is a part of; `NONE` for other work.
        correlation: of its call, shared by all nodes of a graph.
        call: place in `api_calls` of the call that launched it, which all nodes of a graph share; `NONE` where it is not in the trace.
        thread: that launched it, counted from 0 over all processes; `NONE` where the launch is not in the trace.
        launched: end of the launch call, or the start of the work where that is earlier.
    """

    start: Int64s
    end: Int64s
    stream: Int64s
    streams: tuple[tuple[int, int, int], ...]
    kind: Int64s
    name: Int64s
    names: tuple[str, ...]
    match: Int64s
    correlation: Int64s
    call: Int64s
    thread: Int64s
    launched: Int64s

    def __len__(self) -> int:
        return len(self.start)

    def launches_of(self, rows: Int64s) -> Int64s:
        """When the works of a stream, in their order, had been launched at the latest: work is launched before what follows it."""
        return np.asarray(np.minimum.accumulate(self.launched[rows][::-1])[::-1])


@dataclass(frozen=True)
class Waits:
    """What each work waited for.

    Attributes:
        before: the work before it on its stream; `NONE` for the first, and for a branch of a graph. It may end after the work starts:
            by programmatic dependent launch, a kernel starts while the one before it ends, and then waits for that end.
        events: shape (works, most), works of other streams whose ends it waited for, the last one first; else `NONE`.
        inferred: the profile does not name these works.
        by_launch: nothing that it waited for came later than its launch.
        by_event: the same of the first of the events. Where neither is true, the work before it came last.
        ready: when the last of what it waited for had happened; the start of the work where nothing is known. It is after the start only
            where the work before it ended after the start.
    """

    before: Int64s
    events: Int64s
    inferred: Bools
    by_launch: Bools
    by_event: Bools
    ready: Int64s


def waits_of(work: RankWork, named: Int64s, told: Bools, behind_a_wait: Bools) -> Waits:
    """What each work waited for.

    Args:
        named: shape (works, any), the works whose ends it waited for, as the profile names them; `NONE` is no work.
        told: the profile tells what the work waited for, even if that is nothing in it.
        behind_a_wait: it was launched behind a call that lets a stream wait for an event, and the profile does not name the event.
    """
    before = _before(work)
    ready_stream = np.where(before == NONE, LONG_AGO, work.end[before])
    ready_launch = np.where(work.thread == NONE, LONG_AGO, work.launched)
    events = _before_start(work, named)
    guess = np.where(told, NONE, _of_another_stream(work, np.flatnonzero(behind_a_wait)))
    inferred = (guess != NONE) & (events[:, 0] == NONE)
    events[inferred, 0] = guess[inferred]
    event = events[:, 0]
    ready = np.maximum(ready_stream, ready_launch)
    ready = np.maximum(ready, np.where(event == NONE, LONG_AGO, np.minimum(work.end[event], work.start)))
    # Other work waited for what ended just before it, if nothing else explains when it started.
    latest = _ended_before(work)
    ended = np.minimum(work.end[latest], work.start)
    waited = work.start - ready
    soon = work.start - ended <= np.maximum(_UNEXPLAINED_NS, (_UNEXPLAINED_PART * waited).astype(np.int64))
    coincides = (latest != NONE) & (waited > _UNEXPLAINED_NS) & soon & ~told
    inferred = np.where(coincides, latest != before, inferred)
    events[coincides] = NONE
    event = events[:, 0] = np.where(coincides, np.where(latest == before, NONE, latest), event)
    ready = np.where(coincides, ended, ready)
    nothing = ready <= LONG_AGO
    ready_event = np.where(event == NONE, LONG_AGO, np.minimum(work.end[event], work.start))
    by_launch = ~nothing & (ready_launch > np.maximum(ready_stream, ready_event))
    by_event = ~nothing & ~by_launch & (ready_event > ready_stream)
    return Waits(before, events, inferred, by_launch, by_event, np.where(nothing, work.start, ready))


def _before(work: RankWork) -> Int64s:
    """For each work the one before it on its stream: of those that started before it, the one that ended last."""
    before = np.full(len(work), NONE)
    for stream in np.unique(work.stream):
        rows = np.flatnonzero(work.stream == stream)
        ends = work.end[rows]
        latest = np.maximum.accumulate(np.where(ends == np.maximum.accumulate(ends), np.arange(len(rows)), 0))
        # What lasts longer than the work itself was not waited for.
        chosen = np.where(ends[latest[:-1]] <= ends[1:], latest[:-1], np.arange(len(rows) - 1))
        before[rows[1:]] = np.where(ends[chosen] <= ends[1:], rows[chosen], NONE)
    overlap = work.end[before] - work.start
    shorter = np.minimum(work.end - work.start, work.end[before] - work.start[before])
    one_launch = (work.call != NONE) & (work.call[before] == work.call)
    return np.where(one_launch & (overlap > _BRANCHES * shorter), NONE, before)


def _before_start(work: RankWork, named: Int64s) -> Int64s:
    """The works that each work is known to have waited for, the last one first. What ended after its start was not waited for."""
    if not named.shape[1]:
        return np.full((len(work), 1), NONE)
    possible = (
        (named != NONE) & (work.end[named] <= work.start[:, None] + _ROUNDING_NS) & (work.start[named] < work.end[:, None])
    )
    possible &= named != np.arange(len(work))[:, None]
    ends = np.where(possible, work.end[named], LONG_AGO)
    order = np.argsort(-ends, axis=1, kind="stable")
    return np.take_along_axis(np.where(possible, named, NONE), order, axis=1)


def _ended_before(work: RankWork) -> Int64s:
    """For each work the work of the rank that ended last before it started; `NONE` without any."""
    latest = ended_last(work.end, work.start)
    rounded = ended_last(work.end, work.start + _ROUNDING_NS)
    latest = np.where(work.start - work.end[latest] > _UNEXPLAINED_NS, rounded, latest)
    return np.where((latest != NONE) & (work.start[latest] < work.start), latest, NONE)


def _of_another_stream(work: RankWork, rows: Int64s) -> Int64s:
    """For some works the work of another stream, launched before, that ended last before they started; `NONE` for others."""
    event = np.full(len(work), NONE)
    ended = np.full(len(rows), LONG_AGO)
    for stream in np.unique(work.stream) if len(rows) else ():
        others = np.flatnonzero(work.stream == stream)
        # Work of a stream ends in the order in which it is launched.
        ends, launches = np.maximum.accumulate(work.end[others]), work.launches_of(others)
        place = np.minimum(
            np.searchsorted(ends, work.start[rows], side="right"),
            np.searchsorted(launches, work.launched[rows], side="left"),
        )
        found = np.append(NONE, others)[place]
        better = (
            (work.stream[rows] != stream) & (found != NONE) & (work.end[found] > ended) & (work.end[found] <= work.start[rows])
        )
        better &= work.start[found] < work.start[rows]
        event[rows[better]], ended[better] = found[better], work.end[found[better]]
    return event
