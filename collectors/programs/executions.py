"""The executions of programs in a trace: ranges that attribute their work to the programs, and the times of their phases."""

import re
from collections.abc import Generator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from warpladder.collectors.core.bench import Pass
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.nvtx_ranges import DOMAIN as OURS
from warpladder.collectors.core.nvtx_ranges import sample_text
from warpladder.collectors.trace import attribution
from warpladder.collectors.trace.device_tables import API, COPY, KERNEL, SET
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.nvtx_table import read_ranges
from warpladder.collectors.trace.report import Report, Strings, process_of
from warpladder.data import naming
from warpladder.data.arrays import Int64s
from warpladder.data.names import Phase

#: Domain of the ranges that the runner opens around executions; they are not taken over.
DOMAIN: Final = "warpladder programs"
_EXECUTION: Final = re.compile(r"execution=(\d{1,9})")
_HOW: Final = Pass("operation", "hot")

_NVTX: Final = "NVTX_EVENTS"
_INTEGERS: Final = ("start", "end", "eventType", "globalTid", "textId", "domainId")
_RANGE, _DOMAIN_CREATED = 59, 75
#: Number of our domain in every process; the profiler counts domains from 1.
_NUMBER: Final = 1 << 30
#: Kinds of copies (CUpti_ActivityMemcpyKind) -> phase.
_COPIES: Final = {1: Phase.H2D, 2: Phase.D2H}
#: In place of a time that is missing.
_NONE: Final = np.iinfo(np.int64).min


def execution_text(number: int) -> str:
    """Text of the range around an execution."""
    return f"execution={number}"


class ProgramsReport(Report):
    """A report of `warpladder.collectors.programs.traced`, with this project's ranges around the work of each
    execution. Raises ReportError: the file is damaged.

    Every thread of a program that called CUDA or opened a range during an execution gets the four ranges workload > case >
    variant > sample, as long as the execution. So its work is attributed to the program, by whichever thread it was launched. The
    ranges of the process that started the programs are left out.

    Args:
        inner: the report.
        cells: cell and round of each execution, by its number.
    """

    def __init__(self, inner: Report, cells: Sequence[tuple[Cell, int]]) -> None:
        columns = {**inner.columns, _NVTX: inner.columns.get(_NVTX, frozenset()) | {*_INTEGERS, "text"}}
        super().__init__(inner.name, columns, inner.remarks)
        self._inner = inner
        ranges = read_ranges(inner, Strings(inner), Notes())
        marks = [
            (int(ranges.start[at]), int(ranges.end[at]), int(match[1]), int(ranges.thread[at]))
            for at in np.flatnonzero(np.array([name == DOMAIN for name in ranges.domains], bool)[ranges.domain])
            if ranges.closed[at]
            and (match := _EXECUTION.fullmatch(ranges.texts[ranges.text[at]]))
            and int(match[1]) < len(cells)
        ]
        marks.sort()
        self._runners = {int(process_of(np.array(thread))) for *_, thread in marks}
        self.start = np.array([mark[0] for mark in marks], np.int64)
        self.end = np.array([mark[1] for mark in marks], np.int64)
        self.cells = [cells[mark[2]] for mark in marks]

    def devices(self) -> dict[tuple[int, int], int]:
        """(process, CUDA ordinal) -> rows of device work."""
        rows: dict[tuple[int, int], int] = {}
        for table in (KERNEL, COPY, SET):
            process, device = self._inner.arrays(table, ("globalPid", "deviceId"))
            pairs, counts = np.unique(np.stack((process_of(process), device)), axis=1, return_counts=True)
            for (owner, ordinal), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
                rows[owner, ordinal] = rows.get((owner, ordinal), 0) + count
        return rows

    def executions_at(self, time: Int64s) -> Int64s:
        """The execution (an index of `cells`) at each time; -1 between executions."""
        at = np.searchsorted(self.start, time, side="right") - 1
        if not len(self.start):
            return np.full(len(time), -1)
        return np.where((at >= 0) & (time < self.end[np.maximum(at, 0)]), at, -1)

    def _has_rows(self, table: str) -> bool:
        return (table == _NVTX and bool(self.cells)) or self._inner.has_rows(table)

    def _read(self, table: str, integers: Sequence[str], texts: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        for batch in self._inner.batches(table, integers, texts):
            if table == _NVTX and "globalTid" in integers:
                process = process_of(batch.column("globalTid").fill_null(0).to_numpy())
                batch = batch.filter(pa.array(~np.isin(process, list(self._runners))))
            yield batch
        if table == _NVTX:
            rows = self._ranges()
            yield pa.record_batch(
                [
                    *(pa.array([row[name] for row in rows], pa.int64()) for name in integers),
                    *(pa.array([row[name] for row in rows], pa.string()) for name in texts),
                ],
                names=[*integers, *texts],
            )

    def _ranges(self) -> list[dict[str, Any]]:
        """Rows of NVTX_EVENTS: the domain in each process, and four nested ranges for each thread of each execution."""
        rows, processes = [], set[int]()
        for execution, thread in self._threads():
            process = int(process_of(np.array(thread)))
            if process not in processes:
                processes.add(process)
                rows.append(_event(_DOMAIN_CREATED, OURS, thread, 0, None))
            (cell, number), start, end = self.cells[execution], int(self.start[execution]), int(self.end[execution])
            texts = (cell.workload, cell.case, cell.variant, sample_text(_HOW.scope, _HOW.cache, "", number))
            for wider, text in zip(reversed(range(len(texts))), texts, strict=True):
                rows.append(_event(_RANGE, text, thread, start - wider, end + wider))
        return rows

    def _threads(self) -> list[tuple[int, int]]:
        """Execution and thread of each thread of the programs that called CUDA or opened a range."""
        threads: set[tuple[int, int]] = set()
        for table in (API, _NVTX):
            start, thread = self._inner.arrays(table, ("start", "globalTid"), -1)
            execution = self.executions_at(start)
            used = (execution >= 0) & (thread >= 0) & ~np.isin(process_of(thread), list(self._runners))
            pairs = np.unique(np.stack((execution[used], thread[used])), axis=1)
            threads |= set(map(tuple, pairs.T.tolist()))
        return sorted(threads)


def _event(kind: int, text: str, thread: int, start: int, end: int | None) -> dict[str, Any]:
    times = {"start": start, "end": end, "eventType": kind}
    return {**times, "globalTid": thread, "textId": None, "domainId": _NUMBER, "text": text}


def phase_samples(report: ProgramsReport) -> list[dict[str, Any]]:
    """Rows of `samples`: for each execution the time in which kernels ran, and in which copies to and from the device ran.

    An execution without such work has no row. Work counts once where several pieces run at the same time.
    """
    start, end, kind = report.arrays(COPY, ("start", "end", "copyKind"), _NONE)
    kernels = report.arrays(KERNEL, ("start", "end"), _NONE)
    parts = {Phase.COMPUTE: kernels} | {phase: [start[kind == code], end[kind == code]] for code, phase in _COPIES.items()}
    unknown = {**naming.SAME, **dict.fromkeys(naming.UNKNOWN), "gpus": 0}
    return [
        {**cell.key, **unknown, "scope": scope, "round": number, "duration_ns": nanoseconds}
        for scope, times in parts.items()
        for (cell, number), nanoseconds in zip(report.cells, _busy(report, *times).tolist(), strict=True)
        if nanoseconds
    ]


def _busy(report: ProgramsReport, start: Int64s, end: Int64s) -> Int64s:
    """Length of the union of the spans that start in each execution, in ns."""
    start, end = (column[(start != _NONE) & (end != _NONE)] for column in (start, end))
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum(end, start)[order]
    busy = np.zeros(len(report.cells), np.int64)
    first, last = np.searchsorted(start, report.start), np.searchsorted(start, report.end)
    some = np.flatnonzero(last > first)
    if len(some):
        busy[some] = attribution.of_windows(start, end, first[some], last[some])[2]
    return busy
