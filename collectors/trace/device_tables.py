"""Converts the tables of a trace to rows of the tables of a run, batch by batch."""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.trace.attribution import SEVERAL, ByTime, LaunchedWork
from warpladder.collectors.trace.model import (
    API_CALLS,
    COPIES,
    GRAPHS,
    KERNELS,
    MEMORY_IN_USE,
    SETS,
    SYNCHRONIZATIONS,
    Trace,
    as_dictionary,
    or_else,
    process_of,
)
from warpladder.collectors.trace.notes import Notes
from warpladder.data import schema
from warpladder.data.arrays import NONE, Bools, Int64s, Launches, Places, integers
from warpladder.data.columns import FAR, MOST_WORK
from warpladder.data.communication import communication_of
from warpladder.data.names import Source
from warpladder.data.nesting import Innermost

#: Messages about work launched by a thread without a range; `{}` is the number of pieces of work.
BY_TIME: Final = (
    "{} kernels, copies and sets were launched by threads that had no NVTX range open; they are attributed by time, to the innermost range "
    "of the one other thread of the process that had a step or else a range open (column time_range_id)"
)
UNCLEAR: Final = (
    "{} kernels, copies and sets were launched by threads that had no NVTX range open while several threads of the process had one; they are "
    "attributed to none; open a range on the launching threads"
)
#: A message about work that starts more than this before its launch. No real trace of ours has any.
_EARLY_NS: Final = 1_000
EARLY: Final = (
    "{} kernels, copies and sets start before the call that launched them: the clocks of device and host differ, so do not trust the causes "
    "of idle time and the delays of launches"
)
#: A table of work -> its rows' table in a run, and what messages call them.
WRITTEN: Final = {KERNELS: schema.KERNELS, GRAPHS: schema.KERNELS, COPIES: schema.MEMORY_OPS, SETS: schema.MEMORY_OPS}
_CALLED: Final = {KERNELS: "kernels", GRAPHS: "graph launches", COPIES: "copies", SETS: "memory sets"}
#: Columns that are found here, by the launch of the work.
_FOUND: Final = ("range_id", "time_range_id", "launch_start_ns", "launch_end_ns")
#: What CUPTI writes for no stream and no event, as a number of 32 bits.
_NOTHING: Final = 0xFFFF_FFFF
#: `_v` and four characters, as in `nsys stats`, so that names are equal there and here. `cudaGraphLaunch_v10000` (five
#: characters), `cudaLaunchKernel_ptsz` and `cuMemAlloc_v2` (a different function than `cuMemAlloc`) keep their suffix.
_VERSION_SUFFIX: Final = re.compile(r"_v.{4}\Z", re.DOTALL)


class Calls:
    """API calls, to find the launch of device work.

    Args:
        launched: correlations of all device work. Other calls are not kept. None keeps all.
    """

    def __init__(self, launched: Int64s | None = None) -> None:
        self._launched = None if launched is None else Places(launched)
        self._parts: list[tuple[npt.NDArray[Any], ...]] = []
        self.start = self.end = self.thread = np.empty(0, np.int64)
        self.range = np.empty(0, np.int32)
        self._launches = Launches(self.thread, self.thread)

    def add(self, thread: Int64s, correlation: Int64s, start: Int64s, end: Int64s, range_id: npt.NDArray[np.int32]) -> None:
        columns: tuple[npt.NDArray[Any], ...] = (correlation, thread, start, end, range_id)
        if self._launched is not None:
            kept = np.flatnonzero(self._launched.of(correlation) != NONE)
            columns = tuple(column[kept] for column in columns)
        self._parts.append(columns)

    def close(self) -> None:
        if not self._parts:
            return
        correlation, self.thread, self.start, self.end, self.range = map(np.concatenate, zip(*self._parts, strict=True))
        self._parts.clear()
        self._launches = Launches(process_of(self.thread), correlation)

    def find(self, process: Int64s, correlation: Int64s) -> Int64s:
        """Return the index of the call that launched each piece of device work; `NONE` if the trace has none."""
        return self._launches.of(process, correlation)


def api_rows(trace: Trace, innermost: Innermost, calls: Calls, notes: Notes) -> Iterator[pa.Table]:
    """Yield rows of `api_calls`. Also adds each call to `calls`, and closes it at the end."""
    for batch in trace.batches(API_CALLS, ("start_ns", "end_ns", "thread", "correlation", "name")):
        batch = _with_times(batch, "API calls", notes)
        thread, start, correlation = integers(batch["thread"]), integers(batch["start_ns"]), _correlations(batch)
        inside = innermost.at(thread, start).astype(np.int32)
        calls.add(thread, correlation, start, integers(batch["end_ns"]), inside)
        yield pa.table(
            {
                "correlation": correlation,
                "process": trace.process_numbers(process_of(thread)),
                "start_ns": start,
                "end_ns": batch["end_ns"],
                "thread": trace.thread_numbers(thread),
                "name": _without_version(batch["name"]),
                "range_id": _or_null(inside),
            }
        )
    calls.close()


def _without_version(names: pa.Array) -> pa.DictionaryArray:
    names = as_dictionary(names.fill_null(""))
    texts = [_VERSION_SUFFIX.sub("", name) for name in names.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(names.indices, pa.array(texts, pa.string()))


class Attributed(NamedTuple):
    """Device work by how it is attributed to ranges.

    Attributes:
        own: launched inside a range of the launching thread.
        by_time: attributed to a range of another thread; this thread replaces the launching thread. What was launched inside a
            range of its own thread, while a step was open on another one, is in `own` too.
        unclear: launched by a thread without a range while several threads had one open.
    """

    own: LaunchedWork
    by_time: LaunchedWork
    unclear: LaunchedWork


class DeviceTables:
    """Joins the device rows of a trace to their launches, and keeps the work launched while ranges were open.

    Args:
        trace, calls: the trace, and its API calls.
        threads: thread of each range.
        by_time: finder over the same ranges.
        notes: receives counts of rows that are left out or cannot be attributed.
    """

    def __init__(self, trace: Trace, calls: Calls, threads: Int64s, by_time: ByTime, notes: Notes) -> None:
        self._trace, self._calls, self._notes = trace, calls, notes
        self._threads, self._by_time = threads, by_time
        self._launched_work: tuple[list[LaunchedWork], ...] = ([], [], [])
        self.devices: dict[tuple[int, int], int] = {}  # (process, CUDA ordinal) -> rows
        self.launches_of: dict[str, tuple[int, int]] = {}  # kind -> rows that a call launches, and those whose call was found

    def launches(self) -> Attributed:
        """Return all device work launched while a range was open. Call it last: it frees calls and parts."""
        self._calls = Calls()
        return Attributed(*map(_joined, self._launched_work))

    def rows(self, table: str) -> Iterator[pa.Table]:
        """Yield the rows of a table of work, as the run has them in `kernels` or `memory_ops`."""
        what, written = _CALLED[table], WRITTEN[table]
        further = {KERNELS: self._of_kernels, GRAPHS: self._of_graphs, COPIES: self._of_copies, SETS: self._of_sets}[table]
        taken = [name for name in written.arrow.names if name not in _FOUND]
        for batch in self._trace.batches(table, [*taken, "migrates"]):
            batch = _with_times(batch, what, self._notes)
            columns = {name: batch[name] for name in taken}
            columns |= further(batch, what)
            columns |= self._common(batch, what)
            if written is schema.KERNELS:
                columns |= self._launch_times(batch)
            yield written.bounded(written.completed(columns, len(batch)))

    def _of_kernels(self, batch: pa.RecordBatch, what: str) -> dict[str, pa.Array]:
        unnamed = pa.repeat("[unnamed]", len(batch)).cast(pa.string())
        short = or_else(or_else(batch["name"], batch["full_name"]), unnamed)
        full = or_else(batch["full_name"], short)
        collective = batch["collective"] if self._trace.has(KERNELS, "collective") else _by_name(full)
        return {"name": short, "full_name": full, "collective": collective}

    def _of_graphs(self, batch: pa.RecordBatch, what: str) -> dict[str, pa.Array]:
        self._notes.count("warning", Source.GRAPHS, "{} CUDA graph launches were traced as a whole, so that the kernels in "
                          "them are not known; profile with --cuda-graph-trace=node", len(batch))  # fmt: skip
        name = pa.repeat(schema.CUDA_GRAPH, len(batch)).cast(pa.string())
        return {"name": name, "full_name": name}

    def _of_copies(self, batch: pa.RecordBatch, what: str) -> dict[str, pa.Array]:
        kind = batch["kind"]
        self._notes.count("warning", Source.COPIES, "{} copies are of an unknown direction", kind.null_count)
        return {"kind": kind.fill_null("unknown"), "bytes": self._bytes(batch, what)}

    def _of_sets(self, batch: pa.RecordBatch, what: str) -> dict[str, pa.Array]:
        return {"kind": pa.repeat("memset", len(batch)).cast(pa.string()), "bytes": self._bytes(batch, what)}

    def _common(self, batch: pa.RecordBatch, what: str) -> dict[str, pa.Array]:
        """Return the columns that `kernels` and `memory_ops` share. `what`: the kind of row, for notes."""
        process, correlation = integers(batch["process"]), _correlations(batch)
        device = np.clip(integers(batch["device"]), -(1 << 31), (1 << 31) - 1)
        launch = self._launch = self._calls.find(process, correlation)
        has_call = launch >= 0
        inside = np.full(len(batch), NONE, np.int32)
        inside[has_call] = self._calls.range[launch[has_call]]
        called = np.flatnonzero(has_call)
        by_time = np.full(len(batch), NONE, np.int32)
        thread, time = self._calls.thread[launch[called]], self._calls.start[launch[called]]
        early = time - integers(batch["start_ns"])[called] > _EARLY_NS
        self._notes.count("warning", Source.TIMES, EARLY, int(early.sum()))
        by_time[called] = self._by_time.at(thread, time, inside[called] >= 0)
        own, other, unclear = (np.flatnonzero(mask) for mask in (inside >= 0, by_time >= 0, by_time == SEVERAL))
        threads = self._calls.thread[launch[own]], self._threads[by_time[other]], self._calls.thread[launch[unclear]]
        for parts, thread, places in zip(self._launched_work, threads, (own, other, unclear), strict=True):
            self._keep(parts, batch, thread, launch[places], places)
        self._notes.count("info", Source.ATTRIBUTION, BY_TIME, int((inside[other] < 0).sum()))
        self._notes.count("warning", Source.ATTRIBUTION, UNCLEAR, len(unclear))
        launched = integers(batch["migrates"]) == 0
        rows, with_call = self.launches_of.get(what, (0, 0))
        self.launches_of[what] = rows + int(launched.sum()), with_call + int((launched & has_call).sum())
        for counted in pa.array(process << 32 | (device & 0xFFFF_FFFF)).value_counts().to_pylist():
            pair = counted["values"] >> 32, counted["values"] & 0xFFFF_FFFF
            self.devices[pair] = self.devices.get(pair, 0) + counted["counts"]
        return {
            "correlation": pa.array(correlation),
            "process": pa.array(self._trace.process_numbers(process)),
            "start_ns": batch["start_ns"],
            "end_ns": batch["end_ns"],
            "device": pa.array(device.astype(np.int32)),
            "range_id": _or_null(inside),
            "time_range_id": _or_null(by_time),
        }

    def _bytes(self, batch: pa.RecordBatch, what: str) -> pa.Array:
        """The sizes of copies or sets; null where the trace lacks them."""
        size = batch["bytes"]
        self._notes.count("info", Source.COPIES, f"{{}} {what} have no size in the report", size.null_count)
        return pc.min_element_wise(pc.max_element_wise(size, 0, skip_nulls=False), MOST_WORK, skip_nulls=False)

    def _keep(self, parts: list[LaunchedWork], batch: pa.RecordBatch, thread: Int64s, launch: Int64s, places: Int64s) -> None:
        if len(launch):
            start, end = integers(batch["start_ns"])[places], integers(batch["end_ns"])[places]
            parts.append(LaunchedWork(thread, self._calls.start[launch], start, end))

    def _launch_times(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        missing = self._launch < 0
        if not len(self._calls.start):
            return {}
        return {
            "launch_start_ns": pa.array(self._calls.start[self._launch], mask=missing),
            "launch_end_ns": pa.array(self._calls.end[self._launch], mask=missing),
        }


def _joined(parts: list[LaunchedWork]) -> LaunchedWork:
    """Concatenate the parts; free each as soon as it is copied."""
    columns = [list(column) for column in zip(LaunchedWork(*[np.empty(0, np.int64)] * 4), *parts, strict=True)]
    parts.clear()
    return LaunchedWork(*(np.concatenate(columns.pop(0)) for _ in range(4)))


def _with_times(batch: pa.RecordBatch, what: str, notes: Notes) -> pa.RecordBatch:
    timed = _timed(batch)
    notes.count("warning", Source.TIMES, f"{{}} {what} without a start or an end, or that end before they start, are left out",
                len(batch) - int(pc.sum(timed).as_py() or 0))  # fmt: skip
    return batch.filter(timed)


def _timed(batch: pa.RecordBatch) -> pa.Array:
    start, end = batch["start_ns"], batch["end_ns"]
    timed = pc.and_(pc.greater_equal(end, start), pc.and_(pc.greater_equal(start, -FAR), pc.less_equal(end, FAR)))
    return timed.fill_null(False)


def _correlations(batch: pa.RecordBatch) -> Int64s:
    return np.clip(integers(batch["correlation"]), -FAR, FAR)


def _by_name(names: pa.DictionaryArray) -> pa.Array:
    """What kernels communicate, by their names."""
    kinds = [communication_of(name) or None for name in names.dictionary.to_pylist()]
    return pa.array(kinds, pa.string()).take(names.indices)


def _or_null(range_id: npt.NDArray[np.int32]) -> pa.Array:
    return pa.array(range_id.astype(np.int64), mask=range_id < 0)


def synchronization_rows(trace: Trace) -> Iterator[pa.Table]:
    """Yield rows of `synchronizations`. Records of an unknown kind, or without times, are left out."""
    written = schema.TABLES[SYNCHRONIZATIONS]
    for batch in trace.batches(SYNCHRONIZATIONS, written.arrow.names):
        batch = batch.filter(pc.and_(_timed(batch), batch["kind"].is_valid()))
        found = {
            "correlation": _correlations(batch),
            "process": trace.process_numbers(integers(batch["process"])),
            "device": np.clip(integers(batch["device"]), 0, (1 << 31) - 1).astype(np.int32),
            **{name: _or_nothing(batch[name]) for name in ("stream", "event_stream", "event_correlation")},
        }
        yield written.completed({name: found.get(name, batch[name]) for name in written.arrow.names}, len(batch))


def _or_nothing(column: pa.Array) -> pa.Array:
    numbers = integers(column, _NOTHING)
    return pa.array(numbers, mask=(numbers < 0) | (numbers >= _NOTHING))


def memory_rows(trace: Trace) -> Iterator[pa.Table]:
    """Yield the rows of `memory_in_use`, by process, device and time. Records without a time, a device or a size are left out."""
    batches = list(trace.batches(MEMORY_IN_USE, ("process", "device", "start_ns", "bytes", "reserved_bytes", "source")))
    if not batches:
        return
    rows = pa.Table.from_batches(batches)
    process, device, start, used, reserved = (integers(rows[name], NONE) for name in rows.column_names[:5])
    fine = (start >= 0) & (start <= FAR) & (process >= 0) & (device >= 0) & _is_work(used)
    order = np.lexsort((start, device, process))
    order = order[fine[order]]
    yield pa.table(
        {
            "process": trace.process_numbers(process[order]),
            "device": np.minimum(device[order], (1 << 31) - 1).astype(np.int32),
            "start_ns": start[order],
            "source": rows["source"].take(pa.array(order)),
            "bytes": used[order],
            "reserved_bytes": pa.array(reserved[order], mask=~_is_work(reserved[order])),
        }
    )


def _is_work(numbers: Int64s) -> Bools:
    return np.asarray((numbers >= 0) & (numbers <= MOST_WORK))
