"""Collector `nsight_systems`: the recording runs under `nsys profile`, and device times come from the trace."""

import shutil
import signal
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from warpladder.collectors.core.children import POLL_S, Guarded
from warpladder.collectors.core.environment import CollectorError
from warpladder.collectors.core.journal import make_folder
from warpladder.collectors.core.plan import Request
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.core.under_tool import begin, finish, record_inside, take_over
from warpladder.collectors.nsight_systems.entry import NSYS, profile_command
from warpladder.collectors.nsight_systems.parse import import_report
from warpladder.collectors.nsight_systems.source import open_report
from warpladder.collectors.nsight_systems.trace import NsightTrace
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.samples import add_trace
from warpladder.data.naming import Naming
from warpladder.data.store import RunWriter, StoreError

NAME: Final = "nsight_systems"


def record(
    request: Request, data_dir: Path, label: str, arguments: Sequence[str], stop: Stop | None = None, *, inside: str
) -> tuple[str, int]:
    """Record under `nsys` and write the run. Returns the run's id, and the number of the signal that interrupted it or
    0.

    Args:
        stop: receives signals; None to install handlers for this recording.
        inside: name of the collector that records under the tool.

    Raises:
        CollectorError: the recording under `nsys` wrote no run, or `nsys` no report.
        ReportError: the report cannot be read.
        StoreError: the data folder cannot be written.
    """
    with begin(data_dir, label) as writer:
        folder, runs = make_folder(writer.staging)
        report_file = folder / "report.nsys-rep"
        prefix = profile_command(report_file, capture_range=True)
        run, interrupted, _ = record_inside(prefix, request, inside, runs, stop)

        def fill(into: RunWriter) -> None:
            if not report_file.exists():
                raise CollectorError(
                    f"nsys wrote no report; see what it says above, or record with --collector {run.info['collector']}"
                )
            with open_report(report_file) as report:
                notes = Notes()
                samples, trace_diagnostics = add_trace(into, NsightTrace(report), run.table("samples"), notes)
                take_over(run, into, label, NAME, NSYS.version, arguments)
                into.append("samples", samples)
                into.append("diagnostics", [*run.records("diagnostics"), *notes.finish(), *trace_diagnostics])

        return finish(writer, data_dir, label, run, fill, interrupted), interrupted


def profile(
    command: Sequence[str],
    data_dir: Path,
    label: str,
    naming: Naming | None,
    keep: Path | None,
    arguments: Sequence[str],
    stop: Stop | None = None,
    notes: Notes | None = None,
) -> tuple[str, int]:
    """Run a command under `nsys`, and import the report as a run. Returns the run's id, and the command's exit code.

    Args:
        label: the user's name for the run; if empty, the program's name.
        naming: finds the NVTX ranges that measure a variant; None for no such ranges.
        keep: path for a copy of the report; None to delete the report.
        stop: receives signals, which are forwarded to `nsys`; it ends the command and writes its report.

    Raises:
        CollectorError: `nsys` or the program does not exist, or no report was written.
        ReportError: the report cannot be read.
        StoreError: the data folder cannot be written; if the command has run, the message names the report's path.
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
        pass  # fails before the program runs if the folder cannot be written
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
            copy = keep or shutil.move(report, Path(tempfile.mkdtemp(prefix="warpladder-")))
            raise StoreError(f"{error}; the report is kept: warpladder import {copy}") from error


def _run(command: Sequence[str], stop: Stop) -> int:
    """Run the command in the terminal's process group, and return its exit code.

    The terminal's signals reach the command directly. Another signal is forwarded to `nsys` as SIGINT. A third signal kills it.
    """
    with Guarded(command, own_group=False) as tool:
        is_signalled = False
        while not tool.wait(POLL_S):
            if stop.count > 2:
                tool.end()
            elif stop.number and not is_signalled:
                tool.tell(signal.SIGINT)
                is_signalled = True
    code: int = tool.process.returncode
    return code
