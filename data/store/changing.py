"""Changes to runs that are written: another label, or away with the folder."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from warpladder.data.files import RECORDED
from warpladder.data.store.errors import StoreError
from warpladder.data.store.run import Run
from warpladder.data.store.tables import SUFFIX


def rename(run: Run, label: str) -> None:
    """Give a run another label. Its id and its folder stay.

    Raises:
        StoreError: the run ships, or cannot be written.
    """
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

    Raises:
        StoreError: the run ships, or cannot be removed.
    """
    _refuse_shipped(run)
    hidden = run.path.with_name(f".deleted-{run.path.name}")
    try:
        run.path.replace(hidden)
        shutil.rmtree(hidden)
    except OSError as error:
        raise StoreError(f"{run.path}: cannot be removed ({error.strerror})") from error


def _refuse_shipped(run: Run) -> None:
    if Path(run.path).resolve().parent == RECORDED.resolve():
        raise StoreError(f"{run.run_id}: ships with Warpladder and stays as it is")
