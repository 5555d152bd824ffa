"""The steps of a program, as its trace has them, and what they gain if some of its device work takes less time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import nan
from typing import Final

import numpy as np

from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.operations.hot_operations import Choice, HotOperations, hot_operations
from warpladder.dashboard.core.operations.operator_calls import OperatorWork
from warpladder.dashboard.core.replay import replay
from warpladder.dashboard.core.traces import ended_last
from warpladder.data.arrays import NONE, Bools, Floats, Int64s, integers, least_of_groups
from warpladder.data.store import Run

#: Work that starts so soon after the work before it on its stream was released by it, ns.
_NEAR_NS: Final = 5_000
#: Work that starts so soon after its launch, and not after other work, was released by its launch, ns.
_LAUNCH_NS: Final = 20_000
_MOST_LATENCY_NS: Final = 10_000


@dataclass(frozen=True)
class Host:
    """How much earlier the host would be without a part of its own time, ns, if it never waited for the device.

    Attributes:
        launches: at the launch of each piece of work.
        waits: at the start and at the end of each call in which it waits.
    """

    launches: Floats
    waits: tuple[Floats, Floats]


@dataclass(frozen=True)
class DeviceTimeline:
    """Device work, in the order of the tables.

    Each piece of work starts because something ended: the work before it on its stream, work on another stream, or its launch on the host. The
    launch of a CUDA graph releases only what starts before any of the graph's work has ended: the rest waits for work of the graph. Work
    moves with what released it, by as much as that ends earlier, but to no time before its launch, nor before the end of the work before it
    on its stream. The host launches at the times of the trace, or at times that are earlier by what a profiler took, or at once: see `Host`.
    After a call in which it waited for the device, it is earlier by as much as the work that it waited for, and at most by as long as it
    waited: it comes to that call when it comes to it.

    Where the host launches earlier, work that began with its launch begins once the work that ended last before it has ended: no work
    overtakes another.

    So a shorter piece of work gains nothing if another stream, or the host, is what the following work waits for.

    Attributes:
        start, end: ns.
        stream: of each piece.
        launched: when its launch was called; its own start where the trace lacks the call.
        has_launch: whether the trace has the call.
        waits: starts and ends of calls in which the host waits for the device, ns, in the order of their ends.
    """

    start: Int64s
    end: Int64s
    stream: Int64s
    launched: Int64s
    has_launch: Bools
    waits: tuple[Int64s, Int64s]

    def gains_ns(self, saved: Floats, host: Host | None = None) -> Floats:
        """How much less time there is from the start of the first work to the end of the last, ns, for each change.

        Args:
            saved: what each piece of work takes less, ns, work x changes.
            host: the host's own time; None for the host of the trace.
        """
        if not len(self.start):
            return np.zeros(saved.shape[1])
        shift, last = self.shifts(saved, host), int(np.argmax(self.end))
        return np.asarray(shift[last] + saved[last] - shift[int(np.argmin(self.start))])

    def shifts(self, saved: Floats, host: Host | None = None) -> Floats:
        """How much earlier each piece of work starts, ns, work x changes."""
        count, before, (release, by_launch) = len(self.start), self._before_on_stream, self._release
        wait, awaited = self._waits
        # Events: the end of each piece of work, the end of each wait of the host, and the begin of the trace. A time is how much later one happens.
        works, waits, begin = np.arange(count), count + np.arange(len(wait)), np.array([count + len(wait)])
        none = np.zeros(len(self.waits[0]))
        own, (begins, ends) = (host.launches, host.waits) if host else (np.zeros(count), (none, none))
        closes = np.maximum(self.start - self.end[release] - self._queued_gap, 0) * by_launch
        # Work of one stream may overlap, as copies and programmatic launches do.
        gap = np.maximum(self.start - self.end[before], 0)
        slack = np.where(by_launch, 0, np.maximum(self.start - self.launched - self._latency, 0))
        # The host comes to a wait earlier by what it is earlier since the wait before, and then waits at most as long as it did.
        most = begins[wait] - np.append(0.0, ends[wait])[: len(wait)] + (self.waits[1] - self.waits[0])[wait]
        since = np.searchsorted(self.waits[1][wait], np.minimum(self.launched, self.start), side="right") - 1
        released = np.flatnonzero((release != NONE) & (~by_launch | (host is not None)))
        follows, launched = np.flatnonzero(before != NONE), np.flatnonzero(by_launch | self.has_launch)
        late = replay(
            np.concatenate((-saved, np.zeros((len(wait) + 1, saved.shape[1])))),
            [
                (released, release[released], -closes[released]),
                (follows, before[follows], -gap[follows]),
                (
                    launched,
                    np.append(waits, begin)[since][launched],
                    -(slack + own - np.append(ends[wait], 0.0)[since])[launched],
                ),
                (waits, np.append(begin, waits)[: len(waits)], -most),
                (waits, awaited, 0.0),
            ],
        )
        return -(late[works] + saved)

    @cached_property
    def _waits(self) -> tuple[Int64s, Int64s]:
        """The calls in which the host waited for work, in their order, and that work."""
        begin, finish = self.waits
        awaited = ended_last(self.end, finish)
        waited = (awaited != NONE) & (self.end[awaited] > begin) & (self.start[awaited] < finish)
        return np.flatnonzero(waited), awaited[waited]

    @cached_property
    def _before_on_stream(self) -> Int64s:
        order = np.lexsort((self.start, self.stream))
        before = np.full(len(order), NONE)
        same = self.stream[order][1:] == self.stream[order][:-1]
        before[order[1:][same]] = order[:-1][same]
        return before

    def hidden_host(self) -> Host:
        """A host that takes no time of its own: it launches at once, and waits only for the device."""
        first = int(np.argmin(self.start)) if len(self.start) else 0
        begin = float(self.launched[first]) if len(self.start) else 0.0
        return self.host_without(lambda times: np.asarray(times - begin, np.float64))

    def host_without(self, spent: Callable[[Int64s], Floats]) -> Host:
        """A host without a part of its time.

        Args:
            spent: that part, from the beginning to each of some times, ns.
        """
        launches, begins, ends = (np.maximum(spent(times), 0.0) for times in (self.launched, *self.waits))
        return Host(launches, (begins, ends))

    @cached_property
    def _queued_gap(self) -> float:
        """The median time between work that was in the queue and the work before it on its stream, ns."""
        before, (_, by_launch) = self._before_on_stream, self._release
        gaps = (self.start - self.end[before])[(before >= 0) & ~by_launch]
        gaps = gaps[(gaps >= 0) & (gaps <= _NEAR_NS)]
        return float(np.median(gaps)) if len(gaps) else 0.0

    @cached_property
    def _release(self) -> tuple[Int64s, Bools]:
        """The work whose end released each piece, or that ended last before it; -1 for none. And whether its launch released it."""
        before = self._before_on_stream
        latest = ended_last(self.end, self.start)
        latest = np.where(self.start[latest] < self.start, latest, NONE)
        near = (before >= 0) & (self.start - self.end[before] <= _NEAR_NS)
        by_host = self.has_launch & (self.start - self.launched <= _LAUNCH_NS) & (self.start < self._first_end())
        return np.where(near, before, latest), (by_host & ~near) | (np.where(near, before, latest) < 0)

    def _first_end(self) -> Int64s:
        """When the first work of the same launch ended."""
        launch = np.unique(self.launched, return_inverse=True)[1]
        return least_of_groups(launch, self.end, int(launch.max(initial=-1)) + 1)[launch]

    @cached_property
    def _latency(self) -> float:
        """The least time from a launch to the start of its work, ns. Where all work waits in a queue, the trace does not show it."""
        known = (self.start - self.launched)[self.has_launch]
        return float(np.clip(known.min(), 0, _MOST_LATENCY_NS)) if len(known) else 0.0


#: Of several changes, so many are tried at once that their times are at most this number.
_MOST_TIMES: Final = 1 << 23
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
        hot = hot_operations(trace, ceilings, Choice(apart=apart), eager)
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
        nothing = np.zeros((len(self.timeline.start), 1))
        return float(self.timeline.gains_ns(nothing, self.host)[0]) / self.hot.steps if self.host else 0.0

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

    def gains_ns(self, changes: Sequence[Mapping[int, float]]) -> list[float]:
        """The gain of a step by each change, ns.

        Args:
            changes: number of a form -> the part of the time of its work that is saved.
        """
        of_form = np.zeros(
            (int(self.hot.form_of.max(initial=-1)) + 2, len(changes))
        )  # the last row is that of work without a form, -1
        for change, parts in enumerate(changes):
            of_form[list(parts), change] = list(parts.values())
        duration, gains = (self.timeline.end - self.timeline.start)[:, None], list[float]()
        at_once = max(_MOST_TIMES // max(len(duration), 1), 1)
        for first in range(0, len(changes), at_once):
            saved = duration * of_form[self.hot.form_of, first : first + at_once]
            gains += self.timeline.gains_ns(saved, self.host).tolist()
        return [self.pace * (gain / self.hot.steps - self._gain_of_host) for gain in gains]


def _timeline(trace: Run, work: OperatorWork | None) -> DeviceTimeline:
    assert work is not None
    calls = trace.table("api_calls", ["start_ns", "end_ns", "name"])
    waits = calls[calls["name"].str.contains("|".join(_WAITS))].sort_values("end_ns")
    times = waits["start_ns"].to_numpy(dtype=np.int64), waits["end_ns"].to_numpy(dtype=np.int64)
    return DeviceTimeline(work.start, work.start + work.duration, work.stream, work.called, work.has_launch, times)
