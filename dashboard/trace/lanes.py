"""The lanes of a trace, with layers for events that overlap, so that none covers another; and device memory in use."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from warpladder.dashboard.core.traces import Traces
from warpladder.data.arrays import NONE, Bools, Int64s


def layers(start: Int64s, end: Int64s) -> Int64s:
    """A layer for each event, from 0, such that no two events of a layer overlap. Events are sorted by start, then end.

    Each event in turn takes the first free layer, so that the layer of an event that nests is its depth. That takes about a microsecond for
    each event that overlaps another.
    """
    layer = np.zeros(len(start), dtype=np.int64)
    clash = start[1:] < np.maximum.accumulate(end)[:-1]
    crowded = np.flatnonzero(np.append(clash, False) | np.append(False, clash))
    running: list[tuple[int, int]] = []
    free: list[int] = []
    used = 0
    for place, begins, ends in zip(crowded.tolist(), start[crowded].tolist(), end[crowded].tolist(), strict=True):
        while running and running[0][0] <= begins:
            heapq.heappush(free, heapq.heappop(running)[1])
        if free:
            row = heapq.heappop(free)
        else:
            row, used = used, used + 1
        layer[place] = row
        heapq.heappush(running, (ends, row))
    return layer


Kind = Literal["device", "ranges", "calls"]

Int32s = npt.NDArray[np.int32]

#: Events in a block, whose longest event is stored.
BLOCK: Final = 256
_OF_DEVICE: Final = ("kernels", "memory_ops")
#: In place of the depth of ranges that need not nest. It is deeper than any depth.
_FREE: Final = 1 << 30
_STREAMS_SHOWN: Final = 8
_THREADS_SHOWN: Final = 5
_DEPTHS_SHOWN: Final = 5
#: Of each rank of a job at least these are shown: streams of computation and communication, and the main thread.
_STREAMS_OF_RANK: Final = 2
_THREADS_OF_RANK: Final = 1
#: The most lanes of an owner and kind. Events that would need more lanes have none.
MOST_LAYERS: Final = 256


@dataclass(frozen=True, eq=False)
class Lane:
    """Events that do not overlap, sorted by start. 20 bytes an event.

    Attributes:
        kind: `device` for kernels and memory operations, `ranges`, or `calls`.
        owner: the stream or thread, whose lanes are shown or left out together.
        group: heading of the lane, plain text.
        label: its name within the group, plain text.
        start: shape (n,), nanoseconds on the trace's clock.
        covered: shape (n + 1,), summed duration of the events before each one; the last is the busy time of the lane.
        row: shape (n,), the row of each event: of `ranges`, of `api_calls`, or of `kernels` followed by `memory_ops`.
        level: place among the lanes of the same owner and kind, from 0.
    """

    kind: Kind
    owner: tuple[int, ...]
    group: str
    label: str
    start: Int64s
    covered: Int64s
    row: Int32s
    level: int

    def __len__(self) -> int:
        return len(self.start)

    @property
    def busy_ns(self) -> int:
        """Nanoseconds in which an event of the lane ran."""
        return int(self.covered[-1])

    def end(self, index: Int64s) -> Int64s:
        """End of the events at these places, nanoseconds."""
        ends: Int64s = self.start[index] + self.covered[index + 1] - self.covered[index]
        return ends

    def covered_until(self, times: Int64s) -> Int64s:
        """Nanoseconds before each time in which an event ran, by bisection."""
        started = np.searchsorted(self.start, times, side="right")
        last = np.maximum(started - 1, 0)
        running = np.where(started > 0, np.maximum(self.end(last) - times, 0), 0)
        return self.covered[started] - running

    def touching(self, edges: Int64s) -> tuple[Int64s, Int64s]:
        """First event in each bin between two edges, and one past the last. An event without duration is where it starts."""
        started = np.searchsorted(self.start, edges, side="left")
        before = np.maximum(started[:-1] - 1, 0)
        reaches = (started[:-1] > 0) & (self.end(before) > edges[:-1])
        return started[:-1] - reaches, started[1:]

    @cached_property
    def longest(self) -> Int64s:
        """Duration of the longest event of each `BLOCK` of events."""
        return np.maximum.reduceat(np.diff(self.covered), np.arange(0, len(self), BLOCK))


@dataclass(frozen=True, eq=False)
class Lanes:
    """All lanes of a trace, in the order in which they are drawn. Times are on the trace's clock.

    Attributes:
        begin_ns: start of the first event.
        end_ns: end of the last; later than `begin_ns`.
        kernels: number of rows of table `kernels`. Larger rows of a device lane are rows of `memory_ops`.
        too_deep: number of events without a lane, because they would need more than `MOST_LAYERS`.
        of_ranks: the processes are ranks of a job.
    """

    lanes: tuple[Lane, ...]
    begin_ns: int
    end_ns: int
    kernels: int
    too_deep: int = 0
    of_ranks: bool = False

    @property
    def processes(self) -> int:
        """Number of processes, or ranks."""
        return len({lane.owner[0] for lane in self.lanes})

    def busiest(self) -> tuple[Lane, ...]:
        """Lanes of the busiest streams and of the threads with the most events, in the order of `lanes`. Each rank of a job has some."""
        busy: dict[tuple[int, ...], int] = {}
        events: dict[tuple[int, ...], int] = {}
        for lane in self.lanes:
            sums, amount = (busy, lane.busy_ns) if lane.kind == "device" else (events, len(lane))
            sums[lane.owner] = sums.get(lane.owner, 0) + amount
        shown: set[tuple[int, ...]] = set()
        for sums, most, of_rank in (
            (busy, _STREAMS_SHOWN, _STREAMS_OF_RANK),
            (events, _THREADS_SHOWN, _THREADS_OF_RANK),
        ):
            owners = sorted(sums, key=lambda each, sums=sums: (-sums[each], each))  # type: ignore[misc]
            shown |= set(owners[:most])
            for rank in {owner[0] for owner in owners} if self.of_ranks else ():
                shown |= set([owner for owner in owners if owner[0] == rank][:of_rank])
        return tuple(lane for lane in self.lanes if lane.owner in shown and lane.level < _DEPTHS_SHOWN)


class _Events(NamedTuple):
    """Events of some tables, one table after the other. An end may be `NONE`."""

    start: Int64s
    end: Int64s
    keys: tuple[Int64s, ...]


def build(traces: Traces) -> Lanes | None:
    """Sort a trace into lanes; None where it has no event. A range that was never closed lasts to the end of the trace."""
    held = [name for name in _OF_DEVICE if name in traces.tables]
    device = _read(traces, held, "process", "device", "stream") if held else None
    calls = _read(traces, ["api_calls"], "process", "thread") if "api_calls" in traces.tables else None
    ranges = _read(traces, ["ranges"], "process", "thread", "depth") if "ranges" in traces.tables else None
    every = [events for events in (device, calls, ranges) if events is not None]
    if not every:
        return None
    begin = min(int(events.start.min()) for events in every)
    end = max(int(max(events.start.max(), events.end.max())) for events in every)
    lanes: list[Lane] = []
    if device is not None:
        for owner, rows in _sorted_groups(device.keys, device.start, device.end):
            label = "no stream" if owner[-1] == NONE else f"stream {owner[-1]}"
            lanes += _layered("device", owner, label, device, rows)
    if ranges is not None:
        # Start/end ranges need not nest. Their lanes are below the lanes of push/pop ranges.
        free = np.asarray(traces.texts("ranges", "style") == "start_end")
        lanes += _range_lanes(ranges, free, end, "range" if traces.of_pytorch else "NVTX")
    if calls is not None:
        api = f"{traces.api} API".lstrip()
        for owner, rows in _sorted_groups(calls.keys, calls.start, calls.end):
            lanes += _layered("calls", owner, api, calls, rows)
    several = len({lane.owner[0] for lane in lanes}) > 1
    process = "rank" if traces.of_ranks else "process" if several else ""
    lanes.sort(key=_order)
    kernels = traces.length("kernels") if "kernels" in held else 0
    too_deep = sum(len(events.start) for events in every) - sum(map(len, lanes))
    named = tuple(replace(lane, group=_heading(lane, process)) for lane in lanes)
    return Lanes(named, begin, max(end, begin + 1), kernels, too_deep, traces.of_ranks)


def _read(traces: Traces, tables: Sequence[str], *keys: str) -> _Events:
    pieces = [batch for table in tables for batch in traces.scan(table, "start_ns", "end_ns", *keys)]
    start, end, *columns = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return _Events(start, end, tuple(columns))


def _order(lane: Lane) -> tuple[Any, ...]:
    """Process by process: its streams, then its threads with their ranges above their calls."""
    process, *place = lane.owner
    return (process, lane.kind != "device", *place, lane.kind == "calls", lane.level)


def _heading(lane: Lane, process: str) -> str:
    what = f"GPU {lane.owner[1]}" if lane.kind == "device" else f"thread {lane.owner[1]}"
    return f"{process} {lane.owner[0]} · {what}" if process else what


def _range_lanes(events: _Events, free: Bools, trace_end: int, called: str) -> Iterator[Lane]:
    process, thread, depth = events.keys
    events.end[events.end < 0] = trace_end
    level = np.where(free, _FREE, np.minimum(depth, MOST_LAYERS))
    next_level: dict[tuple[int, ...], int] = {}
    for (*place, depth_or_free), rows in _sorted_groups((process, thread, level), events.start, events.end):
        if depth_or_free == MOST_LAYERS:
            continue
        owner = tuple(place)
        label = f"{called} start/end" if depth_or_free == _FREE else f"{called} depth {depth_or_free}"
        for lane in _layered("ranges", owner, label, events, rows, next_level.get(owner, 0)):
            next_level[owner] = lane.level + 1
            yield lane


def _layered(
    kind: Kind, owner: tuple[int, ...], label: str, events: _Events, rows: Int64s, first_level: int = 0
) -> Iterator[Lane]:
    """The lanes of the events of one owner: as many as it takes for none to overlap.

    Args:
        rows: rows of the events, sorted.
    """
    start = events.start[rows]
    end = np.maximum(events.end[rows], start)
    layer = layers(start, end)
    for number in range(min(int(layer.max()) + 1, MOST_LAYERS)):
        inside = np.flatnonzero(layer == number)
        covered = np.concatenate(([0], np.cumsum(end[inside] - start[inside])))
        name = label if number == 0 else f"{label} ({number + 1})"
        yield Lane(kind, owner, "", name, start[inside], covered, rows[inside].astype(np.int32), first_level + number)


def _sorted_groups(keys: Sequence[Int64s], start: Int64s, end: Int64s) -> Iterator[tuple[tuple[int, ...], Int64s]]:
    """Each distinct tuple of keys, ascending, with its rows by start and then by end."""
    order = np.lexsort((end, start, *reversed(keys)))
    changes = np.zeros(max(len(order) - 1, 0), dtype=bool)
    for key in keys:
        changes |= np.diff(key[order]) != 0
    for rows in np.split(order, np.flatnonzero(changes) + 1) if len(order) else ():
        yield tuple(int(key[rows[0]]) for key in keys), rows


_TABLE: Final = "memory_in_use"


@dataclass(frozen=True, eq=False)
class MemoryInUse:
    """The memory that a process has in use on a device.

    Attributes:
        group: heading of its lane, which is that of the device's streams.
        source: who counts, as column `source` has it.
        start: shape (n,), times of the changes on the trace's clock, ascending.
        used: shape (n,), bytes in use from each change on.
    """

    group: str
    source: str
    start: Int64s
    used: Int64s

    @property
    def most(self) -> int:
        """Bytes at the peak of the trace."""
        return int(self.used.max())

    def peaks(self, edges: Int64s) -> Int64s:
        """The most bytes in use in each bin between two edges."""
        after = np.concatenate([[0], self.used, [0]])
        at_start = np.searchsorted(self.start, edges[:-1], side="right")
        past_last = np.searchsorted(self.start, edges[1:], side="left") + 1
        bounds = np.column_stack([at_start, np.maximum(past_last, at_start + 1)]).ravel()
        peaks: Int64s = np.maximum.reduceat(after, bounds)[::2]
        return peaks


def memory_in_use(traces: Traces, several: bool = False) -> list[MemoryInUse]:
    """The memory in use of each process and device; of the allocator where it was recorded, else of CUDA. Nothing for a trace without it.

    Args:
        several: the trace has several processes, which the headings of its lanes name.
    """
    if _TABLE not in traces.run.tables:
        return []
    process, device, start, used = (traces.numbers(_TABLE, name) for name in ("process", "device", "start_ns", "bytes"))
    sources = traces.texts(_TABLE, "source")
    word = "rank" if traces.of_ranks else "process"
    codes = np.asarray(sources.codes, dtype=np.int64)
    # Rows of one process, device and source follow each other.
    changes = sum(np.abs(np.diff(key, prepend=NONE)) for key in (process, device, codes))
    bounds = [*np.flatnonzero(changes).tolist(), len(start)]
    found: dict[tuple[int, int], MemoryInUse] = {}
    for first, last in pairwise(bounds):
        owner = int(process[first]), int(device[first])
        group = f"{word} {owner[0]} · GPU {owner[1]}" if several else f"GPU {owner[1]}"
        source = str(sources.categories[codes[first]])
        if source == "allocator" or owner not in found:
            found[owner] = MemoryInUse(group, source, start[first:last], used[first:last])
    return list(found.values())
