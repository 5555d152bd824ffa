"""Collector `nsight_systems`: the recording runs under `nsys profile`, and its device times are those of the trace."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from collectors.choice import CollectorError
from collectors.nsight_systems.run import profile_command
from collectors.nsight_systems.source import open_report
from collectors.plan import Request
from collectors.tools import NSYS
from collectors.trace.notes import Notes
from collectors.trace.samples import add_trace
from collectors.under_tool import begin, diagnostics, record_inside, take_over

NAME: Final = "nsight_systems"


def record(request: Request, data_dir: Path, label: str, arguments: Sequence[str]) -> tuple[str, bool]:
    """Record under `nsys` and write the run.

    Returns:
        the run's id, and whether it was interrupted.

    Raises:
        CollectorError: the recording under `nsys` wrote no run, or `nsys` no report.
        ReportError: the report cannot be read.
        StoreError: the data folder cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="warpladder-") as name, begin(data_dir, label) as writer:
        folder = Path(name)
        report_file = folder / "report.nsys-rep"
        prefix = profile_command(report_file, capture_range=True)
        run, interrupted, _ = record_inside(prefix, request, "cuda_events", folder / "runs")
        if not report_file.exists():
            raise CollectorError(
                f"nsys wrote no report; see what it says above, or record with --collector {run.info['collector']}"
            )
        with open_report(report_file) as report:
            notes = Notes()
            samples, found = add_trace(writer, report, run.table("samples"), notes)
            take_over(run, writer, label, NAME, NSYS.version, arguments)
            writer.append("samples", samples)
            writer.append("diagnostics", [*diagnostics(run), *notes.finish(), *found])
            writer.commit()
        return writer.run_id, interrupted
