"""The model of a trace from any tool. A tool's reader gives its tables; everything later reads their columns by name.

The columns have the names, units and words of `data/schema.py`:

| table | columns of the schema's table |
|---|---|
| `kernels`, `graph_launches` (CUDA graphs that were traced as a whole) | `kernels` |
| `copies`, `sets` | `memory_ops` |
| `api_calls`, `ranges`, `synchronizations`, `memory_in_use` | the same |

Five columns differ. `process` is the reader's code of a process, and `thread` its code of a thread, which has the code of the process
in its upper bits; `process_numbers` and `thread_numbers` give the ids. `context` is known of copies and sets too, `graph_node_id` of
kernels in a CUDA graph, and `migrates` of copies: 1 for a migration of unified memory, which no call launches. A word is null where it is not
known, such as the `kind` of a copy.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.core.environment import CollectorError
from warpladder.data import schema
from warpladder.data.arrays import Int64s, integers

BATCH_ROWS: Final = 250_000
KERNELS, GRAPHS, COPIES, SETS = "kernels", "graph_launches", "copies", "sets"
API_CALLS, RANGES, SYNCHRONIZATIONS, MEMORY_IN_USE = "api_calls", "ranges", "synchronizations", "memory_in_use"
#: Tables of device work.
WORK: Final = (KERNELS, GRAPHS, COPIES, SETS)
#: Bits of a thread that number it in its process, and of a process.
ID_BITS: Final = 24
_MOST_ID: Final = (1 << ID_BITS) - 1
_TEXTS: Final = frozenset(
    column.name
    for table in (KERNELS, "memory_ops", API_CALLS, RANGES, SYNCHRONIZATIONS, MEMORY_IN_USE)
    for column in schema.TABLES[table].columns
    if column.type == pa.string()
)

#: Table -> names of its columns.
Columns: TypeAlias = Mapping[str, frozenset[str]]


def process_of(thread: Int64s) -> Int64s:
    """The code of the process in the code of a thread."""
    return (thread >> ID_BITS) & _MOST_ID


def thread_of(thread: Int64s) -> Int64s:
    """The number of a thread in the code of it."""
    return thread & _MOST_ID


class ReportError(CollectorError):
    """A report cannot be imported. The message is one line: where, what, and what to do."""


class Correction(NamedTuple):
    """Corrections of a table of a trace: rows to leave out, and ends of rows in place of those that it has.

    Rows are counted from 0 in the order of the table, and in ascending order.
    """

    left_out: Int64s = np.empty(0, np.int64)
    cut: Int64s = np.empty(0, np.int64)
    end: Int64s = np.empty(0, np.int64)

    def of(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """The rows of a batch that begins with the row `first`."""
        own = slice(*np.searchsorted(self.cut, (first, first + len(batch))).tolist())
        place = batch.schema.get_field_index("end_ns")
        if place >= 0 and own.start < own.stop:
            column = batch.column(place)
            ends = integers(column).copy()
            ends[self.cut[own] - first] = self.end[own]
            batch = batch.set_column(place, "end_ns", pa.array(ends, mask=column.is_null().to_numpy(zero_copy_only=False)))
        lost = slice(*np.searchsorted(self.left_out, (first, first + len(batch))).tolist())
        if lost.start == lost.stop:
            return batch
        stays = np.ones(len(batch), bool)
        stays[self.left_out[lost] - first] = False
        return batch.filter(pa.array(stays))


class Trace(ABC):
    """A trace.

    Args:
        name: the file's name, for messages and column `source`.
        columns: table -> names of its columns.
        collector: name of the tool that wrote the trace, as column `collector` of table `run` has it.
        origin_ns: the time of a record that has time 0.

    Attributes:
        corrections: table -> what is not given of it.
    """

    def __init__(self, name: str, columns: Columns, collector: str, origin_ns: int = 0) -> None:
        self.name, self.columns, self.collector, self.origin_ns = name, columns, collector, origin_ns
        self.corrections: Mapping[str, Correction] = {}

    def tool_name(self, table: str, column: str = "") -> str:
        """The name that the tool gives a table, or a column of it."""
        return column or table

    def process_numbers(self, process: Int64s) -> Int64s:
        """The ids of processes, by their codes."""
        return process

    def thread_numbers(self, thread: Int64s) -> Int64s:
        """The ids of threads, by their codes."""
        return thread_of(thread)

    def has(self, table: str, *columns: str) -> bool:
        """Whether the trace has the table with these columns."""
        return table in self.columns and set(columns) <= self.columns[table]

    def has_rows(self, table: str) -> bool:
        """Whether the trace has the table, and the table has a row. Raises ReportError: the file is damaged."""
        return table in self.columns and self._has_rows(table)

    def launched(self) -> Int64s | None:
        """The correlations of all device work; None where finding them would take as long as reading the work."""
        return None

    def batches(self, table: str, names: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        """Yield columns of a table in record batches: integers as int64, texts as dictionaries or strings. A missing column is
        null; a missing table has no rows. Raises ReportError: the file is damaged.
        """
        present = [name for name in names if self.has(table, name)]
        if not present:
            return
        first, correction = 0, self.corrections.get(table)
        with closing(self._read(table, present)) as batches:
            for batch in batches:
                given = dict(zip(batch.schema.names, batch.columns, strict=True))
                columns = [given[name] if name in given else pa.nulls(len(batch), type_of(name)) for name in names]
                rows = pa.record_batch(columns, names=[*names])
                yield correction.of(rows, first) if correction else rows
                first += len(rows)

    def arrays(self, table: str, names: Sequence[str], otherwise: int = 0) -> list[Int64s]:
        """Whole columns of integers, with a number in place of nulls."""
        return arrays_of(self.batches(table, names), names, otherwise)

    @abstractmethod
    def _has_rows(self, table: str) -> bool: ...

    @abstractmethod
    def _read(self, table: str, names: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        """Yield batches of at most `BATCH_ROWS` rows with these columns, all of which the table has."""


def arrays_of(batches: Iterable[pa.RecordBatch], names: Sequence[str], otherwise: int = 0) -> list[Int64s]:
    """Columns of integers of some batches as arrays, with a number in place of nulls."""
    columns = [[np.empty(0, np.int64)] for _ in names]
    for batch in batches:
        for name, column in zip(names, columns, strict=True):
            column.append(integers(batch[name], otherwise))
    return [np.concatenate(columns.pop(0)) for _ in names]  # the pieces of each are freed before the next is put together


def type_of(name: str) -> pa.DataType:
    """The type of a column of the model."""
    return pa.string() if name in _TEXTS else pa.int64()


def as_dictionary(texts: pa.Array) -> pa.DictionaryArray:
    """Encode a text column as a dictionary, in the order of first appearance."""
    if not pa.types.is_dictionary(texts.type):
        return texts.dictionary_encode()
    used = texts.indices.dictionary_encode()
    return pa.DictionaryArray.from_arrays(used.indices, texts.dictionary.take(used.dictionary))


def or_else(texts: pa.Array, others: pa.Array) -> pa.DictionaryArray:
    """Return `texts`, with empty and missing ones replaced by `others`. Both are text columns or dictionaries, possibly with
    duplicates."""
    texts = as_dictionary(texts.fill_null("") if texts.null_count else texts)
    empty = pc.equal(texts.dictionary, "")
    if not pc.any(empty).as_py():
        return texts
    others = as_dictionary(others.fill_null("") if others.null_count else others)
    places = pc.if_else(empty.take(texts.indices), pc.add(others.indices, len(texts.dictionary)), texts.indices)
    return pa.DictionaryArray.from_arrays(pc.cast(places, pa.int32()), pa.concat_arrays([texts.dictionary, others.dictionary]))
