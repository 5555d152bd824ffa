"""Where the time of a trace goes: its parts, and the findings that lead to a moment on the Timeline."""

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.numbers import format_duration, format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import NONE, Int64s, Traces, calls_of
from warpladder.dashboard.trace import operators
from warpladder.dashboard.trace.describe import short_names
from warpladder.dashboard.views.time.operators.chart import place_of
from warpladder.data.arrays import lookup
from warpladder.data.schema import CUDA_GRAPH

#: Names of kernels that communicate, for runs that are older than their column `collective`.
_COMMUNICATION: Final = re.compile("nccl|rccl", re.IGNORECASE)
#: Kinds of device work, in the order in which they take the time that several share.
_COMPUTES, _GRAPH, _COMMUNICATES, _COPIES = range(4)
_MOST_KERNELS: Final = 5
_MOST_GAPS: Final = 2
#: A shorter gap, as a share of the span, is no finding.
_LEAST_GAP: Final = 0.01


@dataclass(frozen=True)
class Parts:
    """The time of the devices of a trace, each from its first work to its last, in nanoseconds. The parts add up to the span.

    Attributes:
        compute_ns: a kernel that does not communicate runs.
        graph_ns: a CUDA graph that was traced as a whole runs, and no other kernel that computes.
        exposed_ns: a kernel that communicates runs, and none of these.
        copies_ns: copies and sets alone.
        idle_ns: nothing runs.
    """

    devices: int
    span_ns: int
    compute_ns: int
    graph_ns: int
    exposed_ns: int
    copies_ns: int
    idle_ns: int

    @property
    def named(self) -> dict[str, int]:
        """The times by their words."""
        return {
            "compute": self.compute_ns,
            "CUDA graphs, whose kernels are not known": self.graph_ns,
            "exposed communication": self.exposed_ns,
            "copies alone": self.copies_ns,
            "idle": self.idle_ns,
        }

    @property
    def sentence(self) -> str:
        """`The GPU works 61.0 % of 12.0 ms; 39.0 % it is idle.`"""
        whole = f"{format_duration(self.span_ns)} from the first work to the last"
        whose = "The GPU computes" if self.devices == 1 else f"The {self.devices} GPUs compute"
        _, *others = self.named.items()
        rest = ", ".join(f"{self._share(time)} {name}" for name, time in others if time)
        return f"{whose} {self._share(self.compute_ns)} of the {whole}{f'; the rest is {rest}' if rest else ''}"

    def _share(self, time_ns: int) -> str:
        return format_percent(100 * time_ns / self.span_ns)


class _Work:
    """The kernels, copies and sets of a trace."""

    def __init__(self, traces: Traces) -> None:
        every = [each for each in ("kernels", "memory_ops") if each in traces.tables]
        self.start, self.end, self.device = (
            np.concatenate([traces.numbers(each, name) for each in every] or [np.empty(0, dtype=np.int64)])
            for name in ("start_ns", "end_ns", "device")
        )
        kernels = traces.length("kernels") if "kernels" in every else 0
        self.kind = np.full(len(self.start), _COPIES)
        if kernels:
            names = traces.texts("kernels", "name")
            kinds = [
                _GRAPH if name == CUDA_GRAPH else _COMMUNICATES if _COMMUNICATION.search(str(name)) else _COMPUTES
                for name in names.categories
            ]
            talks = traces.texts("kernels", "collective").codes != NONE
            self.kind[:kernels] = np.where(talks, _COMMUNICATES, np.array(kinds)[names.codes])


def parts(data: RunData) -> Parts | None:
    """The parts of the time; None without device work."""
    work = _Work(data.traces)
    if not len(work.start):
        return None
    sums = np.zeros(6, dtype=np.int64)
    devices = np.unique(work.device)
    for device in devices:
        here = work.device == device
        start, end, kind = work.start[here], work.end[here], work.kind[here]
        up_to = [_covered(start[kind <= most], end[kind <= most]) for most in range(_COPIES + 1)]
        span = int(end.max() - start.min())
        sums += [span, *np.diff([0, *up_to, span])]
    return Parts(len(devices), *map(int, sums))


def _covered(start: Int64s, end: Int64s) -> int:
    """The time in which at least one of these runs."""
    if not len(start):
        return 0
    order = np.argsort(start, kind="stable")
    reached = np.maximum.accumulate(end[order])
    before = np.concatenate((start[order][:1], reached[:-1]))
    return int(np.maximum(reached - np.maximum(start[order], before), 0).sum())


def findings(data: RunData) -> pd.DataFrame:
    """What takes the time: the kernels with the most of it, and the longest gaps.

    Returns:
        `what`, `time_ns`, `percent` (of the span of the devices), `runs`, `operator` (or range, around the longest execution), `line` (of
        Python, where the profiler recorded it), and `begin_ns` and `end_ns` of the longest execution or the gap.
    """
    whole = parts(data)
    columns = ["what", "time_ns", "percent", "runs", "operator", "line", "begin_ns", "end_ns"]
    if whole is None:
        return pd.DataFrame(columns=columns)
    rows = [*_kernels(data.traces), *_gaps(data.traces, whole.span_ns)]
    frame = pd.DataFrame(rows, columns=["what", "time_ns", "runs", "operator", "line", "begin_ns", "end_ns"])
    return frame.assign(percent=100 * frame["time_ns"] / whole.span_ns).sort_values("time_ns", ascending=False)[columns]


def _kernels(traces: Traces) -> list[tuple[object, ...]]:
    if "kernels" not in traces.tables:
        return []
    names, duration = traces.texts("kernels", "name"), traces.durations("kernels")
    time = np.bincount(names.codes, weights=duration, minlength=len(names.categories))
    short = short_names([str(name) for name in names.categories])
    found: list[tuple[object, ...]] = []
    for code in np.argsort(-time, kind="stable")[:_MOST_KERNELS]:
        rows = np.flatnonzero(names.codes == code)
        longest = rows[np.argmax(duration[rows])]
        begin, end = (int(traces.numbers("kernels", name)[longest]) for name in ("start_ns", "end_ns"))
        caller = _caller(traces, longest)
        found.append((short[str(names.categories[code])], int(time[code]), len(rows), *caller, begin, end))
    return found


def _caller(traces: Traces, row: np.int64) -> tuple[str, str]:
    """The operator that launched a kernel and its line of Python; the text of its range where there is no operator."""
    if traces.has_operators:
        chosen: npt.NDArray[np.bool_] = np.arange(traces.length("kernels")) == row
        (call,) = calls_of(traces, "kernels", chosen)
        operator = operators.read(traces).of_call[call] if call != NONE else NONE
        if operator != NONE:
            stack = str(traces.texts("operations", "stack")[operator])
            return str(traces.texts("operations", "name")[operator]), place_of(stack) if stack else ""
    if "ranges" in traces.tables:
        held = traces.ranges_of_work("kernels")[[row]]
        (place,) = lookup(traces.numbers("ranges", "range_id"), held)
        if held[0] != NONE and place != NONE:
            return str(traces.texts("ranges", "text")[place]), ""
    return "", ""


def _gaps(traces: Traces, span_ns: int) -> list[tuple[object, ...]]:
    """The longest gaps of a device."""
    work = _Work(traces)
    found: list[tuple[int, int, int]] = []
    for device in np.unique(work.device):
        here = work.device == device
        order = np.argsort(work.start[here], kind="stable")
        start, reached = work.start[here][order], np.maximum.accumulate(work.end[here][order])
        gaps = start[1:] - reached[:-1]
        longest = np.argsort(-gaps, kind="stable")[:_MOST_GAPS]
        found += [(int(gaps[place]), int(reached[place]), int(start[place + 1])) for place in longest]
    longest_first = sorted(found, reverse=True)[:_MOST_GAPS]
    return [("idle: a gap", gap, 1, "", "", begin, end) for gap, begin, end in longest_first if gap >= _LEAST_GAP * span_ns]
