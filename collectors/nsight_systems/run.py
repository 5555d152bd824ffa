"""Runs `nsys`: builds the command that profiles, and exports reports."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from warpladder.collectors.nsight_systems.tool import NSYS
from warpladder.collectors.trace.report import ReportError

_EXPORT_TIMEOUT_S: Final = 1800
_TRACE: Final = ("--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none", "--cuda-graph-trace=node", "--force-overwrite=true")
#: Captures from the first cudaProfilerStart to the end of the program. With `stop` instead of `none`, the end of the first
#: measuring process ends the capture of those that follow.
_CAPTURE_RANGE: Final = ("--capture-range=cudaProfilerApi", "--capture-range-end=none")


def profile_command(report: Path, *, capture_range: bool) -> list[str]:
    """Return the prefix for a command that `nsys` profiles: traces CUDA and NVTX, and does not sample the processor.

    Args:
        report: file that `nsys` writes, with suffix `.nsys-rep`.
        capture_range: capture from cudaProfilerStart on, instead of from the program's start.
    """
    assert NSYS.path
    return [NSYS.path, "profile", *_TRACE, *(_CAPTURE_RANGE if capture_range else ()), f"--output={report}"]


def export(report: Path, made_by: str, folder: Path) -> Path:
    """Export a report as a folder of parquet files, or as SQLite if this `nsys` cannot write parquet. Return the path.

    Args:
        report: `.nsys-rep` or `.qdrep`.
        made_by: the version that wrote the report, for the message; may be empty.
        folder: folder for the export.

    Raises:
        ReportError: `nsys` is not found, or cannot read the report.
    """
    elsewhere = f"export it where it was made: nsys export --type sqlite {report.name}"
    if NSYS.path is None:
        raise ReportError(f"{report.name}: {made_by}no nsys on PATH or in the usual folders to export it; {elsewhere}")
    kinds = _run([NSYS.path, "export", "--help"], report, made_by, elsewhere).stdout
    kind, target = ("parquetdir", folder / "report") if "parquetdir" in kinds else ("sqlite", folder / "report.sqlite")
    command = [NSYS.path, "export", "--type", kind, "--output", str(target), str(report.resolve())]
    if _run(command, report, made_by, elsewhere, folder).returncode != 0 or not target.exists():
        raise ReportError(
            f"{report.name}: {made_by}the nsys found here is {NSYS.version or 'unknown'} and reads up to its own version; {elsewhere}"
        )
    return target


def _run(
    command: Sequence[str], report: Path, made_by: str, elsewhere: str, folder: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_EXPORT_TIMEOUT_S, cwd=folder
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise ReportError(f"{report.name}: {made_by}nsys export failed ({type(error).__name__}); {elsewhere}") from error
