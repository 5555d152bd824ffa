"""The folders of runs, and files from outside. Importing this module loads nothing else of the project."""

import errno
import hashlib
import os
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path
from stat import S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFMT, S_IFSOCK, S_ISREG
from typing import Final

from warpladder.installation import IS_CHECKOUT, ROOT


def _user_data() -> Path:
    """Folder of a user's own data by the XDG Base Directory Specification: `$XDG_DATA_HOME`, or `~/.local/share`."""
    folder = Path(os.environ.get("XDG_DATA_HOME", ""))
    return folder if folder.is_absolute() else Path.home() / ".local" / "share"


#: The runs that ship with the project.
RECORDED: Final = ROOT / "data" / "recorded"
#: The runs of this machine, where no other folder is named.
LOCAL: Final = ROOT / "data" / "local" if IS_CHECKOUT else _user_data() / "warpladder" / "runs"


def sha256(path: Path) -> str | None:
    """Of a file's bytes, in hexadecimal digits; None for what is no file or cannot be read."""
    with suppress(OSError), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
    return None


_PARQUET: Final = b"PAR1"
_KINDS: Final = {S_IFDIR: "a folder", S_IFIFO: "a FIFO", S_IFSOCK: "a socket", S_IFCHR: "a device", S_IFBLK: "a device"}


def one_line(text: str) -> str:
    """Text that can be printed anywhere, and that any XML may hold.

    Bytes that are not UTF-8 and characters that are not printable become escapes: those that end a line or turn its direction,
    and what a terminal would carry out. Every text that leaves the program goes through this function, after which Markdown, HTML
    and LaTeX escape what they read as markup.
    """
    if text.isprintable():
        return text
    printable = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in printable)


def state_of(folder: Path) -> Hashable:
    """A value that changes when a file of the folder changes, or another folder takes its name."""
    try:
        with os.scandir(folder) as entries:
            return tuple(sorted((entry.name, *file_state(entry)) for entry in entries))
    except OSError as error:
        return error.errno


def file_state(file: Path | os.DirEntry[str]) -> tuple[int, ...]:
    """Size, time of change, inode and rights of a file; of the link itself if it is broken. Raises OSError: it is not
    there."""
    try:
        stat = file.stat()
    except OSError:
        stat = file.stat(follow_symlinks=False)
    return stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_mode


def is_folder(path: Path) -> bool:
    """Whether it is a folder. False too for a name that is too long, and for lack of rights."""
    try:
        return path.is_dir()
    except OSError:
        return False


def kind_problem(file: Path) -> str | None:
    """Why it cannot be read as a file, e.g. because it is a folder or a FIFO; None if it can. Raises OSError: it cannot
    be looked at."""
    mode = file.stat().st_mode
    return None if S_ISREG(mode) else f"is not a file but {_KINDS.get(S_IFMT(mode), 'something else')}"


def read_bytes(file: Path, most: int = -1) -> bytes:
    """The content of a file, or its first bytes. Opening a FIFO would wait for a writer, which no signal ends. Raises
    OSError: it cannot be read, or it is a folder, a FIFO, a socket or a device.

    Args:
        most: bytes to read at most; all if it is negative.
    """
    if problem := kind_problem(file):
        raise OSError(errno.EINVAL, problem, str(file))
    with file.open("rb") as opened:
        return opened.read(most)


def ends_problem(file: Path) -> str | None:
    """Why it is no parquet file, by its first and last four bytes; None if it may be one. A file that was cut off lacks
    the last ones. Raises OSError: it cannot be read."""
    if problem := kind_problem(file):
        return problem
    with file.open("rb") as opened:
        begin = opened.read(len(_PARQUET))
        opened.seek(max(opened.seek(0, os.SEEK_END) - len(_PARQUET), 0))
        end = opened.read(len(_PARQUET))
    return None if begin == end == _PARQUET else "not a readable parquet file (it was cut off, or is another file)"


def is_passing(error: BaseException | None) -> bool:
    """Whether another attempt may succeed: the system refused or ran out of memory, and the content of a file was not the
    cause.

    pyarrow raises an OSError without a number for bad content.
    """
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and bool(error.errno))
