"""Describe a table of a run and its columns, with the kinds of columns that the tables of `schema` are made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Column:
    """One column: its Arrow type, its meaning, and its allowed values. `checks` refuses other values.

    Attributes:
        values: the closed set of a text's values; empty if any text is allowed.
        later: the column was added after runs had been written. In a run without it, it reads as `default`.
        default: the value where a run lacks a column that came later; None for null.
        least: the least number allowed; None for no limit.
        most: the largest number allowed; None for no limit.
        finite: a float64 must not be infinite. It must not be NaN either, unless the column is nullable.
        not_empty: the text is not empty.
        json_object: the text is a JSON object, or empty.
    """

    name: str
    type: pa.DataType
    meaning: str
    unit: str = ""
    nullable: bool = False
    values: tuple[str, ...] = ()
    later: bool = False
    default: int | None = None
    least: float | None = None
    most: float | None = None
    finite: bool = True
    not_empty: bool = False
    json_object: bool = False

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, self.type, nullable=self.nullable)

    def bounded(self, numbers: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """Integers of another tool as the column has them. One outside of its bounds is null; where the column has no null, it is the
        nearest bound."""
        if self.type == pa.int64() and self.least is self.most is None:
            return numbers.cast(self.type)
        room = 1 << (self.type.bit_width - 1)
        least, most = (limit if bound is None else int(bound) for limit, bound in ((-room, self.least), (room - 1, self.most)))
        ends = pc.min_max(numbers).as_py()
        if (ends["min"] or 0) < least or (ends["max"] or 0) > most:
            within = pc.and_(pc.greater_equal(numbers, least), pc.less_equal(numbers, most))
            nearest = pc.min_element_wise(pc.max_element_wise(numbers, least, skip_nulls=False), most, skip_nulls=False)
            numbers = pc.if_else(within, numbers, None) if self.nullable else nearest
        return numbers.cast(self.type)


@dataclass(frozen=True)
class Table:
    """One table of a run. `key` names the columns that identify a row; it is empty if rows need not be unique.

    `spans` are pairs of columns: the time in the second must not be before that in the first.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    spans: tuple[tuple[str, str], ...] = ()

    @cached_property
    def arrow(self) -> pa.Schema:
        return pa.schema([column.field for column in self.columns])

    def blank_row(self) -> dict[str, Any]:
        """A row of which nothing is known: null where a column may be null, else an empty text, False or 0."""
        nothing = {pa.string(): "", pa.bool_(): False}
        return {column.name: None if column.nullable else nothing.get(column.type, 0) for column in self.columns}

    def completed(self, columns: Mapping[str, Any], rows: int) -> pa.Table:
        """A table of so many rows with these columns, in the order of the schema. A column that is missing is null."""
        assert columns.keys() <= set(self.arrow.names)
        return pa.table({each.name: columns.get(each.name, pa.nulls(rows, each.type)) for each in self.columns})

    def bounded(self, rows: pa.Table) -> pa.Table:
        """Rows whose integers are within the bounds of their columns, as `Column.bounded` makes them."""
        for column in self.columns:
            if pa.types.is_integer(column.type):
                place = rows.schema.get_field_index(column.name)
                rows = rows.set_column(place, column.field, column.bounded(rows[column.name]))
        return rows


#: Limit of times and ids, so that the difference of any two is an int64.
FAR: Final = 1 << 62
#: Limit of bytes and operations, so that the sum of a thousand is an int64.
MOST_WORK: Final = 1 << 53


def text(name: str, meaning: str, **rules: Any) -> Column:
    return Column(name, pa.string(), meaning, **rules)


def integer(name: str, meaning: str, unit: str = "", *, bits: int = 64, **rules: Any) -> Column:
    return Column(name, {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits], meaning, unit, **rules)


def time(name: str, meaning: str, *, nullable: bool = False) -> Column:
    return integer(name, meaning, "ns", nullable=nullable, least=-FAR, most=FAR)


def identifier(name: str, meaning: str, **rules: Any) -> Column:
    return integer(name, meaning, least=0, most=FAR, **rules)


def work(name: str, meaning: str, unit: str, **rules: Any) -> Column:
    return integer(name, meaning, unit, least=0, most=MOST_WORK, **rules)


def real(name: str, meaning: str, unit: str = "", **rules: Any) -> Column:
    return Column(name, pa.float64(), meaning, unit, **rules)


#: Columns of device work in a trace.
START = time("start_ns", "start on the trace's clock")
END = time("end_ns", "end on the trace's clock")
DEVICE = integer("device", "CUDA device ordinal", bits=32)
STREAM = integer("stream", "CUDA stream id in the trace", nullable=True)

#: Columns of a cell, and of its launches.
WORKLOAD = text("workload", "problem, e.g. `tensor_transpose`", not_empty=True)
VARIANT = text("variant", "one implementation of the workload, e.g. `v03_shared_tile`", not_empty=True)
CONFIG = text("config", "the variant's tunables, e.g. `block=16`; empty where it has none")
CASE = text("case", "one point of the workload's axes, e.g. `n=512,perm=210`", not_empty=True)
CELL = (WORKLOAD, VARIANT, CONFIG, CASE)
LAUNCH_INDEX = integer("launch_index", "which launch of the cell", bits=32)
CELL_KEY: Final = ("workload", "variant", "config", "case")
