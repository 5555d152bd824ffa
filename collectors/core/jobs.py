"""What a child process is told to measure: one case of one workload."""

from dataclasses import dataclass
from pathlib import Path

from warpladder.collectors.core.verdicts import Cell
from warpladder.workloads import registry
from warpladder.workloads.api import Workload


@dataclass(frozen=True)
class WorkloadRef:
    """How a child process finds a workload: by name, or by the user's file."""

    name: str
    file: Path | None = None

    def load(self) -> Workload:
        return registry.load_file(self.file) if self.file else registry.load(self.name)


@dataclass(frozen=True)
class Job:
    """One case of one workload, with the cells to measure on it.

    Attributes:
        gpus: ranks that share the case, each with a GPU or, for host variants, none; 1 for one process alone.
    """

    workload: WorkloadRef
    case: str
    cells: tuple[Cell, ...]
    seed: int
    gpus: int = 1
