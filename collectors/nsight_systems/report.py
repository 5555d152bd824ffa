"""The tables of a report under their names in Nsight Systems, whatever file they are in.

Texts are cut to `TEXT_LIMIT`, so that a long string in a file cannot exhaust memory.
"""

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.trace.model import Columns, ReportError

TEXT_LIMIT: Final = 8192
#: Seconds to wait for the reading thread at the end, which stops after the batch that it reads.
_LAST_BATCH_S: Final = 1.0


class Report(ABC):
    """The tables of a report.

    Args:
        name: the file's name, for messages and column `source`.
        columns: table -> names of its columns.
        remarks: severity and text of messages about the opening of the report.
        seconds: that all reading may take together; None for any number.
    """

    def __init__(
        self, name: str, columns: Columns, remarks: Sequence[tuple[str, str]] = (), seconds: float | None = None
    ) -> None:
        self.name, self.columns, self.remarks = name, columns, remarks
        self._seconds = self._remaining_s = seconds

    def has(self, table: str, *columns: str) -> bool:
        """Whether the report has the table with these columns."""
        return table in self.columns and set(columns) <= self.columns[table]

    def has_rows(self, table: str) -> bool:
        """Whether the report has the table, and the table has a row. Raises ReportError: the file is damaged."""
        return table in self.columns and self._has_rows(table)

    def batches(self, table: str, integers: Sequence[str], texts: Sequence[str] = ()) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows of a table, read ahead in a thread. A missing column is null; a missing table has no rows.
        Raises ReportError: the file is damaged.

        Returns:
            record batches of at most `BATCH_ROWS` rows: int64 columns (nulls stay null), then text columns (null becomes ""). A
            text column is strings, or a dictionary if the report has one.
        """
        present = self.columns.get(table, frozenset())
        columns = ([name for name in integers if name in present], [name for name in texts if name in present])
        if not any(columns):
            return
        with closing(self._read_ahead(table, self._read(table, *columns))) as batches:
            for batch in batches:
                arrays = [
                    pc.cast(batch.column(name), pa.int64(), safe=False) if name in present else pa.nulls(len(batch), pa.int64())
                    for name in integers
                ]
                arrays += [
                    _clean(batch.column(name)) if name in present else pa.repeat("", len(batch)).cast(pa.string())
                    for name in texts
                ]
                yield pa.record_batch(arrays, names=[*integers, *texts])

    def rows(self, table: str, integers: Sequence[str], texts: Sequence[str] = (), limit: int = 10_000) -> list[dict[str, Any]]:
        """Return the first `limit` rows of a small table."""
        rows: list[dict[str, Any]] = []
        with closing(self.batches(table, integers, texts)) as batches:
            for batch in batches:
                rows += batch.slice(0, limit - len(rows)).to_pylist()
                if len(rows) >= limit:
                    break
        return rows

    def _read_ahead(self, table: str, batches: Generator[pa.RecordBatch, None, None]) -> Generator[pa.RecordBatch, None, None]:
        """Yield the same batches, and read the next one while the caller works on the last one.

        The calling thread only waits, so that a signal ends it at once, even where the reader hangs.
        """
        wanted, ready = queue.SimpleQueue[bool](), queue.SimpleQueue[Any]()

        def read() -> None:
            try:
                while wanted.get():
                    ready.put(next(batches, None))
                batches.close()
            except BaseException as error:  # passed to the caller below, which raises it
                ready.put(error)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        wanted.put(True)
        try:
            while (item := self._wait(table, ready)) is not None:
                if isinstance(item, BaseException):
                    raise item
                wanted.put(True)
                yield item
        finally:
            wanted.put(False)
            thread.join(_LAST_BATCH_S)

    def _wait(self, table: str, ready: "queue.SimpleQueue[Any]") -> Any:
        """The next item. The time until it comes is taken from the seconds left."""
        if self._remaining_s is None:
            return ready.get()
        begin = time.monotonic()
        try:
            return ready.get(timeout=max(self._remaining_s, 0.0))
        except queue.Empty:
            raise ReportError(
                f"{self.name}: table {table} was not read within {self._seconds:.0f} s, far longer than a file of its size takes; "
                "copy it to a local disk, or export it again"
            ) from None
        finally:
            self._remaining_s -= time.monotonic() - begin

    @abstractmethod
    def _has_rows(self, table: str) -> bool: ...

    @abstractmethod
    def _read(self, table: str, integers: Sequence[str], texts: Sequence[str]) -> Generator[pa.RecordBatch, None, None]: ...


def _clean(array: pa.Array) -> pa.Array:
    """Return texts without nulls, in valid UTF-8, at most `TEXT_LIMIT` characters long. A dictionary stays a dictionary."""
    if pa.types.is_dictionary(array.type):
        values, indices = _clean(array.dictionary), array.indices
        if indices.null_count:
            indices = pc.cast(indices, pa.int32()).fill_null(len(values))
            values = pa.concat_arrays([values, pa.array([""])])
        return pa.DictionaryArray.from_arrays(indices, values)
    if not pa.types.is_string(array.type):
        array = array.cast(pa.string())
    array = array.fill_null("")
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        array = pa.array([value.decode("utf-8", "replace") for value in array.cast(pa.binary()).to_pylist()], pa.string())
    return array
