"""The axes of a benchmark, and the cases that their values make."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

import numpy as np

from warpladder.workloads.api import Case, Params, WorkloadError
from warpladder.workloads.axes import Axis
from warpladder.workloads.functions.binding import OUT, STREAM, place_of

_MOST: Final = 2**62


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
        for name, values in self.values.items():
            _check_axis(name, values)
        texts = {name: {str(value): value for value in values} for name, values in self.values.items()}
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
        flops = self.flops(**_accepted(self.flops, values)) if callable(self.flops) else self.flops or 0
        if not (isinstance(flops, int | float | np.number) and flops >= 0 and int(flops) == flops):
            raise WorkloadError(f"flops gives {flops} for {values}; give a whole number")
        return Case(values, int(flops), None, ("quick", "report", "full"), self._rank(values))

    def _rank(self, values: Params) -> int:
        """The place on the size axis: the first axis of numbers with several values."""
        for name, declared in self.values.items():
            numbers = sorted({value for value in declared if isinstance(value, int | float)})
            if len(numbers) > 1 and len(numbers) == len(declared):
                return sum(number < values[name] for number in numbers)
        return 0


def _check_axis(name: str, values: Any) -> None:
    if name in (OUT, STREAM, "rng"):
        raise WorkloadError(f"axis {name}: a parameter of this name has a meaning of its own; choose another name")
    if isinstance(values, str | bytes) or not isinstance(values, Sequence | range | np.ndarray) or not len(values):
        raise WorkloadError(f"axis {name} is {values!r}; give a list of values, such as {name}=[1024, 4096]")
    for value in values:
        if not isinstance(value, int | float | str):
            raise WorkloadError(f"axis {name}: {value!r} is {type(value).__name__}; give numbers or texts")
    texts = [str(value) for value in values]
    if twice := next((text for text in texts if texts.count(text) > 1), ""):
        raise WorkloadError(f"axis {name}: {twice} is given twice")
    if bad := next((text for text in texts if set(text) & set(",=") or not text.strip()), ""):
        raise WorkloadError(f"axis {name}: {bad!r} has a comma or an equals sign, which separate axes; choose other words")


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
                f"{place_of(function)} takes {parameter.name}, which is no axis; the axes are {', '.join(values)}"
            )
    return function(**_accepted(function, known))
