"""Axis ticks at round numbers, written with SI units."""

import math
from collections.abc import Callable, Iterable
from typing import Any, Final

_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_LINEAR_TICKS: Final = 6
#: The part of a logarithmic axis that a label takes.
_LABEL: Final = 0.07


def ticks(
    low: float, high: float, write: Callable[[float], str], *, logarithmic: bool, most: int = _LINEAR_TICKS
) -> dict[str, Any]:
    """Options of an axis that spans low to high, both positive where it is logarithmic.

    Args:
        write: writes a value, as `format_duration` does.
        most: about the number of ticks that a linear axis has room for, or of decades on a logarithmic one.
    """
    values = _log_values(low, high, most) if logarithmic else _linear_values(low, high, most)
    return {"tickmode": "array", "tickvals": values, "ticktext": [_short(write(value)) if value else "0" for value in values]}


def apart(values: Iterable[float]) -> list[float]:
    """The positive values, from the smallest on, whose labels have room on a logarithmic axis."""
    shown: list[float] = []
    ordered = sorted(set(values))
    for value in ordered:
        if not shown or value >= shown[-1] * (ordered[-1] / ordered[0]) ** _LABEL:
            shown.append(value)
    return shown


def _linear_values(low: float, high: float, most: int) -> list[float]:
    span = max(high - low, 1e-12)
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(size * power for size in _STEPS if span / (size * power) <= most)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high * 1.08 / step) + 1)]


def _log_values(low: float, high: float, most: int) -> list[float]:
    apart = math.ceil(math.log10(high / low) / (most + 1)) or 1
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2, apart)
    # Three ticks a decade, where all of them are at most half as many again as on a linear axis.
    within = 3 if 3 * math.log10(high / low) <= 1.5 * most else 1
    return [lead * 10.0**decade for decade in decades for lead in (1.0, 2.0, 5.0)[:within]]


def _short(written: str) -> str:
    """`10 µs` for `10.0 µs`, because ticks are at round numbers."""
    number, space, unit = written.partition(" ")
    mantissa = number.rstrip("×")
    if "." in mantissa:
        number = mantissa.rstrip("0").rstrip(".") + number[len(mantissa) :]
    return number + space + unit
