"""Converts API calls, kernels, copies, memory sets and graph launches of a report to rows of our tables, batch by batch."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.trace.attribution import SEVERAL, ByTime, LaunchedWork
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.report import Report, Strings, or_else, process_of
from warpladder.data import schema
from warpladder.data.arrays import NONE, Bools, Int64s, Launches, integers
from warpladder.data.columns import FAR, MOST_WORK
from warpladder.data.communication import communication_of
from warpladder.data.names import Source
from warpladder.data.nesting import Innermost

KERNEL: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
GRAPH: Final = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
COPY: Final = "CUPTI_ACTIVITY_KIND_MEMCPY"
SET: Final = "CUPTI_ACTIVITY_KIND_MEMSET"
API: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"

#: Messages about work launched by a thread without a range; `{}` is the number of pieces of work.
BY_TIME: Final = (
    "{} kernels, copies and sets were launched by threads that had no NVTX range open; they are attributed by time, to the innermost range "
    "of the one other thread of the process that had a step or else a range open (column time_range_id)"
)
UNCLEAR: Final = (
    "{} kernels, copies and sets were launched by threads that had no NVTX range open while several threads of the process had one; they are "
    "attributed to none; open a range on the launching threads"
)
_BACKTRACE: Final = 67
#: Limits of counts of bytes, of times and of correlation ids. Times and ids may also be negative, down to the same limit.
_MOST_BYTES: Final = MOST_WORK
_FAR: Final = FAR

#: CUpti_ActivityMemcpyKind -> our kinds, but of those that are not known. CUDA arrays count as device memory; 13 is a migration between devices.
_COPY_KINDS: Final = dict(
    enumerate(
        ("h2d", "d2h", "h2d", "d2h", "d2d", "d2d", "d2d", "d2d", "h2h", "p2p", "unified_h2d", "unified_d2h", "p2p"),
        start=1,
    )
)
#: Copy kinds of migrations of unified memory; no API call launches them.
_MIGRATIONS: Final = (11, 12, 13)
#: ENUM_CUDA_MEM_KIND; some versions of Nsight Systems omit this table. 7 is unknown.
_MEMORY_KINDS: Final = dict(enumerate(("pageable", "pinned", "device", "array", "managed", "device_static", "managed_static")))


class Calls:
    """API calls, to find the launch of device work."""

    def __init__(self) -> None:
        self._parts: list[tuple[npt.NDArray[Any], ...]] = []
        self.start = self.end = self.thread = np.empty(0, np.int64)
        self.range = np.empty(0, np.int32)
        self._launches = Launches(self.thread, self.thread)

    def add(self, thread: Int64s, correlation: Int64s, start: Int64s, end: Int64s, range_id: npt.NDArray[np.int32]) -> None:
        self._parts.append((correlation, thread, start, end, range_id))

    def close(self) -> None:
        if not self._parts:
            return
        correlation, self.thread, self.start, self.end, self.range = map(np.concatenate, zip(*self._parts, strict=True))
        self._parts.clear()
        self._launches = Launches(self.thread >> 24, correlation)

    def find(self, process: Int64s, correlation: Int64s) -> Int64s:
        """Return the index of the call that launched each piece of device work; `NONE` if the report has none."""
        return self._launches.of(process, correlation)


def api_rows(report: Report, strings: Strings, innermost: Innermost, calls: Calls, notes: Notes) -> Iterator[pa.Table]:
    """Yield rows of `api_calls`. Also adds each call to `calls`, and closes it at the end."""
    names = ("start", "end", "eventClass", "globalTid", "correlationId", "nameId")
    for batch in report.batches(API, names):
        once = pc.not_equal(batch.column("eventClass").fill_null(0), _BACKTRACE)
        batch = _with_times(batch.filter(once), "API calls", notes)
        thread, start = integers(batch["globalTid"]), integers(batch["start"])
        correlation = _correlations(batch)
        inside = innermost.at(thread, start).astype(np.int32)
        calls.add(thread, correlation, start, integers(batch["end"]), inside)
        yield pa.table(
            {
                "correlation": correlation,
                "process": report.process_numbers(thread),
                "start_ns": start,
                "end_ns": batch.column("end"),
                "thread": report.thread_numbers(thread),
                "name": strings.of(batch.column("nameId"), calls=True),
                "range_id": _or_null(inside),
            }
        )
    calls.close()


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
    """Joins the device rows of a report to their launches, and keeps the work launched while ranges were open.

    Args:
        report, strings, calls: the report, its texts, and its API calls.
        threads: thread of each range.
        by_time: finder over the same ranges.
        notes: receives counts of rows that are left out or cannot be attributed.
    """

    def __init__(self, report: Report, strings: Strings, calls: Calls, threads: Int64s, by_time: ByTime, notes: Notes) -> None:
        self._report, self._strings, self._calls, self._notes = report, strings, calls, notes
        self._threads, self._by_time = threads, by_time
        self._launched_work: tuple[list[LaunchedWork], ...] = ([], [], [])
        self.devices: dict[tuple[int, int], int] = {}  # (process, CUDA ordinal) -> rows
        self.launches_of: dict[str, tuple[int, int]] = {}  # kind -> rows that a call launches, and those whose call was found

    def launches(self) -> Attributed:
        """Return all device work launched while a range was open. Call it last: it frees calls and parts."""
        self._calls = Calls()
        return Attributed(*map(_joined, self._launched_work))

    def kernels(self) -> Iterator[pa.Table]:
        names = (
            *("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "demangledName", "shortName"),
            *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory"),
            *("dynamicSharedMemory", "graphId", "collectiveId"),
        )
        for batch in self._report.batches(KERNEL, names):
            batch = _with_times(batch, "kernels", self._notes)
            short, full = (self._strings.of(batch.column(name)) for name in ("shortName", "demangledName"))
            unnamed = pa.repeat("[unnamed]", len(batch)).cast(pa.string())
            short = or_else(or_else(short, full), unnamed)
            full = or_else(full, short)
            named = self._report.has(KERNEL, "collectiveId")
            columns = {
                **self._common(batch, "kernels"),
                "context": batch.column("contextId"),
                "name": short,
                "full_name": full,
                **{f"{what}_{axis}": _int32(batch, f"{what}{axis.upper()}") for what in ("grid", "block") for axis in "xyz"},
                "registers": _int32(batch, "registersPerThread"),
                "static_shared_bytes": batch.column("staticSharedMemory"),
                "dynamic_shared_bytes": batch.column("dynamicSharedMemory"),
                "graph_id": batch.column("graphId"),
                "collective": self._collectives(batch.column("collectiveId") if named else full),
                **self._launch_times(batch),
            }
            yield schema.KERNELS.completed(columns, len(batch))

    def _collectives(self, column: pa.Array) -> pa.Array:
        """The collectives of kernels, from ids of their texts, or from names of kernels; null where they do not communicate."""
        texts = column if pa.types.is_dictionary(column.type) else self._strings.of(column)
        of = communication_of if column is texts else str
        kinds = pa.array([of(text) or None for text in texts.dictionary.to_pylist()], pa.string())
        return kinds.take(texts.indices)

    def graph_launches(self) -> Iterator[pa.Table]:
        """Yield one row of `kernels`, named `schema.CUDA_GRAPH`, for each graph launch that was traced as a whole."""
        names = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphId")
        for batch in self._report.batches(GRAPH, names):
            batch = _with_times(batch, "graph launches", self._notes)
            self._notes.count("warning", Source.GRAPHS, "{} CUDA graph launches were traced as a whole, so that the kernels in "
                              "them are not known; profile with --cuda-graph-trace=node", len(batch))  # fmt: skip
            name = pa.repeat(schema.CUDA_GRAPH, len(batch)).cast(pa.string())
            columns = {
                **self._common(batch, "graph launches"),
                "context": batch.column("contextId"),
                "name": name,
                "full_name": name,
                "graph_id": batch.column("graphId"),
                **self._launch_times(batch),
            }
            yield schema.KERNELS.completed(columns, len(batch))

    def copies(self) -> Iterator[pa.Table]:
        names = (
            *("start", "end", "deviceId", "streamId", "correlationId", "globalPid"),
            *("bytes", "copyKind", "srcKind", "dstKind"),
        )
        for batch in self._report.batches(COPY, names):
            batch = _with_times(batch, "copies", self._notes)
            is_known = np.isin(integers(batch["copyKind"]), list(_COPY_KINDS))
            self._notes.count("warning", Source.COPIES, "{} copies are of an unknown direction", int((~is_known).sum()))
            yield pa.table(
                {
                    **self._common(batch, "copies", ~np.isin(integers(batch["copyKind"]), _MIGRATIONS)),
                    "kind": _as_names(batch, "copyKind", _COPY_KINDS).fill_null("unknown"),
                    "bytes": self._bytes(batch, "copies"),
                    "src_memory": _as_names(batch, "srcKind", _MEMORY_KINDS),
                    "dst_memory": _as_names(batch, "dstKind", _MEMORY_KINDS),
                }
            )

    def sets(self) -> Iterator[pa.Table]:
        names = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "memKind")
        for batch in self._report.batches(SET, names):
            batch = _with_times(batch, "memory sets", self._notes)
            columns = {
                **self._common(batch, "memory sets"),
                "kind": pa.repeat("memset", len(batch)).cast(pa.string()),
                "bytes": self._bytes(batch, "memory sets"),
                "dst_memory": _as_names(batch, "memKind", _MEMORY_KINDS),
            }
            yield schema.TABLES["memory_ops"].completed(columns, len(batch))

    def _common(self, batch: pa.RecordBatch, what: str, launched: Bools | None = None) -> dict[str, pa.Array]:
        """Return the columns that `kernels` and `memory_ops` share.

        Args:
            what: the kind of row, for notes.
            launched: mask of the rows that a call launches; None for all.
        """
        process, correlation = integers(batch["globalPid"]), _correlations(batch)
        device = np.clip(integers(batch["deviceId"]), -(1 << 31), (1 << 31) - 1)
        launch = self._launch = self._calls.find(process >> 24, correlation)
        has_call = launch >= 0
        inside = np.full(len(batch), NONE, np.int32)
        inside[has_call] = self._calls.range[launch[has_call]]
        called = np.flatnonzero(has_call)
        by_time = np.full(len(batch), NONE, np.int32)
        thread, time = self._calls.thread[launch[called]], self._calls.start[launch[called]]
        by_time[called] = self._by_time.at(thread, time, inside[called] >= 0)
        own, other, unclear = (np.flatnonzero(mask) for mask in (inside >= 0, by_time >= 0, by_time == SEVERAL))
        threads = self._calls.thread[launch[own]], self._threads[by_time[other]], self._calls.thread[launch[unclear]]
        for parts, thread, places in zip(self._launched_work, threads, (own, other, unclear), strict=True):
            self._keep(parts, batch, thread, launch[places], places)
        self._notes.count("info", Source.ATTRIBUTION, BY_TIME, int((inside[other] < 0).sum()))
        self._notes.count("warning", Source.ATTRIBUTION, UNCLEAR, len(unclear))
        launched = np.ones(len(batch), bool) if launched is None else launched
        rows, with_call = self.launches_of.get(what, (0, 0))
        self.launches_of[what] = rows + int(launched.sum()), with_call + int((launched & has_call).sum())
        for counted in pa.array(process_of(process) << 32 | (device & 0xFFFF_FFFF)).value_counts().to_pylist():
            pair = counted["values"] >> 32, counted["values"] & 0xFFFF_FFFF
            self.devices[pair] = self.devices.get(pair, 0) + counted["counts"]
        return {
            "correlation": pa.array(correlation),
            "process": pa.array(self._report.process_numbers(process)),
            "start_ns": batch.column("start"),
            "end_ns": batch.column("end"),
            "device": pa.array(device.astype(np.int32)),
            "stream": batch.column("streamId"),
            "range_id": _or_null(inside),
            "time_range_id": _or_null(by_time),
        }

    def _bytes(self, batch: pa.RecordBatch, what: str) -> pa.Array:
        """The sizes of copies or sets; null where the report lacks them."""
        size = batch.column("bytes")
        self._notes.count("info", Source.COPIES, f"{{}} {what} have no size in the report", size.null_count)
        return pc.min_element_wise(pc.max_element_wise(size, 0, skip_nulls=False), _MOST_BYTES, skip_nulls=False)

    def _keep(self, parts: list[LaunchedWork], batch: pa.RecordBatch, thread: Int64s, launch: Int64s, places: Int64s) -> None:
        if len(launch):
            start, end = integers(batch["start"])[places], integers(batch["end"])[places]
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
    start, end = batch.column("start"), batch.column("end")
    timed = pc.and_(pc.greater_equal(end, start), pc.and_(pc.greater_equal(start, -_FAR), pc.less_equal(end, _FAR)))
    timed = timed.fill_null(False)
    notes.count("warning", Source.TIMES, f"{{}} {what} without a start or an end, or that end before they start, are left out",
                len(batch) - int(pc.sum(timed).as_py() or 0))  # fmt: skip
    return batch.filter(timed)


def _correlations(batch: pa.RecordBatch) -> Int64s:
    return np.clip(integers(batch["correlationId"]), -_FAR, _FAR)


def _int32(batch: pa.RecordBatch, name: str) -> pa.Array:
    return pc.cast(batch.column(name), pa.int32(), safe=False)


def _or_null(range_id: npt.NDArray[np.int32]) -> pa.Array:
    return pa.array(range_id.astype(np.int64), mask=range_id < 0)


def _as_names(batch: pa.RecordBatch, name: str, names: dict[int, str]) -> pa.Array:
    place = pc.index_in(batch.column(name), pa.array(list(names), pa.int64()))
    return pa.array(list(names.values()), pa.string()).take(place)
