"""The critical path of an iteration: the walk from its end to its start."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.critical_path.activities import HostParts, RankActivities
from warpladder.dashboard.core.critical_path.spans import Arrivals, Ranks, Span
from warpladder.dashboard.core.critical_path.waits import LONG_AGO
from warpladder.data.arrays import NONE

#: What a segment of the path is. The first ones are the kinds of `Work`, in their order.
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
