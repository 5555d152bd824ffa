"""The tables of a trace from any source, under their names in CUPTI and Nsight Systems.

Texts are cut to `TEXT_LIMIT`, so that a long string in a file cannot exhaust memory.
"""

import queue
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.core.environment import CollectorError
from warpladder.data.advice import NSIGHT_SYSTEMS
from warpladder.data.arrays import Int64s, integers

BATCH_ROWS: Final = 250_000
TEXT_LIMIT: Final = 8192
#: Seconds to wait for the reading thread at the end, which stops after the batch that it reads.
_LAST_BATCH_S: Final = 1.0


def process_of(global_id: Int64s) -> Int64s:
    """Extract the process id from a global thread or process id (8 bits hardware, 8 VM, 24 process, 24 thread)."""
    return (global_id >> 24) & 0xFF_FFFF


def thread_of(global_id: Int64s) -> Int64s:
    return global_id & 0xFF_FFFF


Columns: TypeAlias = Mapping[str, frozenset[str]]


class ReportError(CollectorError):
    """A report cannot be imported. The message is one line: where, what, and what to do."""


class Correction(NamedTuple):
    """Corrections of a table of a report: rows to leave out, and ends of rows in place of those that it has.

    Rows are counted from 0 in the order of the table, and in ascending order.
    """

    left_out: Int64s = np.empty(0, np.int64)
    cut: Int64s = np.empty(0, np.int64)
    end: Int64s = np.empty(0, np.int64)

    def of(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """The rows of a batch that begins with the row `first`."""
        own = slice(*np.searchsorted(self.cut, (first, first + len(batch))).tolist())
        place = batch.schema.get_field_index("end")
        if place >= 0 and own.start < own.stop:
            ends = batch.column(place).to_numpy(zero_copy_only=False).copy()
            ends[self.cut[own] - first] = self.end[own]
            batch = batch.set_column(
                place, "end", pa.array(ends, mask=~batch.column(place).is_valid().to_numpy(zero_copy_only=False))
            )
        lost = slice(*np.searchsorted(self.left_out, (first, first + len(batch))).tolist())
        if lost.start == lost.stop:
            return batch
        stays = np.ones(len(batch), bool)
        stays[self.left_out[lost] - first] = False
        return batch.filter(pa.array(stays))


class Report(ABC):
    """The tables of a report.

    Args:
        name: the file's name, for messages and column `source`.
        columns: table -> names of its columns.
        remarks: severity and text of messages about the opening of the report.
        seconds: that all reading may take together; None for any number.

    Attributes:
        corrections: table -> what is not given of it.
    """

    def __init__(
        self, name: str, columns: Columns, remarks: Sequence[tuple[str, str]] = (), seconds: float | None = None
    ) -> None:
        self.name, self.columns, self.remarks = name, columns, remarks
        self._seconds = self._remaining_s = seconds
        self.corrections: Mapping[str, Correction] = {}

    @property
    def origin_ns(self) -> int:
        """The time of a record that has time 0."""
        return 0

    @property
    def collector(self) -> str:
        """The name of the tool that wrote the report, as column `collector` of table `run` has it."""
        return NSIGHT_SYSTEMS

    def has(self, table: str, *columns: str) -> bool:
        """Whether the report has the table with these columns."""
        return table in self.columns and set(columns) <= self.columns[table]

    def process_numbers(self, global_ids: Int64s) -> Int64s:
        """The process ids in global thread or process ids."""
        return process_of(global_ids)

    def thread_numbers(self, global_ids: Int64s) -> Int64s:
        """The thread ids in global thread ids."""
        return thread_of(global_ids)

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
        first, correction = 0, self.corrections.get(table)
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
                rows = pa.record_batch(arrays, names=[*integers, *texts])
                yield correction.of(rows, first) if correction else rows
                first += len(rows)

    def arrays(self, table: str, names: Sequence[str], otherwise: int = 0) -> list[Int64s]:
        """Whole columns of integers, with a number in place of nulls."""
        parts = [[integers(batch[name], otherwise) for name in names] for batch in self.batches(table, names)]
        return [np.concatenate(column) for column in zip([np.empty(0, np.int64)] * len(names), *parts, strict=True)]

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
            except BaseException as error:  # passed to the consumer below, which raises it
                offer(error)
            finally:
                batches.close()

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        try:
            while (item := self._wait(table, ready)) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            stopped.set()
            thread.join(_LAST_BATCH_S)

    def _wait(self, table: str, ready: "queue.Queue[Any]") -> Any:
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


#: `_v` and four characters, as in `nsys stats`, so that names are equal there and here. `cudaGraphLaunch_v10000` (five
#: characters), `cudaLaunchKernel_ptsz` and `cuMemAlloc_v2` (a different function than `cuMemAlloc`) keep their suffix.
_VERSION_SUFFIX: Final = re.compile(r"_v.{4}\Z", re.DOTALL)


class Strings:
    """Id -> text, for columns at once."""

    def __init__(self, report: Report) -> None:
        # Each distinct text is stored once.
        ids, places, values = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [pa.array([""])]
        count = 1
        for batch in report.batches("StringIds", ["id"], ["value"]):
            texts = as_dictionary(batch.column("value"))
            ids.append(integers(batch["id"], -1))
            places.append(count + integers(texts.indices))
            values.append(texts.dictionary)
            count += len(texts.dictionary)
        self._ids, first = np.unique(np.concatenate(ids), return_index=True)
        self._places = np.concatenate(places)[first]
        self._values = pa.chunked_array(values, pa.string())

    def of(self, ids: pa.Array, *, calls: bool = False) -> pa.Array:
        """Return the texts of an int64 column of ids as a dictionary; "" if the id is null or unknown.

        Args:
            ids: column of ids.
            calls: the texts are names of API calls; strip the version suffix, as `nsys stats` does.
        """
        encoded = ids.fill_null(-1).dictionary_encode()
        distinct = encoded.dictionary.to_numpy()
        at = np.searchsorted(self._ids, distinct)
        is_known = at < len(self._ids)
        is_known[is_known] = self._ids[at[is_known]] == distinct[is_known]
        place = np.zeros(len(distinct), np.int64)
        place[is_known] = self._places[at[is_known]]
        used, number = np.unique(place, return_inverse=True)
        texts = self._values.take(pa.array(used)).combine_chunks()
        if isinstance(texts, pa.ChunkedArray):
            texts = pa.concat_arrays(texts.chunks) if texts.num_chunks else pa.array([], pa.string())
        if calls:
            texts = pa.array([_VERSION_SUFFIX.sub("", name) for name in texts.to_pylist()], pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(number[encoded.indices.to_numpy()].astype(np.int32)), texts)


def as_dictionary(texts: pa.Array) -> pa.DictionaryArray:
    """Encode a text column as a dictionary, in the order of first appearance."""
    if not pa.types.is_dictionary(texts.type):
        return texts.dictionary_encode()
    used = texts.indices.dictionary_encode()
    return pa.DictionaryArray.from_arrays(used.indices, texts.dictionary.take(used.dictionary))


def or_else(texts: pa.Array, others: pa.Array) -> pa.DictionaryArray:
    """Return `texts`, with empty ones replaced by `others`. Both are text columns or dictionaries, possibly with duplicates."""
    texts = as_dictionary(texts)
    empty = pc.equal(texts.dictionary, "")
    if not pc.any(empty).as_py():
        return texts
    others = as_dictionary(others)
    places = pc.if_else(empty.take(texts.indices), pc.add(others.indices, len(texts.dictionary)), texts.indices)
    return pa.DictionaryArray.from_arrays(pc.cast(places, pa.int32()), pa.concat_arrays([texts.dictionary, others.dictionary]))
