"""The forecast of a program as a waterfall and as a table of its operations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Final

import pandas as pd

from warpladder.dashboard.core.numbers import format_duration, format_ratio
from warpladder.dashboard.core.operations.baseline_check import AXIS
from warpladder.dashboard.core.operations.forecast import Forecast, floors, forecast, times_faster
from warpladder.dashboard.core.operations.hot_operations import HotOperations, Operation
from warpladder.dashboard.core.operations.operator_calls import has_graphs
from warpladder.dashboard.core.operations.program import Program
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import Traces
from warpladder.data import store
from warpladder.data.schema import CUDA_GRAPH

#: Operations that have a stage of their own, on the way to the forecast and on the way to the bound. The others are one stage.
_MOST_STAGES: Final = 8
#: A smaller part of the step is no stage of its own on the way to the bound.
_LEAST_PART: Final = 0.002
#: Operations with a smaller share of the device time are not listed, unless they have a faster variant.
LEAST_SHARE: Final = 0.01
TODAY: Final = "today"
FORECAST: Final = "with the best variants"
BOUND: Final = "at the floors"


def has_work(data: RunData) -> bool:
    """Whether a run has operators of PyTorch, or CUDA graphs whose operators another profile may have."""
    return data.traces.has_operators or ("kernels" in data.traces.tables and has_graphs(data.traces.run))


def program(
    traces: Traces, rank: int | None, ceilings: tuple[tuple[str, float], ...], others: tuple[store.Run, ...]
) -> Program:
    """The program of a trace.

    Args:
        rank: the rank of a job; None for a single trace.
        ceilings: names and values of those of its GPU.
        others: profiles that may be of the same program without its CUDA graphs; those of a job are left alone.
    """
    run = traces.run if rank is None else store.open_rank(traces.run, rank)
    return Program.of(run, dict(ceilings), others if rank is None and has_graphs(run) else ())


def unknown_graphs(of: Program) -> str:
    """Why the operators of its CUDA graphs are not known, the graphs with the most time first; empty where they are."""
    return next((each.reason for each in of.hot.operations if each.name == CUDA_GRAPH), "")


def cells_of(run: store.Run) -> frozenset[tuple[str, str]]:
    """Workload and case of everything that a run measured."""
    cases = run.arrow("cases", ("workload", "case"))
    return frozenset(zip(*(cases.column(name).to_pylist() for name in ("workload", "case")), strict=True))


def forms_of(hot: HotOperations) -> frozenset[tuple[str, str]]:
    """Workload and case of every form that can be called again, as a recording of them has it."""
    return frozenset(
        (operation.workload, f"{AXIS}={form.name}")
        for operation in hot.operations
        if not operation.reason
        for form in operation.forms
    )


@dataclass(frozen=True)
class Found:
    """A forecast, its `waterfall` and its `operations`."""

    forecast: Forecast
    stages: pd.DataFrame
    operations: pd.DataFrame


def found(of: Program, recording: RunData | None) -> Found:
    """The forecast of a program; see `forecast.forecast`."""
    result = forecast(of, recording)
    return Found(result, waterfall(of, result), operations(of, result))


def waterfall(of: Program, expected: Forecast) -> pd.DataFrame:
    """The stages from today's step to the forecast, and from there to the bound.

    Returns:
        One row for each stage from the top: `stage`, its name; `kind`, which is `step` for a whole step, `variant` for what the best
        variants of an operation give, and `floor` for what remains to its floor; `before_ns` and `after_ns`, the step without and with the
        stage. Operations are replaced in the order of the rows, since what two of them give together may be less than the sum.
    """
    best = joined([(_label(of, gain.operation), gain.parts) for gain in expected.gains])
    further = [] if isnan(expected.bound_ns) else _to_floors(of, expected)
    stages = [*best, *further]
    saved: list[dict[int, float]] = []
    for _, parts in stages:
        saved.append({**(saved[-1] if saved else {}), **parts})
    after = iter(of.gains_ns(saved))
    rows: list[tuple[str, str, float, float]] = [(TODAY, "step", expected.step_ns, expected.step_ns)]

    def add(kind: str, names: Sequence[tuple[str, Mapping[int, float]]], whole: str, whole_ns: float) -> None:
        for name, _ in names:
            rows.append((name, kind, rows[-1][3], expected.step_ns - next(after)))
        rows.append((whole, "step", whole_ns, whole_ns))

    if expected.gains:
        add("variant", best, FORECAST, expected.after_ns.value)
    if not isnan(expected.bound_ns):
        add("floor", further, BOUND, expected.step_ns - expected.bound_ns)
    return pd.DataFrame(rows, columns=["stage", "kind", "before_ns", "after_ns"])


def _to_floors(of: Program, expected: Forecast) -> list[tuple[str, Mapping[int, float]]]:
    """Operations, with the parts of the time of their forms that are saved at the floors, the largest remainder first."""
    at_floor = floors(of, [each for gain in expected.gains for each in gain.forms])
    replaced = {number: part for gain in expected.gains for number, part in gain.parts.items()}
    stages: list[tuple[float, str, Mapping[int, float]]] = []
    for operation in of.hot.operations:
        parts = {form.number: at_floor[form.number] for form in operation.forms if form.number in at_floor}
        left = sum(
            form.device_ns * (parts[form.number] - replaced.get(form.number, 0.0))
            for form in operation.forms
            if form.number in parts
        )
        if left > 0:
            stages.append((left / of.hot.steps, _label(of, operation), parts))
    stages.sort(key=lambda stage: -stage[0])
    long = sum(stage[0] >= _LEAST_PART * expected.step_ns for stage in stages)
    return joined([(name, parts) for _, name, parts in stages], long)


def _label(of: Program, operation: Operation) -> str:
    """The name of an operation, with its benchmark where several have that name, as with tensors of other types."""
    several = sum(each.name == operation.name for each in of.hot.operations) > 1
    return f"{operation.name} ({operation.workload})" if several and operation.workload else operation.name


def joined(stages: list[tuple[str, Mapping[int, float]]], most: int = _MOST_STAGES) -> list[tuple[str, Mapping[int, float]]]:
    """The first stages, and the others as one."""
    most = min(most, _MOST_STAGES)
    rest = stages[most:]
    if len(rest) < 2:
        return stages
    return [
        *stages[:most],
        (f"{len(rest)} more operations", {number: part for _, parts in rest for number, part in parts.items()}),
    ]


def operations(of: Program, expected: Forecast) -> pd.DataFrame:
    """The operations of a program that have a faster variant, or at least 1 % of the device time.

    Returns:
        One row for each, by falling gain, then worth: `operation`; `benchmark`, empty where it cannot be called again; `percent` of the device
        time; `device_ns`, `floor_ns` and `worth_ns` of a step; `variants`, the best one of each form; `times_faster` as text; `saved_ns` of
        device time; `gained_ns` of the step if it alone is replaced, with its interval in `gained_low_ns` and `gained_high_ns`;
        `hidden_ns`, the difference; and `why` it cannot be called again.
    """
    gains = {id(gain.operation): gain for gain in expected.gains}
    rows = []
    for operation in of.hot.operations:
        gain = gains.get(id(operation))
        if gain is None and of.hot.share(operation) < LEAST_SHARE:
            continue
        gained = gain.gained_ns if gain else None
        rows.append(
            {
                "operation": operation.name,
                "benchmark": operation.workload,
                "percent": 100 * of.hot.share(operation),
                "device_ns": operation.device_ns / of.hot.steps,
                "floor_ns": operation.floor_ns / of.hot.steps,
                "worth_ns": operation.worth_ns / of.hot.steps,
                "variants": ", ".join(dict.fromkeys(each.variant for each in gain.forms)) if gain else "",
                "times_faster": times_faster([each.ratio.value for each in gain.forms]) if gain else "",
                "saved_ns": gain.saved_ns.value if gain else nan,
                "gained_ns": gained.value if gained else nan,
                "gained_low_ns": gained.low if gained else nan,
                "gained_high_ns": gained.high if gained else nan,
                "hidden_ns": gain.hidden_ns if gain else nan,
                "why": operation.reason,
            }
        )
    frame = pd.DataFrame(rows)
    return frame.sort_values(
        ["gained_ns", "worth_ns", "device_ns"], ascending=False, na_position="last", kind="stable", ignore_index=True
    )


def headline(expected: Forecast) -> str:
    """`A step of 30.6 ms would take 28.7 ms with the best variants, 1.07×; 16.3 ms with every operation at its floor`."""
    step, bound = format_duration(expected.step_ns), ""
    if not isnan(expected.bound_ns):
        bound = f"{format_duration(expected.step_ns - expected.bound_ns)} with every operation at its floor"
    if not expected.gains:
        return f"A step takes {step}" + (f"; it would take {bound}" if bound else "")
    after = expected.after_ns.value
    ratio = format_ratio(expected.step_ns / after) if after > 0 else ""
    parts = [f"A step of {step} would take {format_duration(after)} with the best variants", *([ratio] if ratio else [])]
    return ", ".join(parts) + (f"; {bound}" if bound else "")
