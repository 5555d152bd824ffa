"""The child process that measures. What crashes, hangs or runs out of memory takes this process with it, and no other."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from collectors.choice import SINGLE_LAUNCH
from collectors.core.bench import Bench, MakeBench
from collectors.core.jobs import Job
from collectors.core.measure import CellCrashed, measure_case
from collectors.core.rounds import Limits
from collectors.core.verdicts import Cell
from data.diagnostics import diagnostic_row
from data.store import conform

#: Index in the shared progress array: number of the cell being worked on (-1 for none), and a counter of steps.
CELL, STEP = 0, 1


@dataclass(frozen=True)
class Describe:
    """Ask for the device's facts and ceilings; answered by `facts` and `ceilings`."""


@dataclass(frozen=True)
class DescribeAllReduce:
    """Ask ranks for the ceilings of what they average between their GPUs; answered as `Describe`, without facts.

    Attributes:
        sizes: bytes of each average.
    """

    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Measure:
    """Ask for one job to be measured."""

    job: Job
    limits: Limits


class PipeReporter:
    """Sends what is measured to the parent, and marks progress in memory shared with it, which costs no system call."""

    def __init__(
        self, connection: Connection, progress: "np.ndarray[Any, np.dtype[np.int64]]", cells: tuple[Cell, ...]
    ) -> None:
        self._connection, self._progress = connection, progress
        self._numbers = {cell: number for number, cell in enumerate(cells)}

    def working_on(self, cell: Cell) -> None:
        self._progress[CELL] = self._numbers[cell]
        self._progress[STEP] += 1

    def result(self, row: dict[str, Any]) -> None:
        self._connection.send(("result", row))

    def samples(self, rows: list[dict[str, Any]]) -> None:
        self._connection.send(("samples", conform("samples", rows)))

    def diagnostic(self, severity: str, source: str, text: str, cell: Cell | None = None) -> None:
        self._connection.send(("diagnostic", diagnostic_row(severity, source, text, cell.key if cell else {})))

    def resources(self, cell: Cell, registers: int, shared_bytes: int, spill_bytes: int) -> None:
        self._connection.send(("resources", (cell, registers, shared_bytes, spill_bytes)))


def main(connection: int, progress: int, collector: str, modules: Sequence[str] = ()) -> None:
    """What the recorder starts.

    Args:
        connection, progress: file descriptors of the pipe to the parent, and of the memory shared with it.
        collector: name of the collector.
        modules: to be imported before the first request, those that can be.
    """
    with os.fdopen(progress, "r+b") as shared:
        steps = np.memmap(shared, np.int64, "r+", shape=(2,)).view(np.ndarray)
    serve(Connection(connection), steps, collector, modules)


def serve(
    connection: Connection,
    progress: "np.ndarray[Any, np.dtype[np.int64]]",
    collector: str,
    modules: Sequence[str] = (),
    benches_of: Callable[[Job], Mapping[str, MakeBench]] | None = None,
    ceilings_of: Callable[[DescribeAllReduce], list[dict[str, Any]]] = lambda request: [],
) -> None:
    """Answer requests until the pipe closes. Interrupts are the parent's business.

    Args:
        connection: to the parent.
        progress: shared with it.
        collector: name of the collector.
        modules: to be imported before the first request, those that can be.
        benches_of: benches for a job by kind of variant; those of the collector when None.
        ceilings_of: rows of `ceilings` that ranks measure together.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    capture = start_capture(collector)
    alone = make_benches(collector)
    for module in modules:
        with suppress(Exception):  # a variant that needs it says why it cannot be had
            import_module(module)
    try:
        while True:
            request = connection.recv()
            progress[CELL] = -1
            progress[STEP] += 1
            try:
                if isinstance(request, Describe):
                    connection.send(("described", describe(collector)))
                elif isinstance(request, DescribeAllReduce):
                    connection.send(("described", ({}, ceilings_of(request))))
                else:
                    capture.begin()
                    report = PipeReporter(connection, progress, request.job.cells)
                    benches = benches_of(request.job) if benches_of else alone
                    measure_case(request.job, request.job.workload.load(), benches, request.limits, report)
                    connection.send(("captured", capture.take()))
                    connection.send(("done", None))
            except CellCrashed as crash:
                connection.send(("crashed", (crash.cell, crash.status, crash.detail)))
                return
            except Exception as error:
                text = " ".join(f"{type(error).__name__}: {error}".split())[:500]
                connection.send(("failed", text))
    except (EOFError, ConnectionError):  # the parent wants no more, perhaps in the middle of a case
        capture.end()


class Capture:
    """What a collector captures of the process itself; here nothing."""

    def begin(self) -> None:
        """Called before a case is measured."""

    def take(self) -> Any:
        """What was captured since the last time; None where nothing can be."""
        return None

    def end(self) -> None:
        """Called once, when no more will be measured."""


class ProfilerRange(Capture):
    """Tells a profiler around this process where the part begins that it should capture. Without one that has no effect."""

    def begin(self) -> None:
        from cupy.cuda import runtime

        runtime.profilerStart()

    def end(self) -> None:
        from cupy.cuda import runtime

        runtime.deviceSynchronize()
        runtime.profilerStop()


def start_capture(collector: str) -> Capture:
    """Has to come before anything of CUDA or NVTX in this process."""
    if collector == "cupti":
        from collectors.cupti.capture import CuptiCapture

        return CuptiCapture()
    return ProfilerRange() if collector == "cuda_events" else Capture()


def make_benches(collector: str) -> dict[str, MakeBench]:
    """Kind of variant -> the bench that this collector runs it on, GPU kinds first."""
    from collectors.host.host_clock import HostBench

    if collector == "host_clock":
        return {"host": HostBench}

    def cuda_bench(*arguments: Any) -> Bench:
        from collectors.cuda.events import CudaBench

        return CudaBench(*arguments)

    def single_launch_bench(*arguments: Any) -> Bench:
        from collectors.cuda.single_launch import SingleLaunchBench

        return SingleLaunchBench(*arguments)

    if collector == SINGLE_LAUNCH:
        return {"cuda": single_launch_bench, "library": single_launch_bench}

    return {"cuda": cuda_bench, "library": cuda_bench, "host": HostBench}


def describe(collector: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Facts of the GPU, as columns of `run`, and the ceilings of GPU and processor, as rows of `ceilings`."""
    from collectors.core.environment import NO_GPU
    from collectors.host.ceilings import host_ceilings

    if collector == "host_clock":
        return NO_GPU, host_ceilings()
    from collectors.cuda.ceilings import cuda_ceilings
    from collectors.cuda.events import current_device

    device = current_device()
    if collector == SINGLE_LAUNCH:  # under a tool that slows every launch a ceiling means nothing
        return device.facts(), []
    return device.facts(), [*cuda_ceilings(device), *host_ceilings()]
