"""The trace tables of a run by column, so that a page reads only the columns that it needs of millions of rows."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from warpladder.data import schema, store
from warpladder.data.arrays import NONE, Bools, Int64s, Launches, integers
from warpladder.data.names import PYTORCH

TABLES: Final = ("ranges", "kernels", "memory_ops", "api_calls")
#: The name in `kernels` of a CUDA graph that was traced as a whole, with one row for each launch.
GRAPH: Final = schema.CUDA_GRAPH
#: Words for the directions of copies, as column `kind` of `memory_ops` has them, and for its other kinds.
COPIES: Final = {
    "h2d": "host to device",
    "d2h": "device to host",
    "d2d": "within a device",
    "p2p": "device to device",
    "h2h": "within the host",
    "unknown": "of unknown direction",
}
MIGRATIONS: Final = {"unified_h2d": "migration to the device", "unified_d2h": "migration to the host"}
MEMORY_OPERATIONS: Final = {**COPIES, "memset": "memset", **MIGRATIONS}
#: Beginnings of the names of calls -> the API that has them.
_APIS: Final = {"hip": "HIP", "cu": "CUDA", "ur": "Unified Runtime", "ze": "Level Zero"}


class Traces:
    """Columns of the tables `TABLES` and of `operations`, read when they are first needed. The arrays are shared: never change one."""

    def __init__(self, run: store.Run | None = None) -> None:
        self._run = run
        self._columns: dict[tuple[str, str], Any] = {}
        self.tables: tuple[str, ...] = tuple(name for name in (run.tables if run else ()) if name in TABLES)

    @property
    def run(self) -> store.Run:
        """The run of the tables. Raises StoreError without one."""
        if self._run is None:
            raise store.StoreError("there is no run, so no trace")
        return self._run

    @property
    def of_ranks(self) -> bool:
        """Whether the processes are ranks of a job."""
        return isinstance(self._run, store.RanksOfJob)

    @property
    def api(self) -> str:
        """The API by which the host calls its devices, such as `HIP`; empty where the names of its calls do not tell."""
        names = map(str, self.texts("api_calls", "name").categories) if "api_calls" in self.tables else ("cuda",)
        return next((api for name in names for begin, api in _APIS.items() if name.startswith(begin)), "")

    @property
    def has_operators(self) -> bool:
        """Whether the run has operators of PyTorch, in table `operations`."""
        return self._run is not None and "operations" in self._run.tables

    @property
    def of_pytorch(self) -> bool:
        """Whether the trace is one of PyTorch's profiler, or of several ranks with such traces."""
        return self._run is not None and self._run.info["collector"] == PYTORCH

    def __bool__(self) -> bool:
        """Whether the run has a trace at all."""
        return bool(self.tables)

    def read(self, table: str, *columns: str) -> None:
        """Read several columns at once, which takes less time than one after the other."""
        missing = [name for name in columns if (table, name) not in self._columns]
        if missing:
            if self._run is None:
                raise ValueError(f"no trace to read {table}.{missing[0]} of")
            arrow = self._run.arrow(table, missing)
            for name in missing:
                column = arrow.column(name)
                self._columns[table, name] = (
                    integers(column, NONE) if pa.types.is_integer(column.type) else _categorical(column)
                )

    def numbers(self, table: str, column: str) -> Int64s:
        """An integer column; `NONE` where it is null."""
        self.read(table, column)
        values: Int64s = self._columns[table, column]
        return values

    def texts(self, table: str, column: str) -> "pd.Categorical[Any]":
        """A text column as a categorical; code -1 where it is null."""
        self.read(table, column)
        values: pd.Categorical[Any] = self._columns[table, column]
        return values

    def find(self, table: str, column: str, numbers: Int64s, *others: str) -> tuple[Int64s, ...]:
        """Rows whose integer column has one of the wanted numbers.

        The columns are not kept, since they may have millions of values.

        Returns:
            The rows, their numbers, and their values in the other columns.
        """
        parts = [[np.empty(0, dtype=np.int64)] for _ in range(2 + len(others))]
        first = 0
        for batch in self.scan(table, column, *others):
            rows = np.flatnonzero(np.isin(batch[0], numbers))
            for part, values in zip(parts, (np.arange(first, first + len(batch[0])), *batch), strict=True):
                part.append(values[rows])
            first += len(batch[0])
        return tuple(np.concatenate(part) for part in parts)

    def length(self, table: str) -> int:
        return self._run.rows(table) if self._run else 0

    def at(self, table: str, rows: Int64s, *columns: str) -> tuple[Int64s, ...]:
        """Values of integer columns in some rows, in ascending order of the rows. The columns are not kept."""
        parts = [[np.empty(0, dtype=np.int64)] for _ in columns]
        first = 0
        for batch in self.scan(table, *columns):
            last = first + len(batch[0])
            places = rows[np.searchsorted(rows, first) : np.searchsorted(rows, last)] - first
            for part, values in zip(parts, batch, strict=True):
                part.append(values[places])
            first = last
        return tuple(np.concatenate(part) for part in parts)

    def ranges_of_work(self, table: str) -> Int64s:
        """The id of the range that each kernel or memory operation is attributed to, by thread or else by time; or `NONE`."""
        key = (table, "range")
        if key not in self._columns:
            own, by_time = self.numbers(table, "range_id"), self.numbers(table, "time_range_id")
            self._columns[key] = np.where(own == NONE, by_time, own) if (by_time != NONE).any() else own
        ranges: Int64s = self._columns[key]
        return ranges

    def durations(self, table: str) -> Int64s:
        """Nanoseconds from start to end of each row."""
        key = (table, "")
        if key not in self._columns:
            durations, first = np.empty(self.length(table), dtype=np.int64), 0
            for start, end in self.scan(table, "start_ns", "end_ns"):
                np.subtract(end, start, out=durations[first : first + len(start)])
                first += len(start)
            self._columns[key] = durations
        values: Int64s = self._columns[key]
        return values

    def scan(self, table: str, *columns: str) -> Iterator[list[Int64s]]:
        """Integer columns piece by piece, without keeping them; in one piece where they are kept already."""
        if self._run is None:
            raise ValueError(f"no trace to read {table} of")
        if all((table, name) in self._columns for name in columns):
            yield [self.numbers(table, name) for name in columns]
            return
        for batch in self._run.scan(table, columns):
            yield [integers(column, NONE) for column in batch.columns]


def _categorical(column: pa.ChunkedArray) -> "pd.Categorical[Any]":
    """A text column as a categorical. `store.Run.arrow` gives all chunks one dictionary."""
    if not column.num_chunks or column.null_count == len(column):  # a run may lack a column that came later
        empty = np.full(len(column), NONE, dtype=np.int8)
        return pd.Categorical.from_codes(empty, categories=pd.Index([], dtype="str"))
    codes = [(chunk.indices.fill_null(NONE) if chunk.null_count else chunk.indices).to_numpy() for chunk in column.chunks]
    words = pd.Index(column.chunk(0).dictionary.to_pylist(), dtype="str")
    return pd.Categorical.from_codes(np.concatenate(codes), categories=words, validate=False)


def within(lane: Int64s, start: Int64s, end: Int64s, lanes: Int64s, starts: Int64s, ends: Int64s) -> Int64s:
    """The place of the span of the same lane that each piece of work lies in; `NONE` without one. Spans of a lane do not overlap."""
    spans = len(lanes)
    is_work = np.arange(spans + len(lane)) >= spans
    order = np.lexsort((is_work, np.concatenate((starts, start)), np.concatenate((lanes, lane))))
    latest = np.maximum.accumulate(np.where(is_work[order], NONE, np.arange(len(order))))
    place = np.full(len(lane), NONE, np.int64)
    place[order[is_work[order]] - spans] = np.where(latest == NONE, NONE, order[latest])[is_work[order]]
    fits = place != NONE
    fits[fits] = (lanes[place[fits]] == lane[fits]) & (ends[place[fits]] >= end[fits])
    return np.where(fits, place, NONE)


def ended_last(end: Int64s, times: Int64s) -> Int64s:
    """The work that ended last at each time or before it; `NONE` without any."""
    by_end = np.argsort(end, kind="stable")
    return np.append(NONE, by_end)[np.searchsorted(end[by_end], times, side="right")]


def calls_of(traces: Traces, table: str, rows: Bools | None = None) -> Int64s:
    """The place in `api_calls` of the call that caused each row of a table; `NONE` where the call was not traced.

    Args:
        rows: a mask of the rows; all rows when None.
    """
    process, correlation = traces.numbers(table, "process"), traces.numbers(table, "correlation")
    return of_calls(traces, *((process, correlation) if rows is None else (process[rows], correlation[rows])))[0]


def of_calls(traces: Traces, process: Int64s, correlation: Int64s, *columns: str) -> tuple[Int64s, ...]:
    """The API calls of some processes and correlations.

    Returns:
        Their places, then their values of integer columns; `NONE` where the call was not traced.
    """
    arrays = tuple(np.full(len(process), NONE, dtype=np.int64) for _ in ("place", *columns))
    if "api_calls" not in traces.tables or not len(process):
        return arrays
    place_of, ids, processes, *values = traces.find("api_calls", "correlation", correlation, "process", *columns)
    call = Launches(processes, ids).of(process, correlation)
    for array, value in zip(arrays, (place_of, *values), strict=True):
        array[call >= 0] = value[call[call >= 0]]
    return arrays


class Job:
    """The tables `ranks`, `iterations`, `rank_kernels`, `idle` and `collectives` of a run of kind `job`."""

    def __init__(self, run: store.Run | None = None) -> None:
        self._run = run

    def __bool__(self) -> bool:
        """Whether the run is a job."""
        return self._run is not None and "ranks" in self._run.tables

    def frame(self, table: str, *columns: str) -> pd.DataFrame:
        """Columns of a table; without rows where the job lacks the table.

        Raises:
            StoreError: the file is damaged, or its columns do not match the schema.
        """
        return self._opened.table(table, list(columns))

    def arrow(self, table: str, columns: Sequence[str]) -> pa.Table:
        """The same for a table of hundreds of thousands of rows, without the copies that a data frame makes."""
        return self._opened.arrow(table, columns)

    def open_rank(self, rank: int) -> store.Run:
        """The run of a rank, with times of its own clock.

        Raises:
            StoreError: the job has no profile of the rank, or it cannot be read.
        """
        return store.open_rank(self._opened, rank)

    def clocks(self) -> dict[int, store.Clock | None]:
        """The clock of each rank, by its number; None where it is not known."""
        rows = self.frame("ranks", "rank", "offset_ns", "offset_at_ns", "drift_ppm").sort_values("rank")
        rows = rows.astype(object).where(rows.notna(), None)
        return {int(row["rank"]): store.clock_of({str(name): row[name] for name in row}) for row in rows.to_dict("records")}

    @property
    def _opened(self) -> store.Run:
        if self._run is None:
            raise ValueError("no run to read a job of")
        return self._run
