"""Reads parquet files that are not of a run, such as those of an exported report."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warpladder.data.files import kind_problem
from warpladder.data.store.errors import StoreError, first_line

_TEXT_BYTES_A_GROUP: Final = 1_000_000_000


def foreign_columns(file: Path) -> tuple[frozenset[str], int]:
    """Names of the columns of a parquet file that is not a run's, and how many rows it has.

    Raises:
        StoreError: the file is not parquet.
    """
    try:
        if problem := kind_problem(file):  # opening a FIFO would wait for a writer
            raise StoreError(f"{file.name}: {problem}; export the report again")
        metadata = pq.read_metadata(file)
        return frozenset(metadata.schema.to_arrow_schema().names), int(metadata.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{file.name}: not a readable parquet file ({first_line(error)}); export the report again") from error


def scan_foreign(
    file: Path, integers: Sequence[str], texts: Sequence[str], batch_rows: int, text_limit: int
) -> Iterator[pa.RecordBatch]:
    """Rows of a parquet file that is not a run's, batch by batch, its texts cut to `text_limit` characters.

    Texts come as dictionaries, so that a text in a million rows is stored once.

    Raises:
        StoreError: the file is damaged, or a text column unpacks to more than it should.
    """
    names = [*integers, *texts]
    try:
        with pq.ParquetFile(file, read_dictionary=list(texts), pre_buffer=False) as parquet:
            _refuse_text_bombs(parquet.metadata, set(texts), file)
            for batch in parquet.iter_batches(batch_size=batch_rows, columns=names):
                arrays = [batch.column(name) for name in integers]
                arrays += [_cut(batch.column(name), text_limit) for name in texts]
                yield pa.record_batch(arrays, names=names)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{file.name}: damaged ({first_line(error)}); export the report again") from error


def _refuse_text_bombs(metadata: pq.FileMetaData, texts: set[str], file: Path) -> None:
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            column = metadata.row_group(group).column(index)
            if column.path_in_schema in texts and column.total_uncompressed_size > _TEXT_BYTES_A_GROUP:
                raise StoreError(f"{file.name}: column {column.path_in_schema} unpacks to over 1 GB; export the report again")


def _cut(texts: pa.Array, limit: int) -> pa.Array:
    if not pa.types.is_dictionary(texts.type):
        return pc.utf8_slice_codeunits(texts.cast(pa.string()), 0, limit)
    values = pc.utf8_slice_codeunits(texts.dictionary.cast(pa.string()), 0, limit)
    return pa.DictionaryArray.from_arrays(texts.indices, values)
