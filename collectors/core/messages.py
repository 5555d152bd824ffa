"""What the recorder asks of the processes that measure, and what they answer."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from warpladder.collectors.core.jobs import Job
from warpladder.collectors.core.rounds import Limits
from warpladder.collectors.core.verdicts import Cell

#: Index in the shared progress array: number of the cell being worked on (-1 for none), and a counter of steps.
CELL, STEP = 0, 1


@dataclass(frozen=True)
class Describe:
    """Ask for the device's facts and ceilings; answered by Described."""


@dataclass(frozen=True)
class DescribeAllReduce:
    """Ask ranks for the ceilings of what they average between their GPUs; answered as `Describe`, without facts.

    Attributes:
        sizes: bytes of each average.
    """

    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Measure:
    """Ask for one job to be measured; answered by what is found of its cells, and by Done."""

    job: Job
    limits: Limits


Question = Describe | DescribeAllReduce | Measure


@dataclass(frozen=True)
class Described:
    """Columns of `run` about the GPU, and rows of `ceilings`."""

    facts: dict[str, Any]
    ceilings: list[dict[str, Any]]


@dataclass(frozen=True)
class Result:
    """A row of `results`."""

    row: dict[str, Any]


@dataclass(frozen=True)
class Samples:
    """Rows of `samples`."""

    table: pa.Table


@dataclass(frozen=True)
class Diagnostic:
    """A row of `diagnostics`."""

    row: dict[str, Any]


@dataclass(frozen=True)
class Taken:
    """What the kernels of a cell's operation take, the most of any."""

    cell: Cell
    registers: int
    shared_bytes: int
    spill_bytes: int


@dataclass(frozen=True)
class Captured:
    """What was captured while the case was measured; None where nothing can be."""

    batch: Any


@dataclass(frozen=True)
class Crashed:
    """A cell left the process unfit to go on, so that it ends."""

    cell: Cell
    status: str
    detail: str


@dataclass(frozen=True)
class Refused:
    """The question as a whole went wrong, for this reason."""

    why: str


@dataclass(frozen=True)
class Done:
    """The case is measured."""


Answer = Described | Result | Samples | Diagnostic | Taken | Captured | Crashed | Refused | Done
