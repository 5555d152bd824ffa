"""Rows, whatever they are made of, as tables of the schema."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from warpladder.data import schema
from warpladder.data.columns import Table
from warpladder.data.store.errors import StoreError

if TYPE_CHECKING:
    import pandas as pd

#: What tables are made of: an Arrow table, a frame, or a list of rows.
Rows: TypeAlias = "pa.Table | pd.DataFrame | Sequence[Mapping[str, Any]]"

_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def conform(name: str, rows: Rows) -> pa.Table:
    """Rows as an Arrow table of exactly a schema table's columns, in its order and types.

    Raises:
        StoreError: a column is missing, foreign, of another type, null where it may not be, or outside its closed set.
    """
    table = schema.TABLES[name]
    if isinstance(rows, pa.Table):
        names: Iterable[str] = rows.column_names
    elif isinstance(rows, Sequence):
        names = {column for row in rows for column in row} if rows else table.arrow.names
    else:
        names = rows.columns
    missing = [column for column in table.arrow.names if column not in set(names)]
    foreign = sorted(set(names) - set(table.arrow.names))
    if missing or foreign:
        raise StoreError(f"table {name}: missing columns {missing}, foreign columns {foreign}; see data/README.md")
    try:
        try:
            arrow = _typed(table, rows)
        except UnicodeEncodeError:
            arrow = _typed(table, _encodable(rows))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, OverflowError) as error:
        raise StoreError(f"table {name}: {str(error).splitlines()[0]}; see data/README.md for the type") from error
    for column in table.columns:
        values = arrow.column(column.name)
        if not column.nullable and values.null_count:
            raise StoreError(f"table {name}: column {column.name} has nulls, and may not; see data/README.md")
        if column.values:
            odd = sorted(set(values.unique().to_pylist()) - {*column.values, None})
            if odd:
                raise StoreError(f"table {name}: column {column.name} has {odd}, and may have {list(column.values)}")
    return arrow


def _typed(table: Table, rows: Rows) -> pa.Table:
    if isinstance(rows, pa.Table):
        return rows.select(table.arrow.names).cast(table.arrow)
    if isinstance(rows, Sequence):
        return pa.Table.from_pylist(list(rows), schema=table.arrow)
    return pa.Table.from_pandas(rows, schema=table.arrow, preserve_index=False)


def _encodable(rows: "pd.DataFrame | Sequence[Mapping[str, Any]]") -> Rows:
    """Rows whose texts, of an exception say, hold U+FFFD for what UTF-8 has no bytes for: half of a surrogate pair."""

    def replaced(value: Any) -> Any:
        return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", value) if isinstance(value, str) else value

    if isinstance(rows, Sequence):
        return [{name: replaced(value) for name, value in row.items()} for row in rows]
    return rows.map(replaced)


def frame(name: str, rows: Rows) -> "pd.DataFrame":
    """Rows as `Run.table` gives those of a run.

    Raises:
        StoreError: as of `conform`.
    """
    return as_frame(schema.TABLES[name], conform(name, rows))


def as_frame(table: Table, arrow: pa.Table) -> "pd.DataFrame":
    import pandas as pd

    nullable = {column.name for column in table.columns if column.nullable and pa.types.is_integer(column.type)}
    names = arrow.column_names
    return pd.DataFrame(
        {name: arrow.column(name).to_pandas(types_mapper=_as_int64 if name in nullable else None) for name in names},
        columns=names,
    )


def _as_int64(_: pa.DataType) -> "pd.Int64Dtype":
    """Integers with nulls keep every digit, which they would not as floats."""
    import pandas as pd

    return pd.Int64Dtype()


def to_json(value: Mapping[str, Any]) -> str:
    """JSON object for a column that holds one, with sorted keys so that equal objects are equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
