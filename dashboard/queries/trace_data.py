"""The trace tables of a run, column by column, so that a page reads no more of millions of rows than it needs."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from data import store

Int64s = npt.NDArray[np.int64]
TABLES: Final = ("ranges", "kernels", "memory_ops", "api_calls")
#: Stands for a null in the arrays of this room: range ids, threads and times of a trace are not negative.
NONE: Final = -1


class Traces:
    """Columns of the tables `TABLES`, read when first asked for. Never change an array of it: it is shared."""

    def __init__(self, run: store.Run | None) -> None:
        self._run = run
        self._columns: dict[tuple[str, str], Any] = {}
        self.tables: tuple[str, ...] = tuple(name for name in (run.tables if run else ()) if name in TABLES)

    def __bool__(self) -> bool:
        """Whether the run has a trace at all."""
        return bool(self.tables)

    def numbers(self, table: str, column: str) -> Int64s:
        """An integer column; `NONE` where it is null."""
        key = (table, column)
        if key not in self._columns:
            series = self._read(table, column)
            self._columns[key] = series.fillna(NONE).to_numpy(dtype=np.int64)
        found: Int64s = self._columns[key]
        return found

    def texts(self, table: str, column: str) -> "pd.Categorical[Any]":
        """A text column as a categorical; code -1 where it is null."""
        key = (table, column)
        if key not in self._columns:
            self._columns[key] = pd.Categorical(self._read(table, column))
        found: pd.Categorical[Any] = self._columns[key]
        return found

    def durations(self, table: str) -> Int64s:
        """Nanoseconds from start to end of each row."""
        return self.numbers(table, "end_ns") - self.numbers(table, "start_ns")

    def _read(self, table: str, column: str) -> "pd.Series[Any]":
        if self._run is None:
            raise ValueError(f"no trace to read {table}.{column} of")
        return self._run.table(table, [column], categories=True)[column]


NO_TRACES: Final = Traces(None)


def lookup(ids: Int64s, wanted: Int64s) -> Int64s:
    """Where each wanted number stands in `ids`, the first place where it stands several times; `NONE` where it does not.

    Ids that are dense, as a profiler's are, are looked up in a table; others by bisection.
    """
    if not len(ids) or not len(wanted):
        return np.full(len(wanted), NONE, dtype=np.int64)
    low, span = int(ids.min()), int(ids.max()) - int(ids.min()) + 1
    if span <= 4 * len(ids) + 1024:
        table = np.full(span, NONE, dtype=np.int64)
        # Written backwards, so that the first of equal ids stays.
        table[ids[::-1] - low] = np.arange(len(ids) - 1, -1, -1)
        inside = (wanted >= low) & (wanted < low + span)
        return np.where(inside, table[np.where(inside, wanted - low, 0)], NONE)
    order = np.argsort(ids, kind="stable")
    place = np.searchsorted(ids, wanted, sorter=order)
    found = order[np.minimum(place, len(ids) - 1)]
    return np.where(ids[found] == wanted, found, NONE)


def calls_of(traces: Traces, table: str, rows: npt.NDArray[np.bool_] | None = None) -> Int64s:
    """Place in `api_calls` of the call that caused each row of a table, by process and correlation; `NONE` where it was not traced.

    Args:
        rows: those wanted, as a mask; all when None.
    """
    process, correlation = traces.numbers(table, "process"), traces.numbers(table, "correlation")
    if rows is not None:
        process, correlation = process[rows], correlation[rows]
    if "api_calls" not in traces.tables:
        return np.full(len(process), NONE, dtype=np.int64)
    of_calls = traces.numbers("api_calls", "process"), traces.numbers("api_calls", "correlation")
    found = np.full(len(process), NONE, dtype=np.int64)
    # Correlations are unique within a process only, and of processes there are few.
    for each in np.unique(process):
        calls = np.flatnonzero(of_calls[0] == each)
        mine = np.flatnonzero(process == each)
        place = lookup(of_calls[1][calls], correlation[mine])
        found[mine] = np.where(place >= 0, calls[place], NONE) if len(calls) else NONE
    return found
