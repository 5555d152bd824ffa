"""The operations of a trace that are worth work, as a table."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from warpladder.dashboard.core.numbers import format_duration, significant
from warpladder.dashboard.core.operations.baseline_check import AGREES, Checked, Difference
from warpladder.dashboard.core.operations.hot_operations import Ceilings, HotOperations, Operation, short_name
from warpladder.dashboard.ui.text import plain_lines, plain_table

_HEADINGS: Final = ("operator", "benchmark", "of the time", "a step", "calls a step", "forms", "floor", "worth")
#: Operations below this share of the device time are summed up.
LEAST_SHARE: Final = 0.01


def facts(run_id: str, hot: HotOperations, written: Sequence[Operation], ceilings: Ceilings) -> dict[str, Any]:
    """All operations for programs, those that cannot be called again with the reason. Times are those of a step."""
    return {
        "run_id": run_id,
        "time": hot.time,
        "steps": hot.steps if hot.has_steps else None,
        "step_ns": hot.device_ns / hot.steps,
        "ceilings": {"device": ceilings.device, "runs": list(ceilings.runs)},
        "operations": [
            {
                "operator": each.name,
                "benchmark": each.workload,
                "written": each in written,
                "why_not": each.reason or None,
                "share": hot.share(each),
                "step_ns": each.device_ns / hot.steps,
                "calls": each.calls / hot.steps,
                "forms": len(each.forms),
                "floor_ns": each.floor_ns / hot.steps,
                "worth_ns": each.worth_ns / hot.steps,
                "lacks": list(each.lacks),
            }
            for each in hot.operations
        ],
    }


def facts_of_check(checked: Sequence[Checked]) -> list[dict[str, Any]]:
    """The times of baselines beside those of the trace, for programs."""
    return [
        {
            "benchmark": each.operation.workload,
            "case": each.form.name,
            "trace_ns": each.form.median_ns,
            "cold_ns": each.cold_ns,
            "warm_ns": each.warm_ns,
            "nearest": each.nearest,
            "kernels_differ": None if each.differences is None else bool(each.differences),
            "cause": each.cause or None,
        }
        for each in checked
    ]


def render(hot: HotOperations, written: Sequence[Operation], ceilings: Ceilings) -> str:
    """The table, and what cannot be called again with the reasons, as text that ends with a line feed.

    Args:
        hot: all operations.
        written: those that are written to a file; without any, all of at least 1 % of the device time are listed.
        ceilings: that the floors come from.
    """
    shown = [each for each in hot.operations if not each.reason and (each in written or hot.share(each) >= LEAST_SHARE)]
    refused = [each for each in hot.operations if each.reason and hot.share(each) >= LEAST_SHARE]
    time = f"{format_duration(hot.device_ns / hot.steps)} of {hot.time}"
    steps = "1 step" if hot.steps == 1 else f"{hot.steps} steps"
    headline = f"{time} a step, {steps}" if hot.has_steps else f"{time}; the trace has no steps"
    lines = [headline, *plain_table(_HEADINGS, [_row(hot, each) for each in shown])]
    lines += [] if hot.on_host else _about_floors(shown, ceilings)
    if refused:
        rows = [
            (each.name, _percent(hot.share(each)), each.reason) for each in sorted(refused, key=lambda each: -each.device_ns)
        ]
        lines += ["", "cannot be called again:", *plain_table(("operator", "of the time", "why"), rows)]
    if rest := [each for each in hot.operations if each not in shown and each not in refused]:
        share = _percent(sum(map(hot.share, rest)))
        lines.append(f"{len(rest)} more below {LEAST_SHARE:.0%} each, together {share} of the time")
    return plain_lines(lines)


#: Kernels of a form whose difference is named.
_MOST_DIFFERENCES: Final = 2
_CHECKED: Final = ("benchmark", "case", "trace", "cold L2", "warm L2", "nearest", "kernels", "likely cause of the difference")


def render_check(checked: Sequence[Checked], on_host: bool) -> str:
    """The times and kernels of baselines beside those of the trace, as text that ends with a line feed."""
    rows = [
        (
            each.operation.workload,
            each.form.name,
            *map(format_duration, (each.form.median_ns, each.cold_ns, each.warm_ns)),
            f"{100 * (each.nearest - 1):+.1f} %",
            _kernels(each.differences),
            each.cause or "none: they agree",
        )
        for each in checked
    ]
    agree = sum(not each.cause for each in checked)
    lines = [*plain_table(_CHECKED, rows), f"{agree} of {len(checked)} baselines agree with the trace within {AGREES:.0%}"]
    if not on_host and all(each.differences is None for each in checked):
        lines.append("no names and grids of kernels: record with --trace to compare them")
    return plain_lines(lines)


def _kernels(differences: Sequence[Difference] | None) -> str:
    """How the kernels of a baseline differ from those of the trace."""
    if differences is None:
        return "not traced"
    named = [
        f"{each.name} has {' or '.join(map(str, each.grids))} blocks, {each.grid} in the trace"
        if each.grids
        else f"{each.name} is missing"
        for each in differences[:_MOST_DIFFERENCES]
    ]
    more = [f"{len(differences) - len(named)} more differ"] if len(differences) > len(named) else []
    return "; ".join((*named, *more)) or "the same"


def _row(hot: HotOperations, operation: Operation) -> tuple[str, ...]:
    return (
        short_name(operation.name),
        operation.workload,
        _percent(hot.share(operation)),
        format_duration(operation.device_ns / hot.steps),
        significant(operation.calls / hot.steps),
        str(len(operation.forms)),
        f"no {operation.lacks[0]}" if operation.lacks else format_duration(operation.floor_ns / hot.steps),
        format_duration(operation.worth_ns / hot.steps),
    )


def _about_floors(shown: Sequence[Operation], ceilings: Ceilings) -> Iterator[str]:
    """Where floors come from, and how to get those that are lacking."""
    gpu = ceilings.device or "this GPU"
    if not ceilings.values:
        yield f"no floor: no run of {gpu} has ceilings; warpladder record on it measures them"
        return
    yield f"floors: ceilings of {gpu} from {', '.join(ceilings.runs)}"
    lacking = dict.fromkeys(each for operation in shown for each in operation.lacks if each.endswith("ceiling"))
    if lacking:
        yield f"no {' and no '.join(lacking)} was measured on {gpu}: warpladder record on it measures all that it has"
    if any(operation.lacks for operation in shown):
        yield "operations without a floor are ranked by their whole time"


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
