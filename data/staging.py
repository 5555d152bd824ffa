"""The hidden folder in which a run is written until it is complete, and the lock that shows that its writer is alive.

.<run_id>.partial-<pid>/lock      held by flock while the writer lives; the system releases it when the writer ends in any way
.<run_id>.partial-<pid>/tables/   becomes `<run_id>/`; a staging folder without it has been committed
.<run_id>.partial-<pid>/...       state of a recording, from which a later command can finish it if the writer dies
"""

import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_LOCK: Final = "lock"
#: A writer that is killed before it has the lock, or while it removes the folder, leaves no lock. Such a folder is abandoned when
#: its process is gone and it has not changed for this time.
_UNLOCKED_DEAD_S: Final = 24 * 3600.0


class Staging:
    """A staging folder that this process writes; made by `create` or `adopt`.

    Attributes:
        path: the folder.
        tables: folder in it that becomes the run.
    """

    def __init__(self, path: Path, lock: int) -> None:
        self.path, self.tables, self._lock = path, path / "tables", lock

    @classmethod
    def create(cls, data_dir: Path, run_id: str) -> "Staging":
        """A new staging folder. The data folder is made if it is missing.

        Raises:
            FileExistsError: there is one of this name, or another process adopted it before it was locked.
            OSError: the folder cannot be written.
        """
        path = data_dir / f".{run_id}.partial-{os.getpid()}"
        path.mkdir(parents=True)
        lock = -1
        try:
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
            if _try_lock(lock) is False:
                raise FileNotFoundError
            (path / "tables").mkdir()
        except OSError as error:
            staging = cls(path, lock)
            if isinstance(error, FileNotFoundError):  # another process adopted it between two of these lines
                staging.release()
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
            staging.remove()
            raise
        return cls(path, lock)

    @classmethod
    def adopt(cls, path: Path) -> "Staging | None":
        """A staging folder whose writer is dead; None if the writer lives, or if that is unknown."""
        flags = os.O_RDWR | (os.O_CREAT if _was_left_without_a_lock(path) else 0)
        try:
            lock = os.open(path / _LOCK, flags)
        except OSError:
            return None
        # Before it was locked here, another process may have finished and removed it.
        if _try_lock(lock) and _is_still(path / _LOCK, lock):
            return cls(path, lock)
        os.close(lock)
        return None

    @property
    def run_id(self) -> str:
        """The id that the run was meant to have."""
        return self.path.name.removeprefix(".").rpartition(".partial-")[0]

    def sync(self) -> None:
        """Write the tables through to the disk, so that a loss of power after a commit loses none of them. Raises
        OSError: they cannot be written."""
        for path in (*self.tables.iterdir(), self.tables):
            sync(path)

    def remove(self) -> None:
        """Remove the folder, as far as it can be."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.release()

    def release(self) -> None:
        """Release the lock and keep the folder, so that another process can adopt it."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def sync(file: Path | int) -> None:
    """Write a file or the names in a folder through to the disk, if the file system supports that. Raises OSError."""
    descriptor = os.open(file, os.O_RDONLY) if isinstance(file, Path) else file
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise
    finally:
        if isinstance(file, Path):
            os.close(descriptor)


def abandoned(data_dir: Path) -> Iterator[Staging]:
    """Every staging folder of a data folder whose writer is dead, adopted."""
    with suppress(OSError):
        for path in sorted(data_dir.glob(".*.partial-*")):
            staging = Staging.adopt(path)
            if staging:
                yield staging


def living_writers(data_dir: Path) -> list[int]:
    """Process ids of those that are writing a run to a data folder."""
    writers = []
    for path in data_dir.glob(".*.partial-*"):
        with suppress(OSError, ValueError):
            lock = os.open(path / _LOCK, os.O_RDWR)
            if _try_lock(lock) is not True:
                writers.append(int(path.name.rpartition("-")[2]))
            os.close(lock)
    return writers


def _try_lock(lock: int) -> bool | None:
    """Whether the lock was free and is now held; None if the file system has no locks. Then no process adopts a folder."""
    import fcntl  # not on every system on which runs are read

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether a path still names the file that is open."""
    try:
        return is_same(path, os.fstat(descriptor))
    except OSError:
        return False


def is_same(path: Path, status: os.stat_result) -> bool:
    """Whether a path names the file or folder that had this status."""
    try:
        return os.path.samestat(path.stat(), status)
    except OSError:
        return False


def _was_left_without_a_lock(path: Path) -> bool:
    try:
        if (path / _LOCK).exists() or time.time() - path.stat().st_mtime < _UNLOCKED_DEAD_S:
            return False
        os.kill(int(path.name.rpartition("-")[2]), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        return False
    return False


def is_taken(error: OSError) -> bool:
    """Whether a rename failed because there is a folder of that name."""
    return error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
