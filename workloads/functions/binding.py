"""Gives a user's function its arguments, and takes its outputs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warpladder.workloads import torch_bridge
from warpladder.workloads.api import Array, Buffers, WorkloadError
from warpladder.workloads.functions import arrays, gradients
from warpladder.workloads.functions.arrays import Form
from warpladder.workloads.functions.call import Call
from warpladder.workloads.functions.extensions import CFunction
from warpladder.workloads.functions.given import Arguments, check_takes, named_outputs
from warpladder.workloads.functions.parameters import OUT, STREAM, parameters_of, place_of


def call_of(
    function: Callable[..., Any],
    library: str,
    on_gpu: bool,
    given: Arguments,
    outputs: Mapping[str, Form],
    values: Mapping[str, Any],
    buffers: tuple[Mapping[str, Array], Mapping[str, Array]],
    writes_inputs: bool,
    differentiated: Sequence[str] = (),
) -> Call:
    """A function with the arrays of a bench.

    Args:
        function: the user's.
        library: whose arrays it takes.
        on_gpu: it runs on the GPU.
        given: the forms of the inputs, and the values that are no arrays.
        outputs: the forms of the outputs.
        values: of the axes and the config, by name.
        buffers: inputs and outputs of the bench, by name.
        writes_inputs: it may give one of its inputs as an output.
        differentiated: inputs whose gradients are outputs too.

    Raises:
        WorkloadError: the function does not take these inputs, or writes where gradients are asked for.
        NotInstalled: its library is not there.
    """
    check_takes(function, given, tuple(values))
    if on_gpu and library == "torch":
        torch_bridge.use_current_stream()
    stored, written = buffers
    inputs = _inputs(given, stored, library)
    takes = parameters_of(function, tuple(values))
    keywords = {name: values[name] for name in takes.named if name in values}
    if OUT in takes.named:
        targets = tuple(arrays.as_given(form, written[name], library) for name, form in outputs.items())
        keywords[OUT] = targets[0] if len(targets) == 1 else targets
    if STREAM in takes.named:
        keywords[STREAM] = _stream(library) if on_gpu else None
    if (differentiated or library == "jax") and (OUT in takes.named or writes_inputs):
        why = "gradients need" if differentiated else "arrays of JAX cannot be written; it needs"
        raise WorkloadError(f"{place_of(function)} writes to its arguments; {why} a function that returns its outputs")
    run = _partial(function, () if given.by_name else tuple(inputs.values()), keywords | (inputs if given.by_name else {}))
    if differentiated:
        return _with_gradients(run, inputs, differentiated, outputs, on_gpu)
    first = next((value for name, value in inputs.items() if name in given.forms), None)

    def take(returned: Any) -> Buffers | None:
        if returned is None and OUT in takes.named:
            return None
        if returned is None and writes_inputs:
            returned = first
        found = named_outputs(returned, outputs, OUT in takes.named)
        return {name: arrays.taken(name, value, outputs[name], on_gpu) for name, value in found.items()}

    if library == "jax":
        return _of_jax(function, given, stored, keywords, take)
    return Call(run, take)


def _inputs(given: Arguments, stored: Mapping[str, Array], library: str) -> dict[str, Any]:
    """The inputs of a function, by name."""
    return {
        name: arrays.as_given(value, stored[name], library) if isinstance(value, Form) else value
        for name, value in given.values.items()
    }


def _with_gradients(
    run: Callable[[], Any],
    inputs: Mapping[str, Any],
    differentiated: Sequence[str],
    outputs: Mapping[str, Form],
    on_gpu: bool,
) -> Call:
    """The function, and after it the gradients with respect to some of its inputs."""
    leaves = [inputs[name].requires_grad_(True) for name in differentiated]
    of_inputs = {gradients.gradient_of(name): None for name in differentiated}
    returns = {name: form for name, form in outputs.items() if name not in of_inputs}
    real = {name: form for name, form in returns.items() if form.is_real}
    both, parts = gradients.forward_and_backward(run, leaves, gradients.upstream_of(real, leaves[0]))

    def take(returned: Any) -> Buffers:
        values, computed = returned
        found = named_outputs(values, returns) | dict(zip(of_inputs, computed, strict=True))
        return {name: arrays.taken(name, value, outputs[name], on_gpu) for name, value in found.items()}

    return Call(both, take, parts, captures=False)


def _partial(function: Callable[..., Any], positional: tuple[Any, ...], keywords: Mapping[str, Any]) -> Callable[[], Any]:
    if isinstance(function, CFunction):
        return function.with_arguments(*positional, **keywords)
    if keywords:
        return lambda: function(*positional, **keywords)
    return lambda: function(*positional)


def _of_jax(
    function: Callable[..., Any],
    given: Arguments,
    stored: Mapping[str, Array],
    keywords: Mapping[str, Any],
    take: Callable[[Any], Buffers | None],
) -> Call:
    """A call with arrays of JAX. They are copies of the stored ones. JAX returns before it has computed, on the host too."""
    import jax

    inputs: dict[str, Any] = {}

    def refresh() -> None:
        inputs.update(_inputs(given, stored, "jax"))

    def run() -> Any:
        if given.by_name:
            return jax.block_until_ready(function(**inputs, **keywords))
        return jax.block_until_ready(function(*inputs.values(), **keywords))

    refresh()
    return Call(run, take, refresh=refresh)


def _stream(library: str) -> Any:
    """CuPy's current stream, which is timed, as a library's object; its address for a library without one."""
    import cupy

    stream = cupy.cuda.get_current_stream()
    match library:
        case "cupy":
            return stream
        case "torch":
            import torch

            return torch.cuda.current_stream()
        case "numba":
            from numba import cuda

            return cuda.external_stream(stream.ptr)
    return stream.ptr
