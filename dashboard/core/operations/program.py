"""The steps of a program, as its trace has them, and what they gain if some of its device work takes less time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.operations.device_timeline import DeviceTimeline
from warpladder.dashboard.core.operations.hot_operations import Choice, HotOperations, hot_operations
from warpladder.data.iterations import steps_of
from warpladder.data.store import Run

#: Names of calls in which the host waits for the device.
_WAITS: Final = ("Synchronize", "cudaMemcpy_", "hipMemcpyWithStream")


@dataclass(frozen=True)
class Program:
    """The device work of a trace, and the forms of operations that it belongs to.

    Attributes:
        hot: the operations of the trace.
        timeline: its device work, in the order of `HotOperations.form_of`.
    """

    hot: HotOperations
    timeline: DeviceTimeline

    @classmethod
    def of(cls, trace: Run, ceilings: Mapping[str, float], eager: Sequence[Run] = ()) -> "Program":
        """The program of a trace with operators of PyTorch. The arguments are those of `hot_operations`."""
        steps = steps_of(trace)
        return cls(hot_operations(trace, (steps.start, steps.end), ceilings, Choice(), eager), _timeline(trace))

    @cached_property
    def step_ns(self) -> float:
        """Time of a step on the device: from the start of the first work that was launched in a step to the end of the last, over their
        number.
        """
        inside = self.hot.step_of >= 0
        if not inside.any():
            return 0.0
        return float(self.timeline.end[inside].max() - self.timeline.start[inside].min()) / self.hot.steps

    @cached_property
    def steps_ns(self) -> Estimate:
        """The step, and the shortest and the longest time between the ends of two steps; NaN for these where there are fewer than three."""
        numbers = np.unique(self.hot.step_of[self.hot.step_of >= 0])
        between = np.diff(np.sort([self.timeline.end[self.hot.step_of == number].max() for number in numbers]))
        if len(between) < 2:
            return Estimate(self.step_ns, nan, nan)
        return Estimate(self.step_ns, float(min(between.min(), self.step_ns)), float(max(between.max(), self.step_ns)))

    def gain_ns(self, parts: Mapping[int, float]) -> float:
        """What a step gains, ns.

        Args:
            parts: number of a form -> the part of the time of its work that is saved.
        """
        of_form = np.zeros(int(self.hot.form_of.max(initial=-1)) + 2)  # the last one is that of work without a form, -1
        for number, part in parts.items():
            of_form[number] = part
        saved = (self.timeline.end - self.timeline.start) * of_form[self.hot.form_of]
        return self.timeline.gain_ns(saved) / self.hot.steps


def _timeline(trace: Run) -> DeviceTimeline:
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
