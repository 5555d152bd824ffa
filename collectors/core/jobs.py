"""The job that a child process measures: one case of one workload."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from warpladder.collectors.core.verdicts import Cell
from warpladder.workloads import registry
from warpladder.workloads.api import Workload, WorkloadError


@dataclass(frozen=True)
class WorkloadRef:
    """Identifies a workload to a child process, by name or by the user's file."""

    name: str
    file: Path | None = None

    def load(self) -> Workload:
        if self.file is None:
            return registry.load(self.name)
        for workload in registry.load_file(self.file):
            if workload.name == self.name:
                return workload
        raise WorkloadError(
            f"{self.file.name}: declares no {self.name} when a measuring process loads it; declare it at the top level of the file, "
            "and not below `if __name__ == '__main__':`"
        )


@dataclass(frozen=True)
class HeldWorkload(WorkloadRef):
    """Identifies a workload that this process alone has, such as one of a notebook, while `held` lasts."""

    def load(self) -> Workload:
        return _held[self.name]


_held: Final[dict[str, Workload]] = {}


@contextmanager
def held(workloads: Iterable[Workload]) -> Iterator[None]:
    """Keep workloads for the threads that measure them."""
    kept = {workload.name: workload for workload in workloads}
    _held.update(kept)
    try:
        yield
    finally:
        for name in kept:
            _held.pop(name, None)


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
