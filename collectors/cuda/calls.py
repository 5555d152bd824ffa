"""Prepares variants that call a library or a user's function: on the timed stream, with the stream checked."""

from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter_ns
from types import MappingProxyType
from typing import Any, Final

import cupy

from warpladder.collectors.core.bench import PARTS, Failed, Unavailable, check_importable
from warpladder.collectors.core.verify import poison_free_memory
from warpladder.collectors.cuda.device import CudaDevice
from warpladder.collectors.cuda.first_use import first_uses
from warpladder.collectors.cuda.launch import allocators, graph_of
from warpladder.collectors.cuda.operation import OPERATION, CudaOperation
from warpladder.collectors.cuda.timed_stream import CURE, CURE_FUNCTION, CURE_TORCH, fault_of, look
from warpladder.data import hand_over
from warpladder.workloads import torch_bridge
from warpladder.workloads.api import Array, Buffers, Case, LibraryVariant, NotInstalled, Params, Repacked
from warpladder.workloads.declare.functions.variants import FunctionVariant
from warpladder.workloads.declare.launches import Communicator
from warpladder.workloads.declare.stepwise import Stepwise

_REPACKED: Final = "an input is copied into the layout of the library whenever it changes, outside of the device time"
_GRADIENTS: Final = "PyTorch computes gradients in threads of its own"
_DEFAULT_STREAM: Final = "it launches on CUDA's default stream"
_OWN_STREAM: Final = "its library has streams of its own, so that it has no device time by CUDA events"


def prepare_library(
    variant: LibraryVariant,
    config: Params,
    workload: str,
    case: Case,
    device: CudaDevice,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    communicator: Communicator | None,
    check_stream: bool,
) -> CudaOperation:
    """Prepare a call into a GPU library.

    Args:
        variant, config, workload, case: what to call; the workload by name.
        communicator: of the ranks that share the case, for a variant that communicates.
        check_stream: check that its work is all on the timed stream. Ranks would call it a different number of times.

    Raises:
        Unavailable: something that it needs is not installed, or cannot be imported here.
        Failed: its work is not on the timed stream.
    """
    more = (communicator,) if communicator else ()
    with torch_bridge.own_choice_of_stream():
        try:
            enqueue = _installed(lambda: variant.prepare(case, inputs, MappingProxyType(outputs), *more, **config))
        except ImportError as error:
            raise Unavailable(f"needs a package that is installed but cannot be imported: {error}") from error
        device.stream.use()  # `prepare` may have changed CuPy's current stream
        if check_stream and not more:
            of_torch = torch_bridge.current_stream() not in (None, device.stream.ptr)
            if fault := _fault(device, enqueue, inputs, outputs, CURE_TORCH if of_torch else CURE):
                raise Failed("launch_error", fault)
        operation = CudaOperation(enqueue, synchronizes=variant.synchronizes, enqueue=enqueue)
        if isinstance(enqueue, Repacked):
            operation.refresh, operation.has_constants, operation.note = enqueue.repack, True, _REPACKED
        if isinstance(enqueue, Stepwise) and enqueue.handed_over:
            operation.note = hand_over.text_of(enqueue.handed_over.zero_copy, enqueue.handed_over.interface)
            if check_stream and variant.first_use(case):
                operation.first_uses = partial(first_uses, workload, variant.name, case.name, enqueue.caches)
        if variant.graph:
            enqueue()  # libraries initialise at the first call, which cannot be captured
            device.stream.synchronize()
            operation.run = graph_of(device.stream, enqueue)
    return operation


def prepare_function(
    variant: FunctionVariant,
    config: Params,
    case: Case,
    device: CudaDevice,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    check_stream: bool,
) -> CudaOperation:
    """Prepare a user's function, and call it once. The arguments and exceptions are the same as for `prepare_library`."""
    check_importable(variant.requires)
    own = {name: cupy.empty_like(array) for name, array in inputs.items()} if variant.writes_inputs else {}
    call = _installed(
        lambda: variant.bind(case, config, MappingProxyType(own or dict(inputs)), MappingProxyType(dict(outputs)))
    )
    device.stream.use()
    parts = tuple((PARTS[name], part) for name, part in call.parts)
    no_graph = "" if call.captures else _GRADIENTS
    operation = CudaOperation(
        call.run, outputs=call.outputs, refresh=call.refresh, parts=parts, no_graph=no_graph, own_inputs=own
    )
    if own:
        operation.before = partial(_restore, own, inputs)
        operation.note = "writes its inputs, which are copied anew before each execution, outside of the time"
    operation.before()
    device.wait()
    started = perf_counter_ns()
    call.run()
    device.wait()
    operation.first_call_ns = perf_counter_ns() - started
    if variant.own_stream:
        operation.passes, operation.note = (OPERATION,), _OWN_STREAM

        def refresh_when_done() -> None:
            """Take over the inputs once the timed stream has filled them, for a library that reads them in its own stream."""
            device.wait()
            call.refresh()

        operation.refresh = refresh_when_done
    elif check_stream:

        def once() -> Buffers | None:
            operation.before()
            outputs: Buffers | None = call.outputs(operation.run())
            return outputs

        if fault := _fault(device, once, inputs, outputs, CURE_FUNCTION):
            _join_default_stream(device, operation)
            if _fault(device, once, inputs, outputs, CURE_FUNCTION):
                raise Failed("launch_error", fault)
    return operation


def _join_default_stream(device: CudaDevice, operation: CudaOperation) -> None:
    """Time the work of an operation on CUDA's default stream, where `kernel<<<grid, block>>>` and Numba's kernels without a stream are."""
    operation.run = device.with_default_stream(operation.run)
    operation.parts = tuple((name, device.with_default_stream(part)) for name, part in operation.parts)
    operation.no_graph = operation.no_graph or _DEFAULT_STREAM
    operation.remark(f"{_DEFAULT_STREAM}; the times hold what the streams need to wait for each other")


def _installed(prepare: Callable[[], Any]) -> Any:
    try:
        return prepare()
    except NotInstalled as missing:
        raise Unavailable(str(missing)) from missing


def _fault(
    device: CudaDevice,
    call: Callable[[], Buffers | None],
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    cure: str,
) -> str:
    """Why device times of a call would be wrong, and what to do; empty if its work is on the timed stream."""

    def poison_free() -> None:
        for allocate in allocators():
            poison_free_memory(outputs, False, allocate)

    return fault_of(look(device, call, inputs, outputs, poison_free), cure)


def _restore(own: Mapping[str, Array], inputs: Mapping[str, Array]) -> None:
    """Enqueue copies of the inputs."""
    for name, array in own.items():
        cupy.copyto(array, inputs[name])
