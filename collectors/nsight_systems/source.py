"""Opens a report in any format: SQLite export, folder of parquet files, or `.nsys-rep`/`.qdrep` through `nsys export`.

A report may come from an untrusted source. It is opened read-only and never changed. Only plain tables are read, by names from
this package, and none of their generated columns. So no expression of the file runs. Rows, steps and seconds are limited. Texts
are cut to `TEXT_LIMIT`, so that a long string in a file cannot exhaust memory.
"""

import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote

import pyarrow as pa

from warpladder.collectors.nsight_systems.entry import NSYS
from warpladder.collectors.nsight_systems.report import TEXT_LIMIT, Report
from warpladder.collectors.trace.model import BATCH_ROWS, Columns, ReportError
from warpladder.data import files, store
from warpladder.data.store.errors import first_line

_HEAD_BYTES: Final = 256
_SQLITE_MAGIC: Final = b"SQLite format 3\0"
_NSYS_MAGIC: Final = b"NVIDIA Tegra Profiler Report"
_LFS_MAGIC: Final = b"version https://git-lfs"
#: First bytes of compressed files.
_PACKED: Final = {b"\x1f\x8b": "gzip", b"\xfd7zXZ": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
_UNKNOWN: Final = "not a report of Nsight Systems or Nsight Compute, and no JSON trace of PyTorch's profiler, JAX or Proton"
_CURE: Final = "name a .nsys-rep, or what `nsys export --type sqlite` or `--type parquetdir` made of it"

#: A report with more tables is refused; exports have about a hundred.
_MOST_TABLES: Final = 10_000
#: Limit of steps of SQLite's virtual machine per table; reading its name takes about 6, and listing it 10.
_STEPS_A_TABLE: Final = 15
#: Limit of its steps when it asks whether a table has a row.
_STEPS_OF_A_ROW: Final = 1_000
#: Fewest bytes of a row in a file. A file whose tables have more rows refers to the same page again and again.
_LEAST_ROW_BYTES: Final = 4
#: Seconds that reading a file may take, and bytes for which it may take a second more: a slow network disk reads 20 MB/s.
_SECONDS: Final = 30.0
_BYTES_A_SECOND: Final = 4_000_000

#: Column of bytes, which is read as hexadecimal digits. It is read from SQLite only.
_BLOB: Final = "binaryData"

#: A table StringIds and any of these show that Nsight Systems wrote the file.
_MARKS: Final = frozenset(
    {
        *("ProcessStreams", "TARGET_INFO_SESSION_START_TIME", "META_DATA_EXPORT", "EXPORT_META_DATA", "ENUM_NSYS_EVENT_TYPE"),
        *("NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "ANALYSIS_DETAILS", "TARGET_INFO_GPU"),
    }
)


class SqliteReport(Report):
    """A SQLite export, opened read-only and immutable. The bytes of `binaryData` are texts of hexadecimal digits.
    Raises ReportError: the file is not a SQLite export, or is damaged.

    Args:
        path: a database without a `-wal` or `-journal` file that no program has open, as `settled` returns it.
        name: the file's name, for messages.
        remarks: remarks returned by `settled`.
    """

    def __init__(self, path: Path, name: str, remarks: Sequence[tuple[str, str]] = ()) -> None:
        self._uri = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
        size = _check_length(path, name)
        self._most_rows = size // _LEAST_ROW_BYTES
        try:
            with self._limited(_STEPS_A_TABLE * _MOST_TABLES) as database:
                columns = _columns(database, name)
        except (sqlite3.Error, UnicodeError) as error:
            raise ReportError(f"{name}: a damaged SQLite file ({error}); export it again") from error
        super().__init__(name, _of_nsys(name, columns), remarks, _SECONDS + size / _BYTES_A_SECOND)

    @contextmanager
    def _limited(self, steps: int) -> Iterator[sqlite3.Connection]:
        """The file, for statements that end with an error after that many steps of SQLite's virtual machine."""
        with closing(sqlite3.connect(self._uri, uri=True)) as database:
            database.set_progress_handler(lambda: True, steps)
            yield database

    def _has_rows(self, table: str) -> bool:
        try:
            with self._limited(_STEPS_OF_A_ROW) as database:  # names of this package only
                return database.execute(f'select 1 from "{table}" limit 1').fetchone() is not None
        except sqlite3.Error as error:
            raise self._damaged(table, error) from error

    def _read(self, table: str, integers: Sequence[str], texts: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        import adbc_driver_sqlite.dbapi as adbc  # which imports pandas

        # ADBC takes a column's type from the first batch, so every column is cast to a fixed type.
        picked = [f'cast("{name}" as integer) as "{name}"' for name in integers]
        picked += [
            f'hex(substr("{name}", 1, {TEXT_LIMIT // 2})) as "{name}"'
            if name == _BLOB
            else f'coalesce(cast(substr("{name}", 1, {TEXT_LIMIT}) as text), \'\') as "{name}"'
            for name in texts
        ]
        options = {"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)}
        rows = 0
        try:
            with adbc.connect(self._uri) as connection, connection.cursor(adbc_stmt_kwargs=options) as cursor:
                cursor.execute(f'select {", ".join(picked)} from "{table}"')  # names of this package only
                for batch in cursor.fetch_record_batch():
                    rows += batch.num_rows
                    if rows > self._most_rows:
                        raise ReportError(
                            f"{self.name}: table {table} has more rows than the file has room for; export it again"
                        )
                    yield batch
        except (adbc.Error, pa.ArrowException, OSError) as error:
            raise self._damaged(table, error) from error

    def _damaged(self, table: str, error: Exception) -> ReportError:
        return ReportError(f"{self.name}: table {table} is damaged ({first_line(error)}); export it again")


class ParquetReport(Report):
    """A folder of parquet files, one per table, as `nsys export --type parquetdir` writes it."""

    def __init__(self, folder: Path, name: str) -> None:
        self._files = {file.stem: file for file in sorted(folder.glob("*.parquet"))}
        if not self._files:
            raise ReportError(f"{name}: a folder without tables; {_CURE}, or import the folder of a job's profiles with --job")
        _refuse_many(name, len(self._files))
        try:
            tables = {table: store.foreign_columns(file) for table, file in self._files.items()}
        except store.StoreError as error:
            raise ReportError(first_line(error)) from error
        self._rows = {table: rows for table, (_, rows) in tables.items()}
        super().__init__(name, _of_nsys(name, {table: columns - {_BLOB} for table, (columns, _) in tables.items()}))

    def _has_rows(self, table: str) -> bool:
        return self._rows[table] > 0

    def _read(self, table: str, integers: Sequence[str], texts: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        try:
            yield from store.scan_foreign(self._files[table], integers, texts, BATCH_ROWS, TEXT_LIMIT)
        except store.StoreError as error:
            raise ReportError(first_line(error)) from error


@contextmanager
def open_report(path: Path, name: str = "") -> Iterator[Report]:
    """Open a report for the duration of the block. Messages call it `name`, else the name of the file. Raises
    ReportError: the file is not a report or is damaged, or `nsys` is needed for the export and not found."""
    name = name or path.name
    is_folder, head = _looked_at(path)
    if is_folder:
        yield ParquetReport(path, name)
    elif head.startswith(_SQLITE_MAGIC):
        with settled(path) as (database, remarks):
            yield SqliteReport(database, name, remarks)
    elif head.startswith(_NSYS_MAGIC):
        with (
            tempfile.TemporaryDirectory(prefix="warpladder-") as folder,
            open_report(exported(path, Path(folder)), name) as report,
        ):
            yield report
    elif head.startswith(_LFS_MAGIC):
        raise ReportError(f"{path.name}: a git-lfs pointer, not the report itself; fetch it with `git lfs pull`")
    elif not head:
        raise ReportError(f"{path.name}: empty; {_CURE}")
    else:
        packed = next((name for magic, name in _PACKED.items() if head.startswith(magic)), "")
        why = (
            f"compressed with {packed}, which Warpladder unpacks for JSON traces only; unpack it, and import what is inside"
            if packed
            else ""
        )
        raise ReportError(f"{path.name}: {why or f'{_UNKNOWN}; {_CURE}'}")


def exported(path: Path, folder: Path) -> Path:
    """The report itself, or what `nsys export` makes of a `.nsys-rep` or `.qdrep` in a folder. Raises ReportError: the
    file cannot be read, or `nsys` is needed for the export and not found."""
    _, head = _looked_at(path)
    return export(path, _made_by(head), folder) if head.startswith(_NSYS_MAGIC) else path


def _looked_at(path: Path) -> tuple[bool, bytes]:
    """Whether a report is a folder, and the first bytes of a file."""
    try:
        return (True, b"") if path.is_dir() else (False, files.read_bytes(path, _HEAD_BYTES))
    except OSError as error:
        raise ReportError(f"{path.name}: cannot be read ({error.strerror}); check the path and its permissions") from error


def _made_by(head: bytes) -> str:
    """Return the version that wrote a report, from its first bytes; empty if they do not hold it."""
    match = re.match(rb"NVIDIA Tegra Profiler Report (\d+)@(\d+)", head)
    return f"written by Nsight Systems {match[1].decode()}.{match[2].decode()}; " if match else ""


def _of_nsys(name: str, columns: Columns) -> Columns:
    """Return the columns unchanged if they are the columns of Nsight Systems; else raise ReportError."""
    if "StringIds" in columns and columns.keys() & _MARKS:
        return columns
    if "StringTable" in columns and any(table.startswith("CUPTI_ACTIVITY") for table in columns):
        raise ReportError(
            f"{name}: a database of nvprof, whatever its name ends in, and not of Nsight Systems; profile again with nsys"
        )
    raise ReportError(f"{name}: not an export of Nsight Systems (no table StringIds among its tables); {_CURE}")


def _columns(database: sqlite3.Connection, name: str) -> Columns:
    """Return plain table -> names of its columns that are stored.

    SQLite itself tells what is a plain table. A view or a virtual table can generate rows without end. SQLite would prepare and
    call them to list their columns, so that all but the two pragmas is forbidden.

    The number of tables is limited, since the rows of each are read through a new connection.
    """
    database.execute("pragma trusted_schema = off")
    database.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action == sqlite3.SQLITE_PRAGMA else sqlite3.SQLITE_DENY)
    try:
        listed = database.execute("pragma main.table_list").fetchall()
    except sqlite3.OperationalError as error:
        if str(error) == "interrupted":
            _refuse_many(name, _MOST_TABLES + 1)
        raise
    if not listed:
        raise ReportError(
            f"{name}: cannot be checked with SQLite {sqlite3.sqlite_version}; use a Python with SQLite 3.37 or later"
        )
    tables = [str(table) for _, table, kind, *_ in listed if kind == "table" and not str(table).startswith("sqlite_")]
    _refuse_many(name, len(tables))
    # `table_info` leaves out generated columns.
    return {
        table: frozenset(str(row[1]) for row in database.execute(f"pragma main.table_info({_quoted(table)})"))
        for table in tables
    }


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _refuse_many(name: str, tables: int) -> None:
    if tables > _MOST_TABLES:
        raise ReportError(
            f"{name}: has over {_MOST_TABLES:,} tables, where an export of Nsight Systems has about a hundred; export it again"
        )


def _check_length(path: Path, name: str) -> int:
    """Return the file's length in bytes, after a comparison with the page count in SQLite's header; an incomplete download is
    shorter."""
    with path.open("rb") as file:
        head = file.read(100)
    page = int.from_bytes(head[16:18], "big")
    page = 65_536 if page == 1 else page
    pages = int.from_bytes(head[28:32], "big")
    counted = head[24:28] == head[92:96]  # the header's page count is valid only if these are equal
    size = path.stat().st_size
    if len(head) < 100 or (counted and page * pages > size):
        raise ReportError(f"{name}: truncated; copy it again, or export it again")
    return size


Remarks: TypeAlias = Sequence[tuple[str, str]]


@contextmanager
def settled(path: Path) -> Iterator[tuple[Path, Remarks]]:
    """Yield the path of a database with all committed changes, and remarks. Valid for the duration of the block. Raises
    ReportError: a write to the database was interrupted, another program is writing to it, or it cannot be copied.

    A `-wal` beside it holds changes that are not in it yet, and a `-journal` undoes an interrupted write. SQLite reads a `-wal` only if it may write beside the database. So both files are copied to a temporary folder and joined
    there. The user's files stay unchanged.
    """
    # For a symbolic link, SQLite keeps them beside the link's target.
    database = path.resolve()
    wal, journal = (database.with_name(f"{database.name}-{ending}") for ending in ("wal", "journal"))
    try:
        # A finished journal is empty or begins with zeros.
        broken_off = journal.is_file() and any(_head(journal))
        unsettled = wal.is_file() and wal.stat().st_size > 0
    except OSError as error:
        raise ReportError(f"{path.name}: its -wal or -journal cannot be read ({error.strerror}); check permissions") from error
    if broken_off:
        raise ReportError(
            f"{path.name}: a write to it was interrupted ({journal.name} beside it can undo that); export it again, or let "
            f"SQLite undo it: sqlite3 {path.name} .tables"
        )
    if not unsettled:
        yield path, ()
        return
    with tempfile.TemporaryDirectory(prefix="warpladder-") as folder:
        copy = Path(folder) / "report.sqlite"
        _copy(path.name, {database: copy, wal: Path(folder) / "report.sqlite-wal"})
        yield copy, [_join(copy, path.name, wal.name)]


def _head(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(8)


def _copy(name: str, targets: dict[Path, Path]) -> None:
    """Copy files. Raises ReportError if another program writes to them."""
    join = f"close the program that has it open, or join them: sqlite3 {name} 'pragma wal_checkpoint(truncate)'"
    try:
        before = [_state(source) for source in targets]
        for source, target in targets.items():
            shutil.copyfile(source, target)
        after = [_state(source) for source in targets]
    except OSError as error:
        raise ReportError(f"{name}: cannot be copied to be joined with its -wal ({error.strerror}); {join}") from error
    if before != after:
        raise ReportError(f"{name}: is being written; {join}")


def _state(file: Path) -> tuple[int, int]:
    stat = file.stat()
    return stat.st_size, stat.st_mtime_ns


def _join(copy: Path, name: str, wal: str) -> tuple[str, str]:
    """Move the changes in the -wal of a copy into the copy. Returns severity and text of a remark."""
    try:
        with closing(sqlite3.connect(copy)) as database:
            pages = database.execute("pragma wal_checkpoint").fetchone()[1]
            database.execute("pragma journal_mode = delete")
    except sqlite3.Error as error:
        raise ReportError(f"{name}: cannot be joined with {wal} beside it ({error}); export it again") from error
    if pages > 0:
        return "info", f"read with {wal} beside it, which holds changes that are not in the database yet"
    return (
        "warning",
        f"{wal} beside it holds nothing that SQLite can read: the last changes may be missing; export it again",
    )


_EXPORT_TIMEOUT_S: Final = 1800


def export(report: Path, made_by: str, folder: Path) -> Path:
    """Export a report as a folder of parquet files, or as SQLite if this `nsys` cannot write parquet. Return the path.
    Raises ReportError: `nsys` is not found, or cannot read the report.

    Args:
        report: `.nsys-rep` or `.qdrep`.
        made_by: the version that wrote the report, for the message; may be empty.
    """
    elsewhere = f"export it where it was made: nsys export --type sqlite {report.name}"
    if NSYS.path is None:
        raise ReportError(f"{report.name}: {made_by}no nsys on PATH or in the usual folders to export it; {elsewhere}")
    kinds = _run([NSYS.path, "export", "--help"], report, made_by, elsewhere).stdout
    kind, target = ("parquetdir", folder / "report") if "parquetdir" in kinds else ("sqlite", folder / "report.sqlite")
    command = [NSYS.path, "export", "--type", kind, "--output", str(target), str(report.resolve())]
    if _run(command, report, made_by, elsewhere, folder).returncode != 0 or not target.exists():
        raise ReportError(
            f"{report.name}: {made_by}the nsys found here is {NSYS.version or 'unknown'} and reads up to its own version; {elsewhere}"
        )
    return target


def _run(
    command: Sequence[str], report: Path, made_by: str, elsewhere: str, folder: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_EXPORT_TIMEOUT_S, cwd=folder
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise ReportError(f"{report.name}: {made_by}nsys export failed ({type(error).__name__}); {elsewhere}") from error
