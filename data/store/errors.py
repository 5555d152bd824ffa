"""The errors of the store. A message says where, what, and what to do, in one line."""

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from warpladder.data.files import one_line
from warpladder.errors import Error

#: What to do about an error of the system; for any other the disk is to be checked.
_TO_DO: Final = {
    errno.EACCES: "chmod u+r gives the right",
    errno.ELOOP: "remove the link, which leads to itself",
    errno.ENOENT: "it was deleted meanwhile; `warpladder runs` lists the runs that there are",
    errno.EMFILE: "close other files, or raise `ulimit -n`",
    errno.ENFILE: "close other files, or raise `ulimit -n`",
}


class StoreError(Error):
    """A run that cannot be read or written. Its message says where, what, and what to do, in one line."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class NoSuchRun(StoreError):
    """No run has that name. `known`: labels, or ids of runs without one; `more` of them are left out."""

    def __init__(self, name: str, names: Sequence[str], more: int = 0) -> None:
        self._what, self._names = f"{name}: no such run; known runs:", [*names, *([f"and {more} more"] if more else [])]
        super().__init__(f"{self._what} {'; '.join(self._names) or 'none'}")

    def lines(self) -> list[str]:
        return [self._what, *(f"  {each}" for each in self._names)] if self._names else [str(self)]


class RunExists(StoreError):
    """There is a run of that name."""


class TooLarge(StoreError):
    """A table is larger than may be read. Its run may be sound.

    Args:
        where: file, or file and column.
        excess: what is too large, as `budget.excess` gives it.
    """

    def __init__(self, where: str, excess: str) -> None:
        super().__init__(f"{where}: {excess}; record or capture less at once")


def unreadable(file: Path, error: Exception, what: str = "damaged") -> StoreError:
    """The error for a file or folder of a run that could not be read.

    Only for bad content the advice is to remove the run: where the system refused, the run may be sound.

    Args:
        what: what is said of bad content.
    """
    if isinstance(error, MemoryError):
        return StoreError(f"{file}: needs more memory than is free; close other programs, or raise the limit of memory")
    if isinstance(error, OSError) and error.errno:
        todo = _TO_DO.get(error.errno, "check the disk that holds it, then try again")
        return StoreError(f"{file}: cannot be read ({error.strerror}); {todo}")
    return StoreError(f"{file}: {what} ({first_line(error)}); {cure(file)}")


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def cure(file: Path) -> str:
    """Tell the cure for bad content of a run's folder or of a file in it."""
    folder = file.parent if file.suffix == ".parquet" else file
    return f"remove the folder {folder.name}, then record or import the run again"
