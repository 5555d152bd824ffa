"""Copies that overlap kernels, on the current GPU: page-locked memory, and the parts of a plan bound to streams."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime

from collectors.cuda_launch import bind
from collectors.transfers import BoundPart, Overlap, PartPlan
from workloads.api import Array, Buffers


def pinned_like(array: np.ndarray) -> np.ndarray:
    """Page-locked host memory of the shape and type of an array, whatever it holds."""
    memory = cupy.cuda.alloc_pinned_memory(array.nbytes)
    return np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)


def overlap(
    parts: Sequence[PartPlan],
    loaded: Mapping[str, Any],
    host: Mapping[str, np.ndarray],
    device: Buffers,
    scratch: Buffers,
    refresh: Callable[[], object],
    kernels: Any,
) -> Callable[[], None]:
    """What enqueues an operation's copies and kernels, part by part.

    Args:
        parts: the plan.
        loaded: its kernels, by name expression.
        host: inputs and outputs in page-locked memory.
        device: inputs and outputs on the device.
        scratch: on the device, that of the whole case.
        refresh: enqueues what is derived from inputs, after the copies that the first kernel waits for.
        kernels: the current stream.
    """
    bound = [_bound(part, loaded, host, device, scratch) for part in parts]
    if bound and bound[0].calls:
        waits, call = bound[0].calls[0]
        bound[0] = BoundPart(
            bound[0].copies_in, [(waits, partial(_in_turn, refresh, call)), *bound[0].calls[1:]], bound[0].copies_out
        )
    copies_in, copies_out = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    return Overlap(bound, copies_in, kernels, copies_out, partial(cupy.cuda.Event, disable_timing=True)).enqueue


def _bound(
    part: PartPlan, loaded: Mapping[str, Any], host: Mapping[str, np.ndarray], device: Buffers, scratch: Buffers
) -> BoundPart:
    buffers = {name: rows.of(device[name]) for name, rows in part.rows.items()}
    for name, buffer in part.scratch.items():
        buffers[name] = scratch[name].reshape(-1)[: math.prod(buffer.shape)].reshape(buffer.shape)
    calls = [bind(launch, loaded[launch.kernel], buffers) for launch in part.launches]
    return BoundPart(
        [(rows, partial(_copy_in, rows.of(device[rows.name]), rows.of(host[rows.name]))) for rows in part.copies_in],
        list(zip(part.waits, calls, strict=True)),
        [partial(_copy_out, rows.of(host[rows.name]), rows.of(device[rows.name])) for rows in part.copies_out],
    )


def _copy_in(to: Array, source: np.ndarray, stream: Any) -> None:
    runtime.memcpyAsync(to.data.ptr, source.ctypes.data, source.nbytes, runtime.memcpyHostToDevice, stream.ptr)


def _copy_out(to: np.ndarray, source: Array, stream: Any) -> None:
    runtime.memcpyAsync(to.ctypes.data, source.data.ptr, to.nbytes, runtime.memcpyDeviceToHost, stream.ptr)


def _in_turn(*calls: Callable[[], object]) -> None:
    for call in calls:
        call()
