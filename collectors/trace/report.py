"""Tables of a trace, under the names that CUPTI and Nsight Systems give them, wherever they come from.

Texts are cut to `TEXT_LIMIT`, so that no string of somebody's file decides how much memory is taken.
"""

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

BATCH_ROWS: Final = 250_000
TEXT_LIMIT: Final = 8192

Columns: TypeAlias = Mapping[str, frozenset[str]]


class ReportError(Exception):
    """A report that cannot be imported. Its message says where, what, and what to do, in one line."""


class Report(ABC):
    """Tables of a report.

    Args:
        name: the file's name, for messages and column `source`.
        columns: table -> names of its columns.
        remarks: severity and text of what is to be told about how it was opened.
    """

    def __init__(self, name: str, columns: Columns, remarks: Sequence[tuple[str, str]] = ()) -> None:
        self.name, self.columns, self.remarks = name, columns, remarks

    def has(self, table: str, *columns: str) -> bool:
        """Whether it has the table, with those columns."""
        return table in self.columns and set(columns) <= self.columns[table]

    def has_rows(self, table: str) -> bool:
        """Whether it has the table, and the table a row.

        Raises:
            ReportError: the file is damaged.
        """
        return table in self.columns and self._has_rows(table)

    def batches(self, table: str, integers: Sequence[str], texts: Sequence[str] = ()) -> Generator[pa.RecordBatch, None, None]:
        """Rows of a table, read ahead in a thread. A column that the report lacks is null; a table that it lacks has no rows.

        Returns:
            record batches of at most `BATCH_ROWS` rows: int64 columns (null where null), then text columns ("" where null): strings, or
            a dictionary of them where the report has one.

        Raises:
            ReportError: the file is damaged.
        """
        present = self.columns.get(table, frozenset())
        wanted = ([name for name in integers if name in present], [name for name in texts if name in present])
        if not any(wanted):
            return
        with closing(_read_ahead(self._read(table, *wanted))) as found:
            for batch in found:
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
        """The first rows of a small table."""
        found: list[dict[str, Any]] = []
        with closing(self.batches(table, integers, texts)) as batches:
            for batch in batches:
                found += batch.slice(0, limit - len(found)).to_pylist()
                if len(found) >= limit:
                    break
        return found

    @abstractmethod
    def _has_rows(self, table: str) -> bool: ...

    @abstractmethod
    def _read(self, table: str, integers: Sequence[str], texts: Sequence[str]) -> Generator[pa.RecordBatch, None, None]: ...


def _clean(array: pa.Array) -> pa.Array:
    """Text without nulls, in valid UTF-8, at most `TEXT_LIMIT` characters long; a dictionary stays one."""
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


def _read_ahead(batches: Generator[pa.RecordBatch, None, None]) -> Generator[pa.RecordBatch, None, None]:
    """The same batches, the next one read while the last one is worked on."""
    ready: queue.Queue[Any] = queue.Queue(maxsize=2)
    stopped = threading.Event()

    def offer(item: Any) -> bool:
        while not stopped.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def read() -> None:
        try:
            for batch in batches:
                if not offer(batch):
                    return
            offer(None)
        except BaseException as error:  # handed to the reader below, which raises it
            offer(error)
        finally:
            batches.close()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        thread.join()
