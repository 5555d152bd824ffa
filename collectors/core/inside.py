"""The inner run: a recording under a tool writes it to a folder inside the staging folder of the final run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from warpladder.data import schema, store
from warpladder.data.names import Source, diagnostic_row
from warpladder.data.staging import Staging

#: Tables of the inner run that a tool does not change.
OF_CELLS: Final = ("ceilings", "variants", "cases", "results", "cell_launches", "machine_code")
_FOLDER: Final = "inside"
_RUNS: Final = "runs"


def make_folder(staging: Staging) -> tuple[Path, Path]:
    """Make the folder for the tool's files and the data folder of the inner run. `salvage` finds them after a crash."""
    folder = staging.path / _FOLDER
    folder.mkdir()
    return folder, folder / _RUNS


def runs_of(staging: Staging, further: str = _RUNS) -> Path:
    """Return the data folder of the inner recording, or of a further pass; it may not exist."""
    return staging.path / _FOLDER / further


def without_trace(run: store.Run, writer: store.RunWriter, why: str) -> None:
    """Write the inner run unchanged, with a diagnostic that says why the tool's tables are missing."""
    copy(run, writer, [diagnostic_row("warning", Source.TRACING, why)])


def copy(run: store.Run, writer: store.RunWriter, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the inner run, without trace tables, and further rows of `diagnostics`."""
    writer.append("run", [{**run.info, "run_id": writer.run_id}])
    for table in (*OF_CELLS, "samples"):
        writer.append(table, run.table(table))
    writer.append("diagnostics", [*diagnostics(run), *rows])


def diagnostics(run: store.Run) -> list[dict[str, Any]]:
    """Return the rows of `diagnostics` that the inner recording wrote."""
    columns = [column.name for column in schema.DIAGNOSTICS.columns]
    rows = run.table("diagnostics")[columns].to_dict("records")
    return [{str(name): value if isinstance(value, str) else None for name, value in row.items()} for row in rows]
