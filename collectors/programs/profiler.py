"""The interface of a profiler, which runs the programs once more. The recording hands its trace to the run."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.programs.runner import Launch
from warpladder.data.store import RunWriter


class NoTrace(Exception):
    """The programs could not be profiled. The message is the reason."""


@dataclass(frozen=True)
class Execution:
    """A run of a program under the profiler: its cell, its round and how it is started."""

    cell: Cell
    round: int
    launch: Launch


class Profiler(Protocol):
    """Runs programs and records what they do on the GPU."""

    def profile(self, executions: Sequence[Execution], folder: Path, stop: Stop) -> AbstractContextManager[Any]:
        """Run the programs, and return their trace, which can be read within the block.

        Args:
            executions: the runs, in their order.
            folder: folder for files.
            stop: receives signals; the first one ends the profiler.

        Raises:
            NoTrace: there is no trace that can be read.
            Stopped: a signal came.
        """
        ...

    def facts(self, trace: Any) -> dict[str, Any]:
        """Columns of table `run` about the profiler and the GPU."""
        ...

    def add_trace(self, writer: RunWriter, captured: Sequence[Any], samples: pa.Table) -> tuple[pa.Table, list[dict[str, Any]]]:
        """Write the trace tables. Returns the samples, including the samples of the trace, and rows of `diagnostics`."""
        ...
