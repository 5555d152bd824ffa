"""The gain of a step of a job from one change at a time, as text."""

from dataclasses import asdict
from typing import Any

from warpladder.dashboard.core.job_graph.forecast import JobForecast
from warpladder.dashboard.core.numbers import NOTHING, format_duration, format_percent
from warpladder.dashboard.ui.text import plain_lines, plain_table


def facts(run_id: str, found: JobForecast) -> dict[str, Any]:
    """The same for programs, with the gain as a part of the step."""
    changes = [{**asdict(each), "gain": 1 - each.step_ns / found.step_ns} for each in found.outcomes]
    return {"run_id": run_id, "step_ns": found.step_ns, "replayed_ns": found.replayed_ns, "changes": changes}


def render(found: JobForecast) -> str:
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
            _gain(found.step_ns, each.step_ns),
            each.words,
        )
        for each in found.outcomes
    ]
    lines += plain_table(("change", "step", "range", "gain", "what"), rows)
    return plain_lines(lines)


def _gain(before: float, after: float) -> str:
    return format_percent(100 * (1 - after / before)) if after < 0.995 * before else NOTHING
