"""Checks of a file before it is read: whether it can be read, was cut off, or has changed.

The store, the importers of reports and the dashboard share them.
"""

import os
from collections.abc import Hashable
from pathlib import Path
from stat import S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFMT, S_IFSOCK, S_ISREG
from typing import Final

_PARQUET: Final = b"PAR1"
_KINDS: Final = {S_IFDIR: "a folder", S_IFIFO: "a FIFO", S_IFSOCK: "a socket", S_IFCHR: "a device", S_IFBLK: "a device"}


def one_line(text: str) -> str:
    """Text that can be printed and sent anywhere: bytes of a file's name that are not UTF-8, and what ends or hides a line, as escapes."""
    known = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in known)


def state_of(folder: Path) -> Hashable:
    """Differs after a file of the folder was changed, or another folder took its name."""
    try:
        with os.scandir(folder) as entries:
            return tuple(sorted((entry.name, *file_state(entry)) for entry in entries))
    except OSError as error:
        return error.errno


def file_state(file: Path | os.DirEntry[str]) -> tuple[int, ...]:
    """Size, time of change, number and rights of a file; those of the link where a link leads nowhere.

    Raises:
        OSError: it is not there.
    """
    try:
        stat = file.stat()
    except OSError:
        stat = file.stat(follow_symlinks=False)
    return stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_mode


def is_folder(path: Path) -> bool:
    """Whether it is a folder; False too for a name that is too long, and where it may not be looked into."""
    try:
        return path.is_dir()
    except OSError:
        return False


def kind_problem(file: Path) -> str | None:
    """Why it is no file to be read: a FIFO would be waited for, and a folder read as several files. None where it is one."""
    try:
        mode = file.stat().st_mode
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return None if S_ISREG(mode) else f"is not a file but {_KINDS.get(S_IFMT(mode), 'something else')}"


def ends_problem(file: Path) -> str | None:
    """Why it is no parquet file, by its first and last four bytes, which one that was cut off has not; None where it may be one."""
    if problem := kind_problem(file):
        return problem
    try:
        with file.open("rb") as opened:
            begin = opened.read(len(_PARQUET))
            opened.seek(max(opened.seek(0, os.SEEK_END) - len(_PARQUET), 0))
            end = opened.read(len(_PARQUET))
    except OSError as error:
        return f"cannot be read ({error.strerror}{'; chmod u+r gives the right' if isinstance(error, PermissionError) else ''})"
    return None if begin == end == _PARQUET else "not a readable parquet file (it was cut off, or is another file)"


def is_passing(error: BaseException | None) -> bool:
    """Whether it may go well the next time: the system refused, or had no memory; a file's content was not to blame.

    pyarrow raises an OSError without a number for content, too.
    """
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and bool(error.errno))
