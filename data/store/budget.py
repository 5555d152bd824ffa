"""How large a table may be to be read. Its file's metadata tell it, so that no row of a larger table is read.

A text column is read as a dictionary: a few bytes of a file may stand for millions of rows.
"""

from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warpladder.data.columns import Table

_BYTES_OF_A_CODE: Final = 4


class Budget(NamedTuple):
    """The most rows of a table, and the most bytes that it may take in memory."""

    rows: int
    bytes: int


#: A trace of 30 million rows takes 2 to 4 GB to check, and its Timeline as much.
LONG: Final = Budget(30_000_000, 4_000_000_000)
SHORT: Final = Budget(1_000_000, 500_000_000)
#: The tables without which the rest of a run can still be shown.
LONG_TABLES: Final = frozenset({"samples", "ranges", "kernels", "memory_ops", "api_calls", "counters"})


def of(table: str) -> Budget:
    """The budget of a table of a run."""
    return LONG if table in LONG_TABLES else SHORT


def excess(table: Table, metadata: pq.FileMetaData) -> str:
    """What of a table is more than may be read, such as `has 120,000,000 rows, and at most 30,000,000 are read`; empty if it is not."""
    most = of(table.name)
    if metadata.num_rows > most.rows:
        return f"has {metadata.num_rows:,} rows, and at most {most.rows:,} are read"
    size = metadata.num_rows * sum(_width(column.type) for column in table.columns)
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


def _width(kind: pa.DataType) -> int:
    return _BYTES_OF_A_CODE if pa.types.is_string(kind) else max(1, kind.bit_width // 8)
