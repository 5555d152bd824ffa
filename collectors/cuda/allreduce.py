"""Averages over all ranks of what lies on their GPUs: by NCCL, or by MPI through page-locked host memory."""

import itertools
import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import cupy

from warpladder.collectors.core.bench import BenchCommunicator
from warpladder.collectors.cuda.launch import bind, pinned_like
from warpladder.collectors.cuda.nccl import nccl_module, nccl_of
from warpladder.collectors.cuda.steps import BoundStep, TwoStreams, joined, rows_taken
from warpladder.collectors.cuda.streams import Stream
from warpladder.workloads.api import Array, Buffers, Step, WorkloadError, ceil_div
from warpladder.workloads.communication import AllReduce, RowsOf

_AVERAGE: Final = 4  # ncclAvg, for which CuPy has no name
#: So that its few blocks come before those that wait of a kernel beside it.
_FIRST_PRIORITY: Final = -1
_ALIGNMENT: Final = 256
REPETITIONS: Final = 15


class BoundAllReduce:
    """An allreduce of arrays on this rank's GPU.

    Args:
        step: how.
        arrays: float32, each in one piece; replaced by their averages over all ranks.
        communicator: of the ranks.

    Attributes:
        waits: it waits for the device, so that no CUDA graph can hold it.
        timed: events are recorded around it, for `elapsed_ns`.
    """

    def __init__(self, step: AllReduce, arrays: Sequence[Array], communicator: BenchCommunicator) -> None:
        for array in arrays:
            if array.dtype != "float32":
                raise WorkloadError(f"allreduce of {', '.join(map(str, step.buffers))}: {array.dtype}; give it float32")
        self.waits = step.by == "mpi"
        self.timed = False
        self._arrays, self._communicator = _pieces(step, arrays), communicator
        self._start, self._stop = cupy.cuda.Event(), cupy.cuda.Event()
        if self.waits:
            self._host = [pinned_like(array) for array in self._arrays]
        else:
            self._nccl = nccl_of(communicator)

    def enqueue(self, stream: Any) -> None:
        """Enqueue it in a stream, or do it where it waits."""
        if self.timed:
            self._start.record(stream)
        if self.waits:
            self._through_the_host(stream)
        else:
            self._between_gpus(stream)
        if self.timed:
            self._stop.record(stream)

    def elapsed_ns(self) -> int:
        """How long the last one that was timed took, once the stream is done. What a rank waits for the others is in it."""
        elapsed_ms: float = cupy.cuda.get_elapsed_time(self._start, self._stop)
        return round(elapsed_ms * 1e6)

    def _between_gpus(self, stream: Any) -> None:
        """As one kernel, however many pieces they are."""
        nccl = nccl_module()
        nccl.groupStart()
        try:
            for array in self._arrays:
                at = array.data.ptr
                self._nccl.allReduce(at, at, array.size, nccl.NCCL_FLOAT32, _AVERAGE, stream.ptr)
        finally:
            nccl.groupEnd()

    def _through_the_host(self, stream: Any) -> None:
        for array, host in zip(self._arrays, self._host, strict=True):
            array.get(stream, out=host, blocking=False)
        stream.synchronize()
        self._communicator.average(self._host)
        for array, host in zip(self._arrays, self._host, strict=True):
            array.set(host, stream)


def in_one_piece(arrays: Buffers) -> Buffers:
    """As many arrays of these shapes, one behind the other in one allocation, each where the device reads it best."""
    offsets = [0, *itertools.accumulate(ceil_div(array.nbytes, _ALIGNMENT) * _ALIGNMENT for array in arrays.values())]
    block = cupy.zeros(offsets[-1], cupy.uint8)
    return {
        name: cupy.ndarray(array.shape, array.dtype, memptr=block.data + offset)
        for (name, array), offset in zip(arrays.items(), offsets, strict=False)
    }


def _pieces(step: AllReduce, arrays: Sequence[Array]) -> list[Array]:
    """The arrays of a step, whole buffers that lie next to each other as one, with what fills up the space between.

    Rows stay by themselves: between them lie other rows.
    """
    spans = [
        (id(array.data.mem) if isinstance(buffer, str) else -number, array.data.ptr, array.nbytes)
        for number, (buffer, array) in enumerate(zip(step.buffers, arrays, strict=True), start=1)
    ]
    return [cupy.ndarray((nbytes // 4,), "float32", memptr=arrays[first].data) for first, nbytes in joined(spans, _ALIGNMENT)]


def bound_steps(
    steps: Sequence[Step], loaded: Any, buffers: Buffers, communicator: BenchCommunicator, stream: Stream
) -> tuple[TwoStreams, tuple[BoundAllReduce, ...]]:
    """An operation ready to be enqueued on the current stream, and the allreduces in it: none in a process alone.

    Args:
        steps: its launches and allreduces, in order.
        loaded: the kernels, by name expression.
        buffers: on the device, by name.
        communicator: of the ranks that share the case.
        stream: the current one.
    """
    bound, allreduces = [], []
    for step in steps:
        if isinstance(step, AllReduce):
            if communicator.size > 1:
                one = BoundAllReduce(step, [_array(value, buffers) for value in step.buffers], communicator)
                allreduces.append(one)
                bound.append(BoundStep(rows_taken(step), one.enqueue, True, step.beside))
        else:
            bound.append(BoundStep(rows_taken(step), bind(step, loaded[step.kernel], buffers)))
    apart = any(step.beside for step in bound)
    beside = cupy.cuda.Stream(non_blocking=True, priority=_FIRST_PRIORITY) if apart else None
    return TwoStreams(bound, stream, beside, partial(cupy.cuda.Event, disable_timing=True)), tuple(allreduces)


def _array(value: str | RowsOf, buffers: Buffers) -> Array:
    if isinstance(value, RowsOf):
        return buffers[value.buffer][value.first : value.first + value.count]
    return buffers[value]


def allreduce_ns(device: Any, communicator: BenchCommunicator, nbytes: int) -> list[int]:
    """Device times, on this rank, of NCCL's average of one array in place. All ranks call it."""
    array = cupy.ones(nbytes // 4, cupy.float32)
    one = BoundAllReduce(AllReduce(("array",)), [array], communicator)
    device.stream.synchronize()
    enqueue = partial(one.enqueue, device.stream)
    for _ in range(2):  # NCCL joins the GPUs at its first call
        enqueue()
    device.stream.synchronize()
    return [device.time_queued(enqueue, meet=communicator.wait)[0] for _ in range(REPETITIONS)]


def ceiling_row(times_ns: Sequence[Sequence[int]], overhead_ns: float, nbytes: int) -> dict[str, Any]:
    """The row of `ceilings` of what every rank timed by `allreduce_ns`: of each repetition the least rank, which waits for none."""
    least_ns = [min(of_ranks) for of_ranks in zip(*times_ns, strict=True)]
    return {
        "name": f"nccl_allreduce_{nbytes}_bytes",
        "device": f"{len(times_ns)} GPUs",
        "value": (statistics.median(least_ns) - overhead_ns) / 1000,
        "unit": "us",
        "method": f"NCCL's average of one array of {nbytes:,} bytes in place, between two events, all ranks let go at once; of each "
        f"repetition the least of {len(times_ns)} ranks, median of {len(least_ns)}, less event_overhead",
    }
