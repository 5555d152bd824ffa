"""The steps of a program, as its trace has them, and what they gain if some of its device work takes less time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import nan
from typing import Final

import numpy as np

from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.operations.device_timeline import DeviceTimeline, Host
from warpladder.dashboard.core.operations.hot_operations import Choice, HotOperations, hot_operations
from warpladder.dashboard.core.operations.operator_calls import DeviceWork
from warpladder.data.arrays import Int64s, integers
from warpladder.data.iterations import steps_of
from warpladder.data.store import Run

#: Of the cost of a call, until it is known to a few parts in a million.
_HALVINGS: Final = 20
#: Names of calls in which the host waits for the device.
_WAITS: Final = ("Synchronize", "cudaMemcpy_", "hipMemcpyWithStream")


@dataclass(frozen=True)
class Program:
    """The device work of a trace, and the forms of operations that it belongs to.

    Attributes:
        hot: the operations of the trace.
        timeline: its device work, in the order of `HotOperations.form_of`.
        calls: starts of the operators and calls that the profiler recorded, in their order.
        run_id, device: of the trace.
        apart: whether its operators are one by one, without chains.
        host: its own time; None for the host of the profile.
        pace: what its step takes over that of the timeline, where the device itself is faster without the profiler.
    """

    hot: HotOperations
    timeline: DeviceTimeline
    calls: Int64s
    run_id: str = ""
    device: str = ""
    apart: bool = False
    host: Host | None = None
    pace: float = 1.0

    @classmethod
    def of(cls, trace: Run, ceilings: Mapping[str, float], eager: Sequence[Run] = (), *, apart: bool = False) -> "Program":
        """The program of a trace with operators of PyTorch. The arguments are those of `hot_operations`."""
        steps = steps_of(trace)
        hot = hot_operations(trace, (steps.start, steps.end), ceilings, Choice(apart=apart), eager)
        starts = (trace.arrow(name, ["start_ns"])["start_ns"] for name in ("operations", "api_calls"))
        calls = np.sort(np.concatenate([integers(each) for each in starts]))
        return cls(hot, _timeline(trace, hot.work), calls, trace.run_id, str(trace.info["device_name"] or ""), apart)

    def measured_in(self, recording: Run) -> int:
        """Number of its benchmarks that a recording has."""
        return len({each.workload for each in self.hot.operations if not each.reason and each.workload in recording.timed})

    @cached_property
    def profiled_ns(self) -> float:
        """Time of a step on the device in the profile: from the start of the first work that was launched in a step to the end of the
        last, over their number.
        """
        inside = self.hot.step_of >= 0
        if not inside.any():
            return 0.0
        return float(self.timeline.end[inside].max() - self.timeline.start[inside].min()) / self.hot.steps

    @cached_property
    def step_ns(self) -> float:
        """The same with the program's host and pace."""
        return self.pace * (self.profiled_ns - self._gain_of_host)

    @cached_property
    def _gain_of_host(self) -> float:
        return self.timeline.gain_ns(np.zeros(len(self.timeline.start)), self.host) / self.hot.steps if self.host else 0.0

    @cached_property
    def calls_a_step(self) -> float:
        """Operators and calls of the driver that the profiler recorded in a step."""
        inside = self.timeline.launched[self.hot.step_of >= 0]
        if not len(inside):
            return 0.0
        first, last = np.searchsorted(self.calls, (inside.min(), inside.max())).tolist()
        return float(last - first) / self.hot.steps

    @cached_property
    def launches_a_step(self) -> float:
        """Launches of device work in a step."""
        inside = (self.hot.step_of >= 0) & self.timeline.has_launch
        return len(np.unique(self.timeline.launched[inside])) / self.hot.steps

    def with_hidden_host(self) -> "Program":
        """The program if its host took no time, as with CUDA graphs. The device still waits where the host waited for it."""
        return replace(self, host=self.timeline.hidden_host())

    def without_profiler(self, step_ns: float) -> "tuple[Program, float]":
        """The program if a step takes so long, and what the profiler then costs a call, ns.

        Each call of the host takes less by the same time. A step that is shorter than with a hidden host has a device that is faster without
        the profiler; what a call costs then is not known, NaN.
        """
        hidden = self.with_hidden_host()
        if step_ns < hidden.step_ns:
            return replace(hidden, pace=step_ns / hidden.step_ns), nan
        first = np.searchsorted(self.calls, self.timeline.launched[int(np.argmin(self.timeline.start))])

        def without(cost: float) -> Program:
            host = self.timeline.host_without(
                lambda times: np.asarray(cost * (np.searchsorted(self.calls, times) - float(first)), np.float64)
            )
            return replace(self, host=host)

        least, most = 0.0, self.profiled_ns / max(self.calls_a_step, 1.0)
        chosen = self
        for _ in range(_HALVINGS):
            cost = (least + most) / 2
            chosen = without(cost)
            least, most = (cost, most) if chosen.step_ns > step_ns else (least, cost)
        return (self, 0.0) if step_ns >= self.profiled_ns else (chosen, (least + most) / 2)

    @cached_property
    def steps_ns(self) -> Estimate:
        """The step, and the shortest and the longest time between the ends of two steps; NaN for these where there are fewer than three.

        With another host than that of the profile, steps vary by the same part.
        """
        numbers = np.unique(self.hot.step_of[self.hot.step_of >= 0])
        between = np.diff(np.sort([self.timeline.end[self.hot.step_of == number].max() for number in numbers]))
        if len(between) < 2:
            return Estimate(self.step_ns, nan, nan)
        least, most = min(between.min() / self.profiled_ns, 1.0), max(between.max() / self.profiled_ns, 1.0)
        return Estimate(self.step_ns, float(least * self.step_ns), float(most * self.step_ns))

    def gain_ns(self, parts: Mapping[int, float]) -> float:
        """The gain of a step, ns.

        Args:
            parts: number of a form -> the part of the time of its work that is saved.
        """
        of_form = np.zeros(int(self.hot.form_of.max(initial=-1)) + 2)  # the last one is that of work without a form, -1
        for number, part in parts.items():
            of_form[number] = part
        saved = (self.timeline.end - self.timeline.start) * of_form[self.hot.form_of]
        return self.pace * (self.timeline.gain_ns(saved, self.host) / self.hot.steps - self._gain_of_host)


def _timeline(trace: Run, work: DeviceWork | None) -> DeviceTimeline:
    assert work is not None
    calls = trace.table("api_calls", ["start_ns", "end_ns", "name"])
    waits = calls[calls["name"].str.contains("|".join(_WAITS))].sort_values("end_ns")
    times = waits["start_ns"].to_numpy(dtype=np.int64), waits["end_ns"].to_numpy(dtype=np.int64)
    return DeviceTimeline(work.start, work.start + work.duration, work.stream, work.called, work.has_launch, times)
