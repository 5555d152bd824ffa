"""SQLite's files beside a database: `-wal` holds changes not yet in the database, `-journal` undoes an interrupted write."""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeAlias

from warpladder.collectors.trace.report import ReportError

Remarks: TypeAlias = Sequence[tuple[str, str]]


@contextmanager
def settled(path: Path) -> Iterator[tuple[Path, Remarks]]:
    """Yield the path of a database with all committed changes, and remarks. Valid for the duration of the block.

    SQLite reads a `-wal` only if it may write beside the database. So both files are copied to a temporary folder and joined
    there. The user's files stay unchanged.

    Raises:
        ReportError: a write to the database was interrupted, another program is writing to it, or it cannot be copied.
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
    """Move the changes in the -wal of a copy into the copy.

    Returns:
        severity and text of a remark.
    """
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
