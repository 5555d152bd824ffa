"""Checks the arguments of a benchmark, and works out those that it leaves out."""

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from warpladder.workloads.api import TOLERANCE, Case, Params, Precision, WorkloadError
from warpladder.workloads.functions.arrays import Form
from warpladder.workloads.functions.axes import called_with_axes
from warpladder.workloads.functions.binding import place_of

LIBRARIES: Final = ("numpy", "torch", "cupy", "numba", "jax")
#: Type of the first real input -> precision of a variant that declares none.
_PRECISIONS: Final[Mapping[str, Precision]] = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}


def precision_of(inputs: Iterable[Form]) -> Precision:
    """The precision of a variant that declares none: that of the first input of real numbers."""
    return next((_PRECISIONS.get(form.dtype, "fp32") for form in inputs if form.is_real), "int")


def is_of_types(values: Sequence[Any]) -> bool:
    """Whether an axis chooses among types of real numbers."""
    return len(values) > 1 and all(isinstance(value, str) and value in _PRECISIONS for value in values)


def skip_reason(function: Callable[..., str | None], case: Case, config: Params) -> str | None:
    """Why a case cannot run, from a user's function of axes and config values; None if it can."""
    reason: str | None = called_with_axes(function, {**case.params, **config})
    return reason


def checked_function(function: Any, what: str) -> Any:
    """The function itself. Raises WorkloadError where it is none, or one that gives no arrays when it is called."""
    if not callable(function):
        raise WorkloadError(f"{what} is {type(function).__name__}; decorate a function")
    inner = inspect.unwrap(function)
    if inspect.iscoroutinefunction(inner) or inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        kind = "a generator" if inspect.isgeneratorfunction(inner) else "a coroutine"
        raise WorkloadError(f"{place_of(function)} gives {kind}; write a plain function that returns arrays")
    return function


def launches_triton(function: Callable[..., Any], requires: Sequence[str]) -> bool:
    """Whether a function launches kernels of Triton, which run on a GPU only unless Triton interprets them."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        return False
    inner = inspect.unwrap(function)
    names = getattr(getattr(inner, "__code__", None), "co_names", ())
    known = getattr(inner, "__globals__", {})
    return "triton" in requires or any(type(known.get(name)).__module__.startswith("triton.") for name in names)


def choose(what: str, given: str, among: Sequence[str]) -> None:
    """Raise WorkloadError if a text is not one of those allowed."""
    if given not in among:
        raise WorkloadError(f"{what}={given!r}: choose one of {', '.join(filter(None, among))}")


def tolerances(given: float | Mapping[str, float] | None) -> dict[str, float]:
    """Largest relative L2 error by precision, from one for all, from some, or from none."""
    if given is None:
        return dict(TOLERANCE)
    if isinstance(given, Mapping):
        return {**TOLERANCE, **given}
    return {**dict.fromkeys(TOLERANCE, float(given)), "int": 0.0}


def caller() -> Path | None:
    """The file that declares the benchmark; None in an interactive session."""
    frame = sys._getframe(2)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("warpladder"):
        frame = frame.f_back
    file = Path(frame.f_code.co_filename)
    return file.resolve() if file.is_file() else None
