"""Reads the rows of one rank in a report of several processes or GPUs."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from warpladder.collectors.trace.device_tables import API, COPY, GRAPH, KERNEL, SET
from warpladder.collectors.trace.memory import ALLOCATOR, USAGE
from warpladder.collectors.trace.report import Report, process_of
from warpladder.collectors.trace.synchronizations import EVENT, SYNCHRONIZATION
from warpladder.data.arrays import Bools, Int64s, integers

_NVTX: Final = "NVTX_EVENTS"
WORK: Final = (KERNEL, GRAPH, COPY, SET)
#: Column that holds the process of a row.
_OWNER: Final = {
    **dict.fromkeys((*WORK, SYNCHRONIZATION, EVENT, ALLOCATOR, USAGE), "globalPid"),
    **dict.fromkeys((API, _NVTX), "globalTid"),
}


@dataclass(frozen=True)
class Part:
    """The rows of a report that are those of one rank.

    Attributes:
        process: code of its process, as `process_of` finds it in global ids.
        devices: CUDA ordinals of its work.
        others: ordinals of the process that are other ranks'.
        helpers: codes of further processes of the rank, which launched nothing.
        name: of its process; empty for the code.
    """

    process: int
    devices: tuple[int, ...]
    others: tuple[int, ...] = ()
    helpers: tuple[int, ...] = ()
    name: str = ""

    def __str__(self) -> str:
        return f"process {self.name or self.process}" + (f" on GPU {self.devices[0]}" if self.others else "")


class PartOfReport(Report):
    """A report with the rows of one rank. A call that only launched work of other ranks is left out, all other calls of the process stay."""

    def __init__(self, whole: Report, part: Part) -> None:
        super().__init__(whole.name, whole.columns, whole.remarks)
        self._whole, self._part = whole, part
        self._launches_elsewhere: Int64s | None = None

    def _needed(self, table: str) -> list[str]:
        """Columns that tell whose row it is, of those that the report has."""
        if table not in _OWNER:
            return []
        of_device = ("deviceId",) if table in WORK else ("correlationId",) if table == API and self._part.others else ()
        return [name for name in (_OWNER[table], *of_device) if self._whole.has(table, name)]

    def _chosen(self, table: str, batch: pa.RecordBatch) -> Bools:
        chosen = np.ones(len(batch), bool)
        needed = self._needed(table)
        if _OWNER.get(table) in needed:
            chosen = np.isin(process_of(integers(batch[_OWNER[table]])), (self._part.process, *self._part.helpers))
        if "deviceId" in needed:
            chosen &= np.isin(integers(batch["deviceId"]), self._part.devices)
        if "correlationId" in needed:
            chosen &= ~np.isin(integers(batch["correlationId"]), self._elsewhere())
        return chosen

    def _elsewhere(self) -> Int64s:
        """Correlations of the process whose work is all on the GPUs of other ranks."""
        if self._launches_elsewhere is None:
            others = self._correlations(self._part.others)
            self._launches_elsewhere = np.setdiff1d(others, self._correlations(self._part.devices))
        return self._launches_elsewhere

    def _correlations(self, devices: Iterable[int]) -> Int64s:
        found = [np.empty(0, np.int64)]
        for table in WORK:
            owner, device, correlation = self._whole.arrays(table, ("globalPid", "deviceId", "correlationId"))
            found.append(correlation[(process_of(owner) == self._part.process) & np.isin(device, list(devices))])
        return np.unique(np.concatenate(found))

    @property
    def collector(self) -> str:
        return self._whole.collector

    @property
    def origin_ns(self) -> int:
        return self._whole.origin_ns

    def process_numbers(self, global_ids: Int64s) -> Int64s:
        return self._whole.process_numbers(global_ids)

    def thread_numbers(self, global_ids: Int64s) -> Int64s:
        return self._whole.thread_numbers(global_ids)

    def _has_rows(self, table: str) -> bool:
        return self._whole.has_rows(table)

    def _read(self, table: str, integers: Sequence[str], texts: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        wanted = [name for name in self._needed(table) if name not in integers]
        with closing(self._whole.batches(table, [*integers, *wanted], texts)) as batches:
            for batch in batches:
                chosen = batch.filter(pa.array(self._chosen(table, batch)))
                yield chosen.select([*integers, *texts])


def pairs(batch: pa.RecordBatch) -> Int64s:
    """Process and CUDA ordinal of each row."""
    return np.stack((process_of(integers(batch["globalPid"])), integers(batch["deviceId"])))
