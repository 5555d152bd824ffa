"""Copies that overlap kernels: plans the copies of each part, and orders the work in streams. Imports no GPU library."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from warpladder.collectors.core.plan import BufferRows, check_covered, rows_of
from warpladder.collectors.cuda.steps import Event, Stream
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
from warpladder.workloads.declare.launches import AllReduce, PeerMemory, RowsOf

_ALIGNMENT_BYTES: Final = 256  # of an array that CUDA allocates

#: A launch waits for a copy of rows, or for scratch of this name, which launches of an earlier part make for all parts.
Awaited = BufferRows | str


@dataclass(frozen=True)
class PartPlan:
    """Copies and launches of one part of a case.

    Attributes:
        case: the part's own case.
        stream: number of its stream of kernels.
        rows: rows of each input and output that the part's kernels use.
        scratch: scratch of its kernels, in the shapes of the part's case; it lies at the beginning of the whole case's scratch.
        together: whole inputs that one copy brings before all others, in the order in which they lie side by side.
        copies_in: other inputs that no earlier part has copied, in the order in which launches need them.
        launches: its launches, in order.
        waits: for each launch, the copies and scratch that no earlier launch in its stream has waited for.
        makes: for each launch, names of scratch that it makes for parts in other streams.
        copies_out: outputs that are complete when its launches are done.
    """

    case: Case
    stream: int
    rows: Mapping[str, BufferRows]
    scratch: Mapping[str, Buffer]
    together: tuple[BufferRows, ...]
    copies_in: tuple[BufferRows, ...]
    launches: tuple[Launch, ...]
    waits: tuple[tuple[Awaited, ...], ...]
    makes: tuple[tuple[str, ...], ...]
    copies_out: tuple[BufferRows, ...]


def plan_parts(workload: Workload, case: Case, variant: CudaVariant, config: Params) -> tuple[PartPlan, ...]:
    """Plan the parts of a case, in order; empty if its copies do not overlap kernels.

    Raises:
        WorkloadError: the parts do not cover a buffer's rows in order, a part needs more scratch than the whole case, parts
            communicate, parts in several streams write the same output, or a gathered input is not used whole by every part.
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
    buffers = {**inputs, **outputs}
    rows = [rows_of(workload, part, buffers) for part in parts]
    check_covered(where, buffers, rows)
    if split := [name for name in how.gathered if any(of_part[name] != rows[0][name] for of_part in rows)]:
        raise WorkloadError(
            f"{where}: gathers {', '.join(split)}, but each part uses other rows of it; gather inputs that all parts use whole"
        )
    most_scratch = variant.scratch(case, config)
    streams = min(how.streams, len(parts))
    if streams > 1 and (common := [name for name in outputs if rows[0][name] == rows[1][name]]):
        raise WorkloadError(f"{where}: every part writes all of {', '.join(common)}; with that, give it streams=1")
    moved = {name: buffer for name, buffer in inputs.items() if name not in case.resident}
    separate = {*how.gathered, *variant.constants.values()}  # constants are filled from the bench's own arrays
    together = _together({name: buffer for name, buffer in moved.items() if name not in separate}, how.together_bytes)
    in_common = _made_once(variant.launches(parts[0].case, config), most_scratch) if streams > 1 else {}
    needed_first = tuple(variant.constants.values())
    # Copies and scratch that no launch of a stream has waited for yet. The first stream makes the common scratch itself.
    pending: list[dict[str, Awaited]] = [{} if number == 0 else dict(in_common) for number in range(streams)]
    planned, copied = [], set[BufferRows]()
    for number, (part, of_part) in enumerate(zip(parts, rows, strict=True)):
        steps = variant.launches(part.case, config)
        launches = tuple(step for step in steps if isinstance(step, Launch) and (number == 0 or not step.once))
        scratch = variant.scratch(part.case, config)
        _check_scratch(f"{where}: the part {part.case.name}", scratch, most_scratch)
        brought = {name: together.get(name, of_part[name]) for name in moved}
        new = {name: its for name, its in brought.items() if its not in copied}
        copied |= set(new.values())
        for of_stream in pending:
            of_stream |= new
        waits = _waits(launches, pending[number % streams], needed_first)
        copies_in = [its for its in _in_order(waits, new) if its not in together.values()]
        makes = tuple(tuple(name for name in _buffers_of(launch) if launch.once and name in in_common) for launch in launches)
        later = {later_rows for after in rows[number + 1 :] for later_rows in after.values()}
        copies_out = tuple(of_part[name] for name in outputs if of_part[name] not in later)
        planned.append(
            PartPlan(
                *(part.case, number % streams, of_part, scratch, () if number else tuple(together.values()), tuple(copies_in)),
                *(launches, waits, makes, copies_out),
            )
        )
    return tuple(planned)


def kernel_names(steps: Iterable[Step], parts: Iterable[PartPlan]) -> list[str]:
    """Return the distinct name expressions of the kernels of an operation and of its parts, to compile together."""
    launches = [*(step for step in steps if isinstance(step, Launch)), *(launch for part in parts for launch in part.launches)]
    return sorted({launch.kernel for launch in launches})


def _together(inputs: Mapping[str, Buffer], most_bytes: int) -> dict[str, BufferRows]:
    """Return the rows of the whole inputs that one copy brings, in the order in which they lie side by side.

    No gap lies between them, so that the copy has the bytes of the inputs. Therefore only the last one may have bytes that are no
    multiple of the alignment: the largest of those.
    """
    small = [name for name, buffer in inputs.items() if buffer.nbytes <= most_bytes]
    uneven = [name for name in small if inputs[name].nbytes % _ALIGNMENT_BYTES]
    names = [name for name in small if name not in uneven]
    names += sorted(uneven, key=lambda name: inputs[name].nbytes)[-1:]
    return {name: BufferRows(name, 0, inputs[name].shape[0]) for name in names} if len(names) > 1 else {}


def _in_order(waits: Iterable[Sequence[Awaited]], new: Mapping[str, BufferRows]) -> tuple[BufferRows, ...]:
    """Return new rows in the order in which launches wait for them; rows that no launch waits for come last."""
    needed = (rows for of_launch in waits for rows in of_launch if isinstance(rows, BufferRows) and new.get(rows.name) == rows)
    return tuple(dict.fromkeys((*needed, *new.values())))


def _check_scratch(where: str, scratch: Mapping[str, Buffer], most: Mapping[str, Buffer]) -> None:
    for name, buffer in scratch.items():
        if name not in most or buffer.nbytes > most[name].nbytes:
            raise WorkloadError(f"{where} needs more scratch {name} than the whole case; make it shrink with the case")


def _made_once(steps: Iterable[Step], scratch: Mapping[str, Buffer]) -> dict[str, str]:
    """Return names of scratch that launches with `once` make for all parts. Zeroed scratch (counters) is not included."""
    names = {name for step in steps if isinstance(step, Launch) and step.once for name in _buffers_of(step)}
    return {name: name for name, buffer in scratch.items() if name in names and not buffer.zeroed}


def _waits(
    launches: Iterable[Launch], pending: dict[str, Awaited], needed_first: Sequence[str]
) -> tuple[tuple[Awaited, ...], ...]:
    waits = []
    for number, launch in enumerate(launches):
        names = [*(needed_first if number == 0 else ()), *_buffers_of(launch)]
        waits.append(tuple(pending.pop(name) for name in dict.fromkeys(names) if name in pending))
    return tuple(waits)


def _buffers_of(launch: Launch) -> list[str]:
    """Return names of the buffers that the launch uses."""
    return [name for name in map(_buffer_of, launch.args) if name]


def _buffer_of(argument: Any) -> str:
    """Return the name of the buffer that an argument refers to; empty for a scalar."""
    if isinstance(argument, TensorMap | RowsOf | PeerMemory):
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
        rows: rows of inputs that are on the device after the copy.
        gather: enqueues the gathering of the remaining rows from other ranks into another stream; None if the copy brings all.
    """

    rows: tuple[BufferRows, ...]
    enqueue: Callable[[Any], object]
    gather: Callable[[Any], object] | None = None


@dataclass(frozen=True)
class BoundPart:
    """A part whose copies and launches are ready to be enqueued.

    Attributes:
        copies_in: copies to the device, in the order in which launches need them.
        copies_out: functions that enqueue a copy to the host into a stream.
        stream: number of its stream of kernels.
    """

    copies_in: Sequence[BoundCopy]
    calls: Sequence[BoundCall]
    copies_out: Sequence[Callable[[Any], object]]
    stream: int = 0


class Overlap:
    """Enqueues parts in streams: copies to the device, kernels, copies to the host.

    All other streams wait for the first stream of kernels at the start, and it waits for them at the end. So waiting for it, or
    capturing it in a CUDA graph, covers everything.

    Args:
        parts: the parts in order.
        copies_in: stream of copies to the device.
        kernels: one or several streams of kernels; parts refer to them by number.
        copies_out: stream of copies to the host.
        gathers: stream of the gathering between ranks.
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
        copies = [copy for part in parts for copy in part.copies_in]
        self._copied: Final = {copy.rows: make_event() for copy in copies}
        self._piece_arrived: Final = {copy.rows: make_event() for copy in copies if copy.gather}
        self._arrived: dict[Awaited, Event] = {rows: self._copied[copy.rows] for copy in copies for rows in copy.rows}
        self._arrived |= {output: make_event() for part in parts for call in part.calls for output in call.makes}
        self._finished: Final = [make_event() for _ in parts]

    def enqueue(self) -> None:
        """Enqueue everything. When the first stream of kernels is done, everything is."""
        first, *others = self._kernels
        self._record_then_wait(self._start, first, *others, self._in, self._out, self._gathers)
        for part in self._parts:
            for copy in part.copies_in:
                self._copy_in(copy)
        for part, finished in zip(self._parts, self._finished, strict=True):
            kernels = self._kernels[part.stream]
            for call in part.calls:
                for event in {id(event): event for event in map(self._arrived.__getitem__, call.waits)}.values():
                    kernels.wait_event(event)
                call.enqueue(kernels)
                for output in call.makes:
                    self._arrived[output].record(kernels)
            self._record_then_wait(finished, kernels, self._out)
            for copy_out in part.copies_out:
                copy_out(self._out)
        self._record_then_wait(self._all_in, self._in, first)
        self._record_then_wait(self._all_out, self._out, first)
        self._record_then_wait(self._all_gathered, self._gathers, first)

    def _copy_in(self, copy: BoundCopy) -> None:
        copy.enqueue(self._in)
        if copy.gather is None:
            self._copied[copy.rows].record(self._in)
        else:
            self._record_then_wait(self._piece_arrived[copy.rows], self._in, self._gathers)
            copy.gather(self._gathers)
            self._copied[copy.rows].record(self._gathers)

    def _record_then_wait(self, event: Event, stream: Stream, *waiting: Stream) -> None:
        """Record an event in `stream`, and make other streams wait for it."""
        event.record(stream)
        for other in waiting:
            other.wait_event(event)
