"""The figures of one rank: where the time of its device goes, over the whole profile, by iteration, by kernel and by stream.

The definitions follow HolisticTraceAnalysis (https://github.com/facebookresearch/HolisticTraceAnalysis, `temporal breakdown`,
`idle time breakdown`, `kernel launch statistics`, `queue length`). The figures here are exact, in whole nanoseconds.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warpladder.data import job_tables
from warpladder.data.iterations import Steps
from warpladder.data.naming import Int64s

Bools = npt.NDArray[np.bool_]

COMPUTE, COMMUNICATION, MEMORY = (job_tables.WORK_KINDS.index(kind) for kind in ("compute", "communication", "memory"))
#: The stream or the iteration of work that has none.
NONE: Final = -1
#: A shorter gap whose next work had been launched is the cost of starting a kernel.
_KERNEL_WAIT_NS: Final = 30_000
#: A launch whose work starts later than this after the call is delayed.
_DELAYED_NS: Final = 100_000
_CAUSES: Final = ("host_wait", "kernel_wait", "other")
_LONG_AGO: Final = np.iinfo(np.int64).min


@dataclass(frozen=True)
class DeviceWork:
    """Kernels, copies and sets of a rank, in any order. The arrays have one element for each.

    Attributes:
        start, end: times on the device in ns. No end is before its start.
        stream: `NONE` where it is not known.
        kind: index into `job_tables.WORK_KINDS`.
        name: index into `names`.
        launched: the API call that launched it is in the trace.
        launch_start, launch_end: times of this call in ns; any number where it is not in the trace.
    """

    start: Int64s
    end: Int64s
    stream: Int64s
    kind: npt.NDArray[np.int8]
    name: Int64s
    names: list[str]
    launch_start: Int64s
    launch_end: Int64s
    launched: Bools

    def __len__(self) -> int:
        return len(self.start)


def breakdown(work: DeviceWork) -> dict[str, int]:
    """Return the columns of `ranks` from `span_ns` to `other_idle_ns`. Busy time and the idle times add up to the span."""
    parts = _Parts(work, np.zeros(len(work), np.int64))
    if not len(work):
        return dict.fromkeys(_breakdowns(parts), 0)
    return {name: int(values[0]) for name, values in _breakdowns(parts).items()}


def rank_columns(work: DeviceWork) -> dict[str, int]:
    """Return the columns of `ranks` about launches. A call that launches several kernels, as of a graph, counts once in `launch_ns`."""
    start, launch_start, launch_end = (column[work.launched] for column in (work.start, work.launch_start, work.launch_end))
    is_kernel = work.kind[work.launched] != MEMORY
    lasts, delay = launch_end - launch_start, np.maximum(start - launch_end, 0)
    order = np.lexsort((launch_end, launch_start))
    first = _first_of_each(launch_start[order], launch_end[order])
    return {
        "launches": len(start),
        "launch_ns": int(lasts[order][first].sum()),
        "delay_ns": int(delay.sum()),
        "delayed": int(np.count_nonzero(delay > _DELAYED_NS)),
        "short_kernels": int(np.count_nonzero(is_kernel & ((work.end - work.start)[work.launched] < lasts))),
    }


def iteration_of(work: DeviceWork, steps: Steps) -> Int64s:
    """Return the number of the iteration in which each work was launched, `NONE` outside of all.

    Work whose launch is not in the trace belongs to the iteration in which it started.
    """
    place = _place_of(work, steps)
    return np.where(place == NONE, NONE, np.append(steps.number, NONE)[place])


def iteration_rows(work: DeviceWork, steps: Steps) -> list[dict[str, Any]]:
    """Return the rows of `iterations`, without the columns of the rank and of matched collectives.

    The device times and the breakdown of an iteration are about the work that was launched in it.
    """
    place = _place_of(work, steps)
    parts = _Parts(_picked(work, place != NONE), place[place != NONE])
    columns = {"device_start_ns": parts.first(), "device_end_ns": parts.last(), **_breakdowns(parts)}
    without = {name: None if name.startswith("device") else 0 for name in columns}
    rows = [
        {"iteration": number, "start_ns": start, "end_ns": end, **without}
        for number, start, end in zip(steps.number.tolist(), steps.start.tolist(), steps.end.tolist(), strict=True)
    ]
    for step, *values in zip(parts.number.tolist(), *(column.tolist() for column in columns.values()), strict=True):
        rows[step].update(zip(columns, values, strict=True))
    return rows


def kernel_rows(work: DeviceWork, steps: Steps) -> pa.Table:
    """Return the rows of `rank_kernels` without the rank, in the order of iteration, name and kind; first those outside of all."""
    names, kinds_ = max(len(work.names), 1), len(job_tables.WORK_KINDS)
    group = ((_place_of(work, steps) - NONE) * names + work.name) * kinds_ + work.kind
    order = np.argsort(group, kind="stable")
    group, lasts = group[order], (work.end - work.start)[order]
    heads = np.flatnonzero(_first_of_each(group))
    group = group[heads]
    place = group // (names * kinds_) + NONE
    columns = {
        "iteration": pa.array(np.append(steps.number, NONE)[place], mask=place == NONE),
        "name": pa.array(work.names, pa.string()).take(pa.array(group // kinds_ % names)),
        "kind": pa.array(job_tables.WORK_KINDS, pa.string()).take(pa.array(group % kinds_)),
        "count": pa.array(np.diff(heads, append=len(lasts))),
        "total_ns": pa.array(_by_part(np.add, lasts, heads)),
        "least_ns": pa.array(_by_part(np.minimum, lasts, heads)),
        "most_ns": pa.array(_by_part(np.maximum, lasts, heads)),
        "square_ns2": pa.array(_by_part(np.add, lasts.astype(np.float64) ** 2, heads)),
    }
    return pa.table(columns)


def idle_rows(work: DeviceWork) -> list[dict[str, Any]]:
    """Return the rows of `idle` without the rank. Work on a stream that is not known has no row."""
    work = _picked(work, work.stream != NONE)
    parts = _Parts(work, work.stream)
    columns = {"stream": parts.number, **parts.idle()}
    queues = _queues(work)
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*(c.tolist() for c in columns.values()), strict=True)]
    without = {"queued": 0, "queue_mean": None, "queue_most": None}
    return [row | queues.get(row["stream"], without) for row in rows]


class _Parts:
    """Work split into parts with a number, such as streams, each in the order of starts. No part is empty."""

    def __init__(self, work: DeviceWork, part: Int64s) -> None:
        # Of work that starts at the same time, the work launched first decides the cause of the gap before it.
        launched = np.where(work.launched, work.launch_start, _LONG_AGO)
        order = np.lexsort((launched, work.start, part))
        part = part[order]
        self.heads = np.flatnonzero(_first_of_each(part))
        self.number = part[self.heads]
        self.start, self.end, self.kind, self.launched = work.start[order], work.end[order], work.kind[order], launched[order]

    def first(self) -> Int64s:
        return self.start[self.heads]

    def last(self) -> Int64s:
        return _by_part(np.maximum, self.end, self.heads)

    def union(self, chosen: Bools) -> Int64s:
        """Return the time of each part in which any of the chosen work ran."""
        end = np.where(chosen, self.end, self.start)
        return _by_part(np.add, np.maximum(end - np.maximum(self.start, self._reached(end)), 0), self.heads)

    def idle(self) -> dict[str, Int64s]:
        """Return the number and the time of the gaps of each part by cause.

        The gap before work is a wait for the host if the call that launched the work began after the gap had begun, otherwise
        a wait for the kernel below 30 us. Work whose launch is not in the trace was launched before.
        """
        reached = self._reached(self.end)
        gap = np.maximum(self.start - reached, 0)
        host = (gap > 0) & (self.launched > reached)
        near = (gap > 0) & ~host & (gap < _KERNEL_WAIT_NS)
        columns = {}
        for cause, chosen in zip(_CAUSES, (host, near, (gap > 0) & ~host & ~near), strict=True):
            columns[f"{cause}_count"] = _by_part(np.add, chosen.astype(np.int64), self.heads)
            columns[f"{cause}_ns"] = _by_part(np.add, np.where(chosen, gap, 0), self.heads)
        return columns

    def _reached(self, end: Int64s) -> Int64s:
        """Return the latest end before each work in its part; for the first, its own start."""
        reached = np.empty_like(end)
        tails = np.append(self.heads[1:], len(end))[: len(self.heads)]
        for head, tail in zip(self.heads.tolist(), tails.tolist(), strict=True):
            reached[head] = self.start[head]
            np.maximum.accumulate(end[head : tail - 1], out=reached[head + 1 : tail])
        return reached


def _breakdowns(parts: _Parts) -> dict[str, Int64s]:
    compute, communication = parts.kind == COMPUTE, parts.kind == COMMUNICATION
    compute_ns = parts.union(compute)
    idle = parts.idle()
    return {
        "span_ns": parts.last() - parts.first(),
        "busy_ns": parts.union(np.ones_like(compute)),
        "compute_ns": compute_ns,
        "communication_ns": parts.union(communication),
        "memory_ns": parts.union(parts.kind == MEMORY),
        "exposed_ns": parts.union(compute | communication) - compute_ns,
        "host_wait_ns": idle["host_wait_ns"],
        "kernel_wait_ns": idle["kernel_wait_ns"],
        "other_idle_ns": idle["other_ns"],
    }


def _queues(work: DeviceWork) -> dict[int, dict[str, Any]]:
    """Return by stream how much launched work waits for its start, over the changes of this number.

    It grows when the call begins, and falls when the work starts; at the same time it grows first.
    """
    work = _picked(work, work.launched)
    time = np.concatenate((work.launch_start, work.start))
    stream = np.tile(work.stream, 2)
    change = np.repeat(np.array([1, -1]), len(work))
    order = np.lexsort((-change, time, stream))
    stream = stream[order]
    # The changes of a stream add up to 0, so that one running sum works for all streams.
    length = np.cumsum(change[order])
    heads = np.flatnonzero(_first_of_each(stream))
    count = np.diff(heads, append=len(length))
    mean = _by_part(np.add, length, heads) / count
    most = _by_part(np.maximum, length, heads)
    return {
        number: {"queued": changes, "queue_mean": average, "queue_most": largest}
        for number, changes, average, largest in zip(
            stream[heads].tolist(), count.tolist(), mean.tolist(), most.tolist(), strict=True
        )
    }


def _place_of(work: DeviceWork, steps: Steps) -> Int64s:
    """Return the index into `steps` of each work's iteration, `NONE` outside of all."""
    when = np.where(work.launched, work.launch_start, work.start)
    place = np.searchsorted(steps.start, when, side="right") - 1
    # Behind the last step stands one that has ended long ago, which the index -1 finds.
    return np.where(when < np.append(steps.end, _LONG_AGO)[place], place, NONE)


def _picked(work: DeviceWork, chosen: Bools) -> DeviceWork:
    return DeviceWork(
        start=work.start[chosen],
        end=work.end[chosen],
        stream=work.stream[chosen],
        kind=work.kind[chosen],
        name=work.name[chosen],
        names=work.names,
        launch_start=work.launch_start[chosen],
        launch_end=work.launch_end[chosen],
        launched=work.launched[chosen],
    )


def _first_of_each(*keys: Int64s) -> Bools:
    """Mark the elements of sorted columns that differ from the element before."""
    first = np.ones(len(keys[0]), np.bool_)
    first[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return first


def _by_part(reduction: np.ufunc, values: npt.NDArray[Any], heads: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """Reduce each part. `heads` are the indices of the first elements of the parts."""
    return np.asarray(reduction.reduceat(values, heads)) if len(heads) else values[:0]
