"""Runs on disk. The only module that reads or writes parquet.

A run is written through `RunWriter` (streamed, then renamed into place) and read through `open_run`, which checks what it
reads against `schema` and names the file, the column and the cure where something does not fit. pandas, which takes longer to import than
the runs of a folder to list, is imported where a frame is made.
"""

import json
import os
import re
import shutil
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from data import checks, files, schema
from data.files import one_line, state_of
from data.staging import Staging, is_taken, sync

if TYPE_CHECKING:
    import pandas as pd

DATA_DIR: Final = Path(__file__).resolve().parent
RECORDED: Final = DATA_DIR / "recorded"
LOCAL: Final = DATA_DIR / "local"

#: What tables are made of: an Arrow table, a frame, or a list of rows.
Rows: TypeAlias = "pa.Table | pd.DataFrame | Sequence[Mapping[str, Any]]"

_ROWS_A_GROUP: Final = 1_000_000
_TEXT_BYTES_A_GROUP: Final = 1_000_000_000
_SUFFIX: Final = ".parquet"
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_AT_ONCE: Final = 4  # runs that are listed side by side
_MOST_NAMES: Final = 20  # of runs in a message


class StoreError(Exception):
    """A run that cannot be read or written. Its message says where, what, and what to do, in one line."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


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
                write_page_checksum=True,
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
    """A run on disk whose schema version has been checked; its tables are read when asked for.

    Attributes:
        tables: names of the tables that have rows.
    """

    path: Path
    info: Mapping[str, Any]
    tables: tuple[str, ...]

    @property
    def run_id(self) -> str:
        return str(self.info["run_id"])

    @property
    def title(self) -> str:
        """What a list of runs shows: label, device, day."""
        device = self.info["device_name"] or self.info["cpu_name"]
        return one_line(f"{self.info['label'] or self.run_id} · {device} · {self.info['started_at']:%Y-%m-%d %H:%M}")

    @cached_property
    def timed(self) -> frozenset[str]:
        """Workloads of a run that has samples.

        Raises:
            StoreError: a file is damaged.
        """
        return frozenset(self.table("cases", ["workload"])["workload"]) if self.rows("samples") else frozenset()

    def rows(self, name: str) -> int:
        """How many rows a table has, without reading them.

        Raises:
            StoreError: the file is damaged.
        """
        if name not in self.tables:
            return 0
        with _opened(self._file(name)) as parquet:
            return int(parquet.metadata.num_rows)

    def table(self, name: str, columns: Sequence[str] | None = None, *, categories: bool = False) -> "pd.DataFrame":
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
        return self.rows(name)

    def scan(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The same, a million rows at a time at most, for what is made of columns that need not be kept.

        Raises:
            StoreError: as `table` does.
        """
        if name in self.tables:
            with _opened(self._file(name)) as parquet:
                _check_columns(self._file(name), schema.TABLES[name], parquet.schema_arrow)
                for group in range(parquet.num_row_groups):
                    yield from parquet.read_row_group(group, columns=list(columns)).to_batches()

    def _arrow(self, name: str, columns: Sequence[str], categories: bool) -> pa.Table:
        table = schema.TABLES[name]
        if name not in self.tables:
            return table.arrow.empty_table().select(columns)
        with _opened(self._file(name), table if categories else None) as parquet:
            _check_columns(self._file(name), table, parquet.schema_arrow)
            there = set(parquet.schema_arrow.names)
            found = parquet.read(columns=[name for name in columns if name in there]).unify_dictionaries()
        return _with_later(found, table).select(columns)

    def _file(self, name: str) -> Path:
        return self.path / f"{name}{_SUFFIX}"


@dataclass(frozen=True)
class BadRun:
    """A run folder that cannot be opened, and why. `run` is what table `run` says, where that much can be read."""

    path: Path
    reason: str
    run: Run | None = None

    @property
    def name(self) -> str:
        """The folder's name, as text that can be shown."""
        return one_line(self.path.name)


class _Glanced(NamedTuple):
    """What was found in a folder when it, and all of its files if it was bad, were in these states."""

    now: Hashable
    found: Run | BadRun
    files: Hashable = None


#: What was found out about a folder, with what tells whether it changed since.
_glanced: Final[dict[Path, _Glanced]] = {}
_opened_before: Final[dict[Path, tuple[Hashable, StoreError | None]]] = {}
_listed: Final[dict[Path, frozenset[str]]] = {}


def open_run(path: Path) -> Run:
    """Open one run and check all of it: columns, values, keys, and the checksums of pages.

    The check is remembered until a file of the run changes.

    Raises:
        StoreError: the folder has no readable table `run`, or a table of another schema version, or a foreign file, or a table has
            damaged pages or values that `schema` does not allow.
    """
    if not files.is_folder(path):
        raise StoreError(f"{path}: no such run; `python -m collectors runs` lists those there are")
    found = _glance(path)
    if isinstance(found, BadRun):
        raise StoreError(found.reason)
    now = state_of(path)
    known = _opened_before.get(path)
    if known is None or known[0] != now:
        known = (now, _why_not(found))
        if not (known[1] and files.is_passing(known[1].__cause__)):
            _opened_before[path] = known
    if known[1] is not None:
        raise StoreError(str(known[1]))
    return found


def list_runs(folders: Iterable[Path]) -> tuple[list[Run], list[BadRun]]:
    """Every run below the folders, newest first, and every folder that should be one and cannot be opened.

    Table `run` alone is read, and that once; the others are looked at from outside. So a run may turn out to be bad when `open_run` checks
    it, and counts as bad from then on. A folder that does not exist holds no run. Staging folders of unfinished runs start with a dot and
    are passed over.
    """
    found: list[Run | BadRun] = []
    for folder in folders:
        try:
            paths = _run_folders(folder)
        except OSError as error:
            found.append(BadRun(folder, one_line(f"{folder}: cannot be read ({error.strerror}); choose another --data-dir")))
            continue
        with ThreadPoolExecutor(_AT_ONCE) as pool:  # which starts no thread for what is known
            new = [path for path in paths if path not in _glanced]
            list(pool.map(_glance, new))
        found += map(_glance, paths)
    good: list[Run] = []
    bad: list[BadRun] = []
    for each in found:
        if isinstance(each, BadRun):
            bad.append(each)
        elif reason := _refused_before(each.path):
            bad.append(BadRun(each.path, reason, each))
        else:
            good.append(each)
    good.sort(key=lambda run: run.info["started_at"], reverse=True)
    bad.sort(key=lambda run: run.path)
    return good, bad


def find_run(name: str, folders: Sequence[Path]) -> Run:
    """The run of that id or label, or at that path; the newest where several share a label.

    Raises:
        StoreError: there is none, or it cannot be opened.
    """
    places = [Path(name), *(folder / name for folder in folders)] if "\0" not in name else []
    for path in places:
        if os.path.lexists(path / f"run{_SUFFIX}"):
            return open_run(path)
    good, bad = list_runs(folders)
    for run in good:
        if name and name in (run.info["label"], run.run_id):
            return open_run(run.path)
    for path in (*(run.path for run in bad if name in (run.path.name, run.name)), *places[:1]):
        if name and files.is_folder(path):
            return open_run(path)
    known = sorted({run.info["label"] or run.run_id for run in good})
    more = f" and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else ""
    raise StoreError(f"{name}: no such run; known runs: {', '.join(known[:_MOST_NAMES]) or 'none'}{more}")


def _run_folders(folder: Path) -> list[Path]:
    """Folders of runs, by name; what was known of those that are gone is forgotten."""
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        names = {entry.name for entry in entries if not entry.name.startswith((".", "_")) and entry.is_dir()}
    for gone in _listed.get(folder, frozenset()) - names:
        _glanced.pop(folder / gone, None)
        _opened_before.pop(folder / gone, None)
    _listed[folder] = frozenset(names)
    return [folder / name for name in sorted(names)]


def _refused_before(path: Path) -> str | None:
    """Why `open_run` refused a run that has not changed since; None where it did not."""
    known = _opened_before.get(path)
    return str(known[1]) if known and known[1] and known[0] == state_of(path) else None


def _glance(path: Path) -> Run | BadRun:
    """What table `run` says, and whether the others look like tables from outside; remembered until the folder changes."""
    try:
        folder = path.stat()
        now: Hashable = (folder.st_mtime_ns, folder.st_ino, *files.file_state(path / f"run{_SUFFIX}"))
    except OSError as error:
        now = error.errno
    known = _glanced.get(path)
    # Of a bad run any file may be mended.
    if known and known.now == now and (isinstance(known.found, Run) or known.files == state_of(path)):
        return known.found
    try:
        known = _Glanced(now, _read_run(path))
    except Exception as error:  # whatever it is, it must not hide the other runs
        said = error if isinstance(error, StoreError) else StoreError(f"{path}: {_what(error)}; {_cure(path / 'run')}")
        known = _Glanced(now, BadRun(path, str(said)), state_of(path))
        if files.is_passing(error.__cause__ or error):
            return known.found
    _glanced[path] = known
    return known.found


def _read_run(path: Path) -> Run:
    file = path / f"run{_SUFFIX}"
    with os.scandir(path) as entries:
        names = sorted(entry.name for entry in entries if entry.name.endswith(_SUFFIX))
    if file.name not in names:
        raise StoreError(f"{path}: has no run{_SUFFIX}, so it is not a complete run; record or import it again")
    tables = []
    for name in names:
        if problem := files.ends_problem(path / name):
            raise StoreError(f"{path / name}: {problem}; {_cure(path / name)}")
        tables.append(name.removesuffix(_SUFFIX))
    with _opened(file) as parquet:
        found = parquet.schema_arrow
        if "schema_version" not in found.names:
            raise StoreError(f"{file}: lacks column schema_version, so Warpladder did not write it; remove the folder")
        if parquet.metadata.num_rows != 1:
            raise StoreError(f"{file}: has {parquet.metadata.num_rows} rows where a run has one; record or import it again")
        # One row: starting threads would take longer than reading it.
        read = parquet.read(use_threads=False)
        written = read.column(found.names.index("schema_version"))[0].as_py()
        if written != schema.SCHEMA_VERSION:
            raise StoreError(
                f"{file}: column schema_version is {written}, and this Warpladder reads version {schema.SCHEMA_VERSION}; "
                "open it with the Warpladder that wrote it, or record the run again"
            )
        _check_columns(file, schema.RUN, found)
        foreign = next((name for name in tables if name not in schema.TABLES), None)
        if foreign is not None:
            raise StoreError(f"{path / foreign}{_SUFFIX}: not a table of schema version {written}; remove the file")
        if wrong := checks.first_problem(schema.RUN, read):
            raise StoreError(f"{file}: {wrong}; {_cure(file)}")
        return Run(path, _info(read), tuple(name for name in schema.TABLES if name in tables))


def _info(row: pa.Table) -> dict[str, Any]:
    """The row of table `run`. Its time is made here: pyarrow would import pandas to make it."""
    started_us = row["started_at"].cast(pa.int64())[0].as_py()
    info = row.drop_columns(["started_at"]).to_pylist()[0]
    return {**info, "started_at": datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=started_us)}


def _why_not(run: Run) -> StoreError | None:
    """What is wrong with the tables of a run; None where nothing is."""
    checker = checks.Checker()
    try:
        for name in run.tables:
            _check_table(run.path / f"{name}{_SUFFIX}", schema.TABLES[name], checker)
    except StoreError as error:
        return error
    return None


def _check_table(file: Path, table: schema.Table, checker: checks.Checker) -> None:
    with _opened(file, table) as parquet:
        _check_columns(file, table, parquet.schema_arrow)
        if not parquet.metadata.num_rows:
            raise StoreError(f"{file}: has no rows, and a table without rows has no file; {_cure(file)}")
        for group in range(parquet.num_row_groups):
            rows = _with_later(parquet.read_row_group(group), table)
            if problem := checker.piece(table, rows):
                raise StoreError(f"{file}: {problem}; {_cure(file)}")
        if problem := checker.end(table):
            raise StoreError(f"{file}: {problem}; {_cure(file)}")


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


def _typed(table: schema.Table, rows: Rows) -> pa.Table:
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
    return _frame(schema.TABLES[name], conform(name, rows))


def foreign_columns(file: Path) -> tuple[frozenset[str], int]:
    """Names of the columns of a parquet file that is not a run's, and how many rows it has.

    Raises:
        StoreError: the file is not parquet.
    """
    try:
        metadata = pq.read_metadata(file)
        return frozenset(metadata.schema.to_arrow_schema().names), int(metadata.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{file.name}: not a readable parquet file ({_first_line(error)}); export the report again") from error


def scan_foreign(
    file: Path, integers: Sequence[str], texts: Sequence[str], batch_rows: int, text_limit: int
) -> Iterator[pa.RecordBatch]:
    """Rows of a parquet file that is not a run's, batch by batch, its texts cut to `text_limit` characters.

    Texts come as dictionaries, so that one that stands in a million rows is held once.

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
    return pa.DictionaryArray.from_arrays(texts.indices, values)


@contextmanager
def _opened(file: Path, categories: schema.Table | None = None) -> Iterator[pq.ParquetFile]:
    """A parquet file of a run.

    Args:
        file: the file.
        categories: the table whose text columns are read as dictionaries; None for none.

    Raises:
        StoreError: it is no readable parquet file, or turns out to be damaged while it is read.
    """
    # A column that came later may be missing, and cannot be asked for then.
    texts = [c.name for c in categories.columns if pa.types.is_string(c.type) and not c.later] if categories else []
    if problem := files.kind_problem(file):
        raise StoreError(f"{file}: {problem}; {_cure(file)}")
    try:
        source = pa.OSFile(os.fsencode(file))
        parquet = pq.ParquetFile(source, read_dictionary=texts, page_checksum_verification=True)
    except Exception as error:  # a damaged footer makes pyarrow raise nearly anything
        raise StoreError(f"{file}: not a readable parquet file ({_what(error)}); {_cure(file)}") from error
    with parquet:
        try:
            yield parquet
        except StoreError:
            raise
        except Exception as error:
            raise StoreError(f"{file}: damaged ({_what(error)}); {_cure(file)}") from error


def _check_columns(file: Path, table: schema.Table, found: pa.Schema) -> None:
    for column in table.columns:
        count = found.names.count(column.name)
        if count > 1:
            raise StoreError(f"{file}: has column {column.name} {count} times; {_cure(file)}")
        if not count:
            if column.later:
                continue
            raise StoreError(f"{file}: lacks column {column.name} of schema version {schema.SCHEMA_VERSION}; {_cure(file)}")
        kind = found.field(column.name).type
        if (kind.value_type if pa.types.is_dictionary(kind) else kind) != column.type:
            raise StoreError(f"{file}: column {column.name} is {kind}, not {column.type}; {_cure(file)}")
    foreign = [name for name in found.names if name not in table.arrow.names]
    if foreign:
        raise StoreError(f"{file}: has the foreign column {foreign[0]}; {_cure(file)}")


def _with_later(found: pa.Table, table: schema.Table) -> pa.Table:
    """With the columns that came later, and which the file may lack, as nulls."""
    for column in table.columns:
        if column.later and column.name not in found.column_names:
            found = found.append_column(column.field, pa.nulls(len(found), column.type))
    return found


def _frame(table: schema.Table, arrow: pa.Table) -> "pd.DataFrame":
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


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _what(error: Exception) -> str:
    """What went wrong while reading, without the file's name, which stands before it."""
    return error.strerror if isinstance(error, OSError) and error.strerror else _first_line(error)


def _cure(file: Path) -> str:
    return f"remove the folder {file.parent.name}, then record or import the run again"


def to_json(value: Mapping[str, Any]) -> str:
    """JSON object for a column that holds one, with sorted keys so that equal objects are equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
