"""Keeps the columns of a trace on disk while it is read, since a trace may have more rows than memory has room for."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from warpladder.collectors.trace.model import ReportError
from warpladder.data.arrays import NONE, Int64s, integers

#: Rows that wait in memory until they are written together.
_ROWS: Final = 1 << 17
_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


class Spool:
    """A table that grows part by part and is read column by column. A short one has no file; that of a long one has no name, so that it
    ends with the process.

    Attributes:
        rows: number of them.
        names: of its columns; empty before the first part.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.names: tuple[str, ...] = ()
        self._waiting: list[pa.RecordBatch] = []
        self._starts = [0]
        self._file: Any = None
        self._writer: Any = None

    def add(self, columns: Mapping[str, Any]) -> None:
        """Add rows. Each part has the columns of the first one, with the same types. Raises ReportError: the disk is full."""
        part = pa.RecordBatch.from_pydict({name: pa.array(column) for name, column in columns.items()})
        self.names = tuple(columns)
        self.rows += len(part)
        self._waiting.append(part)
        if self.rows - self._starts[-1] < _ROWS:
            return
        try:
            if self._writer is None:
                self._file = tempfile.TemporaryFile(prefix="warpladder-")  # noqa: SIM115
                self._writer = pa.ipc.new_file(self._file, part.schema, options=_OPTIONS)
            self._writer.write_batch(pa.concat_batches(self._waiting))
        except OSError as error:
            why = error.strerror or str(error)
            text = f"{tempfile.gettempdir()}: cannot be written ({why}); free some space or set TMPDIR to another folder"
            raise ReportError(text) from error
        self._waiting = []
        self._starts.append(self.rows)

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The columns of all rows, in batches. Nothing can be added from now on."""
        for number in range(len(self._starts) - 1):
            yield self._written(number, names)
        if self._waiting:
            yield self._rest.select(names)

    def arrays(self, names: Sequence[str]) -> list[Int64s]:
        """Whole columns, with 0 in place of nulls. No more than one batch is held beside them."""
        found = [np.empty(self.rows, np.int64) for _ in names]
        first = 0
        for batch in self.batches(names):
            for name, column in zip(names, found, strict=True):
                column[first : first + len(batch)] = integers(batch[name])
            first += len(batch)
        return found

    def take(self, rows: Int64s, names: Sequence[str]) -> pa.Table:
        """The columns of some rows, in their order."""
        starts = np.array(self._starts)
        part = np.searchsorted(starts, rows, side="right") - 1
        order = np.argsort(part, kind="stable")
        bounds = np.flatnonzero(np.diff(part[order], prepend=NONE))
        found = []
        for own in np.split(order, bounds[1:]):
            number = int(part[own[0]])
            batch = self._rest.select(names) if number == len(starts) - 1 else self._written(number, names)
            found.append(batch.take(pa.array(rows[own] - starts[number])))
        back = np.empty(len(rows), np.int64)
        back[order] = np.arange(len(rows))
        return pa.Table.from_batches(found).take(pa.array(back))

    @property
    def _rest(self) -> pa.RecordBatch:
        """The rows that are in no file."""
        self._waiting = [pa.concat_batches(self._waiting)]
        return self._waiting[0]

    def _written(self, number: int, names: Sequence[str]) -> pa.RecordBatch:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        options = pa.ipc.IpcReadOptions(included_fields=[self.names.index(name) for name in names], use_threads=False)
        batch = pa.ipc.open_file(self._file, options=options).get_batch(number)
        return batch.select(names)
