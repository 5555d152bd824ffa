"""The axes of a workload's cases, and cases out of texts such as `n=3000` or `shape=400x336x448,perm=210`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from warpladder.errors import Error

#: A largest value from which on a message names none.
_NO_LIMIT: Final = 2**53


class AxisError(Error):
    """A text does not name a case. The message says why."""


@dataclass(frozen=True)
class Axis:
    """One axis of a workload's cases: whole numbers, several of them joined by `x`, or words to choose from.

    Attributes:
        name: as in the case's parameters.
        low, high: least and largest whole number; of each extent where there are several.
        extents: how many whole numbers a value has: `400x336x448` has 3.
        words: the allowed words; empty for an axis of numbers.
        optional: a case may leave it out.
        instead_of: name of the axis that this one replaces.
        default: text of the value that a case has if it leaves the axis out; empty if there is none.
    """

    name: str
    low: int = 1
    high: int = 1
    extents: int = 1
    words: tuple[str, ...] = ()
    optional: bool = False
    instead_of: str = ""
    default: str = ""

    def __str__(self) -> str:
        if self.words:
            values = " or ".join(self.words)
        else:
            values = f"from {self.low}" if self.high >= _NO_LIMIT else f"{self.low} to {self.high:,}"
            values = f"{'x'.join(['N'] * self.extents)}, each {values}" if self.extents > 1 else values
        left_out = ", may be left out" if self.optional else f", {self.default} if left out" if self.default else ""
        return f"{self.name} ({values}{left_out})"

    def parse(self, text: str) -> Any:
        """The value that a text stands for. Raises AxisError."""
        if self.words:
            if text not in self.words:
                raise AxisError(f"{self.name}={text} is none of {', '.join(self.words)}")
            return text
        numbers = text.split("x")
        if len(numbers) != self.extents or not all(number.isascii() and number.isdigit() for number in numbers):
            what = "a whole number" if self.extents == 1 else f"{self.extents} whole numbers joined by x"
            raise AxisError(f"{self.name}={text} is not {what}")
        for number in map(int, numbers):
            if not self.low <= number <= self.high:
                raise AxisError(f"{self.name}={text} is not within {self.low} to {self.high:,}")
        return int(text) if self.extents == 1 else "x".join(str(int(number)) for number in numbers)


def parse_params(text: str, axes: Sequence[Axis]) -> dict[str, Any]:
    """Parameters of a case, in the order of the axes.

    Args:
        text: such as `layer=2,batch=64`.
        axes: of the workload.

    Raises:
        AxisError: an axis is unknown, given twice, missing without a default, or given beside the one that it replaces; or a value is not
            allowed.
    """
    given: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals:
            raise AxisError(f"{part.strip() or 'nothing'} is not NAME=VALUE")
        if name not in {axis.name for axis in axes}:
            raise AxisError(f"there is no axis {name}")
        if name in given:
            raise AxisError(f"{name} is given twice")
        given[name] = value
    for axis in axes:
        instead = [other.name for other in axes if other.instead_of == axis.name]
        if axis.name in given and axis.instead_of in given:
            raise AxisError(f"{axis.name} stands in place of {axis.instead_of}; give one of them")
        if axis.default:
            given.setdefault(axis.name, axis.default)
        elif not axis.optional and not axis.instead_of and axis.name not in given and not set(instead) & set(given):
            raise AxisError(f"{' or '.join([axis.name, *instead])} is missing")
    return {axis.name: axis.parse(given[axis.name]) for axis in axes if axis.name in given}


def describe(axes: Sequence[Axis]) -> str:
    """The axes on one line, for a message."""
    return "; ".join(f"{axis}{f' in place of {axis.instead_of}' if axis.instead_of else ''}" for axis in axes)


def sweep(given: Sequence[str]) -> Iterator[str]:
    """The cases of a sweep, as texts: every combination of the values.

    Args:
        given: one text for each axis, such as `n=1000,2000,4000`.

    Raises:
        AxisError: one is not NAME=VALUE,VALUE...
    """
    values: Mapping[str, list[str]] = {}
    for text in given:
        name, equals, rest = text.partition("=")
        if not name.strip() or not equals or not all(value.strip() for value in rest.split(",")):
            raise AxisError(f"{text} is not NAME=VALUE,VALUE...")
        if name.strip() in values:
            raise AxisError(f"{name.strip()} is given twice")
        values = {**values, name.strip(): [value.strip() for value in rest.split(",")]}
    for combination in product(*values.values()):
        yield ",".join(f"{name}={value}" for name, value in zip(values, combination, strict=True))
