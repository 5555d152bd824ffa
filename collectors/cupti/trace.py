"""Presents captured batches as a trace."""

from collections.abc import Generator, Sequence
from typing import Any

import pyarrow as pa

from warpladder.collectors.trace.model import BATCH_ROWS, Trace, type_of
from warpladder.data.advice import NSIGHT_SYSTEMS

Batch = dict[str, dict[str, list[Any]]]


class CapturedTrace(Trace):
    """The trace in captured batches.

    Args:
        batches: results of `CuptiCapture.take`, one for each case.

    Attributes:
        dropped: number of records that CUPTI dropped because its buffers were full.
    """

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.dropped = max((max(batch["dropped"]["records"], default=0) for batch in batches if "dropped" in batch), default=0)
        self._tables: dict[str, list[pa.RecordBatch]] = {}
        for batch in batches:
            for table, columns in batch.items():
                if columns and table != "dropped":
                    self._tables.setdefault(table, []).append(_typed(columns))
        named = {table: frozenset(parts[0].schema.names) for table, parts in self._tables.items()}
        super().__init__("CUPTI", named, NSIGHT_SYSTEMS)  # whose advice holds here too

    def _has_rows(self, table: str) -> bool:
        return any(part.num_rows for part in self._tables[table])

    def _read(self, table: str, names: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        for part in self._tables[table]:
            for begin in range(0, part.num_rows, BATCH_ROWS):
                yield part.select(names).slice(begin, BATCH_ROWS)


def _typed(columns: dict[str, list[Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: pa.array(values, type_of(name)) for name, values in columns.items()})
