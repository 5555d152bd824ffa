"""Copies that overlap kernels: what is copied when, and the way through the streams. Knows no GPU library."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from warpladder.collectors.core.shares import Rows, check_covered, rows_of
from warpladder.collectors.cuda.streams import Event, Stream
from warpladder.workloads.api import (
    Buffer,
    Case,
    CudaVariant,
    Launch,
    Overlapped,
    Params,
    Step,
    TensorMap,
    Workload,
    WorkloadError,
)
from warpladder.workloads.communication import AllReduce, RowsOf

#: What a launch waits for: rows that are copied, or the name of scratch that launches of an earlier part make for all.
Awaited = Rows | str


@dataclass(frozen=True)
class PartPlan:
    """What happens for one part of a case.

    Attributes:
        case: that its launches are for.
        stream: number of the stream of kernels that it goes into.
        rows: of every input and output, what the part's kernels take for it.
        scratch: what its kernels take for scratch: the beginning of that of the whole case, in the shape that the part's case asks for.
        copies_in: inputs that no earlier part has copied, in the order in which launches need them.
        launches: its kernels, in order.
        waits: of each launch, what it is the first in its stream to need.
        makes: of each launch, names of scratch that it makes for parts in other streams.
        copies_out: outputs that are complete when its kernels are done.
    """

    case: Case
    stream: int
    rows: Mapping[str, Rows]
    scratch: Mapping[str, Buffer]
    copies_in: tuple[Rows, ...]
    launches: tuple[Launch, ...]
    waits: tuple[tuple[Awaited, ...], ...]
    makes: tuple[tuple[str, ...], ...]
    copies_out: tuple[Rows, ...]


def plan_parts(workload: Workload, case: Case, variant: CudaVariant, config: Params) -> tuple[PartPlan, ...]:
    """The parts of a case in order; none where its copies are not overlapped.

    Raises:
        WorkloadError: the parts of a buffer are not its rows, one part after another, or a part asks for more scratch than the case,
            or parts communicate, or parts in several streams write the same output, or what is gathered is no input that all need.
    """
    how = variant.end_to_end
    if not isinstance(how, Overlapped):
        return ()
    where = f"{workload.name} {variant.name} {case.name}"
    if any(isinstance(step, AllReduce) for step in variant.launches(case, config)):
        raise WorkloadError(f"{where}: an allreduce among overlapped copies; give it end_to_end=Pinned()")
    inputs, outputs = workload.buffers(case)
    if unknown := set(how.gathered) - set(inputs):
        raise WorkloadError(
            f"{where}: gathers {', '.join(sorted(unknown))}, which is no input; name some of {', '.join(inputs)}"
        )
    parts = tuple(how.parts(case, config))
    whole = {**inputs, **outputs}
    rows = [rows_of(workload, part, whole) for part in parts]
    check_covered(where, whole, rows)
    if split := [name for name in how.gathered if any(of_part[name] != rows[0][name] for of_part in rows)]:
        raise WorkloadError(
            f"{where}: gathers {', '.join(split)}, of which each part has rows of its own; gather what all need"
        )
    most_scratch = variant.scratch(case, config)
    streams = min(how.streams, len(parts))
    if streams > 1 and (common := [name for name in outputs if rows[0][name] == rows[1][name]]):
        raise WorkloadError(f"{where}: every part writes all of {', '.join(common)}; with that, give it streams=1")
    in_common = _made_once(variant.launches(parts[0].case, config), most_scratch) if streams > 1 else {}
    needed_first = tuple(variant.constants.values())
    # What no launch of a stream has waited for yet. The first stream itself makes what is made once.
    pending: list[dict[str, Awaited]] = [{} if number == 0 else dict(in_common) for number in range(streams)]
    planned, copied = [], set[Rows]()
    for number, (part, of_part) in enumerate(zip(parts, rows, strict=True)):
        steps = variant.launches(part.case, config)
        launches = tuple(step for step in steps if isinstance(step, Launch) and (number == 0 or not step.once))
        scratch = variant.scratch(part.case, config)
        _check_scratch(f"{where}: the part {part.case.name}", scratch, most_scratch)
        new = {name: of_part[name] for name in inputs if of_part[name] not in copied}
        copied |= set(new.values())
        for of_stream in pending:
            of_stream |= new
        waits = _waits(launches, pending[number % streams], needed_first)
        needed = (rows for of_launch in waits for rows in of_launch if isinstance(rows, Rows) and new.get(rows.name) == rows)
        copies_in = tuple(dict.fromkeys((*needed, *new.values())))
        makes = tuple(tuple(name for name in _buffers_of(launch) if launch.once and name in in_common) for launch in launches)
        later = {found for after in rows[number + 1 :] for found in after.values()}
        copies_out = tuple(of_part[name] for name in outputs if of_part[name] not in later)
        planned.append(PartPlan(part.case, number % streams, of_part, scratch, copies_in, launches, waits, makes, copies_out))
    return tuple(planned)


def kernel_names(steps: Iterable[Step], parts: Iterable[PartPlan]) -> list[str]:
    """Name expressions of the kernels of an operation and of its parts, each once: what is compiled together."""
    launches = [*(step for step in steps if isinstance(step, Launch)), *(launch for part in parts for launch in part.launches)]
    return sorted({launch.kernel for launch in launches})


def _check_scratch(where: str, scratch: Mapping[str, Buffer], most: Mapping[str, Buffer]) -> None:
    for name, buffer in scratch.items():
        if name not in most or buffer.nbytes > most[name].nbytes:
            raise WorkloadError(f"{where} wants more scratch {name} than the whole case; make it shrink with the case")


def _made_once(steps: Iterable[Step], scratch: Mapping[str, Buffer]) -> dict[str, str]:
    """Names of scratch that launches with `once` make: the same for all parts. A counter is none."""
    taken = {name for step in steps if isinstance(step, Launch) and step.once for name in _buffers_of(step)}
    return {name: name for name, buffer in scratch.items() if name in taken and not buffer.zeroed}


def _waits(
    launches: Iterable[Launch], pending: dict[str, Awaited], needed_first: Sequence[str]
) -> tuple[tuple[Awaited, ...], ...]:
    waits = []
    for number, launch in enumerate(launches):
        names = [*(needed_first if number == 0 else ()), *_buffers_of(launch)]
        waits.append(tuple(pending.pop(name) for name in dict.fromkeys(names) if name in pending))
    return tuple(waits)


def _buffers_of(launch: Launch) -> list[str]:
    """Names of the buffers that it takes."""
    return [name for name in map(_buffer_of, launch.args) if name]


def _buffer_of(argument: Any) -> str:
    """Name of the buffer that an argument is; empty for a scalar."""
    if isinstance(argument, TensorMap | RowsOf):
        return argument.buffer
    return argument if isinstance(argument, str) else ""


@dataclass(frozen=True)
class BoundCall:
    """A launch that is ready to be enqueued.

    Attributes:
        waits, makes: see `PartPlan`.
        enqueue: enqueues it into a stream.
    """

    waits: Sequence[Awaited]
    enqueue: Callable[[Any], object]
    makes: Sequence[str] = ()


@dataclass(frozen=True)
class BoundCopy:
    """A copy to the device that is ready to be enqueued.

    Attributes:
        rows: that are there after it.
        enqueue: enqueues it into a stream.
        gather: enqueues into another stream what gets from other ranks the rest of the rows; None where the copy brings all.
    """

    rows: Rows
    enqueue: Callable[[Any], object]
    gather: Callable[[Any], object] | None = None


@dataclass(frozen=True)
class BoundPart:
    """A part whose copies and launches are ready to be enqueued.

    Attributes:
        copies_in: in the order in which they are needed.
        calls: its kernels.
        copies_out: each enqueues a copy into a stream.
        stream: number of the stream of kernels that it goes into.
    """

    copies_in: Sequence[BoundCopy]
    calls: Sequence[BoundCall]
    copies_out: Sequence[Callable[[Any], object]]
    stream: int = 0


class Overlap:
    """Parts on their way through streams: copies in, kernels, copies out.

    All other streams start after what is in the first stream of kernels, and it ends after them, so that the whole can be
    waited for, or captured in a CUDA graph, by that one stream.

    Args:
        parts: in order.
        copies_in: the stream of copies to the device.
        kernels: one or several that parts name by number.
        copies_out: the stream of copies to the host.
        gathers: the stream of what ranks get from one another.
        make_event: makes an event without a time.
    """

    def __init__(
        self,
        parts: Sequence[BoundPart],
        copies_in: Stream,
        kernels: Sequence[Stream],
        copies_out: Stream,
        gathers: Stream,
        make_event: Callable[[], Event],
    ) -> None:
        self._parts, self._in, self._kernels, self._out, self._gathers = parts, copies_in, kernels, copies_out, gathers
        self._start, self._all_in, self._all_out, self._all_gathered = (make_event() for _ in range(4))
        awaited: list[Awaited] = [made for part in parts for call in part.calls for made in call.makes]
        awaited += [copy.rows for part in parts for copy in part.copies_in]
        self._there: Final = {each: make_event() for each in awaited}
        self._piece_there: Final = {copy.rows: make_event() for part in parts for copy in part.copies_in if copy.gather}
        self._done: Final = [make_event() for _ in parts]

    def enqueue(self) -> None:
        """Enqueue everything; the first stream of kernels is done when all is."""
        first, *others = self._kernels
        self._after(self._start, first, *others, self._in, self._out, self._gathers)
        for part in self._parts:
            for copy in part.copies_in:
                self._copy_in(copy)
        for part, done in zip(self._parts, self._done, strict=True):
            kernels = self._kernels[part.stream]
            for call in part.calls:
                for awaited in call.waits:
                    kernels.wait_event(self._there[awaited])
                call.enqueue(kernels)
                for made in call.makes:
                    self._there[made].record(kernels)
            self._after(done, kernels, self._out)
            for copy_out in part.copies_out:
                copy_out(self._out)
        self._after(self._all_in, self._in, first)
        self._after(self._all_out, self._out, first)
        self._after(self._all_gathered, self._gathers, first)

    def _copy_in(self, copy: BoundCopy) -> None:
        copy.enqueue(self._in)
        if copy.gather is None:
            self._there[copy.rows].record(self._in)
        else:
            self._after(self._piece_there[copy.rows], self._in, self._gathers)
            copy.gather(self._gathers)
            self._there[copy.rows].record(self._gathers)

    def _after(self, event: Event, stream: Stream, *waiting: Stream) -> None:
        """Let streams wait for what is in `stream` so far."""
        event.record(stream)
        for other in waiting:
            other.wait_event(event)
