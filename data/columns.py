"""Columns and tables: what a schema is made of."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa


@dataclass(frozen=True)
class Column:
    """One column: its Arrow type, what it means, and what its values may be; `checks` refuses others.

    Attributes:
        values: the closed set of a text's values; empty where any text will do.
        later: the column came after runs of this schema version had been written: in a run that lacks it, it reads as null.
        least: of the numbers; None where any will do.
        most: likewise.
        finite: a float64 is not infinite, nor NaN where it may not be null.
        named: the text is not empty.
        json_object: the text is a JSON object, or empty.
    """

    name: str
    type: pa.DataType
    meaning: str
    unit: str = ""
    nullable: bool = False
    values: tuple[str, ...] = ()
    later: bool = False
    least: float | None = None
    most: float | None = None
    finite: bool = True
    named: bool = False
    json_object: bool = False

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, self.type, nullable=self.nullable)


@dataclass(frozen=True)
class Table:
    """One table of a run. `key` names the columns that identify a row; it is empty where rows need not be unique.

    `spans` are pairs of columns of which the second is not before the first.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    spans: tuple[tuple[str, str], ...] = ()

    @cached_property
    def arrow(self) -> pa.Schema:
        return pa.schema([column.field for column in self.columns])


#: Of times and of ids, so that the difference of any two is an int64.
FAR: Final = 1 << 62
#: Of bytes and operations, so that the sum of a thousand is an int64.
MOST_WORK: Final = 1 << 53


def text(name: str, meaning: str, **rules: Any) -> Column:
    return Column(name, pa.string(), meaning, **rules)


def integer(name: str, meaning: str, unit: str = "", *, bits: int = 64, **rules: Any) -> Column:
    return Column(name, {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits], meaning, unit, **rules)


def time(name: str, meaning: str, *, nullable: bool = False) -> Column:
    return integer(name, meaning, "ns", nullable=nullable, least=-FAR, most=FAR)


def identifier(name: str, meaning: str, **rules: Any) -> Column:
    return integer(name, meaning, least=0, most=FAR, **rules)


def work(name: str, meaning: str, unit: str) -> Column:
    return integer(name, meaning, unit, least=0, most=MOST_WORK)


def real(name: str, meaning: str, unit: str = "", **rules: Any) -> Column:
    return Column(name, pa.float64(), meaning, unit, **rules)
