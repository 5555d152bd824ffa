"""The child process that measures. A crash, a hang or a lack of memory ends only this process."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, Protocol

import numpy as np

from warpladder.collectors.core.bench import MakeBench
from warpladder.collectors.core.collector import Collector
from warpladder.collectors.core.jobs import Job
from warpladder.collectors.core.measure import CellCrashed, measure_case
from warpladder.collectors.core.messages import (
    CELL,
    STEP,
    Captured,
    Crashed,
    Describe,
    DescribeAllReduce,
    Described,
    Diagnostic,
    Done,
    Question,
    Refused,
    Result,
    Samples,
    Shaped,
    Taken,
)
from warpladder.collectors.core.verdicts import Cell
from warpladder.data.diagnostics import diagnostic_row
from warpladder.data.store import conform


class MutableProgress(Protocol):
    """Whole numbers by place; see `warpladder.collectors.core.messages`."""

    def __getitem__(self, place: int, /) -> Any: ...

    def __setitem__(self, place: int, value: Any, /) -> None: ...


class Ended(BaseException):
    """Raised in a thread that measures, to end it. No handler of a variant's exceptions catches it."""


class PipeReporter:
    """Sends measurements to the parent. Marks progress in shared memory, which needs no system call."""

    def __init__(self, connection: Connection, progress: MutableProgress, cells: tuple[Cell, ...]) -> None:
        self._connection, self._progress = connection, progress
        self._numbers = {cell: number for number, cell in enumerate(cells)}

    def working_on(self, cell: Cell) -> None:
        self._progress[CELL] = self._numbers[cell]
        self._progress[STEP] += 1

    def result(self, row: dict[str, Any]) -> None:
        self._connection.send(Result(row))

    def samples(self, rows: list[dict[str, Any]]) -> None:
        self._connection.send(Samples(conform("samples", rows)))

    def diagnostic(self, severity: str, source: str, text: str, cell: Cell | None = None) -> None:
        self._connection.send(Diagnostic(diagnostic_row(severity, source, text, cell.key if cell else {})))

    def resources(self, cell: Cell, registers: int, shared_bytes: int, spill_bytes: int) -> None:
        self._connection.send(Taken(cell, registers, shared_bytes, spill_bytes))

    def case(self, columns: dict[str, Any]) -> None:
        self._connection.send(Shaped(columns))


def main(connection: int, progress: int, collector: Collector, modules: Sequence[str] = ()) -> None:
    """Answer the questions of the recorder, which started this process.

    Args:
        connection, progress: file descriptors of the pipe to the parent, and of the memory shared with it.
        collector: the collector that measures.
        modules: modules to import before the first question; missing ones are skipped.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it
    with os.fdopen(progress, "r+b") as shared:
        steps = np.memmap(shared, np.int64, "r+", shape=(2,)).view(np.ndarray)
    serve(Connection(connection), steps, collector, modules)


def serve(
    connection: Connection,
    progress: MutableProgress,
    collector: Collector,
    modules: Sequence[str] = (),
    benches_of: Callable[[Job], Mapping[str, MakeBench]] | None = None,
    ceilings_of: Callable[[DescribeAllReduce], list[dict[str, Any]]] = lambda question: [],
) -> None:
    """Answer questions until the pipe closes.

    Args:
        connection: pipe to the parent.
        progress: int64 array in memory shared with the parent.
        collector: the collector that measures.
        modules: modules to import before the first question; missing ones are skipped.
        benches_of: returns the benches for a job by kind of variant; None for the collector's own.
        ceilings_of: returns rows of `ceilings` that ranks measure together.
    """
    capture = collector.start_capture()
    alone = collector.make_benches()
    for module in modules:
        with suppress(Exception):  # a variant that needs the module reports the error
            import_module(module)
    try:
        while True:
            question: Question = connection.recv()
            progress[CELL] = -1
            progress[STEP] += 1
            try:
                if isinstance(question, Describe):
                    connection.send(Described(*collector.describe()))
                elif isinstance(question, DescribeAllReduce):
                    connection.send(Described({}, ceilings_of(question)))
                else:
                    capture.begin()
                    report = PipeReporter(connection, progress, question.job.cells)
                    benches = benches_of(question.job) if benches_of else alone
                    measure_case(question.job, question.job.workload.load(), benches, question.turn, report)
                    connection.send(Captured(capture.take()))
                    connection.send(Done())
            except CellCrashed as crash:
                connection.send(Crashed(crash.cell, crash.status, crash.detail))
                return
            except Exception as error:
                text = " ".join(f"{type(error).__name__}: {error}".split())[:500]
                connection.send(Refused(text))
    except (EOFError, ConnectionError, Ended):  # the parent closed the pipe, perhaps during a case
        capture.end()
