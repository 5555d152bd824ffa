"""The arguments of an operator's call, from what PyTorch's profiler records of them."""

import json
from collections.abc import Sequence
from math import prod
from typing import Any, Final, NamedTuple

from warpladder.dashboard.core.operations import aten
from warpladder.dashboard.core.operations.aten import Tensor

#: Elements of a tensor, or of the memory that its strides reach. More are damage.
_MOST_ELEMENTS: Final = 1 << 44
#: Namespaces of operators that every PyTorch has.
_OWN: Final = ("aten",)
#: Namespaces and names of collectives.
_COLLECTIVES: Final = ("c10d", "_c10d_functional", "c10d_functional")
_COLLECTIVE_NAMES: Final = ("record_param_comms", "nccl:", "gloo:")
_LIST: Final = "TensorList"
#: Names of operators, and why they cannot be called again.
_REFUSED: Final = (
    (aten.RANDOM, "its output is random, so that no reference can verify it"),
    (aten.BY_VALUE, "its work or its result depends on the values of its inputs, such as indices, which the trace lacks"),
    (
        aten.BY_FORWARD,
        "it takes results that only the forward pass can compute; a benchmark of that with gradients=True times both",
    ),
    (aten.VIEWS, "it computes nothing: its output is a view of its input, or memory that nobody wrote"),
)
NO_SHAPES: Final = (
    "the trace lacks the shapes of its lists of tensors, which record_shapes=True has from PyTorch 2.4 on, and of at most 30 tensors: give "
    "them in the file"
)


class NotRebuilt(Exception):
    """A call cannot be made again. The message is the reason."""


class Recorded(NamedTuple):
    """The arguments of a call as the trace has them, as JSON texts."""

    dims: str
    types: str
    strides: str
    concrete: str


def refusal_of_name(name: str) -> str:
    """Why an operator of this name cannot be called again, whatever its arguments; empty if it can."""
    space, separator, short = name.partition("::")
    if space in _COLLECTIVES or name.startswith(_COLLECTIVE_NAMES):
        return "a collective: import the ranks with --job; the pages of the group Job show it"
    if name.startswith("triton_"):
        return "a kernel that torch.compile made: profile without torch.compile to see the operators"
    if not separator or not short.isidentifier() or not space.isidentifier():
        return "no operator of PyTorch, so that it cannot be called by its name"
    if space not in _OWN:
        return f"a custom operator of {space}, which is not PyTorch's own"
    if reason := next((reason for names, reason in _REFUSED if short in names), ""):
        return reason
    if short in aten.TEXTS:
        return f"the trace lacks its argument {aten.TEXTS[short]}, which is a text"
    return ""


def arguments(name: str, recorded: Recorded) -> tuple[Any, ...]:
    """The arguments of a call: `Tensor`, numbers, lists of numbers, `UnknownNumber`, and None.

    Raises:
        NotRebuilt: it cannot be called again.
    """
    if reason := refusal_of_name(name):
        raise NotRebuilt(reason)
    if recorded.dims and not recorded.types:
        raise NotRebuilt(
            "ranges of emit_nvtx have no types, strides and numbers: profile with torch.profiler and record_shapes=True"
        )
    if not recorded.dims:
        raise NotRebuilt("the trace has no shapes: profile with record_shapes=True")
    dims, types = _list(recorded.dims), _list(recorded.types)
    if len(dims) != len(types):
        raise NotRebuilt("the trace has more shapes than types")
    if not recorded.strides:
        raise NotRebuilt("the trace has no strides: profile with a newer PyTorch and record_shapes=True")
    strides = _list(recorded.strides)
    concrete = _list(recorded.concrete) if recorded.concrete else [""] * len(dims)
    if len(strides) != len(dims) or len(concrete) != len(dims):
        raise NotRebuilt("the trace has not as many strides or values as arguments")
    found = tuple(map(_argument, dims, types, strides, concrete))
    if _LIST in types and not any(aten.lists(found)):
        raise NotRebuilt(NO_SHAPES)
    _check(name, found)
    return _with_numbers(name, found)


def with_gradients(name: str, recorded: Recorded, gradients: Sequence[Tensor]) -> Recorded:
    """A call of a fused optimiser whose lists are too long for the trace, with the shapes of the gradients that it takes.

    Raises:
        NotRebuilt: the trace has none of its arguments.
    """
    dims, types, strides, concrete = map(_list, recorded)
    numbers = dict(zip(aten.parameters(name, len(dims)), concrete, strict=False))
    unused = {
        "max_exp_avg_sqs": numbers.get("amsgrad") != "True",
        "momentum_buffers": not float(numbers.get("momentum") or 0),
    }
    for place, parameter in enumerate(numbers):
        if types[place] == _LIST and not dims[place] and not unused.get(parameter):
            scalars = parameter == "state_steps"
            dims[place] = [[] if scalars else each.shape for each in gradients]
            strides[place] = [[] if scalars else each.strides for each in gradients]
    return recorded._replace(dims=json.dumps(dims), strides=json.dumps(strides))


def gradient(recorded: Recorded) -> Tensor | None:
    """The gradient that is added to a parameter's own; None where the trace does not have it."""
    try:
        dims, types, strides = (_list(text) for text in recorded[:3])
        return _tensor(dims[0], aten.TYPES[types[0]], strides[0])
    except (NotRebuilt, IndexError, KeyError, TypeError):
        return None


def _list(text: str) -> list[Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotRebuilt("the trace's list of its arguments is cut off") from error
    if not isinstance(value, list):
        raise NotRebuilt("the trace has no list of its arguments")
    return value


def _argument(dims: Any, kind: Any, strides: Any, concrete: Any) -> Any:
    """One argument. Raises NotRebuilt."""
    if kind == "":
        return None
    if kind == "Scalar":
        return _number(concrete)
    if kind == "ScalarList":
        return _numbers(concrete)
    if kind == _LIST:
        if not (isinstance(dims, list) and isinstance(strides, list) and len(dims) == len(strides)):
            raise NotRebuilt(NO_SHAPES)
        return [_tensor(extents, "", steps) for extents, steps in zip(dims, strides, strict=True)]  # the trace lacks their type
    if kind == "GenericList":
        raise NotRebuilt("the trace lacks what its list of tensors and others holds")
    if not isinstance(kind, str) or kind not in aten.TYPES:
        raise NotRebuilt(f"an argument of type {str(kind)[:40]}, which has no numbers")
    return _tensor(dims, aten.TYPES[kind], strides)


def _tensor(dims: Any, dtype: str, strides: Any) -> Tensor:
    if not (_whole(dims) and _whole(strides) and len(dims) == len(strides)):
        raise NotRebuilt("a shape or strides that are no whole numbers")
    found = Tensor(tuple(dims), dtype, tuple(strides))
    if prod(found.shape) > _MOST_ELEMENTS or sum(n * step for n, step in zip(dims, strides, strict=True)) > _MOST_ELEMENTS:
        raise NotRebuilt("a tensor of more elements than any memory holds")
    return found


def _whole(values: Any) -> bool:
    return isinstance(values, list) and all(type(each) is int and 0 <= each < 1 << 62 for each in values)


def _number(text: Any) -> Any:
    """A scalar as the trace has it: `True`, `1`, `1.0000000000000001e-05`, `-inf`. Raises NotRebuilt."""
    if text in ("True", "False"):
        return text == "True"
    if not isinstance(text, str) or not text.strip():
        raise NotRebuilt("the trace lacks the value of a number: profile with a newer PyTorch")
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    raise NotRebuilt(f"the value {text[:40]}, which is no number")


def _numbers(text: Any) -> list[Any]:
    """A list of scalars, such as `[1, 1]`. Raises NotRebuilt."""
    if not isinstance(text, str) or not (text.startswith("[") and text.endswith("]")):
        raise NotRebuilt("the trace lacks the values of a list of numbers: profile with a newer PyTorch")
    inner = text[1:-1].strip()
    return [_number(each.strip()) for each in inner.split(",")] if inner else []


def _check(name: str, found: tuple[Any, ...]) -> None:
    """Raise NotRebuilt for arguments whose values matter, and for outputs among the arguments."""
    tensors = aten.tensors_of(found)
    if not tensors:
        raise NotRebuilt("it takes no tensor")
    if not any(0 not in each.shape for each in tensors):
        raise NotRebuilt("its tensors have no elements")
    unread = aten.UNREAD if aten.plain(name) in aten.ATTENTION_BACKWARD else ()
    named = list(zip(aten.parameters(name, len(found)), found, strict=True))
    read = aten.tensors_of([each for parameter, each in named if parameter not in unread])
    whole = [each for each in read if each.dtype in aten.WHOLE and 0 not in each.shape]
    if whole and not aten.takes_any_values(name):
        raise NotRebuilt(f"a tensor of {whole[0].dtype}, such as indices, whose values the trace lacks")
    if aten.plain(name) in (*aten.PRODUCTS, *aten.CONVOLUTIONS) and len({each.dtype for each in tensors}) > 1:
        raise NotRebuilt("its tensors have several types, which autocast converts inside it")
    dropped = dict(named).get("dropout_p")
    if isinstance(dropped, float) and dropped > 0:
        raise NotRebuilt(_REFUSED[0][1])
    short, most = aten.plain(name).rstrip("_"), aten.most_arguments(name)
    if short == "div" and len(found) == 3 and found[2] is None:
        raise NotRebuilt("the trace lacks its argument rounding_mode, which is a text")
    if most is not None and len(found) > most:
        raise NotRebuilt("it writes to an array that is passed in (out=), of which the trace lacks the memory it shares")
    if short == "pow" and any(each.shape == () for each in tensors):
        raise NotRebuilt("the trace lacks the exponent, which chooses the kernel")


def _with_numbers(name: str, found: tuple[Any, ...]) -> tuple[Any, ...]:
    """Replace tensors without dimensions that stand for a number of Python beside others of real numbers.

    A number in Python reaches a point-wise operator as a tensor of float64 or int64 without dimensions, whose value is not recorded. It
    does not change the work.
    """
    others = [each.dtype for each in found if isinstance(each, Tensor) and each.shape]
    if aten.plain(name).rstrip("_") not in aten.POINTWISE or not others or any(each in aten.WHOLE for each in others):
        return found
    return tuple(
        aten.SOME_NUMBER.get(each.dtype, each) if place and isinstance(each, Tensor) and not each.shape else each
        for place, each in enumerate(found)
    )
