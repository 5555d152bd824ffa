"""The interface of what receives the measurements of a case."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from warpladder.collectors.core.verdicts import Cell
from warpladder.data.diagnostics import diagnostic_row


class Reporter(Protocol):
    """Receives measurements; in the child process, it sends them to the parent."""

    def working_on(self, cell: Cell) -> None:
        """Called before every step that may hang or crash."""
        ...

    def rows(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        """Called with rows of a table of the run.

        Args:
            table: `results`, `samples` or `diagnostics`; or `variants` and `cases`, whose rows have the key and the columns that are known
                only now: registers and bytes of the kernels, of which the largest counts, and the bytes of a case.
            rows: values by column.
        """
        ...


def diagnose(report: Reporter, severity: str, source: str, text: str, about: Cell | Mapping[str, str] | None = None) -> None:
    """Report a finding about a cell, about all cells that have these columns, or about the run."""
    key = about.key if isinstance(about, Cell) else about or {}
    report.rows("diagnostics", [diagnostic_row(severity, source, text, key)])
