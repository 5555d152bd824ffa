"""Collector `nsight_systems`: the recording runs under `nsys profile`, and device times come from the trace."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from warpladder.collectors.core.environment import CollectorError
from warpladder.collectors.core.inside import diagnostics, make_folder
from warpladder.collectors.core.plan import Request
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.core.under_tool import begin, finish, record_inside, take_over
from warpladder.collectors.nsight_systems.run import profile_command
from warpladder.collectors.nsight_systems.source import open_report
from warpladder.collectors.nsight_systems.tool import NSYS
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.report import ReportError
from warpladder.collectors.trace.tables import add_trace
from warpladder.data.store import RunWriter

NAME: Final = "nsight_systems"


def record(
    request: Request, data_dir: Path, label: str, arguments: Sequence[str], stop: Stop | None = None, *, inside: str
) -> tuple[str, int]:
    """Record under `nsys` and write the run.

    Args:
        request: what to record.
        data_dir: folder that the run's folder is written to.
        label: the user's name for the run.
        arguments: command line, kept with the run.
        stop: receives signals; None to install handlers for this recording.
        inside: name of the collector that records under the tool.

    Returns:
        the run's id, and the number of the signal that interrupted it or 0.

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
                samples, trace_diagnostics = add_trace(into, report, run.table("samples"), notes)
                take_over(run, into, label, NAME, NSYS.version, arguments)
                into.append("samples", samples)
                into.append("diagnostics", [*diagnostics(run), *notes.finish(), *trace_diagnostics])

        return finish(writer, data_dir, label, run, fill, interrupted, ReportError), interrupted
