"""Times the parts of an operation, in one more execution beside the operation, without a CUDA graph: events cannot time its parts."""

import itertools
from typing import TYPE_CHECKING, Any

import cupy

from warpladder.collectors.core.bench import BenchCommunicator
from warpladder.collectors.cuda.operation import CudaOperation
from warpladder.data.names import Phase

if TYPE_CHECKING:
    from warpladder.collectors.cuda.device import CudaDevice


def parts_ns(operation: CudaOperation, device: "CudaDevice", communicator: BenchCommunicator) -> dict[str, int]:
    """Device times in ns by scope: of the all-reduces, or of named parts such as forward and backward; empty if it has neither."""
    if operation.allreduces:
        return {Phase.ALLREDUCE: _allreduce_ns(operation, device, communicator)}
    return _named_parts_ns(operation, device) if operation.parts else {}


def _allreduce_ns(operation: CudaOperation, device: "CudaDevice", communicator: BenchCommunicator) -> int:
    assert operation.enqueue
    for allreduce in operation.allreduces:
        allreduce.timed = True
    try:
        if operation.waits:
            communicator.wait()
            operation.enqueue()
            device.stream.synchronize()
        else:
            device.time_queued(operation.enqueue, meet=communicator.wait)
    finally:
        for allreduce in operation.allreduces:
            allreduce.timed = False
    return round(sum(device.without_events(allreduce.elapsed_ns()) for allreduce in operation.allreduces))


def _named_parts_ns(operation: CudaOperation, device: "CudaDevice") -> dict[str, int]:
    marks, returned = [cupy.cuda.Event() for _ in (None, *operation.parts)], tuple[Any, ...]()
    operation.before()
    with device.held():
        marks[0].record(device.stream)
        for mark, (_, part) in zip(marks[1:], operation.parts, strict=True):
            returned = (part(*returned),)
            mark.record(device.stream)
    device.stream.synchronize()
    times = (cupy.cuda.get_elapsed_time(*pair) * 1e6 for pair in itertools.pairwise(marks))
    return {scope: round(device.without_events(ns)) for (scope, _), ns in zip(operation.parts, times, strict=True)}
