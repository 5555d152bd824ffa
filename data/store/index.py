"""The index of a folder of runs: one file beside the runs with what was read of each, so that the next process need not read it again.

An entry holds as long as the folder and the table `run` of its run are those that were read. The file is of use only to this version of
Warpladder: an index that is damaged, or that something else wrote, is passed over and written again.
"""

import os
import threading
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from warpladder.data import checks, schema
from warpladder.data.store.errors import StoreError
from warpladder.data.store.run import Run
from warpladder.data.store.tables import opened

#: Its name. What begins with a dot is no run.
FILE: Final = ".index.parquet"
#: Fewer new runs are read faster than an index is written.
LEAST_NEW: Final = 20
_MOST_BYTES: Final = 1 << 30
_STATE: Final = ("folder_mtime_ns", "folder_inode", "bytes", "mtime_ns", "inode", "mode")
#: Raise the first number when an entry is read differently.
_FORMAT: Final = {b"warpladder.index": f"1 of schema {schema.SCHEMA_VERSION}".encode()}
_COLUMNS: Final = pa.schema(
    [
        pa.field("name", pa.string()),
        *(pa.field(f"state.{name}", pa.int64()) for name in _STATE),
        pa.field("tables", pa.string()),
        pa.field("noted", pa.string()),
        *schema.RUN.arrow,
    ],
    metadata=_FORMAT,
)


class Entry(NamedTuple):
    """A run as it was read, and the state of its folder and its table `run` at that time."""

    state: Hashable
    run: Run


#: Folder of a run -> the run, and what is noted about it.
_notes: Final[dict[Path, tuple[Run, str]]] = {}
#: Folder of runs -> how many notes its index lacks.
_unkept: Final[Counter[Path]] = Counter()


def noted(run: Run) -> str:
    """The notes about a run since it was read; empty where nothing was noted."""
    held, text = _notes.get(run.path, (None, ""))
    return text if held is run else ""


def note(run: Run, text: str) -> None:
    """Note a text about a run. The index keeps it until the run changes."""
    _notes[run.path] = run, text
    _unkept[run.path.parent] += 1


def forget(path: Path) -> None:
    """Forget what was noted about the run of a folder."""
    _notes.pop(path, None)


def lacks(folder: Path) -> int:
    """How many notes the index of a folder lacks."""
    return _unkept[folder]


def read(folder: Path, paths: Mapping[str, Path]) -> list[Entry]:
    """The entries of a folder's index, with their notes taken up; none where there is no index that can be used.
    `paths`: the folders of the runs that are there, by their names."""
    try:
        with opened(folder / FILE) as parquet:
            if not parquet.schema_arrow.equals(_COLUMNS, check_metadata=False) or not _is_ours(parquet):
                return []
            rows = parquet.read(use_threads=False)
    except StoreError:
        return []
    if checks.first_problem(schema.RUN, rows):
        return []
    return list(_entries(rows, paths))


def _is_ours(parquet: pq.ParquetFile) -> bool:
    metadata = parquet.schema_arrow.metadata or {}
    size = sum(parquet.metadata.row_group(group).total_byte_size for group in range(parquet.num_row_groups))
    return all(metadata.get(name) == value for name, value in _FORMAT.items()) and size < _MOST_BYTES


def _entries(rows: pa.Table, paths: Mapping[str, Path]) -> Iterator[Entry]:
    columns = {name: _values(rows[name]) for name in rows.column_names}
    names, tables, texts = (columns.pop(name) for name in ("name", "tables", "noted"))
    states = zip(*(columns.pop(f"state.{name}") for name in _STATE), strict=True)
    parsed = {text: tuple(text.split(",")) for text in set(tables)}
    infos = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
    for name, state, info, of_run, text in zip(names, states, infos, tables, texts, strict=True):
        if name in paths and schema.TABLES.keys() >= set(parsed[of_run]):
            run = Run(paths[name], info, parsed[of_run])
            _notes.setdefault(run.path, (run, text))
            yield Entry(state, run)


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column, equal ones as one object: most columns have a few."""
    if pa.types.is_timestamp(column.type):
        return [time_of(value) for value in column.cast(pa.int64()).to_pylist()]
    coded = column.combine_chunks().dictionary_encode("encode")
    distinct = coded.dictionary.to_pylist()
    return [distinct[code] for code in coded.indices.to_pylist()]


def time_of(us: int) -> datetime:
    """A time of microseconds since 1970. pyarrow would import pandas to make it."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)


def write(folder: Path, entries: Iterable[tuple[Hashable, Run]]) -> None:
    """Write the index of a folder in place of the one before. Nothing is done where the folder cannot be written.

    It gets its name when it is complete, so that processes that read or write it at the same time find a whole one.
    """
    rows = [
        {
            "name": run.path.name,
            **{f"state.{name}": value for name, value in zip(_STATE, state, strict=True)},
            "tables": ",".join(run.tables),
            "noted": noted(run),
            **run.info,
        }
        for state, run in entries
        if isinstance(state, tuple)
    ]
    _unkept.pop(folder, None)
    new = folder / f"{FILE}.{os.getpid()}-{threading.get_ident()}"
    with suppress(OSError, pa.ArrowException, UnicodeEncodeError):  # a name that is no text
        try:
            pq.write_table(pa.Table.from_pylist(rows, schema=_COLUMNS), new, compression="zstd", write_page_checksum=True)
            new.replace(folder / FILE)
        finally:
            new.unlink(missing_ok=True)
