"""What the device and the host of one rank did, and what each of it waited for. Works on arrays, without a loop over events."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.traces import NONE, Int64s, Traces, calls_of, within
from warpladder.data import store

Bools = npt.NDArray[np.bool_]

COMPUTE, COMMUNICATION, MEMORY = range(3)
#: Device work that starts later than this after all that it is known to wait for has waited for something else.
_UNEXPLAINED_NS: Final = 10_000
#: Profiles may round starts and durations to 1 us, so that work may seem to end as much later than work that waited for it starts.
_ROUNDING_NS: Final = 1_000
#: Nodes of one launch of a graph that overlap by more than this part of the shorter one are on branches that do not wait for each other.
_BRANCHES: Final = 0.5
#: A thread without a call for longer may have waited for another thread.
_QUIET_NS: Final = 50_000
_LONG_AGO: Final = np.iinfo(np.int64).min // 4
#: In the names of calls that let a stream wait for an event.
_WAIT_EVENT: Final = "StreamWaitEvent"
#: Calls that return when device work has ended. Those that copy from or to pageable memory are found by their times.
_BLOCKING: Final = r"Synchronize|^(?:cuda|hip|cu)Memcpy(?!.*Async)|^(?:cuda|hip)Free$"


@dataclass(frozen=True)
class Work:
    """Kernels, copies and sets of a rank, in the order of their starts. Times are ns on the job's clock.

    Attributes:
        start, end: times on the device. No end is before its start.
        stream: numbers the streams of all devices.
        kind: `COMPUTE`, `COMMUNICATION` or `MEMORY`.
        name: index into `names`.
        match: the collective of the job that a communication kernel is a part of; `NONE` for other work.
        call: place in `api_calls` of the call that launched it, which all nodes of a graph share; `NONE` where it is not in the trace.
        thread: that launched it; `NONE` where the launch is not in the trace.
        launched: end of the launch call, or the start of the work where that is earlier.
    """

    start: Int64s
    end: Int64s
    stream: Int64s
    kind: Int64s
    name: Int64s
    names: tuple[str, ...]
    match: Int64s
    call: Int64s
    thread: Int64s
    launched: Int64s

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Waits:
    """What each work waited for.

    Attributes:
        before: the work before it on its stream; `NONE` for the first, and for a branch of a graph. It may end after the work starts:
            by programmatic dependent launch, a kernel starts while the one before it ends, and then waits for that end.
        event: work of another stream whose end it waited for, as far as that can be told; else `NONE`.
        by_launch: nothing that it waited for came later than its launch.
        by_event: the same of the event. Where neither is true, the work before it came last.
        ready: when the last of what it waited for had happened; the start of the work where nothing is known. It is after the start only
            where the work before it ended after the start.
    """

    before: Int64s
    event: Int64s
    by_launch: Bools
    by_event: Bools
    ready: Int64s


@dataclass(frozen=True)
class Resumptions:
    """The moments at which a thread went on after it had waited for the device or for another thread, by time.

    Attributes:
        time: from which on the thread runs: the end of a call, or the start of the first call after a quiet time.
        begin: when it began to wait: the start of the call, or the end of the last call before the quiet time.
        ready: when what it waited for had happened, from `begin` to `time`.
        work: the device work that it waited for; `NONE` where it waited for a thread.
        thread: the thread that it waited for; `NONE` where it waited for device work.
    """

    time: Int64s
    begin: Int64s
    ready: Int64s
    work: Int64s
    thread: Int64s

    def __len__(self) -> int:
        return len(self.time)

    def before(self, time: int) -> int:
        """The place of the last resumption at a time or before it; `NONE` if there is none."""
        return int(np.searchsorted(self.time, time, side="right")) - 1


@dataclass(frozen=True)
class HostParts:
    """What a thread did, in parts without gaps. A part goes from its start to the start of the next one.

    Attributes:
        name: index into `names`, which has calls, operators, and an empty name for the rest.
    """

    start: Int64s
    name: Int64s
    names: tuple[str, ...]


class Collectives(NamedTuple):
    """The collectives of a rank: times on its own clock, stream, and the collective of the job or `NONE`."""

    start: Int64s
    end: Int64s
    stream: Int64s
    match: Int64s


class RankActivities:
    """The device work of a rank, and its host where it is asked for. The arrays are shared: never change one."""

    def __init__(self, rank: int, run: store.Run, clock: store.Clock | None, collectives: Collectives) -> None:
        """Read the device work.

        Args:
            clock: of the rank; None to keep its times.
            collectives: the collectives of the rank.

        Raises:
            StoreError: a table is damaged.
        """
        self.rank = rank
        self._clock = clock
        self._traces = Traces(run)
        self._has_operations = "operations" in run.tables
        self.work = self._read_work(collectives)

    def aligned(self, times: Int64s) -> Int64s:
        """Times of the rank on the job's clock."""
        return times if self._clock is None else self._clock.aligned(times)

    def _read_work(self, collectives: Collectives) -> Work:
        tables = [name for name in ("kernels", "memory_ops") if name in self._traces.tables]
        if "api_calls" in self._traces.tables:
            self._traces.read("api_calls", "process", "correlation", "start_ns", "end_ns", "thread", "name")
        columns: dict[str, list[Int64s]] = {name: [] for name in ("start", "end", "device", "stream", "kind", "name", "call")}
        names: list[str] = []
        for table in tables:
            label = "full_name" if table == "kernels" else "kind"
            self._traces.read(table, "start_ns", "end_ns", "device", "stream", "process", "correlation", label)
            for name in ("start", "end", "device", "stream"):
                columns[name].append(self._traces.numbers(table, name if name in ("device", "stream") else f"{name}_ns"))
            texts = self._traces.texts(table, label)
            columns["kind"].append(self._kinds(table, len(texts)))
            columns["name"].append(texts.codes.astype(np.int64) + len(names))
            columns["call"].append(calls_of(self._traces, table))
            names += [str(text) for text in texts.categories]
        empty = [np.empty(0, np.int64)]
        flat = {name: np.concatenate(parts or empty) for name, parts in columns.items()}
        match = _matches(flat["start"], flat["end"], flat["stream"], flat["kind"], collectives)
        kind = np.where(match != NONE - 1, COMMUNICATION, flat["kind"])
        called = flat["call"] != NONE
        thread, launched = np.full(len(called), NONE), flat["start"].copy()
        if called.any():
            calls = flat["call"][called]
            thread[called] = self._traces.numbers("api_calls", "thread")[calls]
            launched[called] = np.minimum(self._traces.numbers("api_calls", "end_ns")[calls], launched[called])
        order = np.lexsort((flat["end"], flat["start"]))
        stream = pd.factorize(flat["device"] * (1 << 40) + flat["stream"])[0].astype(np.int64)
        return Work(
            self.aligned(flat["start"])[order],
            self.aligned(flat["end"])[order],
            stream[order],
            kind[order],
            flat["name"][order],
            tuple(names),
            np.maximum(match, NONE)[order],
            flat["call"][order],
            thread[order],
            self.aligned(launched)[order],
        )

    def _kinds(self, table: str, length: int) -> Int64s:
        """The kinds of the work of a table; kernels of runs that are older than column `collective` compute."""
        if table != "kernels":
            return np.full(length, MEMORY, np.int64)
        return np.where(self._traces.texts(table, "collective").codes >= 0, COMMUNICATION, COMPUTE).astype(np.int64)

    @cached_property
    def waits(self) -> Waits:
        """What each work waited for: the work before it on its stream, its launch, or an event of another stream."""
        work = self.work
        before = self._before()
        ready_stream = np.where(before == NONE, _LONG_AGO, work.end[before])
        ready_launch = np.where(work.thread == NONE, _LONG_AGO, work.launched)
        ready = np.maximum(ready_stream, ready_launch)
        event = self._events()
        ready = np.maximum(ready, np.where(event == NONE, _LONG_AGO, work.end[event]))
        # Other work waited for what ended just before it, if nothing else explains when it started.
        latest = self._ended_before()
        ended = np.minimum(work.end[latest], work.start)
        late = work.start - ready > _UNEXPLAINED_NS
        coincides = (latest != NONE) & late & ((work.start - ended <= _UNEXPLAINED_NS) | (ready <= _LONG_AGO))
        event = np.where(coincides, np.where(latest == before, NONE, latest), event)
        ready = np.where(coincides, ended, ready)
        nothing = ready <= _LONG_AGO
        ready_event = np.where(event == NONE, _LONG_AGO, np.minimum(work.end[event], work.start))
        by_launch = ~nothing & (ready_launch > np.maximum(ready_stream, ready_event))
        by_event = ~nothing & ~by_launch & (ready_event > ready_stream)
        return Waits(before, event, by_launch, by_event, np.where(nothing, work.start, ready))

    def _before(self) -> Int64s:
        """For each work the one before it on its stream: of those that started before it, the one that ended last."""
        work = self.work
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

    def _ended_before(self) -> Int64s:
        """For each work the work of the rank that ended last before it started; `NONE` without any."""
        work = self.work
        latest = self._latest(work.start)
        rounded = self._latest(work.start + _ROUNDING_NS)
        latest = np.where(work.start - work.end[latest] > _UNEXPLAINED_NS, rounded, latest)
        return np.where((latest != NONE) & (work.start[latest] < work.start), latest, NONE)

    def _latest(self, times: Int64s) -> Int64s:
        """The work of the rank that ended last at each time or before it; `NONE` without any."""
        by_end = np.argsort(self.work.end, kind="stable")
        place = np.searchsorted(self.work.end[by_end], times, side="right")
        return np.append(NONE, by_end)[place]

    def _events(self) -> Int64s:
        """For work that was launched behind a call that lets a stream wait for an event: the last of the work that may have caused the event.

        A trace has neither the stream nor the event of such a call. It is taken to be about the next launch of its thread, and about
        the work of another stream, launched before, that ended last before the work started.
        """
        work = self.work
        event = np.full(len(work), NONE)
        if "api_calls" not in self._traces.tables:
            return event
        names = self._traces.texts("api_calls", "name").categories
        if not any(_WAIT_EVENT in str(name) for name in names):
            return event
        waiting = np.zeros(len(work), bool)
        for thread in np.unique(work.thread[work.thread != NONE]):
            start, _, name, _ = self._calls(int(thread))
            calls = start[np.array([_WAIT_EVENT in str(each) for each in names], bool)[name]]
            launched = np.flatnonzero(work.thread == thread)
            launched = launched[np.argsort(work.launched[launched], kind="stable")]
            waiting[launched] = np.diff(np.searchsorted(calls, work.launched[launched]), prepend=0) > 0
        rows = np.flatnonzero(waiting)
        ended = np.full(len(rows), _LONG_AGO)
        for stream in np.unique(work.stream):
            others = np.flatnonzero(work.stream == stream)
            # Work of a stream ends in the order in which it is launched.
            ends, launches = (np.maximum.accumulate(column[others]) for column in (work.end, work.launched))
            place = np.minimum(
                np.searchsorted(ends, work.start[rows], side="right"),
                np.searchsorted(launches, work.launched[rows], side="left"),
            )
            found = np.append(NONE, others)[place]
            better = (
                (work.stream[rows] != stream)
                & (found != NONE)
                & (work.end[found] > ended)
                & (work.end[found] <= work.start[rows])
            )
            better &= work.start[found] < work.start[rows]
            event[rows[better]], ended[better] = found[better], work.end[found[better]]
        return event

    @cached_property
    def resumptions(self) -> Mapping[int, Resumptions]:
        """The resumptions of each thread that launched work."""
        threads = [int(thread) for thread in np.unique(self.work.thread) if thread != NONE]
        return {thread: self._resumptions(thread, threads) for thread in threads}

    def _resumptions(self, thread: int, threads: list[int]) -> Resumptions:
        parts = [self._after_calls(thread), *(self._after_thread(thread, other) for other in threads if other != thread)]
        time, begin, ready, work, other = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.lexsort((ready, time))
        return Resumptions(time[order], begin[order], ready[order], work[order], other[order])

    def _after_calls(self, thread: int) -> tuple[Int64s, ...]:
        """The ends of calls of a thread that waited for device work."""
        start, end, name, place = self._calls(thread)
        names = self._traces.texts("api_calls", "name").categories
        blocks = np.asarray(pd.Series(names, dtype="str").str.contains(_BLOCKING, regex=True), bool)[name]
        work = np.where(blocks, self._latest(end), NONE)
        # A copy from or to pageable memory ends before its call does.
        copies = np.flatnonzero((self.work.kind == MEMORY) & (self.work.call != NONE))
        row = np.full(self._traces.length("api_calls"), NONE)
        row[self.work.call[copies]] = copies
        work = np.where(work == NONE, row[place], work)
        waited = (work != NONE) & (self.work.end[work] > start) & (self.work.end[work] <= end) & (self.work.start[work] < end)
        work = work[waited]
        return end[waited], start[waited], self.work.end[work], work, np.full(len(work), NONE)

    def _after_thread(self, thread: int, other: int) -> tuple[Int64s, ...]:
        """The ends of quiet times of a thread in which another one ended a call."""
        start, end, _, _ = self._calls(thread)
        its_ends = np.sort(self._calls(other)[1])
        begin = np.concatenate(([_LONG_AGO], np.maximum.accumulate(end)[:-1]))
        place = np.searchsorted(its_ends, start, side="left") - 1
        ready = its_ends[np.maximum(place, 0)]
        waited = (place >= 0) & (start - begin > _QUIET_NS) & (ready > begin)
        count = int(waited.sum())
        return start[waited], begin[waited], ready[waited], np.full(count, NONE), np.full(count, other)

    def _calls(self, thread: int) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """Starts, ends, names and rows of the calls of a thread, by start."""
        start, end, name = self._all_calls
        rows = np.flatnonzero(self._traces.numbers("api_calls", "thread") == thread)
        rows = rows[np.argsort(start[rows], kind="stable")]
        return start[rows], end[rows], name[rows], rows

    @cached_property
    def _all_calls(self) -> tuple[Int64s, Int64s, Int64s]:
        times = (self.aligned(self._traces.numbers("api_calls", f"{side}_ns")) for side in ("start", "end"))
        return *times, self._traces.texts("api_calls", "name").codes.astype(np.int64)  # type: ignore[return-value]

    def host_parts(self, thread: int) -> HostParts:
        """The calls of a thread, the operators outside of calls, and the rest of its time."""
        if thread not in self._parts:
            start, end, call, _ = self._calls(thread)
            calls = [str(name) for name in self._traces.texts("api_calls", "name").categories]
            op_start, op_end, operator, operators = self._operators(thread)
            at_call, at_operator = _outermost(start, end), _outermost(op_start, op_end)
            start, end, call = start[at_call], end[at_call], call[at_call]
            op_start, op_end, operator = op_start[at_operator], op_end[at_operator], operator[at_operator]
            times = np.unique(np.concatenate((start, end, op_start, op_end)))
            name = np.full(len(times), len(calls) + len(operators))
            for begin, finish, of, first in ((op_start, op_end, operator, len(calls)), (start, end, call, 0)):
                place = np.searchsorted(begin, times, side="right") - 1
                inside = (place >= 0) & (times < finish[np.maximum(place, 0)]) if len(begin) else np.zeros(len(times), bool)
                name[inside] = of[place[inside]] + first
            self._parts[thread] = HostParts(times, name, (*calls, *operators, ""))
        return self._parts[thread]

    @cached_property
    def _parts(self) -> dict[int, HostParts]:
        return {}

    def _operators(self, thread: int) -> tuple[Int64s, Int64s, Int64s, list[str]]:
        """Starts, ends and names of the operators of a thread that are in no other, by start, and what the names are."""
        if not self._has_operations:
            none = np.empty(0, np.int64)
            return none, none, none, []
        self._traces.read("operations", "thread", "start_ns", "end_ns", "name", "parent_id")
        of_thread, parent = (self._traces.numbers("operations", name) for name in ("thread", "parent_id"))
        rows = np.flatnonzero((of_thread == thread) & (parent == NONE))
        start, end = (self.aligned(self._traces.numbers("operations", f"{side}_ns")[rows]) for side in ("start", "end"))
        name = self._traces.texts("operations", "name")
        order = np.argsort(start, kind="stable")
        return start[order], end[order], name.codes[rows][order].astype(np.int64), [str(each) for each in name.categories]


def _outermost(start: Int64s, end: Int64s) -> Int64s:
    """The places of the intervals, by start, that do not start within an earlier one."""
    reached = np.maximum.accumulate(np.concatenate(([_LONG_AGO], end[:-1]))) if len(end) else end
    return np.flatnonzero(start >= reached)


def _matches(start: Int64s, end: Int64s, stream: Int64s, kind: Int64s, collectives: Collectives) -> Int64s:
    """For each work the collective of the job; `NONE` for communication that is of none, and `NONE` - 1 for other work.

    The first kernel of a collective has its number: a rank arrives with that, and its other kernels wait for nobody. In a run that is older
    than column `collective` of `kernels`, a kernel communicates if it is one of `collectives`.
    """
    place = within(stream, start, end, collectives.stream, collectives.start, collectives.end)
    is_first = (place != NONE) & (np.append(collectives.start, NONE)[place] == start)
    talks = kind == COMMUNICATION
    talks = talks if talks.any() else (place != NONE) & (kind == COMPUTE)
    return np.where(talks, np.where(is_first, np.append(collectives.match, NONE)[place], NONE), NONE - 1)
