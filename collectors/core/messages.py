"""Messages between the recorder and the measuring processes: questions and answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from warpladder.collectors.core.jobs import Job
from warpladder.collectors.core.rounds import Turn
from warpladder.collectors.core.verdicts import Cell

#: Indices in the shared progress array: the number of the cell that is being measured (-1 for none), and a counter of steps.
CELL, STEP = 0, 1


@dataclass(frozen=True)
class Describe:
    """Ask for the device's facts and ceilings. The answer is Described.

    Attributes:
        by_size: also ceilings by size, which take longer.
    """

    by_size: bool = False


@dataclass(frozen=True)
class DescribeAllReduce:
    """Ask ranks for the ceilings of the all-reduces between their GPUs. The answer is Described, without facts.

    Attributes:
        sizes: bytes of each all-reduce.
    """

    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Measure:
    """Ask for the measurement of one job. The answers are messages about its cells, and Done at the end."""

    job: Job
    turn: Turn


Question = Describe | DescribeAllReduce | Measure


@dataclass(frozen=True)
class Described:
    """Columns of `run` about the GPU, and rows of `ceilings`."""

    facts: dict[str, Any]
    ceilings: list[dict[str, Any]]


@dataclass(frozen=True)
class Rows:
    """Rows of a table of the run; see `warpladder.collectors.core.reporter`."""

    table: str
    rows: Sequence[dict[str, Any]] | pa.Table


@dataclass(frozen=True)
class Captured:
    """The records captured while the case was measured; None if the collector captures nothing."""

    batch: Any


@dataclass(frozen=True)
class Crashed:
    """A cell made the process unusable. The process ends."""

    cell: Cell
    status: str
    detail: str


@dataclass(frozen=True)
class Refused:
    """The question as a whole failed, for this reason."""

    why: str


@dataclass(frozen=True)
class Done:
    """The case is measured."""


Answer = Described | Rows | Captured | Crashed | Refused | Done
