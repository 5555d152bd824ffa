"""What ran in a span of time: the kernels by total time, and how long each GPU was busy. All times are cut to the span."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from warpladder.dashboard.core.numbers import format_duration, format_percent
from warpladder.dashboard.core.traces import Traces
from warpladder.dashboard.trace.lanes import Int32s, Lane, Lanes
from warpladder.data.arrays import Int64s, Intervals


class VisibleWork(NamedTuple):
    """The work in a span of time.

    Attributes:
        span_ns: the length of the span.
        gpus: every GPU of the trace, in the order of its lanes: `gpu`, such as `GPU 0`, or as the heading of its lanes where processes may
            number their GPUs differently; `busy_ns`, `kernels_ns` and `copies_ns` in which at least one piece of device work, kernel or
            memory operation ran; `alive`: a process with work on it has an event that starts before the span ends, and one that ends after
            the span begins.
        work_ns: from the first device work of all GPUs to the last, as on Home; 0 without any.
        kernels: the names that ran, the longest total first: `full_name`, `count` (of those that ran in part too), and `total_ns`, the sum
            of their times, which exceeds the span where several ran at once.
    """

    span_ns: int
    gpus: pd.DataFrame
    work_ns: int
    kernels: pd.DataFrame


def gpu_table(seen: VisibleWork) -> pd.DataFrame:
    """A row for each GPU. Shares are of the span, from 0 to 1."""
    shares = (
        seen.gpus[["busy_ns", "kernels_ns", "copies_ns"]].rename(columns=lambda name: name.removesuffix("_ns")) / seen.span_ns
    )
    table = seen.gpus[["gpu", "busy_ns"]].join(shares).assign(idle=1 - shares["busy"])
    return table[["gpu", "busy_ns", "busy", "idle", "kernels", "copies"]]


def kernel_table(seen: VisibleWork, short: Mapping[str, str]) -> pd.DataFrame:
    """A row for each kernel name that ran, the longest total first. Shares are of the span, on average over the GPUs."""
    ran = seen.kernels
    table = ran.assign(
        kernel=[short.get(name, name) for name in ran["full_name"]],
        mean_ns=(ran["total_ns"] / ran["count"]).round().astype("int64"),
        share=ran["total_ns"] / seen.span_ns / max(len(seen.gpus), 1),
    )
    return table[["kernel", "count", "total_ns", "mean_ns", "share", "full_name"]]


def answer(seen: VisibleWork, measured: bool) -> str:
    """How long the GPU is idle, in words: of the span, and of its part from first to last device work, as Home has it. Of several, the one that
    is idle longest among those whose processes are alive in the span.

    Args:
        seen: has at least one GPU.
        measured: the span was measured; else it is the window.
    """
    alive = seen.gpus[seen.gpus["alive"]]
    span = f"the measured {format_duration(seen.span_ns)}" if measured else f"this window of {format_duration(seen.span_ns)}"
    if alive.empty:
        return f"No process that uses a GPU is alive in {span}"
    idlest = alive.iloc[int(alive["busy_ns"].argmin())]
    idle, of_work = (
        format_percent(100 * (1 - int(idlest["busy_ns"]) / max(whole_ns, 1))) for whole_ns in (seen.span_ns, seen.work_ns)
    )
    between = f", {of_work} of the {format_duration(seen.work_ns)} from first to last device work"
    between = between if seen.work_ns and of_work != idle else ""
    among = f", the most of {'all' if len(alive) == len(seen.gpus) else len(alive)} GPUs" if len(alive) > 1 else ""
    return f"{idlest['gpu']} is idle {idle} of {span}{between}{among}"


def visible(traces: Traces, lanes: Lanes, begin_ns: int, end_ns: int, devices: int = 0) -> VisibleWork:
    """The work of all streams in a span, those that the page leaves out as well.

    An event without duration counts where it starts. Where the trace has as many numbers of GPUs as GPUs were used, GPUs of several
    processes with one number are one. Else processes number their GPUs differently, and each has its own.

    Args:
        devices: the GPUs that were used (`run.device_count`); 0 where that is not known.
        begin_ns: on the trace's clock.
        end_ns: later than `begin_ns`.
    """
    names = traces.texts("kernels", "full_name").categories if "kernels" in traces.tables else pd.Index([])
    code = traces.texts("kernels", "full_name").codes if len(names) else np.empty(0, dtype=np.int64)
    count, total, gpus = np.zeros(len(names), dtype=np.int64), np.zeros(len(names)), []
    first_ns, last_ns = end_ns, begin_ns
    lives = _lives(lanes)
    for gpu, of_gpu in _gpus(lanes, devices).items():
        parts = [_cut(lane, begin_ns, end_ns) for lane in of_gpu]
        row, start, end = (np.concatenate(column) for column in zip(*parts, strict=True))
        kernel = row < lanes.kernels
        first_ns, last_ns = int(start.min(initial=first_ns)), int(end.max(initial=last_ns))
        if len(names):
            count += np.bincount(code[row[kernel]], minlength=len(names))
            # Exact: a float64 holds the nanoseconds of a hundred days.
            total += np.bincount(code[row[kernel]], weights=(end - start)[kernel], minlength=len(names))
        of_kernels, of_copies = (Intervals(start[mask], end[mask]).length for mask in (kernel, ~kernel))
        both = Intervals(start, end).length if of_kernels and of_copies else of_kernels + of_copies
        life = [lives[process] for process in {lane.owner[0] for lane in of_gpu}]
        gpus.append((gpu, both, of_kernels, of_copies, any(first < end_ns and last > begin_ns for first, last in life)))
    ran = np.flatnonzero(count)
    ran = ran[np.argsort(-total[ran], kind="stable")]
    kernels = pd.DataFrame({"full_name": names[ran], "count": count[ran], "total_ns": total[ran].astype(np.int64)})
    columns = ["gpu", "busy_ns", "kernels_ns", "copies_ns", "alive"]
    return VisibleWork(end_ns - begin_ns, pd.DataFrame(gpus, columns=columns), max(last_ns - first_ns, 0), kernels)


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


def _cut(lane: Lane, begin_ns: int, end_ns: int) -> tuple[Int32s, Int64s, Int64s]:
    """Row, start and end of the lane's events in the span, cut to it."""
    first, last = (int(each[0]) for each in lane.touching(np.array([begin_ns, end_ns])))
    ends = lane.start[first:last] + np.diff(lane.covered[first : last + 1])
    return lane.row[first:last], np.maximum(lane.start[first:last], begin_ns), np.minimum(ends, end_ns)
