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
from warpladder.collectors.trace.model import API_CALLS, COPIES, KERNELS, RANGES, SETS, Trace, arrays_of, process_of
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.nvtx_table import read_ranges
from warpladder.data import naming, schema
from warpladder.data.arrays import Int64s, integers, union_lengths
from warpladder.data.names import Phase

#: Domain of the ranges that the runner opens around executions; they are not taken over.
DOMAIN: Final = "warpladder programs"
_EXECUTION: Final = re.compile(r"execution=(\d{1,9})")
_HOW: Final = Pass("operation", "hot")

#: Kinds of copies -> phase.
_COPIES: Final = {"h2d": Phase.H2D, "d2h": Phase.D2H}
#: In place of a time that is missing.
_NONE: Final = np.iinfo(np.int64).min


def execution_text(number: int) -> str:
    """Text of the range around an execution."""
    return f"execution={number}"


class ProgramsTrace(Trace):
    """A trace of `warpladder.collectors.programs.traced`, with this project's ranges around the work of each
    execution. Raises ReportError: the file is damaged.

    Every thread of a program that called CUDA or opened a range during an execution gets the four ranges workload > case >
    variant > sample, as long as the execution. So its work is attributed to the program, by whichever thread it was launched. The
    ranges of the process that started the programs are left out.

    Args:
        inner: the trace.
        cells: cell and round of each execution, by its number.
    """

    def __init__(self, inner: Trace, cells: Sequence[tuple[Cell, int]]) -> None:
        of_ranges = frozenset(("thread", "start_ns", "end_ns", "text", "domain", "style"))
        super().__init__(inner.name, {**inner.columns, RANGES: of_ranges}, inner.collector)
        self._inner = inner
        ranges = read_ranges(inner, Notes())
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

    def tool_name(self, table: str, column: str = "") -> str:
        return self._inner.tool_name(table, column)

    def devices(self) -> dict[tuple[int, int], int]:
        """(process, CUDA ordinal) -> rows of device work."""
        rows: dict[tuple[int, int], int] = {}
        for table in (KERNELS, COPIES, SETS):
            process, device = self._inner.arrays(table, ("process", "device"))
            pairs, counts = np.unique(np.stack((process, device)), axis=1, return_counts=True)
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
        return (table == RANGES and bool(self.cells)) or self._inner.has_rows(table)

    def _read(self, table: str, names: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        if table != RANGES:
            yield from self._inner.batches(table, names)
            return
        for batch in self._inner.batches(table, [*dict.fromkeys((*names, "thread"))]):
            process = process_of(integers(batch["thread"]))
            yield batch.filter(pa.array(~np.isin(process, list(self._runners)))).select(names)
        if rows := self._ranges():
            yield pa.RecordBatch.from_pydict({name: [row[name] for row in rows] for name in names})

    def _ranges(self) -> list[dict[str, Any]]:
        """Four nested ranges for each thread of each execution."""
        rows = []
        for execution, thread in self._threads():
            (cell, number), start, end = self.cells[execution], int(self.start[execution]), int(self.end[execution])
            texts = (cell.workload, cell.case, cell.variant, sample_text(_HOW.scope, _HOW.cache, "", number))
            for wider, text in zip(reversed(range(len(texts))), texts, strict=True):
                times = {"start_ns": start - wider, "end_ns": end + wider}
                rows.append({**times, "thread": thread, "text": text, "domain": OURS, "style": schema.RANGE_STYLES[0]})
        return rows

    def _threads(self) -> list[tuple[int, int]]:
        """Execution and thread of each thread of the programs that called CUDA or opened a range."""
        threads: set[tuple[int, int]] = set()
        for table in (API_CALLS, RANGES):
            start, thread = self._inner.arrays(table, ("start_ns", "thread"), -1)
            execution = self.executions_at(start)
            used = (execution >= 0) & (thread >= 0) & ~np.isin(process_of(thread), list(self._runners))
            pairs = np.unique(np.stack((execution[used], thread[used])), axis=1)
            threads |= set(map(tuple, pairs.T.tolist()))
        return sorted(threads)


def phase_samples(trace: ProgramsTrace) -> list[dict[str, Any]]:
    """Rows of `samples`: for each execution the time in which kernels ran, and in which copies to and from the device ran.

    An execution without such work has no row. Work counts once where several pieces run at the same time.
    """
    copies = list(trace.batches(COPIES, ("start_ns", "end_ns", "kind")))
    start, end = arrays_of(copies, ("start_ns", "end_ns"), _NONE)
    kind = np.array([each for batch in copies for each in batch["kind"].to_pylist()], object)
    parts = {Phase.COMPUTE: trace.arrays(KERNELS, ("start_ns", "end_ns"), _NONE)}
    parts |= {phase: [start[kind == word], end[kind == word]] for word, phase in _COPIES.items()}
    unknown = {**naming.SAME, **dict.fromkeys(naming.UNKNOWN), "gpus": 0}
    return [
        {**cell.key, **unknown, "scope": scope, "round": number, "duration_ns": nanoseconds}
        for scope, times in parts.items()
        for (cell, number), nanoseconds in zip(trace.cells, _busy(trace, *times).tolist(), strict=True)
        if nanoseconds
    ]


def _busy(trace: ProgramsTrace, start: Int64s, end: Int64s) -> Int64s:
    """Length of the union of the spans that start in each execution, in ns."""
    execution = trace.executions_at(start)
    inside = (execution >= 0) & (start != _NONE) & (end != _NONE)
    return union_lengths(execution[inside], start[inside], end[inside], len(trace.cells))
