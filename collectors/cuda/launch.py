"""Kernels on the current GPU: loaded, bound to their arguments and scratch, and captured in a CUDA graph."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import cupy
import numpy as np
from cupy.cuda import driver, runtime
from cupy.cuda.function import Module

from warpladder.collectors.core.verify import poison
from warpladder.collectors.cuda.compiled import CompiledModule
from warpladder.collectors.cuda.tensor_maps import encode
from warpladder.workloads import torch_bridge
from warpladder.workloads.api import Array, Buffer, Buffers, Launch, TensorMap
from warpladder.workloads.communication import RowsOf

_MAX_DYNAMIC_SHARED: Final = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_STATIC_SHARED_LIMIT: Final = 48 * 1024


def load(module: CompiledModule) -> dict[str, Any]:
    """Kernels of a compiled module on the current device, by name expression; constants' addresses by symbol."""
    loaded = Module()
    loaded.load(module.cubin)
    functions = {name: loaded.get_function(kernel.symbol) for name, kernel in module.kernels.items()}
    return functions | {symbol: loaded.get_global_var(lowered) for symbol, lowered in module.constants.items()}


def bind(launch: Launch, function: Any, buffers: Mapping[str, Array]) -> Callable[..., None]:
    """What enqueues a launch on a stream, the current one if none is given.

    Args:
        launch: whose arguments are named.
        function: its kernel, as `load` gives it.
        buffers: on the device, by name.
    """
    arguments = tuple(_argument(value, buffers) for value in launch.args)
    if launch.dynamic_shared_bytes > _STATIC_SHARED_LIMIT:
        driver.funcSetAttribute(function.ptr, _MAX_DYNAMIC_SHARED, launch.dynamic_shared_bytes)

    def enqueue(stream: Any = None) -> None:
        function(launch.grid, launch.block, arguments, shared_mem=launch.dynamic_shared_bytes, stream=stream)

    return enqueue


def make_scratch(declared: Mapping[str, Buffer]) -> Buffers:
    """Scratch on the current GPU, as it is before the first operation."""
    scratch = {name: cupy.zeros(buffer.shape, buffer.dtype) for name, buffer in declared.items()}
    poison({name: array for name, array in scratch.items() if not declared[name].zeroed})
    return scratch


def pinned_like(array: np.ndarray) -> np.ndarray:
    """Page-locked host memory of the shape and type of an array, whatever it holds."""
    memory = cupy.cuda.alloc_pinned_memory(array.nbytes)
    return np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)


def graph_of(stream: Any, enqueue: Callable[[], object], times: int = 1) -> Callable[[], None]:
    """What launches a CUDA graph of so many executions on a stream.

    Raises:
        CUDARuntimeError: it cannot be captured.
    """
    # What is allocated meanwhile is the graph's for good: it writes there at each launch, also where that was freed since.
    pool = cupy.cuda.MemoryPool()
    of_torch, allocating = torch_bridge.memory_of_a_graph()
    stream.begin_capture(runtime.streamCaptureModeRelaxed)
    try:
        with cupy.cuda.using_allocator(pool.malloc), allocating:
            for _ in range(times):
                enqueue()
    finally:
        graph = stream.end_capture()

    def launch(memory: tuple[object, ...] = (pool, of_torch, enqueue)) -> None:  # held for as long as the graph can be launched
        graph.launch(stream)

    return launch


def _argument(value: Any, buffers: Mapping[str, Array]) -> Any:
    if isinstance(value, TensorMap):
        return encode(value, buffers[value.buffer].shape, buffers[value.buffer].data.ptr)
    if isinstance(value, RowsOf):
        return buffers[value.buffer][value.first : value.first + value.count]
    return buffers[value] if isinstance(value, str) else value
