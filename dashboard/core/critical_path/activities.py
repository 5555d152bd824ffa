"""The activity of the device and the host of one rank, and the waits between them. Works on arrays, without a loop over events."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.critical_path.waits import LONG_AGO, RankWork, Waits, waits_of
from warpladder.dashboard.core.traces import Traces, ended_last, of_calls, within
from warpladder.data import schema, store
from warpladder.data.arrays import NONE, Bools, Int64s, numbered
from warpladder.data.timeline import COMMUNICATION, MEMORY, DeviceWork, device_work

#: In `Named.of_call`: the profile does not name what the call waited for.
UNNAMED: Final = NONE - 1
#: Work may wait for more streams, of which the last ones count.
_MOST: Final = 4
_Key = tuple[int, int, int]


@dataclass(frozen=True)
class Named:
    """The waits that a profile names.

    Attributes:
        of_work: shape (works, any), the works that each work waited for; `NONE` is no work.
        told: of works, whether they waited for an event that is named.
        of_call: by row of `api_calls`, the work that a call of the host waited for, `NONE` for none in the profile, or `UNNAMED`.
        by_stream: by row of `api_calls`, whether the call lets a stream wait for an event that is named.
    """

    of_work: Int64s
    told: Bools
    of_call: Int64s
    by_stream: Bools


def named_waits(work: RankWork, rows: pd.DataFrame, calls: int) -> Named:
    """The named waits of a rank.

    Args:
        rows: of table `synchronizations`, with `NONE` for null, times on the job's clock, `call`, the place of its call in `api_calls`, and
            `record` and `record_ns`, the place and the start of the call that recorded the event.
        calls: length of `api_calls`.
    """
    streams = _Streams(work)
    every: list[Any] = list(rows.itertuples())
    # An event is recorded before it is waited for. Where the profile lacks the call, only the order of correlations tells when.
    steps = [
        (row.start_ns if row.record == NONE else row.record_ns, False, place)
        for place, row in enumerate(every)
        if row.event_stream != NONE
    ]
    steps += [(row.start_ns, True, place) for place, row in enumerate(every)]
    of_event: dict[int, set[int]] = {}
    of_work: dict[int, set[int]] = {}
    of_call, by_stream = np.full(calls, UNNAMED), np.zeros(calls, bool)
    for time, waits, place in sorted(steps):
        row = every[place]
        if not waits:
            before = row.event_correlation if row.record == NONE else NONE
            of_event[place] = streams.launched(streams.of_event(row.process, row.device, row.event_stream), time, before)
        elif row.kind == "stream_wait_event":
            if row.stream == NONE or row.event_stream == NONE:
                continue
            if row.call != NONE:
                by_stream[row.call] = True
            following = streams.let_wait((row.process, row.device, row.stream), time, of_event[place])
            if following != NONE:
                of_work.setdefault(following, set()).update(of_event[place])
        elif row.call != NONE:
            sources = of_event.get(place, set())
            if row.kind == "stream":
                sources = streams.launched((row.process, row.device, row.stream), time)
            elif row.kind == "context":
                sources = streams.of_device(row.process, row.device, time)
            of_call[row.call] = max(sources, key=work.end.item, default=NONE)
    return Named(*_of_works(work, of_work), of_call, by_stream)


def _of_works(work: RankWork, of_work: dict[int, set[int]]) -> tuple[Int64s, Bools]:
    last = {each: sorted(sources, key=lambda source: -int(work.end[source]))[:_MOST] for each, sources in of_work.items()}
    columns, told = np.full((len(work), max(map(len, last.values()), default=0)), NONE), np.zeros(len(work), bool)
    for each, sources in last.items():
        told[each], columns[each, : len(sources)] = True, sources
    return columns, told


class _Streams:
    """The work of each stream in its order, and the waits that were put between."""

    def __init__(self, work: RankWork) -> None:
        self._work = work
        self._rows = {key: np.flatnonzero(work.stream == number) for number, key in enumerate(work.streams)}
        # Work of a stream starts in the order in which it is launched.
        self._launched = {key: work.launches_of(rows) for key, rows in self._rows.items()}
        self._correlation = {key: np.maximum.accumulate(work.correlation[rows]) for key, rows in self._rows.items()}
        self._waits: dict[_Key, list[tuple[int, set[int]]]] = {}

    def of_event(self, process: int, device: int, number: int) -> _Key:
        """The stream of an event that is waited for on a device: one of that device, or else of the only other one with such a stream."""
        same = [key for key in self._rows if key[0] == process and key[2] == number]
        return same[0] if len(same) == 1 else (process, device, number)

    def _place(self, stream: _Key, time: int) -> int:
        """How many works of a stream had been launched at a time."""
        return int(np.searchsorted(self._launched[stream], time, side="right")) if stream in self._rows else 0

    def launched(self, stream: _Key, time: int, correlation: int = NONE) -> set[int]:
        """The work that a new work on a stream would wait for at a time: the last one on it, and those that the stream waits for since then.

        Args:
            correlation: of a call, before which the work was launched; `NONE` for any.
        """
        place = self._place(stream, time)
        if correlation != NONE and place:
            place = min(place, int(np.searchsorted(self._correlation[stream], correlation, side="left")))
        last = int(self._rows[stream][place - 1]) if place else NONE
        since = int(self._launched[stream][place - 1]) if place else LONG_AGO
        waits = {each for begin, sources in self._waits.get(stream, ()) if begin >= since for each in sources}
        return waits | ({last} if place else set())

    def of_device(self, process: int, device: int, time: int) -> set[int]:
        """The last works on the streams of a device at a time."""
        return set().union(*(self.launched(key, time) for key in self._rows if key[:2] == (process, device)))

    def let_wait(self, stream: _Key, time: int, sources: set[int]) -> int:
        """Let what follows on a stream wait for some works. Returns the next work on it; `NONE` without any."""
        place = self._place(stream, time)
        since = int(self._launched[stream][place - 1]) if place else LONG_AGO
        waits = [each for each in self._waits.get(stream, ()) if each[0] >= since]
        self._waits[stream] = [*waits, (time, sources)]
        rows = self._rows.get(stream, np.empty(0, np.int64))
        return int(rows[place]) if place < len(rows) else NONE


#: A thread without a call for longer may have waited for another thread.
_QUIET_NS: Final = 50_000
#: Threads take turns where one makes at least this part of its calls while the other is quiet.
_TURNS: Final = 0.9
#: In the names of calls that let a stream wait for an event.
_WAIT_EVENT: Final = "StreamWaitEvent"
#: Calls that return when device work has ended, and those of them that wait for all work of a device. Those that copy from or to pageable
#: memory are found by their times.
_BLOCKING: Final = r"Synchronize|^(?:cuda|hip|cu)Memcpy(?!.*Async)|^(?:cuda|hip)Free$"
_BLOCKING_DEVICE: Final = r"(?:Device|Ctx|Thread)Synchronize|Free$"
#: The table of the waits that a profile names, without rows.
_NO_WAITS: Final = schema.TABLES["synchronizations"].arrow.empty_table().to_pandas()


@dataclass(frozen=True)
class Resumptions:
    """The moments at which a thread went on after it had waited for the device or for another thread, by time.

    Attributes:
        time: from which on the thread runs: the end of a call, or the start of the first call after a quiet time.
        begin: when it began to wait: the start of the call, or the end of the last call before the quiet time.
        ready: when what it waited for had happened, from `begin` to `time`.
        work: the device work that it waited for; `NONE` where it waited for a thread.
        thread: the thread that it waited for; `NONE` where it waited for device work.
        inferred: the profile does not name what it waited for.
    """

    time: Int64s
    begin: Int64s
    ready: Int64s
    work: Int64s
    thread: Int64s
    inferred: Bools

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class HostParts:
    """The activity of a thread, in parts without gaps. A part goes from its start to the start of the next one.

    Attributes:
        name: index into `names`, which has calls, operators, and an empty name for the rest.
    """

    start: Int64s
    name: Int64s
    names: tuple[str, ...]


class RankActivities:
    """The device work of a rank, and its host where it is asked for. The arrays are shared: never change one."""

    def __init__(self, rank: int, run: store.Run, clock: store.Clock | None, collectives: pd.DataFrame) -> None:
        """Read the device work.

        Args:
            clock: of the rank; None to keep its times.
            collectives: `start_ns` and `end_ns` of those of the rank on its own clock, `device`, `stream`, and `match`, the collective of the
                job; `NONE` for null.

        Raises:
            StoreError: a table is damaged.
        """
        self.rank = rank
        self._clock = clock
        self._run, self._traces = run, Traces(run)
        self._parts: dict[int, HostParts] = {}
        self.work = self._read_work(collectives)

    def aligned(self, times: Int64s) -> Int64s:
        """Times of the rank on the job's clock."""
        return times if self._clock is None else self._clock.aligned(times)

    def _read_work(self, collectives: pd.DataFrame) -> RankWork:
        if "api_calls" in self._traces.tables:
            self._traces.read("api_calls", "process", "correlation", "start_ns", "end_ns", "name")
        work = device_work(self._run)
        (call,) = of_calls(self._traces, work.process, work.correlation)
        thread, launched, called = np.full(len(work), NONE), work.start.copy(), call != NONE
        if called.any():
            thread[called] = self._threads["api_calls"][call[called]]
            launched[called] = np.minimum(self._traces.numbers("api_calls", "end_ns")[call[called]], launched[called])
        order = np.lexsort((work.end, work.start))
        stream, first = numbered(work.process, work.device, work.stream)
        process, device, number = (each[first] for each in (work.process, work.device, work.stream))
        return RankWork(
            self.aligned(work.start)[order],
            self.aligned(work.end)[order],
            stream[order],
            tuple(zip(process.tolist(), device.tolist(), number.tolist(), strict=True)),
            work.kind[order].astype(np.int64),
            work.name[order],
            tuple(work.names),
            _matches(work, collectives)[order],
            work.correlation[order],
            call[order],
            thread[order],
            self.aligned(launched)[order],
        )

    @cached_property
    def _threads(self) -> Mapping[str, Int64s]:
        """The thread of each row of `api_calls` and `operations`, from 0. The numbers of the profile may be negative, and equal in processes."""
        tables = [name for name in ("api_calls", "operations") if name in self._run.tables]
        for name in tables:
            self._traces.read(name, "process", "thread")
        own = [[self._traces.numbers(table, name) for table in tables] for name in ("process", "thread")]
        code, _ = numbered(*(np.concatenate(each or [np.empty(0, np.int64)]) for each in own))
        return dict(zip(tables, np.split(code, np.cumsum([self._traces.length(name) for name in tables])[:-1]), strict=True))

    @cached_property
    def waits(self) -> Waits:
        """The predecessor that each work waited for: the work before it on its stream, its launch, or events of other streams."""
        return waits_of(self.work, self._named.of_work, self._named.told, self._behind_a_wait())

    @cached_property
    def _named(self) -> Named:
        """The waits that the profile names."""
        names = ("process", "device", "correlation", "start_ns", "kind", "stream", "event_stream", "event_correlation")
        rows = self._run.arrow("synchronizations", names).to_pandas() if "synchronizations" in self._run.tables else _NO_WAITS
        rows = rows.fillna({name: NONE for name in names if name != "kind"}).astype(
            {name: "int64" for name in names if name != "kind"}
        )
        process = rows["process"].to_numpy()
        (call,) = of_calls(self._traces, process, rows["correlation"].to_numpy())
        record, start = of_calls(self._traces, process, rows["event_correlation"].to_numpy(), "start_ns")
        rows = rows.assign(
            call=call, record=record, record_ns=self.aligned(start), start_ns=self.aligned(rows["start_ns"].to_numpy())
        )
        return named_waits(self.work, rows, self._traces.length("api_calls"))

    def _behind_a_wait(self) -> Bools:
        """Which work was launched behind a call that lets a stream wait for an event, where the profile does not name the event.

        It then has neither the stream nor the event of the call, which is taken to be about the next launch of its thread.
        """
        work = self.work
        waiting = np.zeros(len(work), bool)
        if "api_calls" not in self._traces.tables:
            return waiting
        names = self._traces.texts("api_calls", "name").categories
        is_wait = np.array([_WAIT_EVENT in str(each) for each in names], bool)
        for thread in np.unique(work.thread[work.thread != NONE]) if is_wait.any() else ():
            start, _, name, place = self._calls(int(thread))
            calls = start[is_wait[name] & ~self._named.by_stream[place]]
            launched = np.flatnonzero(work.thread == thread)
            launched = launched[np.argsort(work.launched[launched], kind="stable")]
            waiting[launched] = np.diff(np.searchsorted(calls, work.launched[launched]), prepend=0) > 0
        return waiting

    @cached_property
    def resumptions(self) -> Mapping[int, Resumptions]:
        """The resumptions of each thread that launched work."""
        threads = [int(thread) for thread in np.unique(self.work.thread) if thread != NONE]
        found = {}
        for thread in threads:
            parts = [self._after_calls(thread), *(self._after_thread(thread, other) for other in threads if other != thread)]
            time, begin, ready, *others = (np.concatenate(columns) for columns in zip(*parts, strict=True))
            order = np.lexsort((ready, time))
            found[thread] = Resumptions(*(each[order] for each in (time, begin, ready, *others)))
        return found

    def _after_calls(self, thread: int) -> tuple[npt.NDArray[Any], ...]:
        """The ends of calls of a thread that waited for device work."""
        start, end, name, place = self._calls(thread)
        names = pd.Series(self._traces.texts("api_calls", "name").categories, dtype="str")
        blocks, of_device = (
            np.asarray(names.str.contains(which, regex=True), bool)[name] for which in (_BLOCKING, _BLOCKING_DEVICE)
        )
        named = np.where(blocks, self._named.of_call[place], UNNAMED)
        # A copy from or to pageable memory ends before its call does.
        copies = np.flatnonzero((self.work.kind == MEMORY) & (self.work.call != NONE))
        own = np.full(self._traces.length("api_calls"), NONE)
        own[self.work.call[copies]] = copies
        work = np.where(own[place] != NONE, own[place], named)
        guessed = blocks & (work == UNNAMED)
        work = np.maximum(np.where(guessed, ended_last(self.work.end, end), work), NONE)
        devices, streams = len({each[:2] for each in self.work.streams}), len(self.work.streams)
        inferred = guessed & (np.where(of_device, devices, streams) > 1)
        waited = (work != NONE) & (self.work.end[work] > start) & (self.work.end[work] <= end) & (self.work.start[work] < end)
        work = work[waited]
        return end[waited], start[waited], self.work.end[work], work, np.full(len(work), NONE), inferred[waited]

    def _after_thread(self, thread: int, other: int) -> tuple[npt.NDArray[Any], ...]:
        """The ends of quiet times of a thread in which another one ended a call."""
        start, end, _, _ = self._calls(thread)
        its_ends = np.sort(self._calls(other)[1])
        begin = np.concatenate(([LONG_AGO], np.maximum.accumulate(end)[:-1]))
        place = np.searchsorted(its_ends, start, side="left") - 1
        ready = its_ends[np.maximum(place, 0)]
        waited = (place >= 0) & (start - begin > _QUIET_NS) & (ready > begin) & self._take_turns(thread, other)
        count = int(waited.sum())
        return start[waited], begin[waited], ready[waited], np.full(count, NONE), np.full(count, other), np.ones(count, bool)

    def _take_turns(self, thread: int, other: int) -> bool:
        """Whether nearly all calls of another thread begin while a thread is quiet; else the two run on their own."""
        start, end, _, _ = self._calls(thread)
        its = self._calls(other)[0]
        place = np.searchsorted(start, its, side="right")
        reached = np.concatenate(([LONG_AGO], np.maximum.accumulate(end)))[place]
        quiet = np.append(start, -LONG_AGO)[place] - reached > _QUIET_NS
        return float(np.mean(quiet & (its >= reached))) >= _TURNS if len(its) else False

    def _calls(self, thread: int) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """Starts, ends, names and rows of the calls of a thread, by start."""
        start, end, name = self._all_calls
        rows = np.flatnonzero(self._threads["api_calls"] == thread)
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

    def _operators(self, thread: int) -> tuple[Int64s, Int64s, Int64s, list[str]]:
        """Starts, ends and names of the operators of a thread that are in no other, by start, and what the names are."""
        if "operations" not in self._run.tables:
            none = np.empty(0, np.int64)
            return none, none, none, []
        self._traces.read("operations", "start_ns", "end_ns", "name", "parent_id")
        rows = np.flatnonzero(
            (self._threads["operations"] == thread) & (self._traces.numbers("operations", "parent_id") == NONE)
        )
        start, end = (self.aligned(self._traces.numbers("operations", f"{side}_ns")[rows]) for side in ("start", "end"))
        name = self._traces.texts("operations", "name")
        order = np.argsort(start, kind="stable")
        return start[order], end[order], name.codes[rows][order].astype(np.int64), [str(each) for each in name.categories]


def _outermost(start: Int64s, end: Int64s) -> Int64s:
    """The places of the intervals, by start, that do not start within an earlier one."""
    reached = np.maximum.accumulate(np.concatenate(([LONG_AGO], end[:-1]))) if len(end) else end
    return np.flatnonzero(start >= reached)


def _matches(work: DeviceWork, collectives: pd.DataFrame) -> Int64s:
    """For each work the collective of the job that it is a part of; `NONE` for any other work.

    The first kernel of a collective has its number: a rank arrives with that, and its other kernels wait for nobody.
    """
    count = len(work)
    device, own, start, end, match = (
        collectives[name].to_numpy() for name in ("device", "stream", "start_ns", "end_ns", "match")
    )
    stream, _ = numbered(np.append(work.device, device), np.append(work.stream, own))
    place = within(stream[:count], work.start, work.end, stream[count:], start, end)
    is_first = (place != NONE) & (np.append(start, NONE)[place] == work.start) & (work.kind == COMMUNICATION)
    return np.where(is_first, np.append(match, NONE)[place], NONE)
