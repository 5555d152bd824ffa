"""Reads the rows of one rank in a trace of several processes or GPUs."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from warpladder.collectors.trace.model import API_CALLS, RANGES, WORK, Trace, process_of
from warpladder.data.arrays import Bools, Int64s, integers


@dataclass(frozen=True)
class Part:
    """The rows of a trace that are those of one rank.

    Attributes:
        process: code of its process.
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


class PartOfTrace(Trace):
    """The rows of one rank in a trace. A call that only launched work of other ranks is left out, all other calls of the process stay."""

    def __init__(self, whole: Trace, part: Part) -> None:
        super().__init__(whole.name, whole.columns, whole.collector, whole.origin_ns)
        self._whole, self._part = whole, part
        self._launches_elsewhere: Int64s | None = None

    def _needed(self, table: str) -> list[str]:
        """Columns that tell whose row it is, of those that the trace has."""
        owner = "thread" if table in (API_CALLS, RANGES) else "process"
        of_device = ("device",) if table in WORK else ("correlation",) if table == API_CALLS and self._part.others else ()
        return [name for name in (owner, *of_device) if self._whole.has(table, name)]

    def _chosen(self, batch: pa.RecordBatch, needed: Sequence[str]) -> Bools:
        chosen = np.ones(len(batch), bool)
        if "thread" in needed or "process" in needed:
            process = process_of(integers(batch["thread"])) if "thread" in needed else integers(batch["process"])
            chosen = np.isin(process, (self._part.process, *self._part.helpers))
        if "device" in needed:
            chosen &= np.isin(integers(batch["device"]), self._part.devices)
        if "correlation" in needed:
            chosen &= ~np.isin(integers(batch["correlation"]), self._elsewhere())
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
            process, device, correlation = self._whole.arrays(table, ("process", "device", "correlation"))
            found.append(correlation[(process == self._part.process) & np.isin(device, list(devices))])
        return np.unique(np.concatenate(found))

    def tool_name(self, table: str, column: str = "") -> str:
        return self._whole.tool_name(table, column)

    def process_numbers(self, process: Int64s) -> Int64s:
        return self._whole.process_numbers(process)

    def launched(self) -> Int64s | None:
        return self._whole.launched()

    def thread_numbers(self, thread: Int64s) -> Int64s:
        return self._whole.thread_numbers(thread)

    def _has_rows(self, table: str) -> bool:
        return self._whole.has_rows(table)

    def _read(self, table: str, names: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        needed = self._needed(table)
        with closing(self._whole.batches(table, [*dict.fromkeys((*names, *needed))])) as batches:
            for batch in batches:
                yield batch.filter(pa.array(self._chosen(batch, needed))).select(names)


def pairs(batch: pa.RecordBatch) -> Int64s:
    """Process and CUDA ordinal of each row."""
    return np.stack((integers(batch["process"]), integers(batch["device"])))
