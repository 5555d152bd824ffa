"""What ran in a span of time: the kernels by total time, and how long each GPU was busy. All times are cut to the span."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from warpladder.dashboard.core.numbers import format_duration, format_percent
from warpladder.dashboard.core.traces import Int64s, Traces
from warpladder.dashboard.trace.lanes import Int32s, Lane, Lanes
from warpladder.data.arrays import Intervals


@dataclass(frozen=True)
class KernelTime:
    """The kernels of one name in the span.

    Attributes:
        count: kernels that ran in the span, also in part.
        total_ns: the sum of their times within the span. It exceeds the span where several ran at once.
    """

    name: str
    count: int
    total_ns: int

    @property
    def mean_ns(self) -> float:
        """The mean of their times within the span."""
        return self.total_ns / self.count


@dataclass(frozen=True)
class GpuTime:
    """A GPU in the span.

    Attributes:
        gpu: `GPU 0`; as the heading of its lanes where processes may number their GPUs differently.
        busy_ns: time in which at least one kernel or memory operation ran, on any stream.
        kernels_ns: time in which at least one kernel ran.
        copies_ns: time in which at least one memory operation ran.
        alive: a process with work on it has an event that starts before the span ends, and one that ends after the span begins.
    """

    gpu: str
    busy_ns: int
    kernels_ns: int
    copies_ns: int
    alive: bool = True


@dataclass(frozen=True)
class VisibleWork:
    """The work in the span from `begin_ns` to `end_ns` on the trace's clock.

    Attributes:
        kernels: the names that ran, the longest total first.
        gpus: every GPU of the trace, in the order of its lanes.
    """

    begin_ns: int
    end_ns: int
    kernels: tuple[KernelTime, ...]
    gpus: tuple[GpuTime, ...]

    @property
    def span_ns(self) -> int:
        """The length of the span."""
        return self.end_ns - self.begin_ns


def gpu_table(seen: VisibleWork) -> pd.DataFrame:
    """A row for each GPU. Shares are of the span, from 0 to 1."""
    rows = [
        {
            "gpu": each.gpu,
            "busy_ns": each.busy_ns,
            "busy": each.busy_ns / seen.span_ns,
            "idle": 1 - each.busy_ns / seen.span_ns,
            "kernels": each.kernels_ns / seen.span_ns,
            "copies": each.copies_ns / seen.span_ns,
        }
        for each in seen.gpus
    ]
    return pd.DataFrame(rows)


def kernel_table(seen: VisibleWork, short: Mapping[str, str]) -> pd.DataFrame:
    """A row for each kernel name that ran, the longest total first. Shares are of the span; together they may exceed 1."""
    rows = [
        {
            "kernel": short.get(each.name, each.name),
            "count": each.count,
            "total_ns": each.total_ns,
            "mean_ns": each.mean_ns,
            "share": each.total_ns / seen.span_ns,
            "full_name": each.name,
        }
        for each in seen.kernels
    ]
    return pd.DataFrame(rows, columns=["kernel", "count", "total_ns", "mean_ns", "share", "full_name"])


def answer(seen: VisibleWork, measured: bool) -> str:
    """How long the GPU is idle, in words; of several, the one that is idle longest among those whose processes are alive in the span.

    Args:
        seen: has at least one GPU.
        measured: the span was measured; else it is the window.
    """
    alive = [each for each in seen.gpus if each.alive]
    idlest = min(alive or seen.gpus, key=lambda each: each.busy_ns)
    idle = format_percent(100 * (1 - idlest.busy_ns / seen.span_ns))
    span = f"the measured {format_duration(seen.span_ns)}" if measured else f"this window of {format_duration(seen.span_ns)}"
    if not alive:
        return f"No process that uses a GPU is alive in {span}"
    among = f", the most of {'all' if len(alive) == len(seen.gpus) else len(alive)} GPUs" if len(alive) > 1 else ""
    return f"{idlest.gpu} is idle {idle} of {span}{among}"


class _Part(NamedTuple):
    """The events of a lane in the span, cut to it."""

    row: Int32s
    start: Int64s
    end: Int64s


def visible(traces: Traces, lanes: Lanes, begin_ns: int, end_ns: int, devices: int = 0) -> VisibleWork:
    """The work of all streams in a span, those that the page leaves out as well.

    An event without duration counts where it starts. Where the trace has as many numbers of GPUs as GPUs were used, GPUs of several
    processes with one number are one. Else processes number their GPUs differently, and each has its own.

    Args:
        devices: the GPUs that were used (`run.device_count`); 0 where that is not known.
        begin_ns: on the trace's clock.
        end_ns: later than `begin_ns`.
    """
    names = traces.texts("kernels", "full_name") if "kernels" in traces.tables else None
    size = len(names.categories) if names is not None else 0
    count, total, gpus = np.zeros(size, dtype=np.int64), np.zeros(size), list[GpuTime]()
    lives = _lives(lanes)
    for gpu, of_gpu in _gpus(lanes, devices).items():
        parts = [_cut(lane, begin_ns, end_ns) for lane in of_gpu]
        row, start, end = (np.concatenate(column) for column in zip(*parts, strict=True))
        kernel = row < lanes.kernels
        if names is not None and size:
            code = names.codes[row[kernel]]
            count += np.bincount(code, minlength=size)
            # Exact: a float64 holds the nanoseconds of a hundred days.
            total += np.bincount(code, weights=(end - start)[kernel], minlength=size)
        of_kernels, of_copies = (Intervals(start[mask], end[mask]).length for mask in (kernel, ~kernel))
        both = Intervals(start, end).length if of_kernels and of_copies else of_kernels + of_copies
        life = [lives[process] for process in {lane.owner[0] for lane in of_gpu}]
        alive = any(first < end_ns and last > begin_ns for first, last in life)
        gpus.append(GpuTime(gpu, both, of_kernels, of_copies, alive))
    ran = np.flatnonzero(count)
    ran = ran[np.argsort(-total[ran], kind="stable")]
    names_of_kernels = [] if names is None else list(map(str, names.categories.take(ran)))
    kernels = (
        KernelTime(*each)
        for each in zip(names_of_kernels, count[ran].tolist(), total[ran].astype(np.int64).tolist(), strict=True)
    )
    return VisibleWork(begin_ns, end_ns, tuple(kernels), tuple(gpus))


def _gpus(lanes: Lanes, devices: int) -> dict[str, list[Lane]]:
    """The lanes of each GPU; see `visible`."""
    of_device = [lane for lane in lanes.lanes if lane.kind == "device"]
    shared = len({lane.owner[1] for lane in of_device}) == devices
    gpus: dict[str, list[Lane]] = {}
    for lane in of_device:
        gpus.setdefault(f"GPU {lane.owner[1]}" if shared else lane.group, []).append(lane)
    return gpus


def _lives(lanes: Lanes) -> dict[int, tuple[int, int]]:
    """Start of the first event and end of the last one of each process."""
    lives: dict[int, tuple[int, int]] = {}
    for lane in lanes.lanes:
        if len(lane):
            begin, end = int(lane.start[0]), int(lane.end(np.array([len(lane) - 1]))[0])
            first, last = lives.get(lane.owner[0], (begin, end))
            lives[lane.owner[0]] = min(first, begin), max(last, end)
    return lives


def _cut(lane: Lane, begin_ns: int, end_ns: int) -> _Part:
    first, last = (int(each[0]) for each in lane.touching(np.array([begin_ns, end_ns])))
    ends = lane.start[first:last] + np.diff(lane.covered[first : last + 1])
    return _Part(lane.row[first:last], np.maximum(lane.start[first:last], begin_ns), np.minimum(ends, end_ns))
