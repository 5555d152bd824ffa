"""Changes to runs that are written: another label, a note beside them, or away with the folder.

One process changes the runs of a data folder at a time. A reader finds the old file or the new one, also after a process that was killed.
"""

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from warpladder.data.files import RECORDED
from warpladder.data.store.errors import StoreError
from warpladder.data.store.run import Run
from warpladder.data.store.tables import SUFFIX

#: A file of a data folder: the name of a run's folder -> the user's note about the run.
_NOTES: Final = ".notes.json"
#: What the name of a run's folder begins with while it is removed.
_DELETED: Final = ".deleted-"


def rename(run: Run, label: str) -> None:
    """Give a run another label. Its id and its folder stay. Raises StoreError: the run ships, or cannot be written."""
    _refuse_shipped(run)
    file = run.path / f"run{SUFFIX}"
    written = file.with_name(f".{file.name}.new")
    with _alone(run.path.parent):
        try:
            with file.open("rb") as opened:
                table = pq.read_table(opened)
            place = table.schema.get_field_index("label")
            labels = pa.array([label] * table.num_rows, table.schema.field(place).type)
            pq.write_table(table.set_column(place, table.schema.field(place), labels), written, compression="zstd")
            written.replace(file)
        except OSError as error:
            with suppress(OSError):
                written.unlink(missing_ok=True)
            raise StoreError(f"{run.path}: cannot be written ({error.strerror or error})") from error


def delete(run: Run) -> None:
    """Remove the folder of a run, the ranks of a job too. It is hidden first, so that no half of it is ever listed.
    Raises StoreError: the run ships, or cannot be removed."""
    _refuse_shipped(run)
    hidden = run.path.with_name(f"{_DELETED}{run.path.name}")
    with _alone(run.path.parent):
        for left in run.path.parent.glob(f"{_DELETED}*"):  # by a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        try:
            run.path.replace(hidden)
            shutil.rmtree(hidden)
        except OSError as error:
            raise StoreError(f"{run.path}: cannot be removed ({error.strerror or error})") from error


def notes(folders: Iterable[Path]) -> dict[Path, str]:
    """The notes about the runs of some folders, by the folder of the run. A file that cannot be read has none."""
    return {folder / name: text for folder in folders for name, text in _notes_of(folder).items()}


def set_note(run: Run, text: str) -> None:
    """Keep a note about a run beside it; an empty one removes it. Raises StoreError: the run ships, its data folder cannot be written, or
    the notes that it has cannot be read, which would be lost."""
    _refuse_shipped(run)
    folder = run.path.parent
    written = folder / f"{_NOTES}.new"
    with _alone(folder):
        try:
            every = {**_read(folder), run.path.name: text.strip()}
            written.write_text(json.dumps({name: note for name, note in every.items() if note}, indent=1), encoding="utf-8")
            written.replace(folder / _NOTES)
        except OSError as error:
            raise StoreError(f"{folder}: cannot be written ({error.strerror or error})") from error
        except ValueError as error:
            raise StoreError(f"{folder / _NOTES}: is no JSON of notes ({error}); mend it, or remove it") from error


def _notes_of(folder: Path) -> dict[str, str]:
    try:
        return _read(folder)
    except (OSError, ValueError):
        return {}


def _read(folder: Path) -> dict[str, str]:
    """The notes of a data folder, by the name of the run's folder. Raises OSError, or ValueError: they cannot be read."""
    try:
        found = json.loads((folder / _NOTES).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return {str(name): str(text) for name, text in found.items()}


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other process changes the runs of a data folder. A file system without locks has none."""
    lock = -1
    with suppress(OSError, ImportError):
        import fcntl  # not on every system on which runs are read

        lock = os.open(folder, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if lock >= 0:
            os.close(lock)


def _refuse_shipped(run: Run) -> None:
    if Path(run.path).resolve().parent == RECORDED.resolve():
        raise StoreError(f"{run.run_id}: ships with Warpladder and stays as it is")
