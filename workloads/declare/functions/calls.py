"""A user's function, its parameters, its arguments and its outputs; messages about them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module as _imported
from typing import Any, Final

from warpladder.workloads import torch_bridge
from warpladder.workloads.declare import locate
from warpladder.workloads.declare.functions import arrays
from warpladder.workloads.declare.functions.arrays import Form
from warpladder.workloads.declare.functions.extensions import CFunction
from warpladder.workloads.declare.workloads import Array, Buffers, WorkloadError, WrongOutput

# -- parameters ------------------------------------------------------------------------------------------------------------------

#: A parameter of this name is given the outputs to write to: one array, or a tuple of several.
OUT: Final = "out"
#: A parameter of this name is given the stream that is timed, in the form that the function's library takes.
STREAM: Final = "stream"

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class Parameters:
    """The parameters of a function.

    Attributes:
        inputs: names of those that take inputs, in order; None if the function takes any number, or does not tell.
        needed: how many of them have no default.
        by_name: names of those that take inputs by name; None if the function takes any, or does not tell.
        missing: names of those that have no default and take neither an input in order nor one of `special`.
        special: names of those that take an axis, a config's value, the outputs or the stream.
    """

    inputs: tuple[str, ...] | None
    needed: int
    by_name: tuple[str, ...] | None
    missing: tuple[str, ...]
    special: tuple[str, ...]


def parameters_of(function: Callable[..., Any], special: Sequence[str]) -> Parameters:
    """The parameters of a function.

    Args:
        function: Python's, or of an extension, which may not tell its parameters.
        special: names of axes and of the config's values.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return Parameters(None, 0, None, (), ())
    special_names = {*special, OUT, STREAM}
    inputs = [each for each in parameters if each.kind in _POSITIONAL and each.name not in special_names]
    only_by_name = [each for each in parameters if each.kind is each.KEYWORD_ONLY and each.name not in special_names]
    either = [each for each in inputs if each.kind is not each.POSITIONAL_ONLY]
    kinds = {each.kind for each in parameters}
    return Parameters(
        None if inspect.Parameter.VAR_POSITIONAL in kinds else tuple(each.name for each in inputs),
        sum(each.default is each.empty for each in inputs),
        None if inspect.Parameter.VAR_KEYWORD in kinds else tuple(each.name for each in (*either, *only_by_name)),
        tuple(each.name for each in only_by_name if each.default is each.empty),
        tuple(each.name for each in parameters if each.name in special_names and each.kind is not each.POSITIONAL_ONLY),
    )


def place_of(function: Callable[..., Any]) -> str:
    """`bench.py:12: name`, for a message about a function; its name alone where its source is not known."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    name = getattr(function, "__name__", type(function).__name__)
    return f"{code.co_filename.rpartition('/')[2]}:{code.co_firstlineno}: {name}" if code else name


def raised_by(function: Callable[..., Any], what: str, error: BaseException) -> WorkloadError:
    """The error for an exception of a user's function other than a variant.

    Args:
        function: the user's.
        what: its part in the benchmark, such as `inputs`.
        error: the exception; an error of this project already has the place and the cause in its message.
    """
    if isinstance(error, WorkloadError):
        return error
    name, text = getattr(function, "__name__", type(function).__name__), locate.text_of(error)
    raised = ": ".join(filter(None, [type(error).__name__, text]))
    where = locate.where(error) or place_of(function).rpartition(": ")[0]
    message = f"{name if name == what else f'{name}, {what},'} raises {raised}; mend it, then try again"
    return WorkloadError(f"{where}: {message}" if where else message)


# -- inputs and outputs by name --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arguments:
    """The inputs that the function `inputs` gave for a case.

    Attributes:
        values: name -> form of an array, or the value itself of anything else.
        by_name: it was a dict, so that functions take the values by name.
    """

    values: Mapping[str, Any]
    by_name: bool

    @property
    def forms(self) -> dict[str, Form]:
        return {name: value for name, value in self.values.items() if isinstance(value, Form)}


def check_takes(function: Callable[..., Any], arguments: Arguments, special: Sequence[str]) -> None:
    """Check that a function takes the inputs. Raises WorkloadError."""
    takes = parameters_of(function, special)
    where, count = place_of(function), len(arguments.values)
    if arguments.by_name:
        names = tuple(arguments.values)
        if takes.by_name is not None and (unknown := [name for name in names if name not in takes.by_name]):
            raise WorkloadError(
                f"{where} has no parameter {unknown[0]}, which `inputs` gives; it has {_listed(takes.by_name)}; make them the same"
            )
        needed = takes.inputs[: takes.needed] if takes.inputs else ()
        missing = [name for name in (*needed, *takes.missing) if name not in names]
    else:
        missing = list(takes.missing)
        if not missing and takes.inputs is not None and not takes.needed <= count <= len(takes.inputs):
            raise WorkloadError(
                f"{where} takes {_listed(takes.inputs)}, and `inputs` gives {_counted(count, 'value')} "
                f"({_listed(tuple(arguments.values))}); make them the same"
            )
    if missing:
        raise WorkloadError(
            f"{where} takes {missing[0]}, which is neither an axis, a config's value nor one of the inputs in order; "
            "give it a default, or a value in configs"
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "no inputs"


def named_outputs(returned: Any, outputs: Mapping[str, Any], takes_out: bool = False) -> dict[str, Any]:
    """The outputs of a function, by name. Raises WrongOutput: it is nothing, has another number of outputs, or is not
    an array, a tuple or a dict.

    Args:
        returned: what it returned.
        outputs: the outputs of the reference, by name.
        takes_out: it may write to its parameter `out` in place of returning outputs.
    """
    several = "an array" if len(outputs) == 1 else f"a tuple of the {len(outputs)} outputs, or a dict of them"
    if returned is None:
        raise WrongOutput(f"returns None; return the output, or take a parameter `{OUT}` and write to it")
    kind = type(returned)  # never the object itself, whose class may answer to anything
    if issubclass(kind, Mapping):
        if set(returned) != set(outputs):
            raise WrongOutput(
                f"returns a dict of {_listed(sorted(map(str, returned)))}, and the reference's outputs are {_listed(tuple(outputs))}; "
                "make the names the same"
            )
        return {name: returned[name] for name in outputs}
    if issubclass(kind, tuple | list):
        other = next((each for each in returned if not (arrays.is_number(each) or arrays.library_of(each))), outputs)
        if other is not outputs:
            raise WrongOutput(f"returns {arrays.described(returned)} that holds {arrays.described(other)}; return {several}")
        if len(returned) != len(outputs):
            raise WrongOutput(
                f"returns {_counted(len(returned), 'output')}, and the reference {len(outputs)}; make them the same"
            )
        return dict(zip(outputs, returned, strict=True))
    if arrays.is_unfinished(returned) or not (arrays.is_number(returned) or arrays.library_of(returned)):
        instead = f"; return None after writing to `{OUT}`" if takes_out else f"; return {several}"
        raise WrongOutput(f"returns {arrays.described(returned)}{instead}")
    if len(outputs) != 1:
        raise WrongOutput(f"returns 1 array, and the reference {len(outputs)} outputs; return {several}")
    return {next(iter(outputs)): returned}


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


# -- gradients -------------------------------------------------------------------------------------------------------------------

#: The parts of an operation.
FORWARD: Final = "forward"
BACKWARD: Final = "backward"
_SEED: Final = 0


def gradient_of(name: str) -> str:
    """The name of the output that is the gradient with respect to an input."""
    return f"d_{name}"


def differentiated_of(gradients: bool | Sequence[str], inputs: Mapping[str, Form]) -> tuple[str, ...]:
    """The inputs whose gradients are computed: those asked for, or all of real numbers. Raises WorkloadError: the
    inputs are not PyTorch's, or one that was asked for does not hold real numbers."""
    if not gradients:
        return ()
    if others := [name for name, form in inputs.items() if form.library != "torch"]:
        raise WorkloadError(f"gradients: input {others[0]} is an array of {inputs[others[0]].library}; give PyTorch's tensors")
    real = tuple(name for name, form in inputs.items() if form.is_real)
    if gradients is True:
        return real
    if bad := [name for name in gradients if name not in real]:
        raise WorkloadError(f"gradients: {bad[0]} is no input of real numbers; name some of {', '.join(real)}")
    return tuple(gradients)


def backward(returned: Any, leaves: Sequence[Any], upstream: Sequence[Any]) -> tuple[Any, ...]:
    """The gradients of what a function returned with respect to its inputs.

    Args:
        returned: one or several outputs; outputs of real numbers are differentiated.
        leaves: the inputs.
        upstream: the gradient of each of these outputs, of its shape and type.
    """
    import torch

    gradients: tuple[Any, ...] = torch.autograd.grad(real_outputs(returned), leaves, upstream)
    return gradients


def real_outputs(returned: Any) -> list[Any]:
    """The outputs of real numbers, in order."""
    if isinstance(returned, Mapping):
        returned = list(returned.values())
    outputs = returned if isinstance(returned, tuple | list) else [returned]
    return [each for each in outputs if arrays.library_of(each) == "torch" and each.is_floating_point()]


def upstream_of(forms: Mapping[str, Form], like: Any, double: bool = False) -> list[Any]:
    """The gradients of outputs, the same for every variant and for the reference: random numbers of each output's type.

    Args:
        forms: of the outputs of real numbers.
        like: a tensor on the device where they are needed.
        double: in float64, after they were rounded to the output's type.
    """
    import torch

    values_of = []
    for form in forms.values():
        values = torch.randn(form.shape, generator=torch.Generator().manual_seed(_SEED)).to(getattr(torch, form.dtype))
        values_of.append((values.double() if double else values).to(like.device))
    return values_of


# -- a call ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A function with its arguments.

    Attributes:
        run: calls it. It returns what the function returns, so that nothing is added to its time.
        outputs: turns that into the outputs by name, outside of the time. It gives None if the function wrote the bench's outputs.
            It raises WrongOutput.
        parts: parts of a call by name, in order, such as forward and backward. Each takes what the one before it returned.
        refresh: takes over inputs that changed since the call was made, for a library whose arrays are copies.
        captures: a CUDA graph can hold it. Gradients allocate in threads of PyTorch's own, where a graph does not keep the memory.
    """

    run: Callable[[], Any]
    outputs: Callable[[Any], Buffers | None]
    parts: tuple[tuple[str, Callable[..., Any]], ...] = ()
    captures: bool = True
    refresh: Callable[[], object] = lambda: None


def call_of(
    function: Callable[..., Any],
    library: str,
    on_gpu: bool,
    arguments: Arguments,
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
        arguments: the forms of the inputs, and the values that are no arrays.
        outputs: the forms of the outputs.
        values: of the axes and the config, by name.
        buffers: inputs and outputs of the bench, by name.
        writes_inputs: it may give one of its inputs as an output.
        differentiated: inputs whose gradients are outputs too.

    Raises:
        WorkloadError: the function does not take these inputs, or writes where gradients are asked for.
        NotInstalled: its library is not there.
    """
    check_takes(function, arguments, tuple(values))
    if varying := next((name for name, form in outputs.items() if form.varies), ""):
        _check_can_vary(function, varying, on_gpu, tuple(values))
    if on_gpu and library == "torch":
        torch_bridge.use_current_stream()
    stored, written = buffers
    inputs = _inputs(arguments, stored, library)
    takes = parameters_of(function, tuple(values))
    keywords = {name: values[name] for name in takes.special if name in values}
    if OUT in takes.special:
        targets = tuple(arrays.as_argument(form, written[name], library) for name, form in outputs.items())
        keywords[OUT] = targets[0] if len(targets) == 1 else targets
    if STREAM in takes.special:
        keywords[STREAM] = _stream(library) if on_gpu else None
    if (differentiated or library == "jax") and (OUT in takes.special or writes_inputs):
        why = "gradients need" if differentiated else "arrays of JAX cannot be written; it needs"
        raise WorkloadError(f"{place_of(function)} writes to its arguments; {why} a function that returns its outputs")
    run = _partial(
        function, () if arguments.by_name else tuple(inputs.values()), keywords | (inputs if arguments.by_name else {})
    )
    if differentiated:
        return _with_gradients(run, inputs, differentiated, outputs, on_gpu)
    first = next((value for name, value in inputs.items() if name in arguments.forms), None)

    def take(returned: Any) -> Buffers | None:
        if returned is None and OUT in takes.special:
            return None
        if returned is None and writes_inputs:
            returned = first
        named_arrays = named_outputs(returned, outputs, OUT in takes.special)
        return {name: arrays.returned_array(name, value, outputs[name], on_gpu) for name, value in named_arrays.items()}

    if library == "jax" or any(form.library == "python" for form in arguments.forms.values()):
        return _of_copies(function, library, arguments, stored, keywords, take)
    return Call(run, take)


def _check_can_vary(function: Callable[..., Any], output: str, on_gpu: bool, special: Sequence[str]) -> None:
    """Raise WorkloadError if a function cannot give an output whose shape depends on the inputs."""
    if on_gpu:
        raise WorkloadError(
            f"{place_of(function)}: the size of output {output} depends on the numbers in the inputs, which is measured on the host only; "
            "return an array of the largest size, and how much of it counts"
        )
    if OUT in parameters_of(function, special).special:
        raise WorkloadError(
            f"{place_of(function)} writes to `{OUT}`, and the size of output {output} depends on the numbers in the inputs; return it"
        )


def _inputs(arguments: Arguments, stored: Mapping[str, Array], library: str) -> dict[str, Any]:
    """The inputs of a function, by name."""
    return {
        name: arrays.as_argument(value, stored[name], library) if isinstance(value, Form) else value
        for name, value in arguments.values.items()
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
    of_inputs = {gradient_of(name): None for name in differentiated}
    returns = {name: form for name, form in outputs.items() if name not in of_inputs}
    real = {name: form for name, form in returns.items() if form.is_real}
    upstream = upstream_of(real, leaves[0])

    def after(returned: Any) -> tuple[Any, tuple[Any, ...]]:
        return returned, backward(returned, leaves, upstream)

    def take(returned: Any) -> Buffers:
        values, computed = returned
        named_arrays = named_outputs(values, returns) | dict(zip(of_inputs, computed, strict=True))
        return {name: arrays.returned_array(name, value, outputs[name], on_gpu) for name, value in named_arrays.items()}

    return Call(lambda: after(run()), take, ((FORWARD, run), (BACKWARD, after)), captures=False)


def _partial(function: Callable[..., Any], positional: tuple[Any, ...], keywords: Mapping[str, Any]) -> Callable[[], Any]:
    """A call of a function with all arguments in order where its parameters permit it: to unpack a dict takes up to a microsecond where it is in
    no cache, which would count for those variants only that take `out` or a config's value."""
    if isinstance(function, CFunction):
        return function.with_arguments(*positional, **keywords)
    if not keywords:
        return lambda: function(*positional)
    in_order = _in_order(function, positional, keywords)
    if in_order is None:
        return lambda: function(*positional, **keywords)
    return lambda: function(*in_order)


def _in_order(function: Callable[..., Any], positional: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """All arguments of a call in the order of the function's parameters; None where it takes some by name only, or does not tell.

    What a decorator wraps is left aside, since it may hand arguments on by name only; a dispatcher of Numba tells nothing else.
    """
    with suppress(TypeError, ValueError):
        try:
            signature = inspect.signature(function, follow_wrapped=False)
        except ValueError:
            signature = inspect.signature(function)
        bound = signature.bind(*positional, **keywords)
        bound.apply_defaults()
        return None if bound.kwargs else bound.args
    return None


def _of_copies(
    function: Callable[..., Any],
    library: str,
    arguments: Arguments,
    stored: Mapping[str, Array],
    keywords: Mapping[str, Any],
    take: Callable[[Any], Buffers | None],
) -> Call:
    """A call with copies of the stored inputs: arrays of JAX, or numbers. JAX returns before it has computed, on the host too."""
    inputs: dict[str, Any] = {}
    finished: Callable[[Any], Any] = _imported("jax").block_until_ready if library == "jax" else lambda returned: returned

    def refresh() -> None:
        inputs.update(_inputs(arguments, stored, library))

    def run() -> Any:
        if arguments.by_name:
            return finished(function(**inputs, **keywords))
        return finished(function(*inputs.values(), **keywords))

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
