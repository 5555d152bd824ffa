"""Presents captured batches as a report."""

from collections.abc import Generator, Sequence
from typing import Any, Final

import pyarrow as pa

from warpladder.collectors.trace.report import BATCH_ROWS, Report

#: Columns that hold texts here, and ids of `StringIds` in a report of Nsight Systems.
_TEXT_IDS: Final = ("demangledName", "shortName", "nameId")

Batch = dict[str, dict[str, list[Any]]]


class CapturedReport(Report):
    """Tables of captured batches.

    Args:
        batches: results of `CuptiCapture.take`, one for each case. Each batch numbers domains from the start.
    """

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._texts: dict[str, int] = {}
        self._domains: dict[str, int] = {}
        self._tables: dict[str, list[pa.RecordBatch]] = {}
        for batch in batches:
            for table, columns in batch.items():
                if columns:
                    numbered = self._renumbered(columns) if table == "NVTX_EVENTS" else self._encoded(columns)
                    self._tables.setdefault(table, []).append(pa.RecordBatch.from_pydict(numbered))
        strings = {"id": list(self._texts.values()), "value": list(self._texts)}
        self._tables["StringIds"] = [pa.RecordBatch.from_pydict(strings)]
        super().__init__("CUPTI", {table: frozenset(parts[0].schema.names) for table, parts in self._tables.items()})

    @property
    def dropped(self) -> int:
        """Number of records that CUPTI dropped because its buffers were full."""
        return max((row for part in self._tables.get("DROPPED", ()) for row in part.column("records").to_pylist()), default=0)

    def _encoded(self, columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return {
            name: [self._texts.setdefault(text, len(self._texts)) for text in values] if name in _TEXT_IDS else values
            for name, values in columns.items()
        }

    def _renumbered(self, columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Return ranges whose domain numbers are the same in all batches."""
        rows = list(zip(columns["eventType"], columns["domainId"], columns["text"], strict=True))
        names = {number: text for kind, number, text in rows if kind == 75}
        numbers = {number: self._domains.setdefault(name, len(self._domains) + 1) for number, name in names.items()}
        return {**columns, "domainId": [numbers.get(number, 0) for number in columns["domainId"]]}

    def _has_rows(self, table: str) -> bool:
        return any(part.num_rows for part in self._tables[table])

    def _read(self, table: str, integers: Sequence[str], texts: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        for part in self._tables[table]:
            for begin in range(0, part.num_rows, BATCH_ROWS):
                yield part.select([*integers, *texts]).slice(begin, BATCH_ROWS)
