"""The figures of one rank: where the time of its device goes, over the whole profile, by iteration, by kernel and by stream.

The definitions follow HolisticTraceAnalysis (https://github.com/facebookresearch/HolisticTraceAnalysis, `temporal breakdown`,
`idle time breakdown`, `kernel launch statistics`, `queue length`). The figures here are exact, in whole nanoseconds.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warpladder.collectors.jobs.timeline import CAUSES, MEMORY, NONE, DeviceWork, Timeline, by_start, gaps
from warpladder.data import job_tables
from warpladder.data.arrays import Bools, Int64s, ordered
from warpladder.data.iterations import Steps, launch_times

#: A launch whose work starts later than this after the call is delayed.
_DELAYED_NS: Final = 100_000
_BREAKDOWN: Final = tuple(column.name for column in job_tables.BREAKDOWN)


def breakdown(work: DeviceWork) -> dict[str, int]:
    """Return the columns of `ranks` from `span_ns` to `other_idle_ns`. Busy time and the idle times add up to the span."""
    if not len(work):
        return dict.fromkeys(_BREAKDOWN, 0)
    line = Timeline(work)
    return {name: int(values[0]) for name, values in line.breakdown(np.array([line.begin]), np.array([line.end])).items()}


def device_rows(work: DeviceWork) -> list[dict[str, int]]:
    """Return the rows of `rank_devices` without the rank."""
    return Timeline(work).by_device() if len(work) else []


def rank_columns(work: DeviceWork) -> dict[str, int]:
    """Return the columns of `ranks` about launches. A call that launches several kernels, as of a graph, counts once in `launch_ns`."""
    start, launch_start, launch_end = (column[work.launched] for column in (work.start, work.launch_start, work.launch_end))
    is_kernel = work.kind[work.launched] != MEMORY
    lasts, delay = launch_end - launch_start, np.maximum(start - launch_end, 0)
    call = ordered(work.process[work.launched], work.correlation[work.launched])
    first = np.unique(call, return_index=True)[1]
    return {
        "launches": len(start),
        "launch_ns": int(lasts[first].sum()),
        "delay_ns": int(delay.sum()),
        "delayed": int(np.count_nonzero(delay > _DELAYED_NS)),
        "short_kernels": int(np.count_nonzero(is_kernel & ((work.end - work.start)[work.launched] < lasts))),
    }


def iteration_rows(work: DeviceWork, steps: Steps) -> list[dict[str, Any]]:
    """Return the rows of `iterations`, without the columns of the rank and of matched collectives.

    An iteration lasts on the devices until all work that was launched before its end has ended. It begins with the first work that was
    launched in it, but not before the work that was launched earlier has ended. So no two overlap, and each nanosecond has one class.
    """
    when = _launched_at(work)
    place = steps.at(when)
    begin, end = _on_devices(work, steps, when, place)
    times = Timeline(work).breakdown(begin, end) if len(work) else dict.fromkeys(_BREAKDOWN, np.zeros(len(steps), np.int64))
    columns = {
        "iteration": steps.number,
        "start_ns": steps.start,
        "end_ns": steps.end,
        "device_start_ns": begin,
        "device_end_ns": end,
        **times,
    }
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*(column.tolist() for column in columns.values()), strict=True)]
    without = np.bincount(place[place != NONE], minlength=len(steps)) == 0
    for step in np.flatnonzero(without).tolist():
        rows[step].update(device_start_ns=None, device_end_ns=None)
    return rows


def next_columns(work: DeviceWork, steps: Steps, iteration: Int64s, start: Int64s, end: Int64s) -> dict[str, pa.Array]:
    """Return the columns of `collectives` from `next_ns` on: what a rank does from the start of each to the next one.

    Args:
        iteration: of each collective or message, `NONE` for none.
        start, end: its times.
    """
    when = _launched_at(work)
    begins, ends = _on_devices(work, steps, when, steps.at(when))
    place = np.searchsorted(steps.number, iteration)
    known = (iteration != NONE) & (place < len(steps))
    place = np.where(known, place, 0)
    order = np.lexsort((start, place))
    follows = np.full(len(start), np.iinfo(np.int64).max)
    same = np.flatnonzero(place[order][1:] == place[order][:-1])
    follows[order[same]] = start[order[same + 1]]
    stop = np.minimum(follows, ends[place]) if len(steps) else start
    begin = np.maximum(start, begins[place]) if len(steps) else start
    # What another call has begun before the iteration does counts from there on.
    stop = np.maximum(stop, begin)
    line = Timeline(work)
    whole, after = (line.breakdown(np.minimum(since, stop), stop) for since in (begin, np.maximum(end, begin)))

    def local(times: dict[str, Int64s]) -> Int64s:
        return times["span_ns"] - times["exposed_ns"]

    columns = {
        "next_ns": whole["span_ns"],
        "next_compute_ns": whole["compute_ns"],
        "next_host_ns": whole["host_wait_ns"],
        "next_other_ns": local(whole) - whole["compute_ns"] - whole["host_wait_ns"],
        "next_after_ns": local(after),
    }
    return {name: pa.array(values, pa.int64(), mask=~known) for name, values in columns.items()}


def _on_devices(work: DeviceWork, steps: Steps, when: Int64s, place: Int64s) -> tuple[Int64s, Int64s]:
    """Return from when to when each iteration lasts on the devices; two equal times for one without work."""
    # Iteration k has number 2k + 1 here, and the work that is launched between k - 1 and k has 2k.
    turn = np.where(place != NONE, 2 * place + 1, 2 * np.searchsorted(steps.start, when, side="right"))
    count = 2 * len(steps) + 1
    last, first = np.full(count, work.start.min(initial=0)), np.full(count, np.iinfo(np.int64).max)
    np.maximum.at(last, turn, work.end)
    np.minimum.at(first, turn, work.start)
    last = np.maximum.accumulate(last)
    end = last[1::2]
    return np.minimum(np.maximum(last[:-1:2], first[1::2]), end), end


def kernel_rows(work: DeviceWork, steps: Steps) -> pa.Table:
    """Return the rows of `rank_kernels` without the rank, in the order of iteration, name and kind; first those outside of all."""
    names, kinds_ = max(len(work.names), 1), len(job_tables.WORK_KINDS)
    group = ((steps.at(_launched_at(work)) - NONE) * names + work.name) * kinds_ + work.kind
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
    work = work[work.stream != NONE]
    order = np.argsort(work.stream_code, kind="stable")
    heads = np.flatnonzero(_first_of_each(work.stream_code[order]))
    return [_idle_row(work[own]) for own in np.split(order, heads[1:]) if len(own)]


def _idle_row(work: DeviceWork) -> dict[str, Any]:
    """Return the row of one stream."""
    work, launched = by_start(work)
    opens, closes, cause = gaps(int(work.start[0]), work.start, work.end, launched)
    lasts = closes - opens
    row: dict[str, Any] = {"device": int(work.device[0]), "stream": int(work.stream[0])}
    for number, name in enumerate(CAUSES):
        own = lasts[(cause == number) & (lasts > 0)]
        row |= {f"{name}_count": len(own), f"{name}_ns": int(own.sum())}
    return row | _queue(work)


def _queue(work: DeviceWork) -> dict[str, Any]:
    """Return how much launched work of a stream waits for its start, over the changes of this number.

    It grows when the call begins, and falls when the work starts; at the same time it grows first.
    """
    work = work[work.launched]
    if not len(work):
        return {"queued": 0, "queue_mean": None, "queue_most": None}
    time = np.concatenate((work.launch_start, work.start))
    change = np.repeat(np.array([1, -1]), len(work))
    length = np.cumsum(change[np.lexsort((-change, time))])
    return {"queued": len(length), "queue_mean": float(length.mean()), "queue_most": int(length.max())}


def _launched_at(work: DeviceWork) -> Int64s:
    return launch_times(work.start, work.stream_code, work.launch_start, work.launched)


def _first_of_each(*keys: Int64s) -> Bools:
    """Mark the elements of sorted columns that differ from the element before."""
    first = np.ones(len(keys[0]), np.bool_)
    first[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return first


def _by_part(reduction: np.ufunc, values: npt.NDArray[Any], heads: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """Reduce each part. `heads` are the indices of the first elements of the parts."""
    return np.asarray(reduction.reduceat(values, heads)) if len(heads) else values[:0]
