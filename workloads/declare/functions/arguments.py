"""The arguments of a benchmark: its axes, with the cases that their values make, and what it says of its variants; all checked."""

import inspect
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice, product
from keyword import iskeyword
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, Final, get_args

import numpy as np

from warpladder.workloads.declare.cases import Axis, CaseSet
from warpladder.workloads.declare.functions.arrays import Form, is_measurable
from warpladder.workloads.declare.functions.calls import OUT, STREAM, parameters_of, place_of, raised_by
from warpladder.workloads.declare.workloads import (
    PRECISION_OF_TYPE,
    TOLERANCE,
    Case,
    Params,
    Precision,
    Role,
    WorkloadError,
    format_params,
)

# -- axes ------------------------------------------------------------------------------------------------------------------------

_MOST: Final = 2**62
#: More cases than can be measured in a day.
_MOST_CASES: Final = 10_000
_OPTIONS: Final = ("title", "arrays", "device", "flops", "bytes", "quick", "tolerance", "gradients")


@dataclass(frozen=True)
class Axes:
    """Axes by name, in order, with the values of each.

    Attributes:
        values: name -> values.
        flops: gives a case's operations from its axes.
        bytes: gives the bytes that a case must read and write; None or 0 where its arrays tell them.
        quick: tells whether the set `quick` has a case; None for all cases.
    """

    values: Mapping[str, Sequence[Any]]
    flops: Callable[..., float] | int | None = None
    bytes: Callable[..., float] | int | None = None
    quick: Callable[..., bool] | None = None
    _by_text: Mapping[str, Mapping[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        plain = {name: _checked_axis(name, values) for name, values in self.values.items()}
        if (count := math.prod(map(len, plain.values()))) > _MOST_CASES:
            raise WorkloadError(
                f"axes {', '.join(plain)} make {count:,} cases; give fewer values, at most {_MOST_CASES:,} cases"
            )
        for name, given in (("flops", self.flops), ("bytes", self.bytes)):
            if given is not None and not callable(given) and not isinstance(given, int | float):
                raise WorkloadError(f"{name} is {shortened(given)}; give a number, or a function of axes")
        if self.quick is not None and not callable(self.quick):
            raise WorkloadError(f"quick is {shortened(self.quick)}; give a function of axes that tells whether a case is quick")
        texts = {name: {str(value): value for value in values} for name, values in plain.items()}
        object.__setattr__(self, "values", plain)
        object.__setattr__(self, "_by_text", texts)

    @property
    def declared(self) -> tuple[Axis, ...]:
        """As a workload declares them. An axis of whole numbers takes others too. An axis with one value can be left out."""
        return tuple(self._declared(name, values) for name, values in self.values.items())

    def _declared(self, name: str, values: Sequence[Any]) -> Axis:
        default = str(values[0]) if len(values) == 1 else ""
        if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            return Axis(name, min(1, *values), _MOST, default=default)
        return Axis(name, words=tuple(self._by_text[name]), default=default)

    @property
    def cases(self) -> tuple[Case, ...]:
        """Every combination of the values; the last axis changes fastest."""
        return tuple(self.case(dict(zip(self.values, each, strict=True))) for each in product(*self.values.values()))

    def case(self, params: Params) -> Case:
        """The case of these values, or of their texts."""
        values = {name: self._by_text[name].get(str(value), value) for name, value in params.items()}
        flops, least = _count("flops", self.flops, values), _count("bytes", self.bytes, values)
        return Case(values, flops, least or None, self._sets_of(values), self._rank(values))

    def _sets_of(self, values: Params) -> tuple[CaseSet, ...]:
        try:
            is_quick = self.quick is None or bool(called_with_axes(self.quick, values))
        except Exception as error:
            assert self.quick
            raise raised_by(self.quick, "quick", error) from error
        return ("quick", "report", "full") if is_quick else ("report", "full")

    def _rank(self, values: Params) -> int:
        """The place on the size axis: the first axis of numbers with several values."""
        for name, declared in self.values.items():
            numbers = sorted({value for value in declared if isinstance(value, int | float)})
            if len(numbers) > 1 and len(numbers) == len(declared):
                return sum(number < values[name] for number in numbers)
        return 0


def _count(option: str, given: Callable[..., float] | int | None, values: Params) -> int:
    """The whole number that an option of a benchmark gives for a case; 0 for None. Raises WorkloadError."""
    count: Any = given or 0
    if callable(given):
        try:
            count = called_with_axes(given, values)
        except Exception as error:
            raise raised_by(given, option, error) from error
    if not (isinstance(count, int | float | np.number) and 0 <= count < math.inf and int(count) == count):
        raise WorkloadError(f"{option} gives {shortened(count)} for {values}; give a whole number")
    return int(count)


def joined_axes(axes: Any, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The axes of `Benchmark`: first the axes in its argument `axes`, then the keyword arguments. Raises WorkloadError."""
    if axes is not None and not isinstance(axes, Mapping):
        raise WorkloadError(f"axes is {shortened(axes)}; give a dict of values by axis, such as axes={{'n': [1024, 4096]}}")
    if twice := [name for name in axes or {} if name in keywords]:
        raise WorkloadError(f"axis {twice[0]} is in axes, and an argument too; leave one out")
    return {**(axes or {}), **keywords}


def refuse_axes(options: Mapping[str, Any]) -> None:
    """Raise WorkloadError if an option of `Benchmark` has a list, as an axis of its name would."""
    for name, value in options.items():
        if isinstance(value, list | tuple | range | np.ndarray):
            raise WorkloadError(
                f"{name}={shortened(value)}: {name} is an option of Benchmark; for an axis of this name, give axes={{'{name}': [...]}}"
            )


def _checked_axis(name: str, values: Any) -> list[Any]:
    """The values of an axis, as Python's own. Raises WorkloadError."""
    if not isinstance(name, str):
        raise WorkloadError(f"axis {shortened(name)}: not a name; give a text")
    if name in (OUT, STREAM, "rng"):
        raise WorkloadError(f"axis {name}: a parameter of this name has a meaning of its own; choose another name")
    if not name.isidentifier() or iskeyword(name):
        raise WorkloadError(f"axis {name!r}: no parameter can have this name; choose another name")
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not values:
        option = get_close_matches(name, _OPTIONS, 1)
        hint = f"; or do you mean the option {option[0]}?" if option else ""
        raise WorkloadError(f"axis {name} is {shortened(values)}; give a list of values, such as {name}=[1024, 4096]{hint}")
    checked = [_checked_value(name, value) for value in islice(values, _MOST_CASES + 1)]
    if len(checked) > _MOST_CASES:
        raise WorkloadError(f"axis {name} has too many values; give at most {_MOST_CASES:,}")
    text, count = Counter(map(str, checked)).most_common(1)[0]
    if count > 1:
        raise WorkloadError(f"axis {name}: {text} is given twice; leave one out")
    return checked


def _checked_value(name: str, value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, int | float | str):
        raise WorkloadError(f"axis {name}: {shortened(value)} is {type(value).__name__}; give numbers or texts")
    if isinstance(value, str):
        if set(value) & set(",=") or not value.strip() or not value.isprintable():
            raise WorkloadError(
                f"axis {name}: {shortened(value)} is empty, or has a comma, an equals sign or a line break; choose other words"
            )
    elif not -_MOST <= value <= _MOST:
        raise WorkloadError(f"axis {name}: {shortened(value)} cannot be recorded; give numbers between -2^62 and 2^62")
    return value


def called_with_axes(function: Callable[..., Any], values: Mapping[str, Any], **more: Any) -> Any:
    """Call a function of axes, with those that it takes. Raises WorkloadError: it has a parameter without default that
    is no axis."""
    arguments = {**values, **more}
    parameters = inspect.signature(function).parameters
    for name, each in parameters.items():
        needed = each.default is each.empty and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        if needed and name not in arguments:
            raise WorkloadError(
                f"{place_of(function)} takes {name}, which is no axis; the axes are {', '.join(values) or 'none'}"
            )
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    return function(**{name: value for name, value in arguments.items() if takes_any or name in parameters})


# -- variants --------------------------------------------------------------------------------------------------------------------

#: Characters of a name.
_LONGEST: Final = 200
ROLES: Final[tuple[Role, ...]] = get_args(Role)
LIBRARIES: Final = ("numpy", "torch", "cupy", "numba", "jax")


def precision_of(inputs: Iterable[Form]) -> Precision:
    """The precision of a variant that does not declare one: the precision of the first input of real or complex numbers, or else of whole
    ones."""
    given = list(inputs)
    whole: Precision = "int8" if given and given[0].dtype == "int8" else "int"
    return next((PRECISION_OF_TYPE[form.dtype] for form in given if form.dtype in PRECISION_OF_TYPE), whole)


def is_of_types(values: Sequence[Any]) -> bool:
    """Whether an axis chooses among types of real numbers."""
    return len(values) > 1 and all(isinstance(value, str) and value in PRECISION_OF_TYPE for value in values)


def skip_reason(function: Callable[..., str | None], case: Case, config: Params) -> str | None:
    """Why a case cannot run, from a user's function of axes and config values; None if it can. Raises WorkloadError."""
    try:
        reason: Any = called_with_axes(function, {**case.params, **config})
    except Exception as error:
        raise raised_by(function, "skip", error) from error
    if not (reason is None or isinstance(reason, str)):
        raise WorkloadError(f"{place_of(function)}: skip gives {shortened(reason)}; return the reason as a text, or None")
    return reason or None


def checked_name(what: str, name: Any) -> str:
    """The name itself. Raises WorkloadError if a page or a command line cannot show it."""
    if not isinstance(name, str):
        raise WorkloadError(f"{what} is {shortened(name)}; give a name as a text")
    if not name.strip() or name != name.strip() or not name.isprintable() or "," in name or len(name) > _LONGEST:
        raise WorkloadError(
            f"{what} is {shortened(name)}; give 1 to {_LONGEST} characters without commas, line breaks or blanks at the ends"
        )
    return name


def checked_title(what: str, title: Any) -> str:
    """The title itself. Raises WorkloadError if it is no text."""
    if not isinstance(title, str):
        raise WorkloadError(f"{what}: title is {shortened(title)}; give a text")
    return title


def check_role(where: str, role: Any, unknown: Iterable[str], allowed: Iterable[str]) -> None:
    """Raise WorkloadError if a role is not valid, or for arguments that a variant does not have, such as the flags of earlier
    versions."""
    for name in unknown:
        if name in ROLES:
            raise WorkloadError(f"{where}: {name}= has gone; give role={name!r}")
        near = get_close_matches(name, list(allowed), 1)
        raise WorkloadError(
            f"{where}: {name} is no argument of a variant; {f'do you mean {near[0]}?' if near else 'leave it out'}"
        )
    choose(f"{where}: role", role or "", ("", *ROLES))


def checked_configs(where: str, configs: Any, axes: Iterable[str]) -> tuple[Params, ...]:
    """The configs of a variant. Raises WorkloadError: there is none, or one is not a dict of numbers and texts by name.

    Args:
        where: the variant, for messages.
        configs: what the user gave.
        axes: names of the benchmark's axes, which a config must not hide.
    """
    if isinstance(configs, str | bytes | Mapping) or not isinstance(configs, Iterable):
        raise WorkloadError(
            f"{where}: configs is {shortened(configs)}; give a list of dicts, such as configs=[{{'block': 128}}]"
        )
    checked = tuple(configs)
    if not checked:
        raise WorkloadError(f"{where}: configs is empty; leave it out, or give at least one")
    names = tuple(axes)
    for config in checked:
        if not isinstance(config, Mapping):
            raise WorkloadError(f"{where}: configs has {shortened(config)}; make it a dict, such as {{'block': 128}}")
        for name, value in config.items():
            _check_config_value(where, name, value, names)
    texts = [format_params(config) for config in checked]
    if twice := next((text for text in texts if texts.count(text) > 1), ""):
        raise WorkloadError(f"{where}: config {twice} is given twice; leave one out")
    return checked


def _check_config_value(where: str, name: Any, value: Any, axes: Sequence[str]) -> None:
    if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
        raise WorkloadError(f"{where}: configs names {shortened(name)}; name a parameter of the function")
    if name in axes or name in (OUT, STREAM):
        raise WorkloadError(f"{where}: config value {name} has the name of an axis, `{OUT}` or `{STREAM}`; choose another name")
    if not isinstance(value, int | float | str | np.generic):
        raise WorkloadError(f"{where}: config value {name} is {shortened(value)}; give a number or a text")
    if isinstance(value, str) and (set(value) & set(",=") or not value.isprintable()):
        raise WorkloadError(
            f"{where}: config value {name} is {shortened(value)}; leave out commas, equals signs and line breaks"
        )


def check_takes_config(where: str, function: Callable[..., Any], configs: Iterable[Params]) -> None:
    """Check that a function has a parameter for each config value. Raises WorkloadError."""
    takes = parameters_of(function, ())
    if takes.by_name is None:
        return
    for config in configs:
        if unknown := [name for name in config if name not in takes.by_name]:
            raise WorkloadError(
                f"{where} has no parameter {unknown[0]}, which configs gives; it has {', '.join(takes.by_name) or 'none'}; "
                "make them the same"
            )


def checked_outputs(outputs: Any) -> str | Mapping[str, str]:
    """Types of outputs: one of all, or by name. Raises WorkloadError."""
    types = (
        {"outputs": outputs} if not isinstance(outputs, Mapping) else {f"outputs: {each}": outputs[each] for each in outputs}
    )
    for what, dtype in types.items():
        if not (dtype == "" or (isinstance(dtype, str) and is_measurable(dtype))):
            raise WorkloadError(f"{what} is {shortened(dtype)}; give the name of a type, such as 'float32' or 'bfloat16'")
    return outputs or {}


def checked_requires(where: str, requires: Any) -> tuple[str, ...]:
    """Names of modules. Raises WorkloadError if it is no list of texts."""
    if isinstance(requires, str) or not isinstance(requires, Iterable):
        raise WorkloadError(f"{where}: requires is {shortened(requires)}; give a list of modules, such as requires=['cupy']")
    modules = tuple(requires)
    if bad := [each for each in modules if not isinstance(each, str) or not each.strip()]:
        raise WorkloadError(f"{where}: requires has {shortened(bad[0])}; give names of modules")
    return modules


def checked_function(function: Any, what: str) -> Any:
    """The function itself. Raises WorkloadError if it is not a function, or does not return arrays when it is called."""
    if isinstance(function, str):
        raise WorkloadError(
            f"{what} is the text {shortened(function)}; decorate a function, and name it by name={shortened(function)}"
        )
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
    global_names = getattr(inner, "__globals__", {})
    return "triton" in requires or any(type(global_names.get(name)).__module__.startswith("triton.") for name in names)


def choose(what: str, text: Any, among: Sequence[str]) -> None:
    """Raise WorkloadError if a text is not one of those allowed."""
    if not isinstance(text, str) or text not in among:
        raise WorkloadError(f"{what}={shortened(text)}: choose one of {', '.join(filter(None, among))}")


def tolerances(tolerance: Any) -> dict[str, float]:
    """Largest relative L2 error by precision, from one for all, from some, or from none. Raises WorkloadError."""
    if tolerance is None:
        return dict(TOLERANCE)
    if isinstance(tolerance, Mapping):
        for precision, value in tolerance.items():
            choose("tolerance of a precision", precision, tuple(TOLERANCE))
            _check_tolerance(f"tolerance of {precision}", value)
        return {**TOLERANCE, **{precision: float(value) for precision, value in tolerance.items()}}
    _check_tolerance("tolerance", tolerance)
    return {**dict.fromkeys(TOLERANCE, float(tolerance)), "int8": 0.0, "int": 0.0}


def _check_tolerance(what: str, value: Any) -> None:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool | np.complexfloating)
    if not (number and 0 <= value < 1):  # outputs of zeros have an error of 1
        raise WorkloadError(
            f"{what} is {shortened(value)}; give a number from 0 to below 1, or a dict such as {{'fp32': 1e-5}}"
        )


def caller() -> Path | None:
    """The file that declares the benchmark; None in an interactive session."""
    file = Path(declared_at()[0])
    return file.resolve() if file.is_file() else None


def declared_at() -> tuple[str, int]:
    """File and line of the user's statement that calls us."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("warpladder"):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
