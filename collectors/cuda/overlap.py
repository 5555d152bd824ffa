"""Copies that overlap kernels on the current GPU: binds the parts of a plan to buffers and streams."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime

from warpladder.collectors.core.bench import BenchCommunicator
from warpladder.collectors.core.plan import BufferRows
from warpladder.collectors.cuda.allreduce import Gathered
from warpladder.collectors.cuda.launch import bind, make_scratch
from warpladder.collectors.cuda.pinned import PinnedBuffers, Together
from warpladder.collectors.cuda.transfers import BoundCall, BoundCopy, BoundPart, Overlap, PartPlan
from warpladder.workloads.api import Array, Buffer, Buffers


@dataclass(frozen=True)
class Copies:
    """How inputs and outputs are copied.

    Attributes:
        host: inputs and outputs in page-locked memory.
        inputs, outputs: the same on the device.
        gathered: inputs that ranks gather from one another, by name.
        together: inputs that one copy brings; None if there are none.
    """

    host: Mapping[str, np.ndarray]
    inputs: Buffers
    outputs: Buffers
    gathered: Mapping[str, Gathered] = field(default_factory=dict)
    together: Together | None = None

    def bring(self, rows: BufferRows) -> BoundCopy:
        """The copy of rows of an input to the device."""
        if rows.name in self.gathered:
            gathered = self.gathered[rows.name]
            return BoundCopy((rows,), gathered.copy, gathered.gather)
        return BoundCopy((rows,), partial(_copy_in, rows.of(self.inputs[rows.name]), rows.of(self.host[rows.name])))


def copies_of(
    parts: Sequence[PartPlan],
    pinned: PinnedBuffers,
    inputs: Buffers,
    outputs: Buffers,
    gathered: Sequence[str],
    communicator: BenchCommunicator,
) -> Copies:
    """Return how a plan copies inputs and outputs.

    Args:
        parts: the plan.
        inputs, outputs: the bench's, on the device. Inputs that are copied together get their own memory.
    """
    together = pinned.together([rows.name for rows in parts[0].together]) if parts[0].together else None
    own = {**inputs, **(together.device if together else {})}
    pieces = {name: Gathered(own[name], pinned.arrays[name], communicator) for name in gathered}
    return Copies(pinned.arrays, own, outputs, pieces, together)


def overlap(
    parts: Sequence[PartPlan],
    loaded: Mapping[str, Any],
    copies: Copies,
    scratch: Buffers,
    refresh: Callable[[], object],
    kernels: Any,
) -> Callable[[], None]:
    """Return a function that enqueues an operation's copies and kernels, part by part.

    Args:
        loaded: its kernels, by name expression.
        copies: how its inputs and outputs are copied.
        scratch: scratch of the whole case on the device, for the first stream of kernels; other streams get their own.
        refresh: enqueues the update of data derived from inputs, after the copies that the first kernel waits for.
        kernels: the current stream; it is the first stream of kernels.
    """
    streams = [kernels, *(cupy.cuda.Stream(non_blocking=True) for _ in range(max(part.stream for part in parts)))]
    scratches = [scratch, *(_scratch_of(number, parts, scratch) for number in range(1, len(streams)))]
    bound = [_bound(part, loaded, copies, scratches[part.stream]) for part in parts]
    if bound[0].calls:
        first = bound[0].calls[0]
        bound[0] = replace(
            bound[0], calls=[replace(first, enqueue=partial(_in_turn, refresh, first.enqueue)), *bound[0].calls[1:]]
        )
    copies_in, copies_out, gathers = (cupy.cuda.Stream(non_blocking=True) for _ in range(3))
    return Overlap(bound, copies_in, streams, copies_out, gathers, partial(cupy.cuda.Event, disable_timing=True)).enqueue


def _scratch_of(stream: int, parts: Sequence[PartPlan], scratch: Buffers) -> Buffers:
    """Return a further stream's scratch, sized for its largest part. Scratch that the first stream makes for all is shared."""
    in_common = {name for part in parts for names in part.makes for name in names}
    most: dict[str, Buffer] = {}
    for part in parts:
        if part.stream == stream:
            for name, buffer in part.scratch.items():
                if name not in in_common and (name not in most or most[name].nbytes < buffer.nbytes):
                    most[name] = buffer
    return {**scratch, **make_scratch(most)}


def _bound(
    part: PartPlan,
    loaded: Mapping[str, Any],
    copies: Copies,
    scratch: Buffers,
) -> BoundPart:
    device = {**copies.inputs, **copies.outputs}
    buffers = {name: rows.of(device[name]) for name, rows in part.rows.items()}
    for name, buffer in part.scratch.items():
        buffers[name] = scratch[name].reshape(-1)[: math.prod(buffer.shape)].reshape(buffer.shape)
    calls = [
        BoundCall(waits, bind(launch, loaded[launch.kernel], buffers), makes)
        for launch, waits, makes in zip(part.launches, part.waits, part.makes, strict=True)
    ]
    together = [BoundCopy(part.together, copies.together.copy)] if part.together and copies.together else []
    return BoundPart(
        [*together, *(copies.bring(rows) for rows in part.copies_in)],
        calls,
        [partial(_copy_out, rows.of(copies.host[rows.name]), rows.of(copies.outputs[rows.name])) for rows in part.copies_out],
        part.stream,
    )


def _copy_in(to: Array, source: np.ndarray, stream: Any) -> None:
    runtime.memcpyAsync(to.data.ptr, source.ctypes.data, source.nbytes, runtime.memcpyHostToDevice, stream.ptr)


def _copy_out(to: np.ndarray, source: Array, stream: Any) -> None:
    runtime.memcpyAsync(to.ctypes.data, source.data.ptr, to.nbytes, runtime.memcpyDeviceToHost, stream.ptr)


def _in_turn(refresh: Callable[[], object], enqueue: Callable[[Any], object], stream: Any) -> None:
    refresh()  # enqueues into the current stream, which is the first
    enqueue(stream)
