"""The errors of the store, and how they are worded: where, what, and what to do, in one line."""

from pathlib import Path

from warpladder.data.files import one_line


class StoreError(Exception):
    """A run that cannot be read or written. Its message says where, what, and what to do, in one line."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class RunExists(StoreError):
    """There is a run of that name."""


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def happened(error: Exception) -> str:
    """What went wrong while reading, without the file's name, which stands before it."""
    return error.strerror if isinstance(error, OSError) and error.strerror else first_line(error)


def cure(file: Path) -> str:
    return f"remove the folder {file.parent.name}, then record or import the run again"
