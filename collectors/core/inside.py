"""The run that a recording under a tool wrote, in a folder within the staging folder of the run that it becomes."""

from pathlib import Path
from typing import Any, Final

from warpladder.data import schema, store
from warpladder.data.diagnostics import diagnostic_row
from warpladder.data.staging import Staging

_FOLDER: Final = "inside"
_RUNS: Final = "runs"


def make_folder(staging: Staging) -> tuple[Path, Path]:
    """Folder for what the tool writes, and the data folder of the recording inside; the next recording finds them if all were killed."""
    folder = staging.path / _FOLDER
    folder.mkdir()
    return folder, folder / _RUNS


def runs_of(staging: Staging) -> Path:
    """The data folder of the recording inside, whether there is one or not."""
    return staging.path / _FOLDER / _RUNS


def without_trace(run: store.Run, writer: store.RunWriter, why: str) -> None:
    """Write the run inside as it is, and why it lacks what the tool would have added."""
    writer.append("run", [{**run.info, "run_id": writer.run_id}])
    for table in ("ceilings", "variants", "cases", "results", "samples"):
        writer.append(table, run.table(table))
    writer.append("diagnostics", [*diagnostics(run), diagnostic_row("warning", "tracing", why)])


def diagnostics(run: store.Run) -> list[dict[str, Any]]:
    """Rows of `diagnostics` that the recording inside wrote."""
    columns = [column.name for column in schema.DIAGNOSTICS.columns]
    rows = run.table("diagnostics")[columns].to_dict("records")
    return [{str(name): value if isinstance(value, str) else None for name, value in row.items()} for row in rows]
