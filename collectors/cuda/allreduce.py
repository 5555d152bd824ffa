"""All-reduce that averages arrays over the GPUs of all ranks: by NCCL, or by MPI through page-locked host memory."""

import itertools
import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import cupy
import numpy as np
from cupy.cuda import runtime

from warpladder.collectors.core.bench import BenchCommunicator, Unavailable
from warpladder.collectors.cuda.launch import bind
from warpladder.collectors.cuda.pinned import pinned_like
from warpladder.collectors.cuda.steps import BoundStep, Stream, TwoStreams, joined, rows_taken
from warpladder.data.names import nccl_allreduce
from warpladder.workloads.api import Array, Buffers, Step, WorkloadError, ceil_div
from warpladder.workloads.declare.launches import AllReduce, RowsOf

_AVERAGE: Final = 4  # ncclAvg; CuPy has no constant for it
#: Highest priority: the all-reduce's few blocks start before the waiting blocks of a concurrent kernel.
_FIRST_PRIORITY: Final = -1
_ALIGNMENT: Final = 256
REPETITIONS: Final = 15


_PIECE_BYTES: Final = 256  # pieces are multiples of it, so that each is aligned for vector copies


def nccl_module() -> Any:
    """Return CuPy's NCCL module."""
    from cupy.cuda import nccl  # imported here: it warns if NCCL is missing, which a single GPU does not need

    return nccl


_nccl: list[Any] = []  # the process's communicator, after the first call


def nccl_of(communicator: BenchCommunicator) -> Any:
    """Return NCCL's communicator of these ranks, made once per process. All ranks call it. Raises Unavailable: NCCL is
    not installed."""
    if _nccl:
        return _nccl[0]
    nccl = nccl_module()
    if not nccl.available:
        raise Unavailable("needs NCCL, which CuPy does not find; pip install nvidia-nccl-cu13, or -cu12 for CUDA 12")
    number = communicator.broadcast(nccl.get_unique_id() if communicator.rank == 0 else None)
    _nccl.append(nccl.NcclCommunicator(communicator.size, number, communicator.rank))
    return _nccl[0]


class Gathered:
    """An input that is the same on all ranks. Each rank copies one piece from its host, and gets the others from other GPUs.

    Args:
        to: contiguous array on this rank's GPU.
        source: the whole input in page-locked memory.
    """

    def __init__(self, to: Array, source: np.ndarray, communicator: BenchCommunicator) -> None:
        self._nccl = nccl_of(communicator)
        self._to, self._source = to, source
        self._piece = source.nbytes // communicator.size // _PIECE_BYTES * _PIECE_BYTES
        self._first = communicator.rank * self._piece
        self._gathered = communicator.size * self._piece  # each rank copies the remainder of an uneven split itself

    def copy(self, stream: Any) -> None:
        """Enqueue the copy of this rank's piece."""
        self._copy(self._first, self._piece, stream)
        self._copy(self._gathered, self._source.nbytes - self._gathered, stream)

    def gather(self, stream: Any) -> None:
        """Enqueue the all-gather of the other pieces, after the copies of all ranks."""
        at = self._to.data.ptr
        if self._piece:
            self._nccl.allGather(at + self._first, at, self._piece, nccl_module().NCCL_INT8, stream.ptr)

    def _copy(self, first: int, nbytes: int, stream: Any) -> None:
        if nbytes:
            to, source = self._to.data.ptr + first, self._source.ctypes.data + first
            runtime.memcpyAsync(to, source, nbytes, runtime.memcpyHostToDevice, stream.ptr)


class BoundAllReduce:
    """An allreduce of arrays on this rank's GPU.

    Args:
        step: the workload's declaration of the all-reduce.
        arrays: contiguous float32 arrays on the GPU; replaced by their averages over all ranks.

    Attributes:
        waits: it waits for the device, so that a CUDA graph cannot contain it.
        timed: record events around it, for `elapsed_ns`.
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
        """Enqueue the all-reduce in a stream; by MPI, execute it and wait."""
        if self.timed:
            self._start.record(stream)
        if self.waits:
            self._through_the_host(stream)
        else:
            self._between_gpus(stream)
        if self.timed:
            self._stop.record(stream)

    def elapsed_ns(self) -> int:
        """Device time of the last timed all-reduce, including the wait for other ranks. Call it after the stream is done."""
        elapsed_ms: float = cupy.cuda.get_elapsed_time(self._start, self._stop)
        return round(elapsed_ms * 1e6)

    def _between_gpus(self, stream: Any) -> None:
        """Enqueue one NCCL group, which runs all arrays in one kernel."""
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
    """Allocate arrays of these shapes and types, one after another in one block of memory, each aligned."""
    offsets = [0, *itertools.accumulate(ceil_div(array.nbytes, _ALIGNMENT) * _ALIGNMENT for array in arrays.values())]
    block = cupy.zeros(offsets[-1], cupy.uint8)
    return {
        name: cupy.ndarray(array.shape, array.dtype, memptr=block.data + offset)
        for (name, array), offset in zip(arrays.items(), offsets, strict=False)
    }


def _pieces(step: AllReduce, arrays: Sequence[Array]) -> list[Array]:
    """Return the arrays of a step. Whole buffers that are adjacent in memory become one array, which includes the padding.

    Rows of a buffer stay separate arrays, because other rows may lie between them.
    """
    spans = [
        (id(array.data.mem) if isinstance(buffer, str) else -number, array.data.ptr, array.nbytes)
        for number, (buffer, array) in enumerate(zip(step.buffers, arrays, strict=True), start=1)
    ]
    return [cupy.ndarray((nbytes // 4,), "float32", memptr=arrays[first].data) for first, nbytes in joined(spans, _ALIGNMENT)]


def bound_steps(
    steps: Sequence[Step], loaded: Any, buffers: Buffers, communicator: BenchCommunicator, stream: Stream
) -> tuple[TwoStreams, tuple[BoundAllReduce, ...]]:
    """Bind an operation's steps. Returns the operation, ready to enqueue, and its all-reduces (none in a single process).

    Args:
        loaded: the kernels, by name expression.
        buffers: arrays on the device, by name.
    """
    bound, allreduces = [], []
    for step in steps:
        if isinstance(step, AllReduce):
            if communicator.size > 1:
                allreduce = BoundAllReduce(step, [_array(value, buffers) for value in step.buffers], communicator)
                allreduces.append(allreduce)
                bound.append(BoundStep(rows_taken(step), allreduce.enqueue, True, step.beside))
        else:
            bound.append(BoundStep(rows_taken(step), bind(step, loaded[step.kernel], buffers)))
    is_overlapped = any(step.beside for step in bound)
    beside = cupy.cuda.Stream(non_blocking=True, priority=_FIRST_PRIORITY) if is_overlapped else None
    return TwoStreams(bound, stream, beside, partial(cupy.cuda.Event, disable_timing=True)), tuple(allreduces)


def _array(value: str | RowsOf, buffers: Buffers) -> Array:
    if isinstance(value, RowsOf):
        return buffers[value.buffer][value.first : value.first + value.count]
    return buffers[value]


def allreduce_ns(device: Any, communicator: BenchCommunicator, nbytes: int) -> list[int]:
    """Time NCCL's in-place average of one array on this rank, in ns of the device. All ranks call it."""
    array = cupy.ones(nbytes // 4, cupy.float32)
    average = BoundAllReduce(AllReduce(("array",)), [array], communicator)
    device.stream.synchronize()
    enqueue = partial(average.enqueue, device.stream)
    for _ in range(2):  # NCCL connects the GPUs at its first call
        enqueue()
    device.stream.synchronize()
    return [device.time_queued(enqueue, meet=communicator.wait)[0] for _ in range(REPETITIONS)]


def ceiling_row(times_ns: Sequence[Sequence[int]], overhead_ns: float, nbytes: int) -> dict[str, Any]:
    """Return the row of `ceilings` for the times of all ranks. In each repetition the fastest rank counts: it never waits."""
    least_ns = [min(of_ranks) for of_ranks in zip(*times_ns, strict=True)]
    return {
        "name": nccl_allreduce(nbytes),
        "device": f"{len(times_ns)} GPUs",
        "value": (statistics.median(least_ns) - overhead_ns) / 1000,
        "unit": "us",
        "method": f"NCCL's average of one array of {nbytes:,} bytes in place, between two events, all ranks let go at once; of each "
        f"repetition the least of {len(times_ns)} ranks, median of {len(least_ns)}, less event_overhead",
    }
