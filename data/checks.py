"""Checks that the values of a run's tables are allowed by `schema`: nulls, closed sets, ranges, keys, and references between
tables.

The checks work on columns of Arrow tables, so that millions of rows take a fraction of a second. The first bad row is searched
only after a check has failed. Nothing here reads a file.
"""

import json
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.data import schema
from warpladder.data.arrays import Int64s, Places, coded, integers, numbered
from warpladder.data.columns import Column, Table

_MOST_CHARACTERS: Final = 40  # of a value that a message quotes


#: The tables of variants and cases, and those whose rows are of a variant and a case.
_REFERRED_TO: Final = ("variants", "cases")
_OF_CELLS: Final = frozenset(
    {
        "results",
        "samples",
        "energy",
        "counters",
        "cell_launches",
        "instruction_counters",
        "rules",
        "experiments",
        "experiment_blocks",
    }
)


class Problem(NamedTuple):
    """A value that is not allowed: its `column`, its `row` counted from 0 (None if it is of no single row), and `text`, which
    says what is wrong."""

    column: str
    row: int | None
    text: str

    def __str__(self) -> str:
        return f"column {self.column}{'' if self.row is None else f', row {self.row + 1:,}'}: {self.text}"


class Checker:
    """Checks the tables of one run, in the order of `schema.TABLES`. A table may refer to rows of an earlier one.

    A long table may come in pieces. Call `end` after the last piece of each table.
    """

    def __init__(self) -> None:
        self._rows = 0
        self._pieces: list[pa.Table] = []
        self._tables: dict[str, pa.Table] = {}
        self._ranges: Places | None = None

    def piece(self, table: Table, rows: pa.Table) -> Problem | None:
        """The first problem of some rows of a table. The rows have all its columns; texts may be dictionaries."""
        problem = first_problem(table, rows) or self._strangers(table, rows)
        if problem is not None:
            return problem._replace(row=None if problem.row is None else problem.row + self._rows)
        self._rows += len(rows)
        together = [name for name in rows.column_names if name in _needed(table)]
        if together:
            self._pieces.append(rows.select(together))
        return None

    def end(self, table: Table) -> Problem | None:
        """The first problem of a table as a whole: duplicate keys, references to missing rows, parents that form a circle."""
        rows = pa.concat_tables(self._pieces, promote_options="permissive").unify_dictionaries() if self._pieces else None
        self._rows, self._pieces = 0, []
        if rows is None:
            return None
        if table.name in _REFERRED_TO:
            self._tables[table.name] = rows
        if table is schema.RANGES:
            self._ranges = Places(integers(rows["range_id"]))
        if problem := _duplicate(table, rows):
            return problem
        if table is schema.RANGES:
            assert self._ranges is not None
            return _bad_parent(rows, self._ranges)
        return self._unknown(table, rows)

    def _strangers(self, table: Table, rows: pa.Table) -> Problem | None:
        """Device work whose range is missing."""
        if table is schema.RANGES or self._ranges is None:
            return None
        for column in ("range_id", "time_range_id"):
            if column in rows.column_names:
                ids = integers(rows[column], self._ranges.least)
                unknown = np.flatnonzero(self._ranges.of(ids) < 0)
                if len(unknown):
                    return Problem(column, int(unknown[0]), f"is {ids[unknown[0]]}, and no range has that id")
        return None

    def _unknown(self, table: Table, rows: pa.Table) -> Problem | None:
        """A row of a variant or a case that the run does not have."""
        for name in _REFERRED_TO if table.name in _OF_CELLS else ():
            key = list(schema.TABLES[name].key)
            references = _distinct(rows, key)
            known_keys = set(_distinct(self._tables[name], key)) if name in self._tables else set()
            if strangers := [values for values in references if values not in known_keys]:
                what = " / ".join(map(str, strangers[0]))
                return Problem(key[-1], references[strangers[0]], f"is {_quoted(what)}, and table {name} has no such row")
        return None


def first_problem(table: Table, rows: pa.Table) -> Problem | None:
    """The first problem that a single row has by itself."""
    for column in table.columns:
        if problem := _of_column(column, rows[column.name]):
            return problem
    for start, end in table.spans:
        early = pc.less(rows[end], rows[start])
        if pc.any(early).as_py():
            row = _first(early)
            return Problem(end, row, f"is {rows[end][row]}, before {start}, which is {rows[start][row]}")
    return None


def _of_column(column: Column, values: pa.ChunkedArray) -> Problem | None:
    if problem := _invalid(column, values):
        return problem
    if values.null_count and not column.nullable:
        return Problem(column.name, _first(pc.is_null(values)), "is null, and may not be")
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return _of_numbers(column, values)
    if column.values or column.json_object or column.not_empty:
        return _of_texts(column, values)
    return None


def _invalid(column: Column, values: pa.ChunkedArray) -> Problem | None:
    """Text that is not UTF-8, or values that a damaged page left."""
    if pa.types.is_primitive(values.type):
        return None
    first = 0
    for chunk in values.chunks:
        try:
            chunk.validate(full=True)
        except pa.ArrowInvalid as error:
            row = next((row for row in range(len(chunk)) if not _decodes(chunk[row])), None)
            what = "is not text in UTF-8" if row is not None else f"is damaged ({str(error).splitlines()[0]})"
            return Problem(column.name, None if row is None else first + row, what)
        first += len(chunk)
    return None


def _decodes(value: pa.Scalar) -> bool:
    try:
        value.as_py()
    except (UnicodeDecodeError, pa.ArrowException, IndexError):
        return False
    return True


def _of_numbers(column: Column, values: pa.ChunkedArray) -> Problem | None:
    if pa.types.is_floating(column.type) and column.finite:
        # In a nullable column NaN stands for null, as in a data frame.
        odd = pc.is_inf(values) if column.nullable else pc.invert(pc.is_finite(values))
        if pc.any(odd).as_py():
            row = _first(odd)
            return Problem(column.name, row, f"is {values[row].as_py()}, and has to be a finite number")
    if column.least is None and column.most is None:
        return None
    extremes = pc.min_max(values).as_py()
    for bound, extreme, beyond, word in (
        (column.least, extremes["min"], pc.less, "least"), (column.most, extremes["max"], pc.greater, "most"),
    ):  # fmt: skip
        # NaN is neither less nor greater.
        if bound is not None and extreme is not None and (extreme < bound if word == "least" else extreme > bound):
            row = _first(beyond(values, pa.scalar(bound, column.type)))
            return Problem(column.name, row, f"is {values[row].as_py()}, and has to be at {word} {bound:g}")
    return None


def _of_texts(column: Column, values: pa.ChunkedArray) -> Problem | None:
    for text in pc.unique(values).to_pylist():
        if text is None:
            continue
        if column.values and text not in column.values:
            what = f"is {_quoted(text)}, and has to be one of {', '.join(column.values)}"
        elif column.not_empty and not text:
            what = "is empty, and has to name something"
        elif column.json_object and text and not _is_object(text):
            what = f"is {_quoted(text)}, and has to be a JSON object whose numbers are finite"
        else:
            continue
        return Problem(column.name, _first(pc.equal(values.cast(pa.string()), text)), what)
    return None


def _is_object(text: str) -> bool:
    """Whether it is a JSON object whose numbers fit a float64."""
    try:
        content = json.loads(text)
        return isinstance(content, dict) and all(
            math.isfinite(each) for each in content.values() if isinstance(each, int | float)
        )
    except (ValueError, OverflowError, RecursionError):
        return False


def _needed(table: Table) -> frozenset[str]:
    """Columns that are checked when the table is complete."""
    return frozenset({*table.key, "parent_id", "depth"} if table is schema.RANGES else table.key)


def _duplicate(table: Table, rows: pa.Table) -> Problem | None:
    if not table.key or (len(table.key) == 1 and _rises(rows[table.key[0]])):
        return None
    number, first_of = _numbered(rows, table.key)
    if len(first_of) == len(rows):
        return None
    again = np.ones(len(rows), bool)
    again[first_of] = False
    row = int(again.argmax())
    first = int(first_of[number[row]])
    key = ", ".join(f"{name}={_quoted(str(rows[name][row]))}" for name in table.key)
    return Problem(" + ".join(table.key), row, f"is the key of a row, and row {first + 1:,} has the same: {key}")


def _rises(values: pa.ChunkedArray) -> bool:
    """Whether each value is greater than the one before, as numbers of rows are."""
    if not pa.types.is_integer(values.type):
        return False
    numbers = integers(values)
    return bool((numbers[1:] > numbers[:-1]).all())


def _numbered(rows: pa.Table, names: Sequence[str]) -> tuple[Int64s, Int64s]:
    """A number for each row, the same for rows that are equal in these columns, and the first place of each number."""
    columns = (rows[name] for name in names)
    return numbered(*(integers(each) if pa.types.is_integer(each.type) else coded(each)[0] for each in columns))


def _distinct(rows: pa.Table, names: Sequence[str]) -> dict[tuple[Any, ...], int]:
    """The distinct rows of some columns, each with the place of its first occurrence."""
    _, first = _numbered(rows, names)
    distinct_rows = rows.select(list(names)).take(pa.array(first))
    values = zip(*(distinct_rows[name].to_pylist() for name in names), strict=True)
    return dict(zip(values, first.tolist(), strict=True))


def _bad_parent(rows: pa.Table, ranges: Places) -> Problem | None:
    """A parent that is missing, or not one level above. If every parent is one level above, parents cannot form a circle."""
    parents, depth, ids = rows["parent_id"], integers(rows["depth"]), integers(rows["range_id"])
    outermost = pc.is_null(parents).to_numpy()
    above = integers(parents, ranges.least)
    place = np.where(outermost, -1, ranges.of(above))
    for wrong, text in (
        ((place < 0) & ~outermost, "is {parent}, and no range has that id"),
        (place == np.arange(len(place)), "is {parent}, the range itself"),
        (~outermost & (depth != depth[place] + 1), "is {parent}, whose depth is {above} where it has to be one less than {depth}; "
         "the parents form a circle, or one of them is wrong"),
        (outermost & (depth != 0), "is null, which says that nothing is around it, and its depth is {depth}"),
    ):  # fmt: skip
        places = np.flatnonzero(wrong)
        if len(places):
            row = int(places[0])
            detail = text.format(parent=above[row], above=depth[place[row]], depth=depth[row])
            return Problem("parent_id", row, f"of range {ids[row]} {detail}")
    return None


def _first(mask: pa.ChunkedArray) -> int:
    """The first set row of a mask that has one."""
    return int(pc.index(mask, True).as_py())


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…")
