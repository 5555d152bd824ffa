"""Records under a tool that starts the program itself: the recording runs inside it, and writes a run that the tool's findings join."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from warpladder.collectors.core.environment import command_line
from warpladder.collectors.core.inside import without_trace
from warpladder.collectors.core.journal import store_run
from warpladder.collectors.core.plan import Request
from warpladder.collectors.core.processes import POLL_S, Guarded
from warpladder.collectors.core.runs import open_writer
from warpladder.collectors.core.salvage import salvage
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.core.tools import CollectorError
from warpladder.data import store
from warpladder.data.staging import living_writers

_PROJECT: Final = Path(__file__).resolve().parents[2]


def record_inside(
    prefix: Sequence[str], request: Request, collector: str, folder: Path, stop: Stop | None = None
) -> tuple[store.Run, int, str]:
    """Record in a process that the tool starts.

    Args:
        prefix: the tool's command, to which the recording's is appended.
        request: what to record.
        collector: that records inside.
        folder: where the run inside goes.
        stop: told of signals, which are passed on to the recording; it ends, and then the tool does.

    Returns:
        the run inside, the signal that interrupted it or 0, and what the tool said on stdout.

    Raises:
        CollectorError: the recording inside wrote no run.
    """
    inside = [sys.executable, "-m", "collectors", "record", *request.arguments(), "--collector", collector]
    command = [*prefix, *inside, "--data-dir", str(folder), "--no-summary"]
    with nullcontext(stop) if stop else Stop() as stop:
        try:
            # In a session of its own: a terminal's interrupt would reach the tool too, which might end the recording.
            with Guarded(
                command, cwd=_PROJECT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace"
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
            "record with --collector cuda_events to see whether it goes well without the tool"
        )
    return runs[0], number, said


def _until_it_ends(tool: Guarded, folder: Path, stop: Stop) -> str:
    """What it says on stdout. The first two signals go to the recording inside, whose second ends its children; a third ends the tool."""
    passed_on = 0
    while True:
        with suppress(subprocess.TimeoutExpired):
            said: str = tool.process.communicate(timeout=POLL_S)[0]
            return said
        if stop.count > 2:
            tool.end()
        for pid in living_writers(folder) if passed_on < min(stop.count, 2) else ():
            with suppress(ProcessLookupError):
                os.kill(pid, stop.number)
            passed_on += 1


def begin(data_dir: Path, label: str) -> store.RunWriter:
    """A writer for the run that the one inside becomes; opened first, so that a folder that cannot be written is found out at once."""
    return open_writer(data_dir, datetime.now(UTC), label)


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


def finish(
    writer: store.RunWriter,
    data_dir: Path,
    label: str,
    run: store.Run,
    fill: Callable[[store.RunWriter], None],
    interrupted: int,
    unreadable: type[Exception] = CollectorError,
) -> str:
    """Write and commit the run; elsewhere if the data folder cannot be written, and without the tool's findings if the tool was cut short.

    Args:
        writer: of the run.
        data_dir: that it writes to.
        label: the user's name for the run.
        run: the one inside.
        fill: writes every table; CollectorError or `unreadable` where the tool left nothing to read.
        interrupted: the signal that ended it, or 0.
        unreadable: what says that the tool's report cannot be read.

    Returns:
        the run's id.

    Raises:
        StoreError: the data folder cannot be written; it says where the run is instead.
        CollectorError, `unreadable`: as of `fill`, if nothing interrupted the tool.
    """

    def fill_or_do_without(into: store.RunWriter) -> None:
        try:
            fill(into)
        except (unreadable, CollectorError) as error:
            if not interrupted:
                raise
            into.start_again()
            without_trace(run, into, f"the tool was interrupted and left no trace ({error})")

    return store_run(writer, data_dir, label, fill_or_do_without)
