"""Enqueues launches and all-reduces in a stream of kernels and a second stream. Imports no GPU library."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from warpladder.collectors.core.plan import Plan
from warpladder.workloads.api import Buffer, Case, CudaVariant, Params, Step, TensorMap, Workload
from warpladder.workloads.declare.launches import AllReduce, PeerMemory, RowsOf

_EVERY_ROW: Final = 1 << 62


class Event(Protocol):
    """A mark in a stream's work."""

    def record(self, stream: Any) -> None: ...


class Stream(Protocol):
    """A queue of work that runs in order."""

    def wait_event(self, event: Any) -> None: ...


@dataclass(frozen=True)
class BoundStep:
    """A launch or an allreduce that is ready to be enqueued.

    Attributes:
        takes: rows of buffers that it reads or writes; see `rows_taken`.
        enqueue: enqueues it in a stream.
        is_allreduce: it uses the communicator, which runs one all-reduce after another.
        beside: it goes into the second stream.
    """

    takes: tuple[RowsOf, ...]
    enqueue: Callable[[Any], object]
    is_allreduce: bool = False
    beside: bool = False


def rows_taken(step: Step) -> tuple[RowsOf, ...]:
    """Return the rows of buffers that a step uses; for a whole buffer, all of its rows."""
    values = step.buffers if isinstance(step, AllReduce) else step.args
    rows = []
    for value in values:
        if isinstance(value, TensorMap | PeerMemory):
            value = value.buffer
        if isinstance(value, RowsOf | str):
            rows.append(value if isinstance(value, RowsOf) else RowsOf(value, 0, _EVERY_ROW))
    return tuple(rows)


def _meet(some: Sequence[RowsOf], others: Sequence[RowsOf]) -> bool:
    return any(
        a.buffer == b.buffer and a.first < b.first + b.count and b.first < a.first + a.count for a in some for b in others
    )


class TwoStreams:
    """Steps in order, some of them in a second stream beside the stream of kernels.

    A step in the second stream starts when all earlier steps are done. A later step waits for it if both use the same rows.
    A later all-reduce always waits for it, because all ranks must run all-reduces in the same order. At the end the stream of
    kernels waits for the second stream, so that waiting for it, or capturing it in a CUDA graph, covers all steps.

    Args:
        kernels, beside: the two streams; `beside` is None if no step uses it.
    """

    def __init__(
        self, steps: Sequence[BoundStep], kernels: Stream, beside: Stream | None, make_event: Callable[[], Event]
    ) -> None:
        self._steps, self._kernels, self._beside = steps, kernels, beside
        self._events = [(make_event(), make_event()) if step.beside else None for step in steps]

    def enqueue(self) -> None:
        """Enqueue all steps. When the stream of kernels is done, all steps are."""
        pending: list[tuple[BoundStep, Event]] = []
        for step, events in zip(self._steps, self._events, strict=True):
            if events:
                assert self._beside
                ready, finished = events
                ready.record(self._kernels)
                self._beside.wait_event(ready)
                step.enqueue(self._beside)
                finished.record(self._beside)
                pending.append((step, finished))
                continue
            waited = [
                number for number, (other, _) in enumerate(pending) if step.is_allreduce or _meet(step.takes, other.takes)
            ]
            if waited:  # for the last one: the stream runs in order
                self._kernels.wait_event(pending[waited[-1]][1])
                del pending[: waited[-1] + 1]
            step.enqueue(self._kernels)
        if pending:
            self._kernels.wait_event(pending[-1][1])


def joined(spans: Sequence[tuple[int, int, int]], gap: int) -> list[tuple[int, int]]:
    """Join arrays that are adjacent in memory into pieces that can be averaged at once.

    Args:
        spans: allocation, address and bytes of each array.
        gap: arrays of an allocation that are less than this many bytes apart are joined, with the bytes between.

    Returns:
        The index of the first array of each piece, and the piece's bytes. Pieces are in the order in which allocations first
        appear, and by address within one. This order is the same on all ranks.
    """
    appeared = {allocation: number for number, (allocation, *_) in reversed(list(enumerate(spans)))}
    order = sorted(range(len(spans)), key=lambda number: (appeared[spans[number][0]], spans[number][1]))
    pieces: list[tuple[int, int]] = []
    end = 0, 0
    for number in order:
        allocation, address, nbytes = spans[number]
        if pieces and end[0] == allocation and address - end[1] < gap:
            first = pieces[-1][0]
            pieces[-1] = first, address + nbytes - spans[first][1]
        else:
            pieces.append((number, nbytes))
        end = allocation, address + nbytes
    return pieces


def averaged_bytes(workload: Workload, case: Case, variant: CudaVariant, config: Params) -> int:
    """Bytes per rank that the NCCL all-reduces of one operation average.

    Args:
        workload, variant, config: the operation's.
        case: the case of one rank's share.
    """
    if variant.skip(case, config):
        return 0
    buffers: dict[str, Buffer] = {}
    for more_buffers in (*workload.buffers(case), variant.scratch(case, config)):
        buffers |= more_buffers
    return sum(
        math.prod((min(rows.count, buffers[rows.buffer].shape[0]), *buffers[rows.buffer].shape[1:])) * 4
        for step in variant.launches(case, config)
        if isinstance(step, AllReduce) and step.by == "nccl"
        for rows in rows_taken(step)
    )


def sizes_of(plan: Plan) -> dict[int, tuple[int, ...]]:
    """Return, by number of ranks, the distinct sizes in bytes of the plan's NCCL all-reduces."""
    workloads = {workload.name: workload for workload in plan.workloads}
    sizes: dict[int, set[int]] = {}
    for job in plan.jobs:
        workload = workloads[job.workload.name]
        if job.gpus == 1 or not workload.shares:
            continue
        share = workload.shares(workload.case(job.case), job.gpus)[0].case
        for variant in {cell.variant for cell in job.cells}:
            of = workload.variant(variant)
            if isinstance(of, CudaVariant) and (nbytes := averaged_bytes(workload, share, of, of.configs[0])):
                sizes.setdefault(job.gpus, set()).add(nbytes)
    return {gpus: tuple(sorted(distinct)) for gpus, distinct in sorted(sizes.items())}
