"""Records under a tool that starts the program. The inner recording writes a run, and the tool's tables are added to it."""

import os
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from warpladder.collectors.core.children import POLL_S, Guarded, printed
from warpladder.collectors.core.environment import CollectorError, command_line
from warpladder.collectors.core.journal import OF_CELLS, store_run, without_trace
from warpladder.collectors.core.new_runs import open_writer
from warpladder.collectors.core.plan import Request
from warpladder.collectors.core.salvage import salvage
from warpladder.collectors.core.signals import Stop
from warpladder.data import store
from warpladder.data.staging import living_writers
from warpladder.installation import IMPORT_ROOT


def record_inside(
    prefix: Sequence[str], request: Request, collector: str, folder: Path, stop: Stop | None = None
) -> tuple[store.Run, int, str]:
    """Record in a process that the tool starts, and wait for both. Returns the inner run, the number of the signal that
    interrupted it or 0, and the tool's stdout. Raises CollectorError: the tool cannot be started, or the inner
    recording wrote no run.

    Args:
        prefix: the tool's command; the recording's command is appended.
        stop: receives signals. They are forwarded to the inner recording, which ends first; then the tool ends.
    """
    inside = [sys.executable, "-m", "warpladder", "record", *request.arguments(), "--collector", collector]
    command = [*prefix, *inside, "--data-dir", str(folder), "--no-summary"]
    with nullcontext(stop) if stop else Stop() as stop:
        try:
            # In its own session: otherwise Ctrl-C would reach the tool too, and the tool might kill the recording.
            with Guarded(
                command,
                cwd=IMPORT_ROOT,
                env={**os.environ, **printed()},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                errors="replace",
            ) as tool:
                said = _until_it_ends(tool, folder, stop)
        except OSError as error:
            raise CollectorError(f"{prefix[0]}: cannot be started ({error.strerror}); install it again") from error
        number = stop.number
    salvage(folder)
    runs, _ = store.list_runs([folder])
    if not runs:
        last_words = " ".join(said.split())[-300:]
        raise CollectorError(
            f"{Path(prefix[0]).name}: the recording under it wrote no run (exit code {tool.process.returncode}): {last_words}; "
            "record with --collector cuda_events to see whether it works without the tool"
        )
    return runs[0], number, said


def _until_it_ends(tool: Guarded, folder: Path, stop: Stop) -> str:
    """Wait for the tool; return its stdout. Two signals go to the inner recording; a third one kills the tool."""
    passed_on = 0
    while True:
        with suppress(subprocess.TimeoutExpired):
            printed: str = tool.process.communicate(timeout=POLL_S)[0]
            return printed
        if stop.count > 2:
            tool.end()
        for pid in living_writers(folder) if passed_on < min(stop.count, 2) else ():
            with suppress(ProcessLookupError):
                os.kill(pid, stop.number)
            passed_on += 1


def begin(data_dir: Path, label: str) -> store.RunWriter:
    """Open the writer of the final run, before anything is measured, so that a folder that cannot be written fails at once."""
    return open_writer(data_dir, datetime.now(UTC), label)


def take_over(
    run: store.Run,
    writer: store.RunWriter,
    label: str,
    collector: str,
    version: str,
    arguments: Sequence[str],
    without: Collection[str] = (),
) -> None:
    """Write table `run`, and copy the tables of the inner run that the tool does not change, without those of these names."""
    changed: dict[str, Any] = {
        "run_id": writer.run_id,
        "label": label,
        "collector": collector,
        "collector_version": version,
        "command": command_line(arguments),
    }
    writer.append("run", [{**run.info, **changed}])
    for table in (name for name in OF_CELLS if name not in without):
        writer.append(table, run.table(table))


def finish(
    writer: store.RunWriter,
    data_dir: Path,
    label: str,
    run: store.Run,
    fill: Callable[[store.RunWriter], None],
    interrupted: int,
) -> str:
    """Write and commit the run. Returns the run's id.

    The run goes to another folder if the data folder cannot be written. It lacks the tool's tables if the tool was interrupted.

    Args:
        fill: writes every table; raises CollectorError if the tool left no readable report.
        interrupted: number of the signal that interrupted it, or 0.

    Raises:
        StoreError: the data folder cannot be written; the message names the folder that holds the run instead.
        CollectorError: raised by `fill`, and no signal interrupted the tool.
    """

    def fill_or_do_without(into: store.RunWriter) -> None:
        try:
            fill(into)
        except CollectorError as error:
            if not interrupted:
                raise
            into.start_again()
            without_trace(run, into, f"the tool was interrupted and left no trace ({error})")

    return store_run(writer, data_dir, label, fill_or_do_without)
