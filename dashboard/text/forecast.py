"""A forecast as a table."""

from math import isnan
from typing import Final

from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.forecast import Forecast, Gain
from warpladder.dashboard.core.numbers import format_duration, format_estimate, significant
from warpladder.dashboard.ui.tables import plain_lines, plain_table

_HEADINGS: Final = ("operator", "benchmark", "variants", "times faster", "saves a step", "gains alone", "hidden")


def render(forecast: Forecast) -> str:
    """The step, what each operation gains, the step with all of them, and the bound, as text that ends with a line feed."""
    lines = [f"a step takes {format_duration(forecast.step_ns)}", *plain_table(_HEADINGS, list(map(_row, forecast.gains)))]
    if not forecast.gains:
        lines.append("no operation has a variant that is faster than its baseline")
    else:
        after = forecast.step_ns - forecast.gained_ns.value
        lines.append(
            f"with all: {format_duration(after)}, {_time(forecast.gained_ns)} less, "
            f"{significant(forecast.step_ns / after)} times as fast"
        )
    if not isnan(forecast.bound_ns):
        lines.append(f"with every operation at its floor: {format_duration(forecast.step_ns - forecast.bound_ns)}")
    hidden = [gain for gain in forecast.gains if gain.hidden_ns > gain.saved_ns.value / 2]
    if hidden:
        names = ", ".join(gain.operation.name for gain in hidden)
        lines.append(f"more than half is hidden of {names}: the step waits for another stream or for the host")
    return plain_lines(lines)


def _row(gain: Gain) -> tuple[str, ...]:
    ratios = [ratio.value for _, _, ratio in gain.forms]
    return (
        gain.operation.name,
        gain.operation.workload,
        ", ".join(dict.fromkeys(variant for _, variant, _ in gain.forms)),
        significant(ratios[0]) if len(ratios) == 1 else f"{significant(min(ratios))} to {significant(max(ratios))}",
        _time(gain.saved_ns),
        _time(gain.gained_ns),
        format_duration(gain.hidden_ns),
    )


def _time(estimate: Estimate) -> str:
    return format_estimate(estimate, format_duration)
