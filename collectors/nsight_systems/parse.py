"""Imports one report of Nsight Systems as a run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from warpladder.collectors.core.journal import open_writer
from warpladder.collectors.nsight_systems import facts
from warpladder.collectors.nsight_systems.messages import take_over_messages, tell_what_is_not_taken
from warpladder.collectors.nsight_systems.source import open_report
from warpladder.collectors.trace.notes import Notes, date_of_file
from warpladder.collectors.trace.report import Report
from warpladder.collectors.trace.tables import write_tables
from warpladder.data import files, schema
from warpladder.data.naming import Naming

_COMPRESSION_LEVEL: Final = 1


def import_report(
    path: Path, data_dir: Path, label: str, naming: Naming | None, arguments: Sequence[str], notes: Notes | None = None
) -> str:
    """Write a report as a run.

    Args:
        path: `.sqlite`, `.nsys-rep`, `.qdrep`, or a folder of parquet files.
        data_dir: folder that the run's folder is written to.
        label: the user's name for the run.
        naming: finds the NVTX ranges that measure a variant; None for no such ranges.
        arguments: command line, kept with the run.
        notes: receives the diagnostics, which are also stored in the run.

    Returns:
        the run's id.

    Raises:
        ReportError: the file is not a report, or cannot be read.
        NamingError: the naming's pattern takes too long.
        StoreError: the data folder cannot be written.
    """
    notes = Notes() if notes is None else notes
    with open_report(path) as report:
        return import_opened(report, path, data_dir, label, naming, arguments, notes, files.sha256(path))


def import_opened(
    report: Report,
    path: Path,
    data_dir: Path,
    label: str,
    naming: Naming | None,
    arguments: Sequence[str],
    notes: Notes,
    digest: str | None = None,
) -> str:
    """The same for a report that is open, or a part of it.

    `path` names it and has the date of one that lacks its own. `digest` is the SHA-256 of the file, which is kept with the run.
    """
    started = facts.started_at(report) or date_of_file(path, notes)
    with open_writer(data_dir, started, label or path.stem, _COMPRESSION_LEVEL) as writer:
        take_over_messages(report, notes)
        tell_what_is_not_taken(report, notes)
        devices = write_tables(report, writer, naming, path.stem, notes).devices
        row = {"run_id": writer.run_id, "schema_version": schema.SCHEMA_VERSION, "label": label, "source_sha256": digest}
        writer.append("run", [{**row, **facts.run_facts(report, started, devices, arguments)}])
        writer.append("diagnostics", notes.finish())
        writer.commit()
    return writer.run_id
