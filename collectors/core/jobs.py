"""The job that a child process measures: one case of one workload."""

from dataclasses import dataclass
from pathlib import Path

from warpladder.collectors.core.verdicts import Cell
from warpladder.workloads import registry
from warpladder.workloads.api import Workload


@dataclass(frozen=True)
class WorkloadRef:
    """Identifies a workload to a child process, by name or by the user's file."""

    name: str
    file: Path | None = None

    def load(self) -> Workload:
        if self.file is None:
            return registry.load(self.name)
        return next(workload for workload in registry.load_file(self.file) if workload.name == self.name)


@dataclass(frozen=True)
class Job:
    """One case of one workload, with the cells to measure on it.

    Attributes:
        gpus: number of ranks that share the case; 1 for a single process. Each rank has one GPU, or none for host variants.
    """

    workload: WorkloadRef
    case: str
    cells: tuple[Cell, ...]
    seed: int
    gpus: int = 1
