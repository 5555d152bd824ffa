"""Loads kernels on the current GPU, binds them to arguments and scratch, and captures them in CUDA graphs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import cupy
import numpy as np
from cupy.cuda import driver, runtime
from cupy.cuda.function import Module

from warpladder.collectors.core.bench import Unavailable
from warpladder.collectors.core.verify import poison
from warpladder.collectors.cuda import peer_memory
from warpladder.collectors.cuda.compiler import CompiledModule
from warpladder.collectors.cuda.early import bind_early
from warpladder.collectors.cuda.tensor_maps import encode
from warpladder.workloads import torch_bridge
from warpladder.workloads.api import Array, Buffer, Buffers, Launch, TensorMap
from warpladder.workloads.declare.launches import PeerMemory, RowsOf

_STATIC_SHARED: Final = 1  # CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
_MAX_DYNAMIC_SHARED: Final = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


def load(module: CompiledModule) -> dict[str, Any]:
    """Load a module on the current device. Returns kernels by name expression, and addresses of constants by symbol."""
    loaded = Module()
    loaded.load(module.cubin)
    functions = {name: loaded.get_function(kernel.symbol) for name, kernel in module.kernels.items()}
    return functions | {symbol: loaded.get_global_var(lowered) for symbol, lowered in module.constants.items()}


def bind(launch: Launch, function: Any, buffers: Mapping[str, Array]) -> Callable[..., None]:
    """Return a function that enqueues a launch on a stream, by default the current one. Raises Unavailable: the GPU has
    less shared memory a block than the launch needs.

    Args:
        launch: the launch; its arguments name buffers.
        function: its kernel, as `load` returns it.
    """
    arguments = tuple(_argument(value, buffers) for value in launch.args)
    if launch.dynamic_shared_bytes:
        _allow_shared(launch, function)
    # A structure with an address keeps no memory alive; the default argument does.
    mapped = [buffers[value.buffer] for value in launch.args if isinstance(value, TensorMap | PeerMemory)]

    if launch.early:
        early = bind_early(launch, function.ptr, arguments)
        return lambda stream=None, memory=mapped: early((stream or cupy.cuda.get_current_stream()).ptr)

    def enqueue(stream: Any = None, memory: Sequence[Array] = mapped) -> None:
        function(launch.grid, launch.block, arguments, shared_mem=launch.dynamic_shared_bytes, stream=stream)

    return enqueue


def _allow_shared(launch: Launch, function: Any) -> None:
    if launch.dynamic_shared_bytes <= driver.funcGetAttribute(_MAX_DYNAMIC_SHARED, function.ptr):
        return  # another launch of the kernel may need more than this one: the limit is never lowered
    needed = driver.funcGetAttribute(_STATIC_SHARED, function.ptr) + launch.dynamic_shared_bytes
    most = cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
    if needed > most:
        raise Unavailable(f"{launch.kernel} needs {needed:,} bytes of shared memory a block, and this GPU has {most:,}")
    driver.funcSetAttribute(function.ptr, _MAX_DYNAMIC_SHARED, launch.dynamic_shared_bytes)


def make_scratch(declared: Mapping[str, Buffer]) -> Buffers:
    """Allocate scratch on the current GPU, in its state before the first operation."""
    scratch = {
        name: (cupy.zeros if buffer.zeroed else cupy.empty)(buffer.shape, buffer.storage) for name, buffer in declared.items()
    }
    poison({name: array for name, array in scratch.items() if not declared[name].zeroed})
    return scratch


def copy_to_host(array: Array, host: np.ndarray, stream: Any) -> None:
    """Enqueue a copy to an array of the same shape and type in host memory."""
    if not array.flags.c_contiguous:  # CuPy's `get` would copy it within `with stream:`, which leaves the null stream current
        array = cupy.ascontiguousarray(array)  # for these only: it gives an array without axes one
    array.get(stream, out=host, blocking=False)


def graph_of(stream: Any, enqueue: Callable[[], object], times: int = 1) -> Callable[[], None]:
    """Capture `times` executions in a CUDA graph. Returns a function that launches the graph on the stream. Raises
    CUDARuntimeError: the work cannot be captured."""
    # Memory allocated during capture must live as long as the graph, which writes to it at each launch.
    pool = cupy.cuda.MemoryPool()
    of_torch, allocating = torch_bridge.memory_of_a_graph()
    stream.begin_capture(runtime.streamCaptureModeRelaxed)
    try:
        with cupy.cuda.using_allocator(pool.malloc), allocating:
            for _ in range(times):
                enqueue()
    finally:
        graph = stream.end_capture()

    def launch(memory: tuple[object, ...] = (pool, of_torch, enqueue)) -> None:  # the default argument keeps the memory alive
        graph.launch(stream)

    return launch


def allocators() -> list[Callable[[Array], Array]]:
    """Functions that allocate an uninitialised array like another one, from the memory of CuPy, and of PyTorch if it uses the GPU."""
    of_torch = torch_bridge.empty_like if torch_bridge.is_on_gpu() else None
    return [cupy.empty_like, *filter(None, [of_torch])]


def _argument(value: Any, buffers: Mapping[str, Array]) -> Any:
    if isinstance(value, TensorMap):
        array = buffers[value.buffer]
        return encode(value, array.shape, array.data.ptr, array.dtype.name)
    if isinstance(value, PeerMemory):
        return peer_memory.argument(buffers[value.buffer])
    if isinstance(value, RowsOf):
        return buffers[value.buffer][value.first : value.first + value.count]
    return buffers[value] if isinstance(value, str) else value
