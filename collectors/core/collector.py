"""The record that describes a collector to the core, and the interface of a capture, which records the activity of the measuring
process. `warpladder.collectors.wiring` makes a record for each name."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from warpladder.collectors.core.bench import MakeBench
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.plan import Plan
from warpladder.data.store import RunWriter

# -- captures ------------------------------------------------------------------------------------------------------------------

#: Writes the trace tables of the batches captured for each case. Returns the samples with the trace's device times, and rows of
#: `diagnostics`.
AddCaptured = Callable[[RunWriter, Sequence[Any], pa.Table], tuple[pa.Table, list[dict[str, Any]]]]


class Capture(Protocol):
    """Records the activity of its own process."""

    def begin(self) -> None:
        """Called before a case is measured."""
        ...

    def take(self) -> Any:
        """Return the records captured since the last call; None if this capture records nothing."""
        ...

    def end(self) -> None:
        """Called once, after the last case."""
        ...


class NoCapture:
    """Captures nothing."""

    def begin(self) -> None: ...

    def take(self) -> Any:
        return None

    def end(self) -> None: ...


# -- collectors ----------------------------------------------------------------------------------------------------------------

#: Facts about the GPU (columns of `run`), and ceilings of GPU and processor (rows of `ceilings`).
Description = tuple[dict[str, Any], list[dict[str, Any]]]
#: Called with the number of finished jobs, the number of all jobs, and the seconds so far with the job that took longest.
JobProgress = Callable[[int, int, str], object]


class Compiling(Protocol):
    """What a plan compiles in processes beside the recording."""

    def wait_for(self, *numbers: int) -> None:
        """Compile what these cases need, by their positions in the plan; all where none is named. Nothing compiles after it returns."""


#: Gives the rows of `cell_launches` and `machine_code` of these cells of a plan.
MachineCode = Callable[[Plan, Sequence[Cell]], Mapping[str, Sequence[Mapping[str, Any]]]]


@dataclass(frozen=True)
class Collector:
    """The parts of a collector that a recording and its child processes use.

    Attributes:
        make_benches: returns the bench for each kind of variant that it runs, GPU kinds first. Called in the child.
        describe: returns facts and ceilings of the device; also its ceilings by size if the argument is true. Called in the
            child.
        start_capture: starts the capture. Called in the child, before CUDA and NVTX are loaded.
        compile_ahead: begins to compile the kernels of a plan, until its block ends. Called in the recorder; an exception from its last
            argument ends a wait.
        averages: returns the sizes in bytes of the all-reduces of a plan, by number of ranks. Called in the recorder.
        add_captured: writes the trace tables of the captured batches. Called in the recorder.
        machine_code: returns rows of `cell_launches` and `machine_code` of a plan's cells that are right. Called in the recorder, after the
            last sample; raises Error where the code cannot be had.
    """

    name: str
    make_benches: Callable[[], Mapping[str, MakeBench]]
    describe: Callable[[bool], Description]
    start_capture: Callable[[], Capture]
    compile_ahead: Callable[[Plan, JobProgress, Callable[[], object]], AbstractContextManager[Compiling]]
    averages: Callable[[Plan], Mapping[int, Sequence[int]]]
    add_captured: AddCaptured
    machine_code: MachineCode
