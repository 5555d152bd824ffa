"""Imports the profile of one rank: a run of its own, beside it the tables from which the job is put together."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.jobs import kernel_collectives
from warpladder.collectors.kineto import parse as kineto
from warpladder.collectors.nsight_systems.parse import import_opened
from warpladder.collectors.nsight_systems.payloads import Payloads, read_payloads
from warpladder.collectors.nsight_systems.source import open_report
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.parts import Part
from warpladder.data import job_tables, schema, store
from warpladder.data.arrays import NONE, Int64s, Intervals, heads, integers, numbered
from warpladder.data.iterations import Steps, steps_of
from warpladder.data.store import ranks
from warpladder.data.timeline import (
    CAUSES,
    COMMUNICATION,
    COMPUTE,
    COPYING,
    GRAPH,
    LONG_AGO,
    MEMORY,
    WAITING,
    DeviceWork,
    breakdown,
    by_start,
    calls_ns,
    device_work,
    gaps,
    iteration_rows,
    on_devices,
)
from warpladder.errors import Error

#: Tables of a rank from which those of the job are put together.
OF_JOB: Final = ("ranks", "rank_devices", "iterations", "rank_kernels", "idle", "collectives")


@dataclass(frozen=True)
class Task:
    """One rank to import.

    Attributes:
        path: its profile.
        place: among the ranks, the number of one whose profile has none.
        folder: of the job; the rank's run becomes `ranks/NUMBER` in it.
        opened: what is read of a report of Nsight Systems: the report, or its export; None for the profile.
        part: the rows of such a report that are the rank's; None for all.
        number: of the part in its report.
        rank: its number, where it does not come from the profile.
        ranks: number of ranks of its job, likewise; 0 where it is not known.
        process: of the rank, in a trace of several; empty for all of the trace.
    """

    path: Path
    place: int
    folder: Path
    opened: Path | None = None
    part: Part | None = None
    number: int = 0
    rank: int | None = None
    ranks: int = 0
    process: str = ""


@dataclass(frozen=True)
class Done:
    """The end of a task.

    Attributes:
        path: the profile.
        rank: its rank; None where the import failed.
        why: the reason of a failure; empty without.
        ranks: number of ranks of its job, as the profile has it; 0 where it lacks it.
        started: start of the profile, seconds since 1970.
        number: of the part in its report.
        processes: of a trace of several, of which nothing was imported.
        gpus: that the process sees, 0 where the profile lacks them.
    """

    path: Path
    rank: int | None
    why: str = ""
    ranks: int = 0
    started: float = 0.0
    number: int = 0
    processes: tuple[str, ...] = ()
    gpus: int = 0


def import_rank(task: Task) -> Done:
    """Import one profile. Runs in a worker, which sees the same paths."""
    scratch = task.folder / f"scratch-{task.place:05d}"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        found, payloads = _import(task, scratch)
        run = ranks.written(scratch / found.run_id)
        rank = task.place if found.rank is None else found.rank
        _write_sums(run, rank, task.path, found.events, payloads)
        target = ranks.folder_of(task.folder, rank)
        target.parent.mkdir(exist_ok=True)
        if not target.exists():  # as after a call that was killed between this line and its note of the rank
            run.path.rename(target)
        return Done(task.path, rank, "", found.ranks, run.info["started_at"].timestamp(), task.number, gpus=found.gpus)
    except kineto.SeveralProcesses as error:
        return Done(task.path, None, str(error), processes=error.names)
    except Error as error:
        return Done(task.path, None, str(error), number=task.number)
    except (MemoryError, OSError) as error:
        return Done(task.path, None, f"{task.path.name}: {type(error).__name__}: {error}", number=task.number)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _import(task: Task, scratch: Path) -> tuple[kineto.Imported, Payloads | None]:
    """Import the profile into a folder. Returns what a report of Nsight Systems has of NCCL, too."""
    notes = Notes()
    if kineto.is_trace(task.path):
        one = kineto.OneOf(task.number, task.place) if task.process else None
        return kineto.import_trace(task.path, scratch, "", None, [], notes, one=one), None
    with open_report(task.opened or task.path, task.path.name) as report:
        payloads = read_payloads(report, notes, (task.part.process,) if task.part else None)
        run_id = import_opened(report, task.part, task.path, scratch, "", None, [], notes)
    rank = kineto.rank_in(task.path.name) if task.rank is None else task.rank
    return kineto.Imported(run_id, rank, task.ranks, 0), payloads


def _write_sums(run: store.Run, rank: int, path: Path, events: int, payloads: Payloads | None) -> None:
    """Write the tables of the rank that its job is put together from into the folder of its run."""
    work, steps = device_work(run), steps_of(run)
    row = {
        **schema.TABLES["ranks"].blank_row(),
        "rank": rank,
        "status": "ok",
        "device_name": run.info["device_name"],
        "file": path.name,
        "bytes": path.stat().st_size if path.is_file() else 0,
        "events": events or len(work) + run.rows("api_calls"),
        **breakdown(work),
        **rank_columns(work),
        **dict(zip(("copy_calls_ns", "waiting_calls_ns"), calls_ns(run, (COPYING,), (COPYING, WAITING)), strict=True)),
    }
    tables: dict[str, Any] = {
        "ranks": [row],
        "rank_devices": [{"rank": rank, **each} for each in device_rows(work)],
        **by_iteration(work, steps, rank),
        "idle": [{"rank": rank, **each} for each in idle_rows(work)],
    }
    if run.rows("collectives"):
        collectives = run.arrow("collectives", schema.TABLES["collectives"].arrow.names)
        place = collectives.schema.get_field_index("rank")
        tables["collectives"] = collectives.set_column(place, "rank", pa.array(np.full(len(collectives), rank, np.int32)))
    else:
        tables["collectives"] = kernel_collectives.rows(run, steps, rank, payloads)
    tables["collectives"] = _with_next(tables["collectives"], work, steps)
    ranks.add_tables(run.path, tables)


def _with_next(collectives: pa.Table, work: DeviceWork, steps: Steps) -> pa.Table:
    """The collectives with what the rank does up to the next one."""
    if not len(work) or not len(collectives):
        return collectives
    iteration, start, end, device, stream = (
        integers(collectives[name], NONE) for name in ("iteration", "start_ns", "end_ns", "device", "stream")
    )
    alone = pc.and_(pc.is_null(collectives["sends_to"]), pc.is_null(collectives["receives_from"]))
    is_message = pc.or_(
        pc.invert(alone), pc.match_substring_regex(collectives["collective"].cast(pa.string()), "send|recv")
    ).to_numpy()
    ready = _ready(work, start, end, device, np.where(is_message, NONE, stream))
    columns = next_columns(work, steps, iteration, start, end, ready)
    known = columns["next_ns"].is_valid().to_numpy(False)
    for name, times in (("held_ns", _held(work, start, end, device)), ("ready_ns", ready)):
        columns[name] = pa.array(times, pa.int64(), mask=~known)
    for name, values in columns.items():
        collectives = collectives.set_column(collectives.schema.get_field_index(name), name, values)
    return collectives


def by_iteration(work: DeviceWork, steps: Steps, rank: int) -> dict[str, Any]:
    """The rows of the tables `iterations` and `rank_kernels` of a rank, without matched collectives."""
    unmatched = {"collectives": 0, "wait_ns": None, "last": None}
    kernels = kernel_rows(work, steps)
    return {
        "iterations": [{"rank": rank, **each, **unmatched} for each in iteration_rows(work, steps)],
        "rank_kernels": kernels.add_column(0, "rank", pa.array(np.full(len(kernels), rank, np.int32))),
    }


#: A collective queued behind another one of its stream where it begins within this time of its end, and was ready for longer.
_AT_ONCE_NS: Final = 10_000
#: A launch whose work starts later than this after the call is delayed.
_DELAYED_NS: Final = 100_000


def device_rows(work: DeviceWork) -> list[dict[str, int]]:
    """Return the rows of `rank_devices` without the rank."""
    return work.timeline.by_device() if len(work) else []


def rank_columns(work: DeviceWork) -> dict[str, int]:
    """Return the columns of `ranks` about launches. A call that launches several kernels, as of a graph, counts once in `launch_ns`."""
    start, launch_start, launch_end = (column[work.launched] for column in (work.start, work.launch_start, work.launch_end))
    is_kernel = work.kind[work.launched] != MEMORY
    lasts, delay = launch_end - launch_start, np.maximum(start - launch_end, 0)
    first = numbered(work.process[work.launched], work.correlation[work.launched])[1]
    return {
        "launches": len(start),
        "launch_ns": int(lasts[first].sum()),
        "delay_ns": int(delay.sum()),
        "delayed": int(np.count_nonzero(delay > _DELAYED_NS)),
        "short_kernels": int(np.count_nonzero(is_kernel & ((work.end - work.start)[work.launched] < lasts))),
    }


def next_columns(
    work: DeviceWork, steps: Steps, iteration: Int64s, start: Int64s, end: Int64s, ready: Int64s
) -> dict[str, pa.Array]:
    """Return the columns of `collectives` from `next_ns` on: what a rank does from the start of each to the next one.

    Args:
        iteration: of each collective or message, `NONE` for none.
        start, end: its times.
        ready: see `_ready`.
    """
    begins, ends = on_devices(work, steps)
    place = np.searchsorted(steps.number, iteration)
    known = (iteration != NONE) & (place < len(steps))
    place = np.where(known, place, 0)
    order = np.lexsort((start, ready, place))
    follows = np.full(len(start), np.iinfo(np.int64).max)
    same = np.flatnonzero(place[order][1:] == place[order][:-1])
    follows[order[same]] = ready[order[same + 1]]
    stop = np.minimum(follows, ends[place]) if len(steps) else ready
    begin = np.maximum(ready, begins[place]) if len(steps) else ready
    # What another call has begun before the iteration does counts from there on.
    stop = np.maximum(stop, begin)
    line = work.timeline
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


def _held(work: DeviceWork, start: Int64s, end: Int64s, device: Int64s) -> Int64s:
    """How long before its end no kernel computed on the GPU of each collective; at least from its own start, where none did before."""
    held = end - start
    computes = (work.kind == COMPUTE) | (work.kind == GRAPH)
    for own in np.unique(device):
        rows, of_gpu = device == own, computes & ((work.device == own) | (own == NONE))
        times = Intervals(work.start[of_gpu], work.end[of_gpu])
        place = np.searchsorted(times.start, end[rows]) - 1
        last = np.where(place >= 0, np.append(times.end, 0)[place], start[rows])
        held[rows] = np.maximum(end[rows] - last, 0)
    return held


def _ready(work: DeviceWork, start: Int64s, end: Int64s, device: Int64s, stream: Int64s) -> Int64s:
    """When each collective could begin: its start, or where it queued behind the one before it on its stream, the later one of its launch and the end
    of the kernels that were launched before it and compute."""
    order = np.lexsort((start, stream, device))
    same = np.append(False, (np.diff(device[order]) == 0) & (np.diff(stream[order]) == 0)) & (stream[order] != NONE)
    queued = np.zeros(len(start), np.bool_)
    queued[order] = same & (start[order] - np.append(0, end[order][:-1]) <= _AT_ONCE_NS)
    talks = np.flatnonzero((work.kind == COMMUNICATION) & work.launched)
    place = {key: row for row, key in zip(talks, zip(*_keys(work, talks), strict=True), strict=True)}
    ready = start.copy()
    for own in np.unique(device[queued]):
        rows = np.flatnonzero(queued & (device == own))
        found = np.array(
            [place.get(key, NONE) for key in zip(*(each[rows].tolist() for each in (device, stream, start)), strict=True)]
        )
        rows, found = rows[found != NONE], found[found != NONE]
        computes = np.flatnonzero((work.kind == COMPUTE) & work.launched & (work.device == own))
        both = np.append(computes, found)
        order = np.lexsort((work.start[both], work.launch_start[both]))
        latest = np.empty(len(both), np.int64)
        latest[order] = np.maximum.accumulate(np.where(order < len(computes), work.end[both][order], LONG_AGO))
        ready[rows] = np.clip(latest[len(computes) :], work.launch_end[found], start[rows])
    ready = np.where(start - ready > _AT_ONCE_NS, ready, start)
    # None is ready before the one that it queues behind.
    order = np.lexsort((start, stream, device))
    of_streams = pd.Series(ready[order]).groupby([device[order], stream[order]]).cummax()
    ready[order] = np.where(stream[order] == NONE, ready[order], of_streams)
    return ready


def _keys(work: DeviceWork, rows: Int64s) -> tuple[list[int], list[int], list[int]]:
    """The device, the stream and the start of work."""
    return work.device[rows].tolist(), work.stream[rows].tolist(), work.start[rows].tolist()


def kernel_rows(work: DeviceWork, steps: Steps) -> pa.Table:
    """Return the rows of `rank_kernels` without the rank, in the order of iteration, name and kind; first those outside of all."""
    names, kinds_ = max(len(work.names), 1), len(job_tables.WORK_KINDS)
    group = ((steps.at(work.launched_at) - NONE) * names + work.name) * kinds_ + work.kind
    order = np.argsort(group, kind="stable")
    group, lasts = group[order], (work.end - work.start)[order]
    starts = heads(group)
    group = group[starts]
    place = group // (names * kinds_) + NONE
    columns = {
        "iteration": pa.array(np.append(steps.number, NONE)[place], mask=place == NONE),
        "name": pa.array(work.names, pa.string()).take(pa.array(group // kinds_ % names)),
        "kind": pa.array(job_tables.WORK_KINDS, pa.string()).take(pa.array(group % kinds_)),
        "count": pa.array(np.diff(starts, append=len(lasts))),
        "total_ns": pa.array(_by_part(np.add, lasts, starts)),
        "least_ns": pa.array(_by_part(np.minimum, lasts, starts)),
        "most_ns": pa.array(_by_part(np.maximum, lasts, starts)),
        "square_ns2": pa.array(_by_part(np.add, lasts.astype(np.float64) ** 2, starts)),
    }
    return pa.table(columns)


def idle_rows(work: DeviceWork) -> list[dict[str, Any]]:
    """Return the rows of `idle` without the rank. Work on a stream that is not known has no row."""
    work = work[work.stream != NONE]
    order = np.argsort(work.stream_code, kind="stable")
    return [_idle_row(work[own]) for own in np.split(order, heads(work.stream_code[order])[1:]) if len(own)]


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


def _by_part(reduction: np.ufunc, values: npt.NDArray[Any], starts: Int64s) -> npt.NDArray[Any]:
    """Reduce each part. `starts` are the indices of the first elements of the parts."""
    return np.asarray(reduction.reduceat(values, starts)) if len(starts) else values[:0]
