"""The axes of a benchmark, and the cases that their values make."""

import inspect
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice, product
from keyword import iskeyword
from reprlib import repr as shortened
from typing import Any, Final

import numpy as np

from warpladder.workloads.api import Case, Params, WorkloadError
from warpladder.workloads.axes import Axis
from warpladder.workloads.functions.parameters import OUT, STREAM, place_of, raised_by

_MOST: Final = 2**62
#: More cases than can be measured in a day.
_MOST_CASES: Final = 10_000
_OPTIONS: Final = ("title", "arrays", "device", "flops", "tolerance", "gradients")


@dataclass(frozen=True)
class Axes:
    """Axes by name, in order, with the values of each.

    Attributes:
        values: name -> values.
        flops: gives a case's operations from its axes.
    """

    values: Mapping[str, Sequence[Any]]
    flops: Callable[..., float] | int | None = None
    _by_text: Mapping[str, Mapping[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        plain = {name: _checked_axis(name, values) for name, values in self.values.items()}
        if (count := math.prod(map(len, plain.values()))) > _MOST_CASES:
            raise WorkloadError(
                f"axes {', '.join(plain)} make {count:,} cases; give fewer values, at most {_MOST_CASES:,} cases"
            )
        if self.flops is not None and not callable(self.flops) and not isinstance(self.flops, int | float):
            raise WorkloadError(f"flops is {shortened(self.flops)}; give a number, or a function of axes")
        texts = {name: {str(value): value for value in values} for name, values in plain.items()}
        object.__setattr__(self, "values", plain)
        object.__setattr__(self, "_by_text", texts)

    @property
    def declared(self) -> tuple[Axis, ...]:
        """As a workload declares them. An axis of whole numbers takes others too. An axis with one value can be left out."""
        return tuple(self._declared(name, values) for name, values in self.values.items())

    def _declared(self, name: str, values: Sequence[Any]) -> Axis:
        default = str(values[0]) if len(values) == 1 else ""
        if _is_whole(values):
            return Axis(name, min(1, *values), _MOST, default=default)
        return Axis(name, words=tuple(self._by_text[name]), default=default)

    @property
    def cases(self) -> tuple[Case, ...]:
        """Every combination of the values; the last axis changes fastest."""
        return tuple(self.case(dict(zip(self.values, each, strict=True))) for each in product(*self.values.values()))

    def case(self, params: Params) -> Case:
        """The case of these values, or of their texts."""
        values = {name: self._by_text[name].get(str(value), value) for name, value in params.items()}
        flops = self._flops_of(values)
        return Case(values, int(flops), None, ("quick", "report", "full"), self._rank(values))

    def _flops_of(self, values: Params) -> int | float:
        if not callable(self.flops):
            found: Any = self.flops or 0
        else:
            try:
                found = called_with_axes(self.flops, values)
            except Exception as error:
                raise raised_by(self.flops, "flops", error) from error
        if not (isinstance(found, int | float | np.number) and 0 <= found < math.inf and int(found) == found):
            raise WorkloadError(f"flops gives {shortened(found)} for {values}; give a whole number")
        return found  # type: ignore[return-value]

    def _rank(self, values: Params) -> int:
        """The place on the size axis: the first axis of numbers with several values."""
        for name, declared in self.values.items():
            numbers = sorted({value for value in declared if isinstance(value, int | float)})
            if len(numbers) > 1 and len(numbers) == len(declared):
                return sum(number < values[name] for number in numbers)
        return 0


def _checked_axis(name: str, values: Any) -> list[Any]:
    """The values of an axis, as Python's own. Raises WorkloadError."""
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
    found = [_checked_value(name, value) for value in islice(values, _MOST_CASES + 1)]
    if len(found) > _MOST_CASES:
        raise WorkloadError(f"axis {name} has too many values; give at most {_MOST_CASES:,}")
    text, count = Counter(map(str, found)).most_common(1)[0]
    if count > 1:
        raise WorkloadError(f"axis {name}: {text} is given twice; leave one out")
    return found


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


def _is_whole(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) for value in values)


def _accepted(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the values that a function has parameters for."""
    found = inspect.signature(function).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in found.values()):
        return dict(values)
    return {name: value for name, value in values.items() if name in found}


def called_with_axes(function: Callable[..., Any], values: Mapping[str, Any], **more: Any) -> Any:
    """Call a function of axes, with those that it takes.

    Raises:
        WorkloadError: it has a parameter without default that is no axis.
    """
    known = {**values, **more}
    for parameter in inspect.signature(function).parameters.values():
        empty = parameter.default is inspect.Parameter.empty
        if (
            empty
            and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            and parameter.name not in known
        ):
            raise WorkloadError(
                f"{place_of(function)} takes {parameter.name}, which is no axis; the axes are {', '.join(values) or 'none'}"
            )
    return function(**_accepted(function, known))
