"""Runs on disk. The only module that reads or writes parquet.

A run is written through `RunWriter` (streamed, then renamed into place) and read through `open_run`, which checks what it
reads against `schema` and names the file, the column and the cure where something does not fit.
"""

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from data import schema
from data.staging import Staging, is_taken, sync

DATA_DIR: Final = Path(__file__).resolve().parent
RECORDED: Final = DATA_DIR / "recorded"
LOCAL: Final = DATA_DIR / "local"

#: What tables are made of: an Arrow table, a frame, or a list of rows.
Rows: TypeAlias = pa.Table | pd.DataFrame | Sequence[Mapping[str, Any]]

_ROWS_A_GROUP: Final = 1_000_000
_TEXT_BYTES_A_GROUP: Final = 1_000_000_000
_SUFFIX: Final = ".parquet"
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


class StoreError(Exception):
    """A run that cannot be read or written. Its message says where, what, and what to do, in one line."""


class RunExists(StoreError):
    """There is a run of that name."""


def folder(text: str | Path) -> Path:
    """A data folder as a user wrote it.

    Raises:
        StoreError: it is empty, which would stand for the working directory.
    """
    if not str(text).strip():
        raise StoreError('--data-dir "": names no folder; write --data-dir . for the working directory')
    return Path(text)


class RunWriter:
    """Writes one run, table by table, and makes it visible only by `commit`.

    Used as a context manager: leaving the block without `commit` removes what was written.

    Args:
        data_dir: where the run's folder goes.
        run_id: name of the folder.
        compression_level: of zstd. Low for a trace of millions of rows, where level 9 takes longer than all the rest.
        staging: of a dead writer, adopted, to be written anew; a new one when None.

    Raises:
        StoreError: the folder cannot be written, the run exists, or rows do not fit the schema.
    """

    def __init__(self, data_dir: Path, run_id: str, compression_level: int = 9, staging: Staging | None = None) -> None:
        self.run_id = run_id
        self._compression_level = compression_level
        self._data_dir = data_dir
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._run: pa.Table | None = None
        if staging is None and self.path.exists():
            raise RunExists(f"{self.path}: a run of this name exists; runs are never changed, choose another name")
        try:
            self.staging = staging or Staging.create(data_dir, run_id)
            if staging:
                self.start_again()
        except FileExistsError as error:
            raise RunExists(f"{self.path}: is being written; choose another name") from error
        except OSError as error:
            raise StoreError(
                f"{data_dir}: cannot be written ({error.strerror}); choose another folder with --data-dir"
            ) from error

    @property
    def path(self) -> Path:
        """The folder of the run, once it is committed."""
        return self._data_dir / self.run_id

    def append(self, table: str, rows: Rows) -> None:
        """Add rows to a table, whose columns must be exactly those of the schema."""
        arrow = conform(table, rows)
        if arrow.num_rows == 0:
            return
        if table == "run":  # written by the commit, under the name that is free then
            self._run = arrow
            return
        with self._told():
            self._write(table, arrow)

    def commit(self, durable: bool = False) -> Path:
        """Close every table and rename the run into place; under another id, `<run_id>-2`, where a run of its id has come meanwhile.

        Args:
            durable: come back only when the disk itself has the run. Its name is on the disk before the staging folder is gone.

        Returns:
            The folder of the run.
        """
        if self._run is None:
            raise StoreError(f"{self.path}: has no row in table run; append it before the commit")
        with self._told():
            self._close()
            asked, number = self.run_id, 1
            while not self._take_place(durable):
                number += 1
                self.run_id = f"{asked}-{number}"
                index = self._run.column_names.index("run_id")
                self._run = self._run.set_column(index, self._run.schema.field(index), pa.array([self.run_id]))
            if durable:
                sync(self._data_dir)
        self.staging.remove()
        return self.path

    def start_again(self) -> None:
        """Remove what was appended."""
        with self._told():
            with suppress(OSError):
                self._close()
            self._run = None
            shutil.rmtree(self.staging.tables, ignore_errors=True)
            self.staging.tables.mkdir()

    def leave(self) -> None:
        """End without a commit and without removing what was staged, for `staging.abandoned` to find."""
        with suppress(OSError):
            self._close()
        self.staging.release()

    def _take_place(self, durable: bool) -> bool:
        """Whether there was no run of this id."""
        if self.path.exists():
            return False
        self._write("run", self._run)
        self._close()
        if durable:
            self.staging.sync()
        try:
            self.staging.tables.rename(self.path)
        except OSError as error:
            if is_taken(error):
                return False
            raise
        return True

    def _write(self, table: str, arrow: pa.Table) -> None:
        if table not in self._writers:
            written = schema.TABLES[table].arrow
            self._writers[table] = pq.ParquetWriter(
                self.staging.tables / f"{table}{_SUFFIX}",
                written,
                compression="zstd",
                compression_level=self._compression_level,
                use_dictionary=[field.name for field in written if not pa.types.is_integer(field.type)],
                # Times and ids differ little from row to row: half the bytes of a dictionary, read in a third of the time.
                column_encoding={field.name: "DELTA_BINARY_PACKED" for field in written if pa.types.is_integer(field.type)},
            )
        self._writers[table].write_table(arrow, row_group_size=_ROWS_A_GROUP)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Says of a full disk or a folder that is gone what to do."""
        try:
            yield
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else _first_line(error)
            raise StoreError(
                f"{self._data_dir}: cannot be written ({why}); free some space or choose another folder with --data-dir"
            ) from error

    def _close(self) -> None:
        try:
            for writer in self._writers.values():
                writer.close()
        finally:
            for writer in self._writers.values():
                writer.is_open = False  # or it would try again when it is collected, and print a traceback
            self._writers.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(OSError):  # of no use any more
            self._close()
        self.staging.remove()


@dataclass(frozen=True)
class Run:
    """A run on disk whose schema version has been checked; its tables are read when asked for."""

    path: Path
    info: Mapping[str, Any]

    @property
    def run_id(self) -> str:
        return str(self.info["run_id"])

    @property
    def title(self) -> str:
        """What a list of runs shows: label, device, day."""
        device = self.info["device_name"] or self.info["cpu_name"]
        return f"{self.info['label'] or self.run_id} · {device} · {self.info['started_at']:%Y-%m-%d %H:%M}"

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that have rows."""
        return tuple(name for name in schema.TABLES if (self.path / f"{name}{_SUFFIX}").exists())

    def rows(self, name: str) -> int:
        """How many rows a table has, without reading them.

        Raises:
            StoreError: the file is damaged.
        """
        file = self.path / f"{name}{_SUFFIX}"
        return _row_count(file) if file.exists() else 0

    def table(self, name: str, columns: Sequence[str] | None = None, *, categories: bool = False) -> pd.DataFrame:
        """Rows of a table; no rows where the run has no such table.

        Args:
            name: a table of the schema.
            columns: the columns wanted; all when None.
            categories: text columns as pandas categories, which a long table is grouped by many times faster.

        Raises:
            StoreError: the file is damaged, or its columns are not those of the schema.
        """
        table = schema.TABLES[name]
        wanted = list(columns) if columns is not None else [column.name for column in table.columns]
        return _frame(table, self._arrow(name, wanted, categories))

    def arrow(self, name: str, columns: Sequence[str]) -> pa.Table:
        """Columns of a long table without the copies that a frame takes; the chunks of a text column share one dictionary.

        Raises:
            StoreError: as `table` does.
        """
        return self._arrow(name, columns, categories=True)

    def length(self, name: str) -> int:
        """Rows of a table.

        Raises:
            StoreError: the file is damaged.
        """
        file = self.path / f"{name}{_SUFFIX}"
        try:
            return int(pq.read_metadata(file).num_rows) if file.exists() else 0
        except (pa.ArrowException, OSError) as error:
            raise StoreError(f"{file}: not a readable parquet file ({_first_line(error)}); {_cure(file)}") from error

    def scan(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The same, a million rows at a time at most, for what is made of columns that need not be kept.

        Raises:
            StoreError: as `table` does.
        """
        table, file = schema.TABLES[name], self.path / f"{name}{_SUFFIX}"
        if file.exists():
            _check_columns(file, table)
            try:
                with pq.ParquetFile(file) as parquet:
                    for group in range(parquet.num_row_groups):
                        yield from parquet.read_row_group(group, columns=list(columns)).to_batches()
            except (pa.ArrowException, OSError) as error:
                raise StoreError(f"{file}: damaged ({_first_line(error)}); {_cure(file)}") from error

    def _arrow(self, name: str, columns: Sequence[str], categories: bool) -> pa.Table:
        table, file = schema.TABLES[name], self.path / f"{name}{_SUFFIX}"
        return _read(file, table, columns, categories) if file.exists() else table.arrow.empty_table().select(columns)


@dataclass(frozen=True)
class BadRun:
    """A run folder that cannot be opened, and why."""

    path: Path
    reason: str


def open_run(path: Path) -> Run:
    """Open one run and check every table's columns, without reading the rows.

    Raises:
        StoreError: the folder has no readable table `run`, or a table of another schema version, or a foreign file.
    """
    if not path.is_dir():
        raise StoreError(f"{path}: no such run; `python -m collectors runs` lists those there are")
    file = path / f"run{_SUFFIX}"
    if not file.exists():
        raise StoreError(f"{path}: has no run{_SUFFIX}, so it is not a complete run; record or import it again")
    version = _footer(file).field("schema_version") if "schema_version" in _footer(file).names else None
    if version is None:
        raise StoreError(f"{file}: lacks column schema_version, so Warpladder did not write it; remove the folder")
    written = _read_column(file, "schema_version")
    if written != schema.SCHEMA_VERSION:
        raise StoreError(
            f"{file}: column schema_version is {written}, and this Warpladder reads version {schema.SCHEMA_VERSION}; "
            "open it with the Warpladder that wrote it, or record the run again"
        )
    for other in sorted(path.glob(f"*{_SUFFIX}")):
        if other.stem not in schema.TABLES:
            raise StoreError(f"{other}: not a table of schema version {schema.SCHEMA_VERSION}; remove the file")
        _check_columns(other, schema.TABLES[other.stem])
    rows = _read(file, schema.RUN, schema.RUN.arrow.names).to_pylist()
    if len(rows) != 1:
        raise StoreError(f"{file}: has {len(rows)} rows where a run has one; record or import it again")
    return Run(path, rows[0])


def list_runs(folders: Iterable[Path]) -> tuple[list[Run], list[BadRun]]:
    """Every run below the folders, newest first, and every folder that should be one and cannot be opened.

    A folder that does not exist holds no run. Staging folders of unfinished runs start with a dot and are passed over.
    """
    good: list[Run] = []
    bad: list[BadRun] = []
    for folder in folders:
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if not path.is_dir() or path.name.startswith((".", "_")):
                continue
            try:
                good.append(open_run(path))
            except StoreError as error:
                bad.append(BadRun(path, str(error)))
    good.sort(key=lambda run: run.info["started_at"], reverse=True)
    return good, bad


def find_run(name: str, folders: Sequence[Path]) -> Run:
    """The run of that id or label, or at that path; the newest where several share a label.

    Raises:
        StoreError: there is none, or it cannot be opened.
    """
    if Path(name).is_dir():
        return open_run(Path(name))
    for folder in folders:
        if (folder / name).is_dir():
            return open_run(folder / name)
    good, _ = list_runs(folders)
    for run in good:
        if run.info["label"] == name:
            return run
    known = ", ".join(sorted({run.info["label"] or run.run_id for run in good})) or "none"
    raise StoreError(f"{name}: no such run; known runs: {known}")


def conform(name: str, rows: Rows) -> pa.Table:
    """Rows as an Arrow table of exactly a schema table's columns, in its order and types.

    Raises:
        StoreError: a column is missing, foreign, of another type, null where it may not be, or outside its closed set.
    """
    table = schema.TABLES[name]
    if isinstance(rows, pa.Table):
        names: Iterable[str] = rows.column_names
    elif isinstance(rows, pd.DataFrame):
        names = rows.columns
    else:
        names = {column for row in rows for column in row} if rows else table.arrow.names
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


def _typed(table: schema.Table, rows: Rows) -> pa.Table:
    if isinstance(rows, pa.Table):
        return rows.select(table.arrow.names).cast(table.arrow)
    if isinstance(rows, pd.DataFrame):
        return pa.Table.from_pandas(rows, schema=table.arrow, preserve_index=False)
    return pa.Table.from_pylist(list(rows), schema=table.arrow)


def _encodable(rows: pd.DataFrame | Sequence[Mapping[str, Any]]) -> Rows:
    """Rows whose texts, of an exception say, hold U+FFFD for what UTF-8 has no bytes for: half of a surrogate pair."""

    def replaced(value: Any) -> Any:
        return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", value) if isinstance(value, str) else value

    if isinstance(rows, pd.DataFrame):
        return rows.map(replaced)
    return [{name: replaced(value) for name, value in row.items()} for row in rows]


def frame(name: str, rows: Rows) -> pd.DataFrame:
    """Rows as `Run.table` gives those of a run.

    Raises:
        StoreError: as of `conform`.
    """
    return _frame(schema.TABLES[name], conform(name, rows))


def foreign_columns(file: Path) -> frozenset[str]:
    """Names of the columns of a parquet file that is not a run's.

    Raises:
        StoreError: the file is not parquet.
    """
    try:
        return frozenset(pq.read_schema(file).names)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{file.name}: not a readable parquet file ({_first_line(error)}); export the report again") from error


def scan_foreign(
    file: Path, integers: Sequence[str], texts: Sequence[str], batch_rows: int, text_limit: int
) -> Iterator[pa.RecordBatch]:
    """Rows of a parquet file that is not a run's, batch by batch, its texts cut to `text_limit` characters.

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
        raise StoreError(f"{file.name}: damaged ({_first_line(error)}); export the report again") from error


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
    return pa.DictionaryArray.from_arrays(texts.indices, values).dictionary_decode()


def _row_count(file: Path) -> int:
    try:
        return int(pq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{file}: not a readable parquet file ({_first_line(error)}); {_cure(file)}") from error


def _footer(file: Path) -> pa.Schema:
    try:
        return pq.read_schema(file)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{file}: not a readable parquet file ({_first_line(error)}); {_cure(file)}") from error


def _check_columns(file: Path, table: schema.Table) -> None:
    found = _footer(file)
    for column in table.columns:
        if column.name not in found.names:
            if column.later:
                continue
            raise StoreError(f"{file}: lacks column {column.name} of schema version {schema.SCHEMA_VERSION}; {_cure(file)}")
        if found.field(column.name).type != column.type:
            raise StoreError(
                f"{file}: column {column.name} is {found.field(column.name).type}, not {column.type}; {_cure(file)}"
            )
    foreign = [name for name in found.names if name not in table.arrow.names]
    if foreign:
        raise StoreError(f"{file}: has the foreign column {foreign[0]}; {_cure(file)}")


def _read(file: Path, table: schema.Table, columns: Sequence[str], categories: bool = False) -> pa.Table:
    _check_columns(file, table)
    lacking = {column.name for column in table.columns if column.later} - set(_footer(file).names)
    there = [name for name in columns if name not in lacking]
    texts = [name for name in there if categories and pa.types.is_string(table.arrow.field(name).type)]
    try:
        found = pq.read_table(file, columns=there, read_dictionary=texts).unify_dictionaries()
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{file}: damaged ({_first_line(error)}); {_cure(file)}") from error
    for name in lacking.intersection(columns):
        found = found.append_column(table.arrow.field(name), pa.nulls(len(found), table.arrow.field(name).type))
    return found.select(columns)


def _read_column(file: Path, name: str) -> Any:
    try:
        values = pq.read_table(file, columns=[name]).column(name).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{file}: damaged ({_first_line(error)}); {_cure(file)}") from error
    return values[0] if values else None


def _frame(table: schema.Table, arrow: pa.Table) -> pd.DataFrame:
    nullable = {column.name for column in table.columns if column.nullable and pa.types.is_integer(column.type)}
    names = arrow.column_names
    return pd.DataFrame(
        {name: arrow.column(name).to_pandas(types_mapper=_as_int64 if name in nullable else None) for name in names},
        columns=names,
    )


def _as_int64(_: pa.DataType) -> pd.Int64Dtype:
    """Integers with nulls keep every digit, which they would not as floats."""
    return pd.Int64Dtype()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _cure(file: Path) -> str:
    return f"remove the folder {file.parent.name}, then record or import the run again"


def to_json(value: Mapping[str, Any]) -> str:
    """JSON object for a column that holds one, with sorted keys so that equal objects are equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
