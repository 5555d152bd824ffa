"""The figures of one rank: where the time of its device goes, over the whole profile, by iteration, by kernel and by stream.

The definitions follow HolisticTraceAnalysis (https://github.com/facebookresearch/HolisticTraceAnalysis, `temporal breakdown`,
`idle time breakdown`, `kernel launch statistics`, `queue length`). The figures here are exact, in whole nanoseconds.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warpladder.data import job_tables
from warpladder.data.arrays import Bools, Int64s, ordered
from warpladder.data.iterations import Steps
from warpladder.data.timeline import CAUSES, MEMORY, NONE, DeviceWork, Timeline, by_start, gaps, launched_at, on_devices

#: A launch whose work starts later than this after the call is delayed.
_DELAYED_NS: Final = 100_000


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


def next_columns(work: DeviceWork, steps: Steps, iteration: Int64s, start: Int64s, end: Int64s) -> dict[str, pa.Array]:
    """Return the columns of `collectives` from `next_ns` on: what a rank does from the start of each to the next one.

    Args:
        iteration: of each collective or message, `NONE` for none.
        start, end: its times.
    """
    when = launched_at(work)
    begins, ends = on_devices(work, steps, when, steps.at(when))
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


def kernel_rows(work: DeviceWork, steps: Steps) -> pa.Table:
    """Return the rows of `rank_kernels` without the rank, in the order of iteration, name and kind; first those outside of all."""
    names, kinds_ = max(len(work.names), 1), len(job_tables.WORK_KINDS)
    group = ((steps.at(launched_at(work)) - NONE) * names + work.name) * kinds_ + work.kind
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


def _first_of_each(*keys: Int64s) -> Bools:
    """Mark the elements of sorted columns that differ from the element before."""
    first = np.ones(len(keys[0]), np.bool_)
    first[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return first


def _by_part(reduction: np.ufunc, values: npt.NDArray[Any], heads: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """Reduce each part. `heads` are the indices of the first elements of the parts."""
    return np.asarray(reduction.reduceat(values, heads)) if len(heads) else values[:0]
