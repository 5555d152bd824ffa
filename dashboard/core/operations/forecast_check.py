"""A forecast beside the profile of the program in which operations were replaced."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.operations.forecast import Forecast, Gain, forecast
from warpladder.dashboard.core.operations.hot_operations import HotOperations
from warpladder.dashboard.core.operations.program import Program
from warpladder.dashboard.core.run_data import RunData

#: An operation was replaced if it has at most this part of its calls left.
_LEFT: Final = 0.5
#: Operators whose device time changes by less than this part of the step are not listed.
_LEAST_PART: Final = 0.002


@dataclass(frozen=True)
class Change:
    """Device time of an operator in a step.

    Attributes:
        name: of the operator, or the reason why work belongs to none.
        before_ns, after_ns: measured.
        forecast_ns: before, less what its variants save; `before_ns` for an operator that was not replaced.
    """

    name: str
    before_ns: float
    forecast_ns: float
    after_ns: float

    @property
    def missed_ns(self) -> float:
        """Measured less forecast."""
        return self.after_ns - self.forecast_ns


@dataclass(frozen=True)
class ForecastCheck:
    """Forecast and measured step.

    Attributes:
        forecast: of the operations that were replaced.
        before_ns, after_ns: the step in both profiles, with the least and the largest of its steps as ends.
        forecast_ns: `Forecast.after_ns` of the replaced operations. Its ends also have `drift`.
        drift: device time a step of the operators that were not replaced, after over before: what two profiles of the same work differ by.
        changes: operators by falling change of device time.
    """

    forecast: Forecast
    before_ns: Estimate
    after_ns: Estimate
    forecast_ns: Estimate
    drift: float
    changes: tuple[Change, ...]

    @property
    def missed_percent(self) -> float:
        """Measured step over the forecast one, less 100 %."""
        return 100 * (self.after_ns.value / self.forecast_ns.value - 1)


def check_forecast(before: Program, after: Program, data: RunData) -> ForecastCheck:
    """Compare the forecast of the operations that were replaced with the profile in which they are.

    Args:
        before, after: the programs of both profiles.
        data: the recording of the operations' variants.
    """
    found = forecast(before, data, replaced_forms(before.hot, after.hot))
    expected, earlier, later = found.after_ns, _by_name(before.hot), _by_name(after.hot)
    kept = sorted((earlier.keys() & later.keys()) - {gain.operation.name for gain in found.gains})
    drift = sum(later[name] for name in kept) / sum(earlier[name] for name in kept) if any(map(earlier.get, kept)) else 1.0
    return ForecastCheck(
        found,
        before.steps_ns,
        after.steps_ns,
        Estimate(expected.value, expected.low * min(drift, 1.0), expected.high * max(drift, 1.0)),
        drift,
        _changes(earlier, later, found.gains, before.step_ns),
    )


def replaced_forms(hot: HotOperations, hot_after: HotOperations) -> Collection[int]:
    """Numbers of the forms of which the later profile has at most half of the calls a step."""
    left: dict[tuple[str, str], float] = {}
    for operation in hot_after.operations:
        for form in operation.forms:
            key = operation.name, repr(form.arguments)
            left[key] = left.get(key, 0.0) + form.calls / hot_after.steps
    return {
        form.number
        for operation in hot.operations
        for form in operation.forms
        if form.number >= 0 and left.get((operation.name, repr(form.arguments)), 0.0) <= _LEFT * form.calls / hot.steps
    }


def _changes(
    before: Mapping[str, float], after: Mapping[str, float], gains: tuple[Gain, ...], step: float
) -> tuple[Change, ...]:
    saved: dict[str, float] = {}
    for gain in gains:
        saved[gain.operation.name] = saved.get(gain.operation.name, 0.0) + gain.saved_ns.value
    changes = [
        Change(name, before.get(name, 0.0), before.get(name, 0.0) - saved.get(name, 0.0), after.get(name, 0.0))
        for name in dict.fromkeys((*before, *after))
    ]
    listed = [each for each in changes if abs(each.after_ns - each.before_ns) >= _LEAST_PART * step]
    return tuple(sorted(listed, key=lambda each: -abs(each.after_ns - each.before_ns)))


def _by_name(hot: HotOperations) -> dict[str, float]:
    """Device time of each operator in a step, ns."""
    found: dict[str, float] = {}
    for operation in hot.operations:
        found[operation.name] = found.get(operation.name, 0.0) + operation.device_ns / hot.steps
    return found
