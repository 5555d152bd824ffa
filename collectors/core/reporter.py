"""The interface of what receives the measurements of a case."""

from collections.abc import Mapping
from typing import Any, Protocol

from warpladder.collectors.core.verdicts import Cell


class Reporter(Protocol):
    """Receives measurements; in the child process, it sends them to the parent."""

    def working_on(self, cell: Cell) -> None:
        """Called before every step that may hang or crash."""
        ...

    def result(self, row: dict[str, Any]) -> None: ...

    def samples(self, rows: list[dict[str, Any]]) -> None: ...

    def diagnostic(self, severity: str, source: str, text: str, about: Cell | Mapping[str, str] | None = None) -> None:
        """Called with a finding about a cell, about all cells that have these columns, or about the run."""
        ...

    def resources(self, cell: Cell, registers: int, shared_bytes: int, spill_bytes: int) -> None: ...

    def case(self, columns: dict[str, Any]) -> None:
        """Called with the bytes of a case that were not known before its arrays were made; see `Problem.case_bytes`."""
        ...
