"""Operators of PyTorch with the arguments that a trace has of their calls, for the benchmarks that `warpladder extract` writes.

PyTorch is imported at the first use, so that a benchmark can be listed without it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import Any, Final, NamedTuple

from warpladder.workloads import torch_attention
from warpladder.workloads.api import WorkloadError

#: Integers are drawn from 0 up to this number.
_MOST_INTEGER: Final = 100
#: Numbers of a tensor of positive numbers are at least this.
_LEAST_POSITIVE: Final = 0.5
_MOST_LISTED: Final = 5
#: Elements at whose multiples the tensors of a list begin, as separate tensors begin at multiples of many bytes.
_ALIGNED: Final = 256
#: Elements of the storage of a tensor. Strides that need more are damage.
_MOST_ELEMENTS: Final = 1 << 40
Outputs = Any


@dataclass(frozen=True)
class Strided:
    """A tensor of a trace.

    Attributes:
        shape, strides: in elements.
        dtype: name of its type, such as `bfloat16`.
        positive: it holds positive numbers, such as a variance; otherwise normally distributed ones.
    """

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    positive: bool = False

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def reach(self) -> int:
        """Elements from the first to the last in memory."""
        if not self.elements:
            return 0
        return 1 + sum((extent - 1) * step for extent, step in zip(self.shape, self.strides, strict=True))

    @property
    def is_dense(self) -> bool:
        """Whether its elements lie side by side in memory, each once."""
        expected = 1
        for step, extent in sorted((step, extent) for extent, step in zip(self.shape, self.strides, strict=True) if extent > 1):
            if step != expected:
                return False
            expected *= extent
        return True

    @property
    def stored(self) -> tuple[int, ...]:
        """The shape of what `made` gives."""
        return self.shape if self.is_dense else (self.reach,)

    def made(self) -> Any:
        """Random elements: a tensor of this shape, or its storage in one dimension where it has gaps or repeats elements."""
        import torch

        if self.reach > _MOST_ELEMENTS:
            raise WorkloadError(f"a tensor of shape {self.shape} and strides {self.strides} needs {self.reach:,} elements")
        dtype = getattr(torch, self.dtype)
        shape = self.stored
        if not dtype.is_floating_point and not dtype.is_complex:
            values = torch.randint(2 if self.dtype == "bool" else _MOST_INTEGER, shape)
        else:
            values = torch.rand(shape) + _LEAST_POSITIVE if self.positive else torch.randn(shape)
        if not self.is_dense:
            return values.to(dtype)
        return torch.empty_strided(self.shape, self.strides, dtype=dtype).copy_(values)

    def view(self, stored: Any) -> Any:
        """A tensor of this shape and these strides on the elements that `made` gave."""
        if tuple(stored.shape) == self.shape and tuple(stored.stride()) == self.strides:
            return stored
        return stored.as_strided(self.shape, self.strides)


def tensor(shape: Sequence[int], dtype: str, strides: Sequence[int], *, positive: bool = False) -> Strided:
    """A tensor of a trace, from the lists that it has. See `Strided`."""
    if len(shape) != len(strides):
        raise WorkloadError(f"tensor({list(shape)}, {dtype!r}, {list(strides)}): give a stride for each dimension")
    return Strided(tuple(shape), dtype, tuple(strides), positive)


@dataclass(frozen=True)
class Listed:
    """A list of tensors of a trace, as one input: its tensors lie one after another in one dimension.

    Attributes:
        parts: its tensors, of one type.
        positive: see `Strided`.
    """

    parts: tuple[Strided, ...]
    positive: bool = False

    @property
    def stored(self) -> tuple[int, ...]:
        """The shape of what `made` gives."""
        return (self.reach,)

    @property
    def dtype(self) -> str:
        return self.parts[0].dtype

    @property
    def elements(self) -> int:
        return sum(each.elements for each in self.parts)

    @property
    def reach(self) -> int:
        """Elements from the first to the last in memory; each tensor begins at a multiple of `_ALIGNED`."""
        return self.begins[-1] + self.parts[-1].reach

    @cached_property
    def begins(self) -> tuple[int, ...]:
        """Where each tensor begins, in elements."""
        ends = accumulate(_ALIGNED * -(-each.reach // _ALIGNED) for each in self.parts)
        return (0, *ends)[: len(self.parts)]

    def made(self) -> Any:
        """Random elements, in one dimension."""
        return Strided(self.stored, self.dtype, (1,), self.positive).made()

    def view(self, stored: Any) -> list[Any]:
        """The tensors, on the elements that `made` gave."""
        places = zip(self.parts, self.begins, strict=True)
        return [stored.as_strided(each.shape, each.strides, stored.storage_offset() + begin) for each, begin in places]


def tensors(dtype: str, shapes: Sequence[Any], *, positive: bool = False) -> Listed:
    """A list of tensors of a trace, from their shapes, or from pairs of a shape and strides where these have gaps."""
    parts = []
    for each in shapes:
        shape, strides = each if isinstance(each, tuple) else (each, _dense(each))
        parts.append(tensor(shape, dtype, strides))
    if not parts:
        raise WorkloadError(f"tensors({dtype!r}, []): give the shape of each tensor")
    return Listed(tuple(parts), positive)


def _dense(shape: Sequence[int]) -> list[int]:
    return [prod(shape[place + 1 :]) for place in range(len(shape))]


@dataclass(frozen=True)
class Unread:
    """A tensor that an operator takes and does not read. It is no input of the benchmark."""

    shape: tuple[int, ...]
    dtype: str


def unread(shape: Sequence[int], dtype: str) -> Unread:
    """A tensor of a trace that the operator does not read."""
    return Unread(tuple(shape), dtype)


@dataclass(frozen=True, init=False)
class Call:
    """The arguments of one call, and what the trace has of such calls.

    Attributes:
        arguments: `Strided` for a tensor, `Listed` for a list of them, `Unread`, and the values of all others.
        calls: how often it was made in a step.
        time_us: the median of the time of its kernels, or of the operator on a processor.
        flops: floating-point operations; 0 where they are not known.
        bytes: that it must read and write, in a chain without the tensors between operators; 0 where the tensors tell them.
        kernels: its kernels in order, each with its grid.
    """

    arguments: tuple[Any, ...]
    calls: float
    time_us: float
    flops: int
    bytes: int
    kernels: tuple[tuple[str, tuple[int, ...]], ...]

    def __init__(
        self,
        *arguments: Any,
        calls: float = 1,
        time_us: float = 0.0,
        flops: int = 0,
        bytes: int = 0,
        kernels: Sequence[tuple[str, tuple[int, ...]]] = (),
    ) -> None:
        for name, value in (
            ("arguments", arguments), ("calls", calls), ("time_us", time_us), ("flops", flops), ("bytes", bytes),
            ("kernels", tuple(kernels)),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    @cached_property
    def tensors(self) -> tuple[Strided | Listed, ...]:
        """The tensors and lists of them that are inputs, in order. A tensor without elements is none."""
        return tuple(each for each in _flat(self.arguments) if isinstance(each, Strided | Listed) and each.elements)


class Step(NamedTuple):
    """An operator of a chain.

    Attributes:
        name: of the operator.
        call: its arguments.
        takes: which of its tensors is the output of the operator before; None for the first operator.
    """

    name: str
    call: Call
    takes: int | None = None


@dataclass(frozen=True)
class Chain:
    """Operators that take the output of the one before, with their calls by name, in the form that a benchmark needs. Its output is the
    output of the last one.

    Attributes:
        calls: name -> operators in order; the names are the values of the axis `call`.
        allow_tf32: whether its products in float32 may use TensorFloat-32; None to leave PyTorch's setting. Products of matrices have one
            setting in a process, so it must be the same for all of them.
        hot: number of the first calls that are measured by default; None for all.
    """

    calls: Mapping[str, Any]
    allow_tf32: bool | None = None
    hot: int | None = None
    _bound: dict[tuple[str, str], Callable[..., Outputs]] = field(default_factory=dict, repr=False, compare=False)

    def steps(self, call: str) -> Sequence[Step]:
        """The operators of a call in order."""
        steps: Sequence[Step] = self.calls[call]
        return steps

    def tensors(self, call: str) -> tuple[Strided | Listed, ...]:
        """The tensors that are inputs, in order."""
        return tuple(each for step in self.steps(call) for place, each in enumerate(step.call.tensors) if place != step.takes)

    def flops(self, call: str) -> int:
        """Floating-point operations of a call; 0 where they are not known."""
        return sum(step.call.flops for step in self.steps(call))

    def bytes(self, call: str) -> int:
        """Bytes that a call must read and write; 0 where its tensors tell them."""
        return sum(step.call.bytes for step in self.steps(call))

    def is_hot(self, call: str) -> bool:
        """Whether it is one of the first `hot` calls."""
        return self.hot is None or call in [*self.calls][: self.hot]

    def _made(self, call: str, on_gpu: bool, in_float64: bool) -> Callable[..., Outputs]:
        """A function of the tensors."""
        steps = self.steps(call)
        functions = [_function_of(step.name, step.call, on_gpu, in_float64) for step in steps]
        counts = [len(step.call.tensors) - (step.takes is not None) for step in steps]

        def run(*given: Any) -> Outputs:
            output, begin = None, 0
            for step, function, count in zip(steps, functions, counts, strict=True):
                tensors = [*given[begin : begin + count]]
                if step.takes is not None:
                    tensors.insert(step.takes, output)
                output, begin = function(*tensors), begin + count
            return output

        return run if len(steps) > 1 else functions[0]

    def inputs(self, call: str) -> tuple[Any, ...]:
        """Random tensors for a call. A tensor whose elements do not lie side by side comes as its storage, in one dimension."""
        _torch()
        for name in {step.name for each in self.calls for step in self.steps(each)}:
            _set_tf32(name, self.allow_tf32)
        return tuple(self._with_forward(call, [each.made() for each in self.tensors(call)]))

    def _with_forward(self, call: str, made: list[Any]) -> list[Any]:
        """Inputs, with what the forward pass computes of the others."""
        return made

    def __call__(self, call: str, *tensors: Any) -> Outputs:
        """Call the operators as the program did."""
        return self._function(call, tensors, in_float64=False)(*tensors)

    def compiled(self, call: str, *tensors: Any) -> Outputs:
        """The same, compiled by `torch.compile` for this call."""
        key = (call, "compiled")
        if key not in self._bound:
            self._bound[key] = _torch().compile(self._function(call, tensors, in_float64=False), dynamic=False)
        return self._bound[key](*tensors)

    def reference(self, call: str, *tensors: Any) -> Outputs:
        """The right outputs, computed in the type of the tensors. An argument that chooses a type of real numbers chooses float64.

        They are computed on the GPU where there is one: a convolution in float64 takes minutes on a processor.
        """
        torch = _torch()
        if not torch.cuda.is_available():
            return self._function(call, tensors, in_float64=True)(*tensors)
        on_gpu = [each.cuda() for each in tensors]
        outputs = self._function(call, on_gpu, in_float64=True)(*on_gpu)
        on_host = tuple(each.cpu() for each in outputs) if isinstance(outputs, tuple) else outputs.cpu()
        del on_gpu, outputs
        torch.cuda.empty_cache()
        return on_host

    def output_types(self, call: str) -> dict[str, str]:
        """The type of each output, as PyTorch derives it from the arguments without computing; empty where it cannot."""
        torch = _torch()
        from torch._subclasses.fake_tensor import FakeTensorMode

        on_gpu = torch.cuda.is_available()
        device = "cuda" if on_gpu else "cpu"
        try:
            with FakeTensorMode():
                tensors = [
                    torch.empty(each.stored, dtype=getattr(torch, each.dtype), device=device) for each in self.tensors(call)
                ]
                outputs = self._made(call, on_gpu, in_float64=False)(*tensors)
        except Exception:  # an operator without the functions that PyTorch needs for this
            return {}
        types = [str(each.dtype).removeprefix("torch.") for each in (outputs if isinstance(outputs, tuple) else (outputs,))]
        return {"out": types[0]} if len(types) == 1 else {f"out{place}": each for place, each in enumerate(types)}

    def _function(self, call: str, tensors: Sequence[Any], in_float64: bool) -> Callable[..., Outputs]:
        """The function of a call; made once, so that little is added to the time of the host."""
        on_gpu = bool(tensors) and bool(tensors[0].is_cuda)
        key = (call, f"{on_gpu} {in_float64}")
        if key not in self._bound:
            self._bound[key] = self._made(call, on_gpu, in_float64)
        return self._bound[key]


@dataclass(frozen=True, init=False)
class Operation(Chain):
    """An operator with its calls by name.

    Attributes:
        name: of the operator, such as `aten::conv2d`.
        calls: name -> call; the names are the values of the axis `call`.
        allow_tf32, hot: see `Chain`.
    """

    name: str = ""

    def __init__(self, name: str, calls: Mapping[str, Call], allow_tf32: bool | None = None, hot: int | None = None) -> None:
        super().__init__(calls, allow_tf32, hot)
        object.__setattr__(self, "name", name)

    def steps(self, call: str) -> Sequence[Step]:
        return (Step(self.name, self.calls[call]),)

    def arguments(self, call: str, *tensors: Any) -> list[Any]:
        """All arguments of a call, in order, with tensors of the trace's shapes and strides."""
        given = iter(tensors)
        return [_filled(each, given, tensors) for each in self.calls[call].arguments]

    def _with_forward(self, call: str, made: list[Any]) -> list[Any]:
        if self.name in torch_attention.BACKWARD:
            schema = _overload(self.name, self.calls[call].arguments)._schema.arguments
            given = self.arguments(call, *made)
            torch_attention.fill_forward({each.name: value for each, value in zip(schema, given, strict=True)})
        return made


def _function_of(name: str, call: Call, on_gpu: bool, in_float64: bool) -> Callable[..., Outputs]:
    """A call as a function of its tensors.

    Raises:
        WorkloadError: this PyTorch has no such operator, or none that takes these arguments.
    """
    chosen, order = call.arguments, list(range(len(call.tensors)))
    if name in _ON_HOST and not on_gpu:
        name, chosen = _ON_HOST[name](*chosen)
        # The equivalent takes the tensors in another order.
        order = [_place(call, each) for each in _flat(chosen) if isinstance(each, Strided | Listed)]
    overload = _overload(name, chosen)
    schema = overload._schema.arguments
    if in_float64 and name not in _CONVERSIONS:
        chosen = tuple(_in_double(value, each) for value, each in zip(chosen, schema, strict=True))
    positional = sum(not each.kwarg_only for each in schema)
    names = [each.name for each in schema[positional:]]
    written = [place for place, each in enumerate(schema) if _is_written(each, chosen[place] if len(chosen) > place else None)]
    in_products = name in torch_attention.BACKWARD and (in_float64 or not (on_gpu or "cpu" in name))
    steps = [each.name == "state_steps" and in_float64 for each in schema]

    def run(*given: Any) -> Outputs:
        ordered = [given[place] for place in order]
        left = iter(ordered)
        arguments = [_filled(each, left, ordered) for each in chosen]
        if in_products:
            return torch_attention.backward({each.name: value for each, value in zip(schema, arguments, strict=True)})
        if any(steps):  # optimisers take them in float32 alone
            arguments = [
                [each.float() for each in value] if of_steps else value
                for value, of_steps in zip(arguments, steps, strict=True)
            ]
        returned = overload(*arguments[:positional], **dict(zip(names, arguments[positional:], strict=True)))
        if not written:
            return _outputs(returned)
        stored = iter(ordered)
        inputs = [next(stored) if isinstance(each, Strided | Listed) and each.elements else None for each in chosen]
        return _outputs([inputs[place] if isinstance(chosen[place], Listed) else arguments[place] for place in written])

    return run


def _is_written(parameter: Any, argument: Any) -> bool:
    """Whether an operator writes to an argument; an empty list has nothing to write to."""
    return parameter.alias_info is not None and parameter.alias_info.is_write and argument not in ([], None)


def _set_tf32(name: str, allowed: bool | None) -> None:
    torch = _torch()
    if allowed is not None and "conv" in name:
        torch.backends.cudnn.allow_tf32 = allowed
    elif allowed is not None:
        torch.set_float32_matmul_precision("high" if allowed else "highest")


# -- arguments ---------------------------------------------------------------------------------------------------------------------


def _flat(arguments: Sequence[Any]) -> Iterator[Any]:
    for each in arguments:
        if isinstance(each, list | tuple):
            yield from _flat(each)
        else:
            yield each


def _filled(argument: Any, tensors: Iterator[Any], given: Sequence[Any]) -> Any:
    """An argument with the next tensors in place of their descriptions."""
    if isinstance(argument, Strided | Listed) and argument.elements:
        return argument.view(next(tensors))
    if isinstance(argument, Strided | Unread):
        import torch

        return torch.zeros(argument.shape, dtype=getattr(torch, argument.dtype), device=given[0].device if given else "cpu")
    if isinstance(argument, list | tuple) and any(isinstance(each, Strided) for each in argument):
        return [_filled(each, tensors, given) for each in argument]
    return argument


def _place(call: Call, wanted: Strided | Listed) -> int:
    """The place of a tensor among the inputs of a call. Equal descriptions are told apart by identity."""
    return next(place for place, each in enumerate(call.tensors) if each is wanted)


def _in_double(value: Any, argument: Any) -> Any:
    """An argument for float64: a type of real numbers becomes float64."""
    import torch

    if "ScalarType" not in str(argument.real_type) or value is None:
        return value
    return torch.float64 if value in _REAL_CODES else value


#: Operators that only convert: the right output is that of the type that they convert to.
_CONVERSIONS: Final = ("aten::to", "aten::_to_copy")
#: Codes of `c10::ScalarType`: half, float, double, bfloat16, and types of 8 bits.
_REAL_CODES: Final = (5, 6, 7, 15, 23, 24, 25, 26)


def _outputs(returned: Any) -> Outputs:
    """The tensors that an operator returned: one, or a tuple. What it left out, and tensors without elements, are none."""
    if not isinstance(returned, list | tuple):
        return returned
    kept = tuple(each for each in _flat(returned) if each is not None and each.numel())
    return kept[0] if len(kept) == 1 else kept


# -- operators ---------------------------------------------------------------------------------------------------------------------


def _cudnn_batch_norm_backward(*arguments: Any) -> tuple[str, tuple[Any, ...]]:
    x, gradient, weight, running_mean, running_var, mean, inverse_deviation, epsilon, _ = arguments
    return "aten::native_batch_norm_backward", (
        *(gradient, x, weight, running_mean, running_var, mean, inverse_deviation),
        *(True, epsilon, [True, True, True]),
    )  # fmt: skip


#: An operator that runs on a GPU alone -> the operator and arguments that compute the same on the host.
_ON_HOST: Final[Mapping[str, Callable[..., tuple[str, tuple[Any, ...]]]]] = {
    "aten::cudnn_batch_norm_backward": _cudnn_batch_norm_backward,
}


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise WorkloadError("needs the Python package torch, which is not installed; pip install torch") from error
    return torch


def _overload(name: str, arguments: Sequence[Any]) -> Any:
    """The overload of an operator that takes these arguments.

    Raises:
        WorkloadError: the operator is not known, or has no such overload.
    """
    torch = _torch()
    space, _, short = name.partition("::")
    packet = getattr(getattr(torch.ops, space), short, None)
    if packet is None:
        raise WorkloadError(f"{name}: PyTorch {torch.__version__} has no such operator; import the module that registers it")
    overloads = [getattr(packet, each) for each in packet.overloads()]
    for fits in (_fits, _fits_as_tensor):
        for overload in overloads:
            schema = overload._schema.arguments
            if len(schema) == len(arguments) and all(map(fits, arguments, (str(each.type) for each in schema))):
                return overload
    kinds = ", ".join(type(each).__name__ for each in arguments[:_MOST_LISTED])
    raise WorkloadError(
        f"{name}: PyTorch {torch.__version__} has no form of it with {len(arguments)} arguments ({kinds}, …); "
        "record with the version that wrote the trace"
    )


def _fits(value: Any, kind: str) -> bool:
    """Whether a recorded argument has the type of a parameter."""
    if kind.startswith("Optional["):
        return value is None or _fits(value, kind[len("Optional[") : -1])
    if kind.startswith("List["):
        if isinstance(value, Listed):
            return kind == "List[Tensor]"
        return isinstance(value, list | tuple) and all(_fits(each, kind[len("List[") : -1]) for each in value)
    match value:
        case Strided() | Unread():
            return kind == "Tensor"
        case None:  # a tensor that is not there
            return kind == "Tensor"
        case bool():
            return kind in ("bool", "number")
        case int():
            return kind in ("int", "number", "float")
        case float() | complex():
            return kind in ("float", "number")
        case str():
            return kind == "str"
    return False


def _fits_as_tensor(value: Any, kind: str) -> bool:
    """The same, where a number may stand for a tensor without dimensions."""
    return _fits(value, kind) or (kind == "Tensor" and isinstance(value, int | float))
