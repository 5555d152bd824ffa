"""How large a table may be to be read. Its file's metadata tell it, so that no row of a larger table is read.

A text column is read as a dictionary: a few bytes of a file may stand for millions of rows.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warpladder.data import files, schema
from warpladder.data.columns import Table
from warpladder.data.store.errors import StoreError, TooLarge, cure, unreadable

if TYPE_CHECKING:
    import pandas as pd


_BYTES_OF_A_CODE: Final = 4


class Budget(NamedTuple):
    """The most rows of a table, and the most bytes that it may take in memory."""

    rows: int
    bytes: int


#: A trace of 30 million rows takes 2 to 4 GB to check, and its Timeline as much.
LONG: Final = Budget(30_000_000, 4_000_000_000)
SHORT: Final = Budget(1_000_000, 500_000_000)
#: The tables without which the rest of a run can still be shown.
LONG_TABLES: Final = frozenset(
    {"samples", "ranges", "kernels", "memory_ops", "api_calls", "counters", "instruction_counters"}
    | {"operations", "synchronizations", "memory_in_use", "collectives", "rank_kernels"}
)


def of(table: str) -> Budget:
    """The budget of a table of a run."""
    return LONG if table in LONG_TABLES else SHORT


def excess(table: Table, metadata: pq.FileMetaData) -> str:
    """Tell which part of a table is more than may be read, such as `has 120,000,000 rows, and at most 30,000,000 are read`; empty if it is not."""
    most = of(table.name)
    if metadata.num_rows > most.rows:
        return f"has {metadata.num_rows:,} rows, and at most {most.rows:,} are read"
    kinds = [column.type for column in table.columns]
    size = metadata.num_rows * sum(
        _BYTES_OF_A_CODE if pa.types.is_string(each) else max(1, each.bit_width // 8) for each in kinds
    )
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        size += sum(
            row_group.column(index).total_uncompressed_size
            for index in range(metadata.num_columns)
            if row_group.column(index).physical_type == "BYTE_ARRAY"
        )
    return _too_many(size, most)


def excess_of_texts(table: str, texts: pa.ChunkedArray) -> str:
    """The same of a text column that is a dictionary and is to be written out."""
    size = 0
    for chunk in texts.chunks:
        lengths = pc.binary_length(chunk.dictionary).cast(pa.int64())
        size += pc.sum(lengths.take(chunk.indices)).as_py() or 0
    return _too_many(size, of(table))


def _too_many(size: int, most: Budget) -> str:
    return f"takes {size / 1e9:,.1f} GB in memory, and at most {most.bytes / 1e9:g} GB are read" if size > most.bytes else ""


SUFFIX: Final = ".parquet"
_AT_ONCE_BYTES: Final = 1 << 18


@contextmanager
def opened(file: Path, categories: Table | None = None) -> Iterator[pq.ParquetFile]:
    """A parquet file of a run.

    Args:
        categories: the table whose text columns are read as dictionaries; None for none.

    Raises:
        TooLarge: it is larger than may be read.
        StoreError: it is no readable parquet file, or turns out to be damaged while it is read.
    """
    try:
        if problem := files.kind_problem(file):
            raise StoreError(f"{file}: {problem}; {cure(file)}")
        source = _source(file)
        metadata = pq.read_metadata(source)
        stored_names = set(metadata.schema.to_arrow_schema().names) if categories else ()
        table = schema.TABLES.get(file.stem)
        if table and (too_much := excess(table, metadata)):
            raise TooLarge(str(file), too_much)
        texts = (
            [c.name for c in categories.columns if pa.types.is_string(c.type) and c.name in stored_names] if categories else []
        )
        parquet = pq.ParquetFile(source, metadata=metadata, read_dictionary=texts, page_checksum_verification=True)
    except StoreError:
        raise
    except Exception as error:  # a damaged footer makes pyarrow raise nearly anything
        raise unreadable(file, error, "not a readable parquet file") from error
    with parquet:
        try:
            yield parquet
        except StoreError:
            raise
        except Exception as error:
            raise unreadable(file, error) from error


def _source(file: Path) -> pa.NativeFile:
    """A file to read from. A small one is read at once: pyarrow asks the system for each column, and a table `run` has thirty."""
    source = pa.OSFile(os.fsencode(file))
    if source.size() > _AT_ONCE_BYTES:
        return source
    with source:
        return pa.BufferReader(source.read_buffer())


def check_columns(file: Path, table: Table, stored: pa.Schema) -> None:
    for column in table.columns:
        count = stored.names.count(column.name)
        if count > 1:
            raise StoreError(f"{file}: has column {column.name} {count} times; {cure(file)}")
        if not count:
            if column.later:
                continue
            raise StoreError(f"{file}: lacks column {column.name} of schema version {schema.SCHEMA_VERSION}; {cure(file)}")
        kind = stored.field(column.name).type
        if (kind.value_type if pa.types.is_dictionary(kind) else kind) != column.type:
            raise StoreError(f"{file}: column {column.name} is {kind}, not {column.type}; {cure(file)}")
    foreign = [name for name in stored.names if name not in table.arrow.names]
    if foreign:
        raise StoreError(f"{file}: has the foreign column {foreign[0]}; {cure(file)}")


def with_later(rows: pa.Table, table: Table) -> pa.Table:
    """With the columns that came later, and which the file may lack, as their defaults."""
    for column in table.columns:
        if column.later and column.name not in rows.column_names:
            if column.default is None:  # no scalar, for which pyarrow would import pandas
                values = pa.nulls(len(rows), column.type)
            else:
                values = pa.repeat(pa.scalar(column.default, column.type), len(rows))
            rows = rows.append_column(column.field, values)
    return rows


#: Rows of a table: an Arrow table, a data frame, or a list of mappings.
Rows: TypeAlias = "pa.Table | pd.DataFrame | Sequence[Mapping[str, Any]]"

_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def conform(name: str, rows: Rows) -> pa.Table:
    """Rows as an Arrow table of exactly a schema table's columns, in its order and types. Raises StoreError: a column
    is missing, foreign, of another type, null where it may not be, or outside its closed set."""
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
    """Rows whose texts can be encoded in UTF-8: U+FFFD replaces a lone surrogate, which the text of an exception may have."""

    def replaced(value: Any) -> Any:
        return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", value) if isinstance(value, str) else value

    if isinstance(rows, Sequence):
        return [{name: replaced(value) for name, value in row.items()} for row in rows]
    return rows.map(replaced)


def frame(name: str, rows: Rows) -> "pd.DataFrame":
    """Rows as a data frame, as `Run.table` returns it. Raises StoreError: as of `conform`."""
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
    """Integers with nulls as nullable integers, which keep every digit; floats do not."""
    import pandas as pd

    return pd.Int64Dtype()


def to_json(value: Mapping[str, Any]) -> str:
    """The text of a JSON object for a column. Keys are sorted, so that equal objects have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
