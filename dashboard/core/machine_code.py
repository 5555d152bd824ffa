"""The kernels that each cell of a run launches, with their machine code, read when they are first needed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import pandas as pd

from warpladder.dashboard.core.sass import Code
from warpladder.data import store
from warpladder.data.naming import CellName


@dataclass(frozen=True)
class Kernel:
    """A launch of a cell, or several that are alike, and their machine code.

    Attributes:
        index: which launch of the cell; of launches that are alike the first one.
        count: launches of the cell that are alike.
        name: with template arguments.
        code_id: row of `machine_code`; empty where the code is not known.
        architecture: such as `sm_90`; empty where it is not known.
        code: its instructions; none where they are not known.
        registers, static_shared_bytes, spill_bytes, stack_bytes: None where they are not known.
        grid, block: blocks, and threads of a block, along x, y, z.
    """

    index: int
    count: int
    name: str
    code_id: str
    architecture: str
    compiler: str
    code: Code
    ptx: str
    registers: int | None
    static_shared_bytes: int | None
    spill_bytes: int | None
    stack_bytes: int | None
    dynamic_shared_bytes: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def shared_bytes(self) -> int:
        """Static and dynamic shared memory of a block."""
        return (self.static_shared_bytes or 0) + self.dynamic_shared_bytes


class MachineCode:
    """The tables `cell_launches`, `machine_code`, `instruction_counters` and `rules` of a run.

    Args:
        made: rows of the first two, in place of a run.
    """

    def __init__(
        self, run: store.Run | None = None, made: Mapping[str, Sequence[Mapping[Any, Any]]] = MappingProxyType({})
    ) -> None:
        self._run, self._made = run, made
        self._parsed: dict[str, Code] = {}

    def __bool__(self) -> bool:
        """Whether the run has machine code."""
        return self._run is not None and "machine_code" in self._run.tables

    @cached_property
    def cells(self) -> tuple[CellName, ...]:
        """The cells whose launches are known, in the order of the run."""
        return tuple(self._launches)

    @property
    def workloads(self) -> list[str]:
        """The workloads of `cells`, in the order of the run."""
        return list(dict.fromkeys(cell.workload for cell in self.cells))

    def cases(self, workload: str) -> list[str]:
        """The cases of a workload in `cells`, in the order of the run."""
        return list(dict.fromkeys(cell.case for cell in self.cells if cell.workload == workload))

    def kernels(self, cell: CellName) -> tuple[Kernel, ...]:
        """The launches of a cell, in order; none where they are not known."""
        return tuple(self._kernel(row) for row in self._launches.get(cell, ()))

    def alike(self, cell: CellName) -> Mapping[int, int]:
        """The launches of a cell: the first of those that are alike -> how many they are."""
        return {int(row["launch_index"]): int(row["count"]) for row in self._launches.get(cell, ())}

    def counters(self, cell: CellName, launch: int) -> Mapping[str, Mapping[int, int]]:
        """The counters of one launch by instruction: metric -> place of the instruction -> reading above 0."""
        rows = self._counters.get((*cell, launch))
        if rows is None:
            return MappingProxyType({})
        return {
            str(metric): dict(zip(group["instruction"].tolist(), group["value"].tolist(), strict=True))
            for metric, group in rows.groupby("metric", observed=True)
        }

    @cached_property
    def rules(self) -> pd.DataFrame:
        """The rows of table `rules`."""
        assert self._run is not None
        return self._run.table("rules")

    @cached_property
    def _launches(self) -> Mapping[CellName, list[Mapping[Any, Any]]]:
        launches: dict[CellName, list[Mapping[Any, Any]]] = {}
        for row in self._records("cell_launches"):
            launches.setdefault(CellName(*(row[name] for name in CellName._fields)), []).append(row)
        return launches

    @cached_property
    def _codes(self) -> Mapping[str, Mapping[Any, Any]]:
        return {row["code"]: row for row in self._records("machine_code")}

    def _records(self, table: str) -> Sequence[Mapping[Any, Any]]:
        return self._run.records(table) if self._run else self._made.get(table, ())

    @cached_property
    def _counters(self) -> Mapping[tuple[Any, ...], pd.DataFrame]:
        if self._run is None or "instruction_counters" not in self._run.tables:
            return {}
        table = self._run.table("instruction_counters", categories=True)
        return dict(iter(table.groupby([*CellName._fields, "launch_index"], observed=True)))

    def _kernel(self, row: Mapping[Any, Any]) -> Kernel:
        code_id = row["code"] if isinstance(row["code"], str) else ""
        facts = self._codes.get(code_id, {})
        if code_id not in self._parsed:
            self._parsed[code_id] = Code.of(facts.get("sass", ""), facts.get("lines", ""))
        return Kernel(
            int(row["launch_index"]),
            int(row["count"]),
            row["kernel"],
            code_id,
            facts.get("architecture", ""),
            facts.get("compiler", ""),
            self._parsed[code_id],
            ptx if isinstance(ptx := facts.get("ptx"), str) else "",
            _whole(facts.get("registers")),
            _whole(facts.get("static_shared_bytes")),
            _whole(facts.get("spill_bytes")),
            _whole(facts.get("stack_bytes")),
            int(row["dynamic_shared_bytes"]),
            _triple(row, "grid"),
            _triple(row, "block"),
        )


def _whole(value: Any) -> int | None:
    return None if value is None or pd.isna(value) else int(value)


def _triple(row: Mapping[Any, Any], what: str) -> tuple[int, int, int]:
    x, y, z = (int(row[f"{what}_{axis}"]) for axis in "xyz")
    return x, y, z


def kernels_by_variant(code: MachineCode, workload: str, case: str) -> Iterator[tuple[CellName, tuple[Kernel, ...]]]:
    """The cells of a case whose launches are known, each with its launches."""
    for cell in code.cells:
        if (cell.workload, cell.case) == (workload, case):
            yield cell, code.kernels(cell)
