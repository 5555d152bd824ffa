"""Records under a tool that starts the program itself: the recording runs inside it, and writes a run that the tool's findings join."""

import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from collectors.choice import CollectorError
from collectors.environment import command_line
from collectors.plan import Request
from collectors.runs import new_run_id
from data import schema, store

_PROJECT: Final = Path(__file__).resolve().parent.parent


def record_inside(prefix: Sequence[str], request: Request, collector: str, folder: Path) -> tuple[store.Run, bool, str]:
    """Record in a process that the tool starts.

    Args:
        prefix: the tool's command, to which the recording's is appended.
        request: what to record.
        collector: that records inside.
        folder: where the run inside goes.

    Returns:
        the run inside, whether it was interrupted, and what the tool said on stdout.

    Raises:
        CollectorError: the recording inside wrote no run.
    """
    inside = [sys.executable, "-m", "collectors", "record", *request.arguments(), "--collector", collector]
    command = [*prefix, *inside, "--data-dir", str(folder), "--no-summary"]
    try:
        process = subprocess.Popen(command, cwd=_PROJECT, stdout=subprocess.PIPE, text=True, errors="replace")
    except OSError as error:
        raise CollectorError(f"{prefix[0]}: cannot be started ({error.strerror}); install it again") from error
    interrupted = False
    with process:
        while True:
            try:
                said, _ = process.communicate()
                break
            except KeyboardInterrupt:  # it reaches the recording too, which writes what it has
                interrupted = True
    runs, _ = store.list_runs([folder])
    if not runs:
        last_words = " ".join(said.split())[-300:]
        raise CollectorError(
            f"{Path(prefix[0]).name}: the recording under it wrote no run (exit code {process.returncode}): {last_words}; "
            "record with --collector cuda_events to see whether it goes well without the tool"
        )
    return runs[0], interrupted, said


def begin(data_dir: Path, label: str) -> store.RunWriter:
    """A writer for the run that the one inside becomes; opened first, so that a folder that cannot be written is found out at once."""
    return store.RunWriter(data_dir, new_run_id(datetime.now(UTC), label))


def take_over(
    run: store.Run, writer: store.RunWriter, label: str, collector: str, version: str, arguments: Sequence[str]
) -> None:
    """Write table `run` and the tables that the tool adds nothing to, as the recording inside wrote them."""
    changed: dict[str, Any] = {
        "run_id": writer.run_id,
        "label": label,
        "collector": collector,
        "collector_version": version,
        "command": command_line(arguments),
    }
    writer.append("run", [{**run.info, **changed}])
    for table in ("ceilings", "variants", "cases", "results"):
        writer.append(table, run.table(table))


def diagnostics(run: store.Run) -> list[dict[str, Any]]:
    """Rows of `diagnostics` that the recording inside wrote."""
    columns = [column.name for column in schema.DIAGNOSTICS.columns]
    rows = run.table("diagnostics")[columns].to_dict("records")
    return [{str(name): value if isinstance(value, str) else None for name, value in row.items()} for row in rows]
