"""The parameters of a user's functions, and messages about them."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from warpladder.workloads import locate
from warpladder.workloads.api import WorkloadError

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
        missing: names of those that have no default and take neither an input in order nor one of `named`.
        named: names of those that take an axis, a config's value, the outputs or the stream.
    """

    inputs: tuple[str, ...] | None
    needed: int
    by_name: tuple[str, ...] | None
    missing: tuple[str, ...]
    named: tuple[str, ...]


def parameters_of(function: Callable[..., Any], special: Sequence[str]) -> Parameters:
    """The parameters of a function.

    Args:
        function: Python's, or of an extension, which may not tell its parameters.
        special: names of axes and of the config's values.
    """
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return Parameters(None, 0, None, (), ())
    named = {*special, OUT, STREAM}
    inputs = [each for each in found if each.kind in _POSITIONAL and each.name not in named]
    only_by_name = [each for each in found if each.kind is each.KEYWORD_ONLY and each.name not in named]
    either = [each for each in inputs if each.kind is not each.POSITIONAL_ONLY]
    kinds = {each.kind for each in found}
    return Parameters(
        None if inspect.Parameter.VAR_POSITIONAL in kinds else tuple(each.name for each in inputs),
        sum(each.default is each.empty for each in inputs),
        None if inspect.Parameter.VAR_KEYWORD in kinds else tuple(each.name for each in (*either, *only_by_name)),
        tuple(each.name for each in only_by_name if each.default is each.empty),
        tuple(each.name for each in found if each.name in named and each.kind is not each.POSITIONAL_ONLY),
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
        error: the exception; one of ours already says where and what.
    """
    if isinstance(error, WorkloadError):
        return error
    name, text = getattr(function, "__name__", type(function).__name__), locate.text_of(error)
    raised = ": ".join(filter(None, [type(error).__name__, text]))
    where = locate.where(error) or place_of(function).rpartition(": ")[0]
    said = f"{name if name == what else f'{name}, {what},'} raises {raised}; mend it, then try again"
    return WorkloadError(f"{where}: {said}" if where else said)
