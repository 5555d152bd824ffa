"""Launches and allreduces on their way through a stream and another beside it, and what they move. Knows no GPU library."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from warpladder.collectors.cuda.streams import Event, Stream
from warpladder.workloads.api import Step, TensorMap
from warpladder.workloads.communication import AllReduce, RowsOf

_EVERY_ROW: Final = 1 << 62


@dataclass(frozen=True)
class BoundStep:
    """A launch or an allreduce that is ready to be enqueued.

    Attributes:
        takes: rows of buffers that it reads or writes; see `rows_taken`.
        enqueue: enqueues it in a stream.
        is_allreduce: it goes through the communicator, which takes one after another.
        beside: it goes into the stream beside.
    """

    takes: tuple[RowsOf, ...]
    enqueue: Callable[[Any], object]
    is_allreduce: bool = False
    beside: bool = False


def rows_taken(step: Step) -> tuple[RowsOf, ...]:
    """Rows of buffers that a step names, all of those that it names whole."""
    named = step.buffers if isinstance(step, AllReduce) else step.args
    found = []
    for value in named:
        if isinstance(value, TensorMap):
            value = value.buffer
        if isinstance(value, RowsOf | str):
            found.append(value if isinstance(value, RowsOf) else RowsOf(value, 0, _EVERY_ROW))
    return tuple(found)


def _meet(some: Sequence[RowsOf], others: Sequence[RowsOf]) -> bool:
    return any(
        a.buffer == b.buffer and a.first < b.first + b.count and b.first < a.first + a.count for a in some for b in others
    )


class TwoStreams:
    """Steps in order, some of them in a stream beside that of the kernels.

    What stands beside starts when everything before it is done. A later step waits for it where both take the same rows, and an
    allreduce always, since a communicator takes them in one order on all ranks. The stream of kernels ends after all, so that the
    whole can be waited for, or captured in a CUDA graph, by that one stream.

    Args:
        steps: in order.
        kernels, beside: the streams; none beside where no step stands there.
        make_event: makes an event without a time.
    """

    def __init__(
        self, steps: Sequence[BoundStep], kernels: Stream, beside: Stream | None, make_event: Callable[[], Event]
    ) -> None:
        self._steps, self._kernels, self._beside = steps, kernels, beside
        self._events = [(make_event(), make_event()) if step.beside else None for step in steps]

    def enqueue(self) -> None:
        """Enqueue everything; the stream of kernels is done when all is."""
        pending: list[tuple[BoundStep, Event]] = []
        for step, events in zip(self._steps, self._events, strict=True):
            if events:
                assert self._beside
                ready, done = events
                ready.record(self._kernels)
                self._beside.wait_event(ready)
                step.enqueue(self._beside)
                done.record(self._beside)
                pending.append((step, done))
                continue
            waited = [
                number for number, (other, _) in enumerate(pending) if step.is_allreduce or _meet(step.takes, other.takes)
            ]
            if waited:  # for the last of them: that stream goes in order
                self._kernels.wait_event(pending[waited[-1]][1])
                del pending[: waited[-1] + 1]
            step.enqueue(self._kernels)
        if pending:
            self._kernels.wait_event(pending[-1][1])


def joined(spans: Sequence[tuple[int, int, int]], gap: int) -> list[tuple[int, int]]:
    """Pieces of memory that can be averaged at once.

    Args:
        spans: allocation, address and bytes of each array.
        gap: arrays of an allocation that are less than this apart are one piece, with what lies between.

    Returns:
        Which array each piece begins with, and its bytes. In the order in which allocations first appear, and by address within one: the
        same on all ranks, wherever their allocations lie.
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
