"""Cells, and the status of each, merged over all numbers of ranks and all processes of a run."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from warpladder.data import schema

Row = dict[str, Any]
RowDicts = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Cell:
    """One variant with one config on one case: the unit that is verified and sampled, and that has a status."""

    workload: str
    variant: str
    config: str
    case: str

    def __str__(self) -> str:
        return f"{self.workload}/{self.variant}{f'[{self.config}]' if self.config else ''}/{self.case}"

    @classmethod
    def of(cls, row: Mapping[Any, Any]) -> "Cell":
        """Return the cell of a row that has the columns workload, variant, config and case."""
        return cls(row["workload"], row["variant"], row["config"], row["case"])

    @property
    def key(self) -> dict[str, str]:
        return {"workload": self.workload, "variant": self.variant, "config": self.config, "case": self.case}


def result_row(cell: Cell, status: str, detail: str, errors: Mapping[str, Any] = MappingProxyType({})) -> Row:
    """A row of `results`."""
    return {**schema.RESULTS.blank_row(), **cell.key, "status": status, "detail": detail, **errors}


class Results:
    """Merges rows of `results`. A cell is ok if it is ok with every number of ranks and in every process.

    Otherwise its first other status counts.

    Args:
        host: (workload, variant) of the variants that run on the host; their ranks are processes without a GPU.
    """

    def __init__(self, host: Container[tuple[str, str]]) -> None:
        self._host = host
        self._rows: dict[Cell, Row] = {}
        self._reported: set[tuple[Cell, int]] = set()

    @property
    def rows(self) -> list[Row]:
        """One row for each cell."""
        return list(self._rows.values())

    def add(self, row: Row, gpus: int, process: int = 0) -> None:
        """Add a row of `results` that `gpus` ranks reported in one of the run's processes."""
        cell = Cell.of(row)
        self._reported.add((cell, gpus))
        where = "processes" if (cell.workload, cell.variant) in self._host else "GPUs"
        if gpus > 1:
            row = {**row, "detail": f"on {gpus} {where}: {row['detail']}"}
        if process and row["detail"]:
            row = {**row, "detail": f"process {process}: {row['detail']}"}
        before = self._rows.get(cell)
        if before is None:
            self._rows[cell] = row
        elif before["status"] == "ok":
            self._rows[cell] = _together(before, row) if row["status"] == "ok" else row

    def has(self, cell: Cell, gpus: int) -> bool:
        """Whether this number of ranks reported a status of the cell."""
        return (cell, gpus) in self._reported

    def is_lost(self, cell: Cell) -> bool:
        """Whether the cell is not ok. Its status is then final."""
        return cell in self._rows and self._rows[cell]["status"] != "ok"


def _together(before: Mapping[str, Any], row: Mapping[str, Any]) -> Row:
    """Merge two rows that are ok: the larger errors, and both details. An error is None where outputs were not compared."""
    errors_of = {
        name: [error for error in (before[name], row[name]) if error is not None] for name in ("rel_l2_error", "max_rel_error")
    }
    errors = {name: max(values, default=None) for name, values in errors_of.items()}
    return {**before, **errors, "detail": f"{before['detail']}; {row['detail']}"}
