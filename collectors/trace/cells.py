"""Finds the ranges that measure a cell: in this project's domain, or by the pattern `--variant-from nvtx:REGEX`."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.core.nvtx_ranges import DOMAIN, SAMPLE_TEXT, VARIANT_TEXT, WARM_UP, is_of_sample
from warpladder.collectors.trace.attribution import LaunchedWork
from warpladder.collectors.trace.model import process_of
from warpladder.collectors.trace.nvtx_table import Ranges
from warpladder.data import naming, schema
from warpladder.data.arrays import NONE, Int64s
from warpladder.data.naming import CellName, Naming, distinct
from warpladder.data.nesting import depths, nearest, parents

COLUMNS: Final = ("workload", "variant", "config", "case", "scope", "round")


class Cells:
    """The cell columns of all ranges. Each value is an index into `names`, or `NONE` for null."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._codes = {name: np.full(len(ranges), NONE) for name in COLUMNS[:-1]}
        self._names: dict[str, list[str]] = {name: [] for name in self._codes}
        self._round = np.full(len(ranges), NONE)
        self._matched = np.empty(0, np.int64)
        self._cell = self._matched
        self._cells: list[CellName] = []
        self._fill_ours()

    def columns(self) -> dict[str, pa.Array]:
        """Columns of table `ranges`."""
        columns: dict[str, pa.Array] = {
            name: pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(self._names[name], pa.string()))
            for name, codes in self._codes.items()
        }
        return {**columns, "round": pa.array(self._round.astype(np.int32), mask=self._round < 0)}

    def _fill_ours(self) -> None:
        ranges = self._ranges
        if DOMAIN not in ranges.domains:
            return
        own_ranges = np.flatnonzero(np.array([name == DOMAIN for name in ranges.domains])[ranges.domain])
        above = parents(ranges.thread[own_ranges], ranges.end[own_ranges])
        depth = depths(above)
        for column, level in (("workload", 0), ("case", 1), ("variant", 2), ("config", 2), ("scope", 3), ("round", 3)):
            holder = nearest(above, depth == level)  # the range itself, or its enclosing range of this level
            inside = np.flatnonzero(holder >= 0)
            self._fill(column, own_ranges[inside], ranges.text[own_ranges[holder[inside]]])

    def _fill(self, column: str, at: Int64s, text: Int64s) -> None:
        used, place = np.unique(text, return_inverse=True)
        read = [_read(column, self._ranges.texts[index]) for index in used.tolist()]
        if column == "round":
            self._round[at] = np.array([NONE if value is None else int(value) for value in read], np.int64)[place]
        else:
            self._set(column, at, read, place)

    def _set(self, column: str, at: Int64s, values: list[str | None], place: Int64s) -> None:
        names = self._names[column]
        numbers = {name: index for index, name in enumerate(names)}
        codes = [NONE if value is None else numbers.setdefault(value, len(numbers)) for value in values]
        names[:] = list(numbers)
        self._codes[column][at] = np.array(codes, np.int64)[place]

    def name(self, naming: Naming, default_workload: str) -> int:
        """Set the cells of the ranges that the pattern matches. Returns the number of ranges that it matches. Raises
        NamingError: the pattern takes too long."""
        self._cells, of_text = distinct(naming.name(self._ranges.texts, default_workload))
        if not self._cells:
            return 0
        self._cell = of_text[self._ranges.text]
        self._matched = np.flatnonzero(self._cell >= 0)
        for column, values in zip(CellName._fields, zip(*self._cells, strict=True), strict=True):
            self._set(column, self._matched, list(values), self._cell[self._matched])
        return len(self._matched)

    def ended_before_their_work(self, gpu_end: pa.Array) -> int:
        """Count the named ranges that end on the host before their last device work, because they do not synchronise.
        `gpu_end`: column `gpu_end_ns` of all ranges."""
        at = self._matched[self._ranges.closed[self._matched]]
        return int(pc.sum(pc.greater(gpu_end.take(pa.array(at)), pa.array(self._ranges.end[at]))).as_py() or 0)

    def tables(
        self, gpu_busy: pa.Array, unclear: LaunchedWork, device_count: int
    ) -> dict[str, pa.Table | list[dict[str, Any]]]:
        """Return tables variants, cases, results and samples of the named ranges.

        Args:
            gpu_busy: column `gpu_busy_ns` of all ranges, including work attributed by time.
            unclear: device work that was launched while ranges were open, but is attributed to none.
            device_count: number of GPUs that the report's program used.
        """
        at = self._matched[self._ranges.closed[self._matched]]
        used, cell = np.unique(self._cell[at], return_inverse=True)
        cells = [self._cells[number] for number in used.tolist()]
        busy = np.asarray(gpu_busy.fill_null(-1).to_numpy(zero_copy_only=False))[at]
        start, end = self._ranges.start[at], self._ranges.end[at]
        loose = naming.LooseWork(process_of(unclear.thread), unclear.launched, unclear.end - unclear.start)
        shares = naming.unranked(cell, busy, loose.within(process_of(self._ranges.thread[at]), start, end))
        ranked = ~np.isin(cell, list(shares))
        samples = naming.samples(cell[ranked], start[ranked], (end - start)[ranked], busy[ranked])
        numbers = pa.array(samples["cell"])
        count = len(numbers)
        table = {
            **{
                column: pa.DictionaryArray.from_arrays(
                    numbers, pa.array([getattr(each, column) for each in cells], pa.string())
                )
                for column in CellName._fields
            },
            **{name: pa.repeat(value, count) for name, value in {**naming.SAME, "gpus": device_count}.items()},
            "scope": pa.DictionaryArray.from_arrays(pa.array(samples["scope"]), pa.array(naming.SCOPES)),
            "round": samples["round"],
            "duration_ns": samples["duration_ns"],
        }
        return {
            "variants": naming.variant_rows(cells),
            "cases": naming.case_rows(cells),
            "results": naming.result_rows(cells, shares),
            "samples": schema.SAMPLES.completed(table, count),
        }


def _read(column: str, text: str) -> str | None:
    """Return a column's value from the text of one of this project's ranges."""
    if column in ("workload", "case"):
        return text
    of_variant = column in ("variant", "config")
    match = (VARIANT_TEXT if of_variant else SAMPLE_TEXT).fullmatch(text)
    # Executions that are timed before the cells of a case have no range of a variant around them.
    if match is None or (of_variant and is_of_sample(text)) or (column == "round" and match["mark"] == WARM_UP):
        return None
    return match[column] or ""
