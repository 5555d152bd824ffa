"""Profiles a program of the user's own under `nsys`, and imports the report."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from collectors.choice import CollectorError
from collectors.nsight_systems.parse import import_report
from collectors.nsight_systems.run import profile_command
from collectors.tools import NSYS
from collectors.under_tool import begin
from data.naming import Naming


def profile(
    command: Sequence[str], data_dir: Path, label: str, naming: Naming | None, keep: Path | None, arguments: Sequence[str]
) -> tuple[str, int]:
    """Run a command under `nsys` and write what it did as a run.

    Args:
        command: the program and its arguments.
        data_dir: where the run's folder goes.
        label: the user's name for the run; when empty, the program's.
        naming: which NVTX ranges are measurements of a variant; none when None.
        keep: file that the report is kept as.
        arguments: command line, kept with the run.

    Returns:
        the run's id, and the command's exit code.

    Raises:
        CollectorError: there is no `nsys`, no such program, or no report was written.
        ReportError: the report cannot be read.
        StoreError: the data folder cannot be written.
    """
    if NSYS.problem:
        raise CollectorError(NSYS.problem)
    if shutil.which(command[0]) is None:
        raise CollectorError(
            f"{command[0]}: no such program; check its name, as in: python -m collectors profile -- python train.py"
        )
    if keep is not None and (keep.exists() or not keep.parent.is_dir()):
        what = "exists; choose another name" if keep.exists() else "its folder does not exist; make it first"
        raise CollectorError(f"--keep {keep}: {what}")
    name = Path(command[0]).stem
    with begin(data_dir, label or name):
        pass  # a folder that cannot be written is found out before the program runs
    with tempfile.TemporaryDirectory(prefix="warpladder-") as folder:
        report = Path(folder) / f"{name}.nsys-rep"
        exit_code = _run([*profile_command(report, capture_range=False), *command])
        if not report.exists():
            raise CollectorError(f"{name}: nsys wrote no report (exit code {exit_code}); see what it says above")
        if keep is not None:
            shutil.copyfile(report, keep)
        return import_report(report, data_dir, label or name, naming, arguments), exit_code


def _run(command: Sequence[str]) -> int:
    with subprocess.Popen(command) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # it reaches nsys too, which ends the program and writes its report
                continue
