"""Notices that files are saved: by their times and sizes, which costs a measurement on the same machine next to nothing."""

import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

#: Seconds between two looks.
LOOK_S: Final = 0.2
#: Seconds without a change after which a save is complete: editors write in several steps, or to another file that they rename.
_QUIET_S: Final = 0.25
#: Seconds that the user's own file may be missing meanwhile.
_MISSING_S: Final = 2.0

_Marks = dict[Path, tuple[int, int, int] | None]


class Saves:
    """Saves of files. `files`: the files, whether or not they are there."""

    def __init__(self, files: Collection[Path] = ()) -> None:
        self._marks = _marks(files)

    def watch(self, files: Collection[Path]) -> None:
        """Watch these files from now on. A save of one that was watched before still counts."""
        self._marks = {**_marks(files), **{file: mark for file, mark in self._marks.items() if file in files}}

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(self._marks)

    def seen(self) -> bool:
        """Whether a file was saved, made or removed since the last call of `settle`."""
        return _marks(self._marks) != self._marks

    def settle(self, needed: Collection[Path], ended: Callable[[], bool]) -> list[Path]:
        """Wait until what was begun is complete, and return the files that were saved.

        Args:
            needed: files that an editor removes for a moment only.
            ended: whether to wait no longer.
        """
        before, now, last_change_s = self._marks, _marks(self._marks), time.monotonic()
        while not ended():
            time.sleep(_QUIET_S / 5)
            new = _marks(now)
            if new != now:
                now, last_change_s = new, time.monotonic()
            missing = any(new.get(file) is None for file in needed)
            if time.monotonic() - last_change_s >= (_MISSING_S if missing else _QUIET_S):
                break
        self._marks = now
        return [file for file in now if now[file] != before.get(file)]


def _marks(files: Collection[Path]) -> _Marks:
    """Time of the last change in nanoseconds, size in bytes and number of each file; None for one that is not there."""
    marks: _Marks = {}
    for file in files:
        try:
            status = file.stat()
            marks[file] = (status.st_mtime_ns, status.st_size, status.st_ino)
        except (OSError, ValueError):
            marks[file] = None
    return marks
