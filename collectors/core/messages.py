"""Messages between the recorder and the measuring processes, and the interface of what receives the rows of a case."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.plan import Job
from warpladder.collectors.core.rounds import Turn
from warpladder.data.names import diagnostic_row

#: Indices in the shared progress array: the number of the cell that is being measured (-1 for none), and a counter of steps.
CELL, STEP = 0, 1


@dataclass(frozen=True)
class Describe:
    """Ask for the device's facts and ceilings. The answer is Described.

    Attributes:
        by_size: also ceilings by size, which take longer.
        all_reduces: bytes of the all-reduces between the GPUs of ranks whose ceilings are asked for instead, without facts.
    """

    by_size: bool = False
    all_reduces: tuple[int, ...] = ()


@dataclass(frozen=True)
class Measure:
    """Ask for the measurement of one job. The answers are messages about its cells, and Captured at the end."""

    job: Job
    turn: Turn


Question = Describe | Measure


@dataclass(frozen=True)
class Started:
    """The process has imported what it needs. It comes before the first answer."""


@dataclass(frozen=True)
class Described:
    """Columns of `run` about the GPU, and rows of `ceilings`."""

    facts: dict[str, Any]
    ceilings: list[dict[str, Any]]


@dataclass(frozen=True)
class Rows:
    """Rows of a table of the run; see `Reporter.rows`. They are no Arrow table, because Arrow imports pandas to make one."""

    table: str
    rows: Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Captured:
    """The case is measured. The batch has the records captured meanwhile; it is None if the collector captures nothing."""

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


Answer = Started | Described | Rows | Captured | Crashed | Refused


# -- what receives measurements ------------------------------------------------------------------------------------------------


class Reporter(Protocol):
    """Receives measurements; in the child process, it sends them to the parent."""

    def working_on(self, cell: Cell) -> None:
        """Called before every step that may hang or crash."""
        ...

    def rows(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        """Called with rows of a table of the run.

        Args:
            table: `results`, `samples`, `energy`, `phases` or `diagnostics`; or `variants` and `cases`, whose rows have the key and the columns that are known
                only now: registers and bytes of the kernels, of which the largest counts, and the bytes of a case.
        """
        ...


def diagnose(report: Reporter, severity: str, source: str, text: str, about: Cell | Mapping[str, str] | None = None) -> None:
    """Report a finding about a cell, about all cells that have these columns, or about the run."""
    key = about.key if isinstance(about, Cell) else about or {}
    report.rows("diagnostics", [diagnostic_row(severity, source, text, key)])
