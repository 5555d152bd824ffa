"""What SQLite keeps beside a database: changes that were not moved into it yet (`-wal`), and what to undo (`-journal`)."""

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
    """The database with all that was committed to it, as long as the block lasts, and what is to be told about that.

    SQLite would read a `-wal` only where it may write beside the database. So both are copied into a folder of their own, and joined
    there: the user's files stay as they are.

    Raises:
        ReportError: a change to it was broken off, it is being written, or it cannot be copied.
    """
    # Where the name is a link, SQLite keeps them beside the file that it leads to.
    database = path.resolve()
    wal, journal = (database.with_name(f"{database.name}-{ending}") for ending in ("wal", "journal"))
    try:
        # A journal that is done with is empty, or begins with zeros.
        broken_off = journal.is_file() and any(_head(journal))
        unsettled = wal.is_file() and wal.stat().st_size > 0
    except OSError as error:
        raise ReportError(
            f"{path.name}: what SQLite keeps beside it cannot be read ({error.strerror}); check permissions"
        ) from error
    if broken_off:
        raise ReportError(
            f"{path.name}: a change to it was broken off ({journal.name} beside it says how to undo that); export it again, or let SQLite "
            f"undo it: sqlite3 {path.name} .tables"
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
    """Copies files that are not being written."""
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
    """Moves what the -wal of a copy holds into it.

    Returns:
        Severity and text of what is to be told.
    """
    try:
        with closing(sqlite3.connect(copy)) as database:
            pages = database.execute("pragma wal_checkpoint").fetchone()[1]
            database.execute("pragma journal_mode = delete")
    except sqlite3.Error as error:
        raise ReportError(f"{name}: cannot be joined with {wal} beside it ({error}); export it again") from error
    if pages > 0:
        return "info", f"read with {wal} beside it, where SQLite keeps what was not moved into the database yet"
    return (
        "warning",
        f"{wal} beside it holds nothing that SQLite can read: what was written last may be missing; export it again",
    )
