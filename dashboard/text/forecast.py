"""A forecast as a table."""

from math import isnan
from typing import Final

from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.numbers import format_duration, format_estimate, significant
from warpladder.dashboard.core.operations.forecast import Forecast, Gain
from warpladder.dashboard.core.operations.forecast_check import ForecastCheck
from warpladder.dashboard.ui.tables import plain_lines, plain_table
from warpladder.dashboard.views.forecast.query import hidden, times_faster

_CHANGED: Final = ("device time a step of", "before", "forecast", "after", "after less forecast")
_HEADINGS: Final = ("operator", "benchmark", "variants", "times faster", "saves a step", "gains alone", "hidden")


def render(forecast: Forecast) -> str:
    """The step, what each operation gains, the step with all of them, and the bound, as text that ends with a line feed."""
    lines = [f"a step takes {format_duration(forecast.step_ns)}", *plain_table(_HEADINGS, list(map(_row, forecast.gains)))]
    if not forecast.gains:
        lines.append("no operation has a variant that is faster than its baseline")
    else:
        after = forecast.after_ns.value
        lines.append(
            f"with all: {format_duration(after)}, {_time(forecast.gained_ns)} less, "
            f"{significant(forecast.step_ns / after)} times as fast"
        )
    if not isnan(forecast.bound_ns):
        lines.append(f"with every operation at its floor: {format_duration(forecast.step_ns - forecast.bound_ns)}")
    if sentence := hidden(forecast):
        lines.append(sentence)
    return plain_lines(lines)


def render_check(found: ForecastCheck) -> str:
    """Forecast and measured step, and the operators whose device time changed, as text that ends with a line feed."""
    replaced = ", ".join(dict.fromkeys(gain.operation.name for gain in found.forecast.gains))
    lines = [
        f"before: {_time(found.before_ns)} a step",
        f"forecast with {replaced or 'nothing'} replaced: {_time(found.forecast_ns)}",
        f"after: {_time(found.after_ns)}, {found.missed_percent:+.2f} % from the forecast",
    ]
    rows = [
        (
            each.name,
            *(format_duration(ns) for ns in (each.before_ns, each.forecast_ns, each.after_ns)),
            format_duration(each.missed_ns),
        )
        for each in found.changes
    ]
    lines += plain_table(_CHANGED, rows) if rows else []
    if not replaced:
        lines.append("no form that has a faster variant is called less often in the later profile")
    return plain_lines(lines)


def _row(gain: Gain) -> tuple[str, ...]:
    return (
        gain.operation.name,
        gain.operation.workload,
        ", ".join(dict.fromkeys(each.variant for each in gain.forms)),
        times_faster([each.ratio.value for each in gain.forms]),
        _time(gain.saved_ns),
        _time(gain.gained_ns),
        format_duration(gain.hidden_ns),
    )


def _time(estimate: Estimate) -> str:
    return format_estimate(estimate, format_duration)
