"""Drives `nsys`: profiles a command, and exports what it wrote."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from warpladder.collectors.nsight_systems.tool import NSYS
from warpladder.collectors.trace.report import ReportError

_EXPORT_TIMEOUT_S: Final = 1800
_TRACE: Final = ("--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none", "--cuda-graph-trace=node", "--force-overwrite=true")
#: From cudaProfilerStart to the end of the program.
_CAPTURE_RANGE: Final = ("--capture-range=cudaProfilerApi", "--capture-range-end=stop")


def profile_command(report: Path, *, capture_range: bool) -> list[str]:
    """What to put before a command so that `nsys` profiles it: CUDA and NVTX, without sampling the processor.

    Args:
        report: file that `nsys` writes, with suffix `.nsys-rep`.
        capture_range: capture from cudaProfilerStart on, instead of from the start.
    """
    assert NSYS.path
    return [NSYS.path, "profile", *_TRACE, *(_CAPTURE_RANGE if capture_range else ()), f"--output={report}"]


def export(report: Path, made_by: str, folder: Path) -> Path:
    """The report as a folder of parquet files where this `nsys` can make one, else as SQLite.

    Args:
        report: `.nsys-rep` or `.qdrep`.
        made_by: who wrote it, for the message; may be empty.
        folder: where the export goes.

    Raises:
        ReportError: no `nsys` is there, or it cannot read the report.
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
