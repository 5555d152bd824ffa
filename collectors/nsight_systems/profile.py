"""Profiles a program of the user's own under `nsys`, and imports the report."""

import shutil
import signal
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from warpladder.collectors.core.processes import POLL_S, Guarded
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.core.tools import CollectorError
from warpladder.collectors.core.under_tool import begin
from warpladder.collectors.nsight_systems.run import profile_command
from warpladder.collectors.nsight_systems.tool import NSYS
from warpladder.collectors.trace.notes import Notes
from warpladder.data.naming import Naming
from warpladder.data.store import StoreError

ImportReport = Callable[[Path, Path, str, Naming | None, Sequence[str], Notes | None], str]


def profile(
    import_report: ImportReport,
    command: Sequence[str],
    data_dir: Path,
    label: str,
    naming: Naming | None,
    keep: Path | None,
    arguments: Sequence[str],
    stop: Stop | None = None,
    notes: Notes | None = None,
) -> tuple[str, int]:
    """Run a command under `nsys` and write what it did as a run.

    Args:
        import_report: see `warpladder.collectors.nsight_systems.parse`.
        command: the program and its arguments.
        data_dir: where the run's folder goes.
        label: the user's name for the run; when empty, the program's.
        naming: which NVTX ranges are measurements of a variant; none when None.
        keep: file that the report is kept as.
        arguments: command line, kept with the run.
        stop: told of signals, which are passed on to `nsys`; it ends the command and writes its report.
        notes: told what was found in the report, which the run's diagnostics hold too.

    Returns:
        the run's id, and the command's exit code.

    Raises:
        CollectorError: there is no `nsys`, no such program, or no report was written.
        ReportError: the report cannot be read.
        StoreError: the data folder cannot be written; if the command has run, it says where the report is.
    """
    if NSYS.problem:
        raise CollectorError(NSYS.problem)
    if shutil.which(command[0]) is None:
        raise CollectorError(f"{command[0]}: no such program; check its name, as in: warpladder profile -- python train.py")
    if keep is not None and (keep.exists() or not keep.parent.is_dir()):
        what = "exists; choose another name" if keep.exists() else "its folder does not exist; make it first"
        raise CollectorError(f"--keep {keep}: {what}")
    name = Path(command[0]).stem
    with begin(data_dir, label or name):
        pass  # a folder that cannot be written is found out before the program runs
    with tempfile.TemporaryDirectory(prefix="warpladder-") as folder:
        report = Path(folder) / f"{name}.nsys-rep"
        with nullcontext(stop) if stop else Stop() as stop:
            exit_code = _run([*profile_command(report, capture_range=False), *command], stop)
        if not report.exists():
            raise CollectorError(f"{name}: nsys wrote no report (exit code {exit_code}); see what it says above")
        if keep is not None:
            shutil.copyfile(report, keep)
        try:
            return import_report(report, data_dir, label or name, naming, arguments, notes), exit_code
        except StoreError as error:
            kept = keep or shutil.move(report, Path(tempfile.mkdtemp(prefix="warpladder-")))
            raise StoreError(f"{error}; the report is kept: warpladder import {kept}") from error


def _run(command: Sequence[str], stop: Stop) -> int:
    """Its exit code. It shares the terminal, and with it what a terminal sends; another's signal is an interrupt to `nsys`, a third the end."""
    with Guarded(command, own_group=False) as tool:
        told = False
        while not tool.wait(POLL_S):
            if stop.count > 2:
                tool.end()
            elif stop.number and not told:
                tool.tell(signal.SIGINT)
                told = True
    code: int = tool.process.returncode
    return code
