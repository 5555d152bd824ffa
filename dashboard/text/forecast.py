"""A forecast as a table: of a program whose operations become faster, and of a job with one change at a time."""

from dataclasses import asdict
from math import isnan
from typing import Any, Final

from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.job_graph.forecast import JobForecast
from warpladder.dashboard.core.numbers import NOTHING, format_duration, format_estimate, format_percent, significant
from warpladder.dashboard.core.operations.forecast import (
    Forecast,
    ForecastCheck,
    Gain,
    Hosts,
    about_steps,
    advice,
    in_vain,
    times_faster,
)
from warpladder.dashboard.core.operations.hot_operations import short_name
from warpladder.dashboard.ui.text import plain_lines, plain_table


def facts(hosts: Hosts, profiled: Forecast, hidden: Forecast, own: Forecast | None) -> dict[str, Any]:
    """The same as `render`, for programs: the forecast for each host that is known, with all gains."""
    of = {"as_profiled": profiled, "hidden": hidden, "own": own}
    return {
        "run_id": hosts.profiled.run_id,
        "hosts": {host: _facts_of(each) if each else None for host, each in of.items()},
        "advice": list(advice(hosts)),
    }


def _facts_of(found: Forecast) -> dict[str, Any]:
    return {
        "step_ns": found.step_ns,
        **found.gained_ns.columns("gained_ns"),
        "bound_ns": found.step_ns - found.bound_ns,
        "gains": [
            {
                "operator": gain.operation.name,
                "benchmark": gain.operation.workload,
                **gain.saved_ns.columns("saved_ns"),
                **gain.gained_ns.columns("gained_ns"),
                "forms": [
                    {"case": each.form.name, "variant": each.variant, **each.ratio.columns("times_faster")}
                    for each in gain.forms
                ],
            }
            for gain in found.gains
        ],
    }


def facts_of_check(found: ForecastCheck) -> dict[str, Any]:
    """The same as `render_check`, for programs."""
    steps = {"before_ns": found.before_ns, "forecast_ns": found.forecast_ns, "after_ns": found.after_ns}
    return {
        **{name: value for step, estimate in steps.items() for name, value in estimate.columns(step).items()},
        "missed_percent": found.missed_percent,
        "replaced": list(dict.fromkeys(gain.operation.name for gain in found.forecast.gains)),
        "changes": [asdict(each) for each in found.changes],
    }


_CHANGED: Final = ("device time a step of", "before", "forecast", "after", "after less forecast")


def render(hosts: Hosts, profiled: Forecast, hidden: Forecast, own: Forecast | None) -> str:
    """The step, what each operation gains, the step with all of them, and the bound, as text that ends with a line feed.

    Args:
        hosts: the program, by what is assumed of its host.
        profiled, hidden, own: the forecasts for these.
    """
    lines = [*about_steps(hosts), *advice(hosts)]
    known = own or profiled
    if not known.gains:
        lines.append("no operation has a variant that is faster than its baseline")
    else:
        gains_hidden = {gain.operation.name + gain.operation.workload: gain for gain in hidden.gains}
        with_host = "gains, own host" if own else "gains, host as profiled"
        headings = ("operator", "variants", "times faster", "saves a step", with_host, "gains, host hidden")
        rows = [_row(gain, gains_hidden[gain.operation.name + gain.operation.workload]) for gain in known.gains]
        lines += plain_table(headings, rows)
        lines += [_with_all("own host" if own else "host as profiled", known), _with_all("host hidden", hidden)]
        if sentence := in_vain(known):
            lines.append(sentence)
    if not isnan(hidden.bound_ns):
        ends = [format_duration(each.step_ns - each.bound_ns) for each in (known, hidden)]
        lines.append(f"with every operation at its floor: {ends[0]}, with the host hidden {ends[1]}")
    return plain_lines(lines)


def _with_all(host: str, forecast: Forecast) -> str:
    after = forecast.after_ns
    return (
        f"with all, {host}: {format_duration(forecast.step_ns)} to {_time(after)}, {_time(forecast.gained_ns)} less, "
        f"{significant(forecast.step_ns / after.value)} times as fast"
    )


def render_check(found: ForecastCheck) -> str:
    """Forecast and measured step, and the operators whose device time changed, as text that ends with a line feed."""
    replaced = "; ".join(dict.fromkeys(short_name(gain.operation.name) for gain in found.forecast.gains))
    lines = [
        f"before: {_time(found.before_ns)} a step",
        f"forecast with {replaced or 'nothing'} replaced: {_time(found.forecast_ns)}",
        f"after: {_time(found.after_ns)}, {found.missed_percent:+.2f} % from the forecast",
        f"device time of the operators that were not replaced: {100 * (found.drift - 1):+.2f} % in the later profile",
    ]
    rows = [
        (
            short_name(each.name),
            *(format_duration(ns) for ns in (each.before_ns, each.forecast_ns, each.after_ns)),
            format_duration(each.missed_ns),
        )
        for each in found.changes
    ]
    lines += plain_table(_CHANGED, rows) if rows else []
    if not replaced:
        lines.append("no form that has a faster variant is called less often in the later profile")
    return plain_lines(lines)


def _row(gain: Gain, hidden: Gain) -> tuple[str, ...]:
    return (
        short_name(gain.operation.name),
        ", ".join(dict.fromkeys(each.variant for each in gain.forms)),
        times_faster([each.ratio.value for each in gain.forms]),
        format_duration(gain.saved_ns.value),
        format_duration(gain.gained_ns.value),
        format_duration(hidden.gained_ns.value),
    )


def _time(estimate: Estimate) -> str:
    return format_estimate(estimate, format_duration)


def facts_of_job(run_id: str, found: JobForecast) -> dict[str, Any]:
    """The same for programs, with the gain as a part of the step."""
    changes = [{**asdict(each), "gain": 1 - each.step_ns / found.step_ns} for each in found.outcomes]
    return {"run_id": run_id, "step_ns": found.step_ns, "replayed_ns": found.replayed_ns, "changes": changes}


def render_job(found: JobForecast) -> str:
    """The changes in the order of their gain, as text that ends with a line feed."""
    off = abs(100 * (found.replayed_ns / found.step_ns - 1))
    lines = [
        f"a step takes {format_duration(found.step_ns)}; its replay without a change is within {max(off, 0.01):.2f} % of that"
    ]
    rows = [
        (
            each.name,
            format_duration(each.step_ns),
            f"{format_duration(each.low_ns)} to {format_duration(each.high_ns)}",
            format_percent(100 * (1 - each.step_ns / found.step_ns)) if each.step_ns < 0.995 * found.step_ns else NOTHING,
            each.words,
        )
        for each in found.outcomes
    ]
    return plain_lines([*lines, *plain_table(("change", "step", "range", "gain", "what"), rows)])
