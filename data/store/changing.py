"""Changes to runs that are written: another label, a note beside them, or away with the folder."""

import json
import shutil
from collections.abc import Iterable
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


def rename(run: Run, label: str) -> None:
    """Give a run another label. Its id and its folder stay. Raises StoreError: the run ships, or cannot be written."""
    _refuse_shipped(run)
    file = run.path / f"run{SUFFIX}"
    table = pq.read_table(file)
    place = table.schema.get_field_index("label")
    table = table.set_column(
        place, table.schema.field(place), pa.array([label] * table.num_rows, table.schema.field(place).type)
    )
    written = file.with_name(f".{file.name}.new")
    try:
        pq.write_table(table, written, compression="zstd")
        written.replace(file)
    except OSError as error:
        written.unlink(missing_ok=True)
        raise StoreError(f"{run.path}: cannot be written ({error.strerror})") from error


def delete(run: Run) -> None:
    """Remove the folder of a run, the ranks of a job too. It is hidden first, so that no half of it is ever listed.
    Raises StoreError: the run ships, or cannot be removed."""
    _refuse_shipped(run)
    hidden = run.path.with_name(f".deleted-{run.path.name}")
    try:
        run.path.replace(hidden)
        shutil.rmtree(hidden)
    except OSError as error:
        raise StoreError(f"{run.path}: cannot be removed ({error.strerror})") from error


def notes(folders: Iterable[Path]) -> dict[Path, str]:
    """The notes about the runs of some folders, by the folder of the run. A file that cannot be read has none."""
    return {folder / name: text for folder in folders for name, text in _notes_of(folder).items()}


def set_note(run: Run, text: str) -> None:
    """Keep a note about a run beside it; an empty one removes it. Raises StoreError: the run ships, or its data folder
    cannot be written."""
    _refuse_shipped(run)
    folder, every = run.path.parent, _notes_of(run.path.parent)
    every = {**every, run.path.name: text.strip()}
    written = folder / f"{_NOTES}.new"
    try:
        written.write_text(json.dumps({name: note for name, note in every.items() if note}, indent=1), encoding="utf-8")
        written.replace(folder / _NOTES)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written ({error.strerror})") from error


def _notes_of(folder: Path) -> dict[str, str]:
    try:
        found = json.loads((folder / _NOTES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(name): str(text) for name, text in found.items()} if isinstance(found, dict) else {}


def _refuse_shipped(run: Run) -> None:
    if Path(run.path).resolve().parent == RECORDED.resolve():
        raise StoreError(f"{run.run_id}: ships with Warpladder and stays as it is")
