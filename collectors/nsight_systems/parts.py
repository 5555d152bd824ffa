"""Finds the ranks in a report of several processes or GPUs, and reads the rows of one of them.

Each process with device work is a rank. A process that drives several GPUs is one rank a GPU: those that it communicates on, else those
that it runs kernels on. Work on a further GPU, such as a set before the program chooses its own, belongs to the first of them.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warpladder.collectors.trace.attribution import Int64s
from warpladder.collectors.trace.communication import is_communication
from warpladder.collectors.trace.device_tables import API, COPY, GRAPH, KERNEL, SET
from warpladder.collectors.trace.ranges import process_of
from warpladder.collectors.trace.report import Report
from warpladder.collectors.trace.strings import Strings
from warpladder.collectors.trace.synchronizations import EVENT, SYNCHRONIZATION

_NVTX: Final = "NVTX_EVENTS"
_WORK: Final = (KERNEL, GRAPH, COPY, SET)
#: Column that holds the process of a row.
_OWNER: Final = {**dict.fromkeys((*_WORK, SYNCHRONIZATION, EVENT), "globalPid"), **dict.fromkeys((API, _NVTX), "globalTid")}


@dataclass(frozen=True)
class Part:
    """The rows of a report that are those of one rank.

    Attributes:
        process: its process id.
        devices: CUDA ordinals of its work.
        others: ordinals of the process that are other ranks'.
    """

    process: int
    devices: tuple[int, ...]
    others: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"process {self.process}" + (f" on GPU {self.devices[0]}" if self.others else "")


def parts_of(report: Report) -> list[Part]:
    """The ranks of a report in the order of process and GPU.

    Raises:
        ReportError: the file is damaged.
    """
    devices: dict[int, set[int]] = {}
    for table in _WORK:
        for process, device in _owners(report, table):
            devices.setdefault(process, set()).add(device)
    ranks_of = _ranking_devices(report) if any(len(each) > 1 for each in devices.values()) else {}
    parts = []
    for process, every in sorted(devices.items()):
        ranking = sorted(ranks_of.get(process, set()))
        if len(ranking) < 2:
            parts.append(Part(process, tuple(sorted(every))))
            continue
        rest = sorted(every - set(ranking))
        for place, device in enumerate(ranking):
            own = (device, *rest) if place == 0 else (device,)
            parts.append(Part(process, own, tuple(sorted(every - set(own)))))
    return parts


def _owners(report: Report, table: str) -> set[tuple[int, int]]:
    """The pairs of process and CUDA ordinal that have rows in a table of device work."""
    found: set[tuple[int, int]] = set()
    for batch in report.batches(table, ["globalPid", "deviceId"]):
        found.update(map(tuple, np.unique(_pairs(batch), axis=1).T.tolist()))
    return found


def _pairs(batch: pa.RecordBatch) -> Int64s:
    return np.stack((process_of(_numbers(batch, "globalPid")), _numbers(batch, "deviceId")))


def _ranking_devices(report: Report) -> dict[int, set[int]]:
    """By process, the GPUs that it communicates on, else those that it runs kernels on."""
    strings = Strings(report)
    running: dict[int, set[int]] = {}
    communicating: dict[int, set[int]] = {}
    for batch in report.batches(KERNEL, ["globalPid", "deviceId", "shortName", "demangledName"]):
        names = strings.of(batch.column("demangledName" if report.has(KERNEL, "demangledName") else "shortName"))
        communicates = np.array([is_communication(name) for name in names.dictionary.to_pylist()], bool)
        pairs = _pairs(batch)
        for found, chosen in ((running, slice(None)), (communicating, communicates[names.indices.to_numpy()])):
            for process, device in np.unique(pairs[:, chosen], axis=1).T.tolist():
                found.setdefault(process, set()).add(device)
    return {process: communicating.get(process) or devices for process, devices in running.items()}


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
        of_device = ("deviceId",) if table in _WORK else ("correlationId",) if table == API and self._part.others else ()
        return [name for name in (_OWNER[table], *of_device) if self._whole.has(table, name)]

    def _chosen(self, table: str, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        chosen = np.ones(len(batch), bool)
        needed = self._needed(table)
        if _OWNER.get(table) in needed:
            chosen = process_of(_numbers(batch, _OWNER[table])) == self._part.process
        if "deviceId" in needed:
            chosen &= np.isin(_numbers(batch, "deviceId"), self._part.devices)
        if "correlationId" in needed:
            chosen &= ~np.isin(_numbers(batch, "correlationId"), self._elsewhere())
        return chosen

    def _elsewhere(self) -> Int64s:
        """Correlations of the process whose work is all on the GPUs of other ranks."""
        if self._launches_elsewhere is None:
            others = self._correlations(self._part.others)
            self._launches_elsewhere = np.setdiff1d(others, self._correlations(self._part.devices))
        return self._launches_elsewhere

    def _correlations(self, devices: Iterable[int]) -> Int64s:
        found = [np.empty(0, np.int64)]
        for table in _WORK:
            for batch in self._whole.batches(table, ["globalPid", "deviceId", "correlationId"]):
                process, device = _pairs(batch)
                found.append(_numbers(batch, "correlationId")[(process == self._part.process) & np.isin(device, list(devices))])
        return np.unique(np.concatenate(found))

    def _has_rows(self, table: str) -> bool:
        return self._whole.has_rows(table)

    def _read(self, table: str, integers: Sequence[str], texts: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        wanted = [name for name in self._needed(table) if name not in integers]
        with closing(self._whole.batches(table, [*integers, *wanted], texts)) as batches:
            for batch in batches:
                chosen = batch.filter(pa.array(self._chosen(table, batch)))
                yield chosen.select([*integers, *texts])


def _numbers(batch: pa.RecordBatch, name: str) -> Int64s:
    return np.asarray(batch.column(name).fill_null(0).to_numpy(zero_copy_only=False), np.int64)
