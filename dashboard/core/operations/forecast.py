"""What a step of a program gains if each operation of its trace takes the time of its best verified variant.

A form is sped up by the ratio of its baseline to its best variant in the recording, with the cache whose baseline is nearest to the trace.
Each of its kernels takes that part of its time less. `device_timeline` tells what of this the step gains.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.cell import Estimate, Timing
from warpladder.dashboard.core.cells import cells
from warpladder.dashboard.core.compare import with_speedups
from warpladder.dashboard.core.operations.baseline_check import AXIS, BASELINE
from warpladder.dashboard.core.operations.device_timeline import DeviceTimeline
from warpladder.dashboard.core.operations.hot_operations import Form, HotOperations, Operation
from warpladder.dashboard.core.run_data import RunData
from warpladder.data.store import Run

#: Names of calls in which the host waits for the device.
_WAITS: Final = ("Synchronize", "cudaMemcpy_", "hipMemcpyWithStream")


@dataclass(frozen=True)
class Gain:
    """An operation with a faster variant.

    Attributes:
        forms: forms that have a faster variant, with its name and the ratio of the baseline's time to its own.
        saved_ns: device time that all its calls in a step take less.
        gained_ns: what a step gains if only this operation is replaced.
    """

    operation: Operation
    forms: tuple[tuple[Form, str, Estimate], ...]
    saved_ns: Estimate
    gained_ns: Estimate

    @property
    def hidden_ns(self) -> float:
        """What is saved and not gained: other streams or the host are waited for."""
        return self.saved_ns.value - self.gained_ns.value


@dataclass(frozen=True)
class Forecast:
    """A step as it is, and as it would be.

    Attributes:
        step_ns: see `step_ns`.
        gains: by falling gain; operations without a faster variant are left out.
        gained_ns: what a step gains if all of them are replaced.
        bound_ns: what it would gain if every operation that can be called again were at its floor; NaN where no floor is known.
    """

    step_ns: float
    gains: tuple[Gain, ...]
    gained_ns: Estimate
    bound_ns: float


def forecast(hot: HotOperations, trace: Run, data: RunData, replaced: Collection[int] | None = None) -> Forecast:
    """The forecast of a trace.

    Args:
        hot: its operations.
        trace: its run.
        data: a recording of the file that `warpladder extract` wrote.
        replaced: numbers of the forms that are replaced; None for all.
    """
    timeline = timeline_of(trace)
    durations = (timeline.end - timeline.start).astype(float)
    faster = {number: best for number, best in _faster(hot, data).items() if replaced is None or number in replaced}

    def gained(ratios: Mapping[int, float]) -> float:
        saved = _saved(hot, durations, {number: 1 - 1 / ratio for number, ratio in ratios.items()})
        return timeline.gain_ns(saved) / hot.steps

    def estimate(chosen: Mapping[int, Estimate]) -> Estimate:
        ends = ({number: getattr(ratio, end) for number, ratio in chosen.items()} for end in ("value", "low", "high"))
        return Estimate(*map(gained, ends))

    gains = []
    for operation in hot.operations:
        forms = tuple((form, *faster[form.number]) for form in operation.forms if form.number in faster)
        if forms:
            ratios = {form.number: ratio for form, _, ratio in forms}
            gains.append(Gain(operation, forms, _saved_a_step(hot, forms), estimate(ratios)))
    every = {number: ratio for number, (_, ratio) in faster.items()}
    floors = {
        form.number: min(form.floor_ns / form.median_ns, 1.0)
        for operation in hot.operations
        for form in operation.forms
        if not operation.reason and form.median_ns and not isnan(form.floor_ns)
    }
    at_floor = _saved(hot, durations, {number: 1 - part for number, part in floors.items()})
    return Forecast(
        step_ns(timeline, hot),
        tuple(sorted(gains, key=lambda gain: -gain.gained_ns.value)),
        estimate(every),
        timeline.gain_ns(at_floor) / hot.steps if floors else float("nan"),
    )


def step_ns(timeline: DeviceTimeline, hot: HotOperations) -> float:
    """Time of a step on the device: from the start of the first work that was launched in a step to the end of the last, over their number."""
    start, end = timeline.start[hot.step_of >= 0], timeline.end[hot.step_of >= 0]
    return float(end.max() - start.min()) / hot.steps if len(start) else 0.0


def _saved(hot: HotOperations, durations: "np.ndarray[Any, np.dtype[np.float64]]", parts: Mapping[int, float]) -> Any:
    """What each piece of device work takes less, ns.

    Args:
        parts: number of a form -> the part of its time that is saved.
    """
    saved = np.zeros(int(hot.form_of.max(initial=-1)) + 2)
    for number, part in parts.items():
        saved[number] = part
    saved[-1] = 0.0
    return durations * saved[hot.form_of]


def _saved_a_step(hot: HotOperations, forms: tuple[tuple[Form, str, Estimate], ...]) -> Estimate:
    ends = ("value", "low", "high")
    return Estimate(
        *(sum(form.device_ns * (1 - 1 / getattr(ratio, end)) for form, _, ratio in forms) / hot.steps for end in ends)
    )


def timeline_of(trace: Run) -> DeviceTimeline:
    """The device work of a trace, in the order of `HotOperations.form_of`."""
    names = ["start_ns", "end_ns", "device", "stream", "process", "correlation"]
    work = pd.concat([trace.table("kernels", names), trace.table("memory_ops", names)], ignore_index=True)
    calls = trace.table("api_calls", ["process", "correlation", "start_ns", "end_ns", "name"])
    launches = calls.drop_duplicates(["process", "correlation"]).set_index(["process", "correlation"])["start_ns"]
    launched = launches.reindex(pd.MultiIndex.from_frame(work[["process", "correlation"]]))
    has_launch = launched.notna().to_numpy() & (work["correlation"] > 0).to_numpy(dtype=bool)
    start = work["start_ns"].to_numpy(dtype=np.int64)
    waits = calls[calls["name"].str.contains("|".join(_WAITS))].sort_values("end_ns")
    return DeviceTimeline(
        start,
        work["end_ns"].to_numpy(dtype=np.int64),
        np.asarray(work.groupby(["device", "stream"], dropna=False).ngroup(), np.int64),
        np.where(has_launch, launched.fillna(0).to_numpy(dtype=np.int64), start),
        has_launch,
        (waits["start_ns"].to_numpy(dtype=np.int64), waits["end_ns"].to_numpy(dtype=np.int64)),
    )


def _faster(hot: HotOperations, data: RunData) -> dict[int, tuple[str, Estimate]]:
    """For each form the best verified variant that is faster than the baseline, and how many times."""
    frame = cells(data)
    frame = frame[frame["scope"] == "device"]
    found: dict[int, tuple[str, Estimate]] = {}
    for operation in hot.operations:
        of_operation = frame[frame["workload"] == operation.workload]
        by_cache = {
            str(cache): with_speedups(data, operation.workload, Timing("device", str(cache)), rows)
            for cache, rows in of_operation.groupby("cache")
        }
        for form in operation.forms:
            cases = {cache: rows[rows["case"] == f"{AXIS}={form.name}"] for cache, rows in by_cache.items()}
            if best := _best(form, cases):
                found[form.number] = best
    return found


def _best(form: Form, cases: Mapping[str, pd.DataFrame]) -> tuple[str, Estimate] | None:
    """The best variant of a case with the cache whose baseline is nearest to the trace."""
    baselines = {
        cache: float(rows[rows["variant"] == BASELINE]["median_ns"].iloc[0])
        for cache, rows in cases.items()
        if (rows["variant"] == BASELINE).any()
    }
    if not baselines:
        return None
    rows = cases[min(baselines, key=lambda cache: abs(baselines[cache] - form.median_ns))]
    rows = rows[rows["verdict"] == "faster"]
    if rows.empty:
        return None
    row = rows.sort_values("speedup").iloc[-1]
    return str(row["variant"]), Estimate.of(row, "speedup")
