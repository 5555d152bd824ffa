"""The child process that measures. A crash, a hang or a lack of memory ends only this process."""

import atexit
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, Final

import numpy as np

from warpladder.collectors.core.bench import CellCrashed, Ended, MakeBench, classify
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.collector import Collector
from warpladder.collectors.core.measure import measure_case
from warpladder.collectors.core.messages import (
    CELL,
    STEP,
    Answer,
    Captured,
    Crashed,
    Describe,
    Described,
    Measure,
    Question,
    Refused,
    Rows,
    Started,
)
from warpladder.collectors.core.plan import Job
from warpladder.collectors.core.stopwatch import Stopwatch
from warpladder.data.names import Spent
from warpladder.workloads.api import Workload

#: Seconds in which threads that a variant left behind may end.
_THREADS_TIMEOUT_S: Final = 2.0


class PipeReporter:
    """Sends measurements to the parent. Marks progress in shared memory, which needs no system call."""

    def __init__(self, connection: Connection, progress: Any, cells: tuple[Cell, ...]) -> None:
        self._connection, self._progress = connection, progress
        self._numbers = {cell: number for number, cell in enumerate(cells)}
        self._process = os.getpid()

    def _send(self, answer: Answer) -> None:
        """Send an answer. Ends a copy of the process, which a variant forked and returned from: it would answer too."""
        if os.getpid() != self._process:
            os._exit(1)
        self._connection.send(answer)

    def working_on(self, cell: Cell) -> None:
        if os.getpid() != self._process:
            os._exit(1)
        self._progress[CELL] = self._numbers[cell]
        self._progress[STEP] += 1

    def rows(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        self._send(Rows(table, rows))


def main(connection: int, progress: int, collector: Collector, modules: Sequence[str] = ()) -> None:
    """Answer the questions of the recorder, which started this process.

    Args:
        connection, progress: file descriptors of the pipe to the parent, and of the memory shared with it.
        modules: modules to import before the first question; missing ones are skipped.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it
    with os.fdopen(progress, "r+b") as shared:
        steps = np.memmap(shared, np.int64, "r+", shape=(2,)).view(np.ndarray)
    pipe = Connection(connection)
    serve(pipe, steps, collector, modules)
    with suppress(OSError):  # a variant closed it
        pipe.close()
    _leave_threads()


def _leave_threads() -> None:
    """Exit although threads that a variant left behind are at work. Python itself would wait for them."""
    deadline = time.monotonic() + _THREADS_TIMEOUT_S
    others = [each for each in threading.enumerate() if each is not threading.current_thread() and not each.daemon]
    for thread in others:
        thread.join(max(deadline - time.monotonic(), 0))
    if any(thread.is_alive() for thread in others):
        atexit._run_exitfuncs()
        os._exit(0)


def _loaded(question: Measure, report: PipeReporter) -> Workload:
    """The workload of a job. Reports the time that it took."""
    watch = Stopwatch(Spent.START)
    job = question.job
    workload = job.workload.load()
    report.rows("phases", watch.take_rows(job.workload.name, job.case, job.gpus, question.turn.process))
    return workload


def serve(
    connection: Connection,
    progress: Any,
    collector: Collector,
    modules: Sequence[str] = (),
    benches_of: Callable[[Job], Mapping[str, MakeBench]] | None = None,
    ceilings_of: Callable[[Sequence[int]], list[dict[str, Any]]] = lambda sizes: [],
) -> None:
    """Answer questions until the pipe closes.

    Args:
        progress: int64 array in memory shared with the parent.
        modules: modules to import before the first question; missing ones are skipped.
        benches_of: returns the benches for a job by kind of variant; None for the collector's own.
        ceilings_of: returns rows of `ceilings` that ranks measure together, for these bytes of all-reduces.
    """
    capture = collector.start_capture()
    alone = collector.make_benches()
    for module in modules:
        with suppress(Exception):  # a variant that needs the module reports the error
            import_module(module)
    try:
        connection.send(Started())
        while True:
            question: Question = connection.recv()
            progress[CELL] = -1
            progress[STEP] += 1
            try:
                if isinstance(question, Describe) and question.all_reduces:
                    connection.send(Described({}, ceilings_of(question.all_reduces)))
                elif isinstance(question, Describe):
                    connection.send(Described(*collector.describe(question.by_size)))
                else:
                    capture.begin()
                    report = PipeReporter(connection, progress, question.job.cells)
                    benches = benches_of(question.job) if benches_of else alone
                    measure_case(question.job, _loaded(question, report), benches, question.turn, report)
                    connection.send(Captured(capture.take()))
            except CellCrashed as crash:
                connection.send(Crashed(crash.cell, crash.status, crash.detail))
                return
            except Ended:
                raise
            except BaseException as error:  # a user's file or function may raise SystemExit
                connection.send(Refused(classify(error)[1]))
    except (EOFError, OSError, Ended):  # the parent closed the pipe, perhaps during a case, or a variant did
        capture.end()
