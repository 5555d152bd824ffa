"""Parquet files of a run, opened and checked against the schema."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from warpladder.data import files, schema
from warpladder.data.columns import Table
from warpladder.data.store import budget
from warpladder.data.store.errors import StoreError, TooLarge, cure, unreadable

SUFFIX: Final = ".parquet"
_AT_ONCE_BYTES: Final = 1 << 18


@contextmanager
def opened(file: Path, categories: Table | None = None) -> Iterator[pq.ParquetFile]:
    """A parquet file of a run.

    Args:
        file: the file.
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
        there = set(metadata.schema.to_arrow_schema().names) if categories else ()
        table = schema.TABLES.get(file.stem)
        if table and (excess := budget.excess(table, metadata)):
            raise TooLarge(str(file), excess)
        texts = [c.name for c in categories.columns if pa.types.is_string(c.type) and c.name in there] if categories else []
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


def check_columns(file: Path, table: Table, found: pa.Schema) -> None:
    for column in table.columns:
        count = found.names.count(column.name)
        if count > 1:
            raise StoreError(f"{file}: has column {column.name} {count} times; {cure(file)}")
        if not count:
            if column.later:
                continue
            raise StoreError(f"{file}: lacks column {column.name} of schema version {schema.SCHEMA_VERSION}; {cure(file)}")
        kind = found.field(column.name).type
        if (kind.value_type if pa.types.is_dictionary(kind) else kind) != column.type:
            raise StoreError(f"{file}: column {column.name} is {kind}, not {column.type}; {cure(file)}")
    foreign = [name for name in found.names if name not in table.arrow.names]
    if foreign:
        raise StoreError(f"{file}: has the foreign column {foreign[0]}; {cure(file)}")


def with_later(found: pa.Table, table: Table) -> pa.Table:
    """With the columns that came later, and which the file may lack, as their defaults."""
    for column in table.columns:
        if column.later and column.name not in found.column_names:
            value = pa.scalar(column.default, column.type)
            found = found.append_column(column.field, pa.repeat(value, len(found)))
    return found
