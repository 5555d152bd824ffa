"""Reads a `.ncu-rep`: converts its launches to rows of `counters`, or imports the report as a run."""

import hashlib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from warpladder.collectors.core.environment import has_module
from warpladder.collectors.core.new_runs import open_writer
from warpladder.collectors.nsight_compute import tables
from warpladder.collectors.nsight_compute.cells import ProfiledLaunch, cells_of
from warpladder.collectors.nsight_compute.facts import MAGIC, read_header, run_facts
from warpladder.collectors.nsight_compute.tables import ReportedCode, Tables
from warpladder.collectors.trace.model import ReportError
from warpladder.collectors.trace.notes import Notes
from warpladder.data import files, naming, schema
from warpladder.data.metrics import BY_NAME, REGISTERS, SHARED_BYTES
from warpladder.data.names import Source
from warpladder.data.naming import CellName, Naming
from warpladder.data.words import counted
from warpladder.installation import IMPORT_ROOT, how_to_install

_MOST_BYTES: Final = 2 << 30
_SECONDS: Final = 300
_CURE: Final = "profile again with ncu --export"
_NO_READER: Final = f"needs the package ncu-report: {how_to_install('ncu')}"
#: First bytes of `ncu`'s printed output, with and without --csv.
_PRINTED: Final = (b'"ID","Process ID"', b"==PROF==")


@dataclass(frozen=True)
class Report:
    """A report.

    Attributes:
        launches: its launches in profiling order.
        total: number of readable launches.
        held: number of launches that its header states.
        codes: the machine code of its kernels.
        files: texts of the source files that it holds, by name.
    """

    name: str
    launches: tuple[ProfiledLaunch, ...]
    total: int
    held: int
    codes: Mapping[str, ReportedCode] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def is_report(path: Path) -> bool:
    """Whether a file begins like a report of Nsight Compute."""
    return _begins(path, MAGIC)


def is_printed(path: Path) -> bool:
    """Whether a file begins like the printed output of `ncu`: a table with --csv, or its messages."""
    return _begins(path, *_PRINTED)


def _begins(path: Path, *beginnings: bytes) -> bool:
    try:
        return files.read_bytes(path, max(map(len, beginnings))).startswith(beginnings)
    except OSError:
        return False


def read_report(path: Path) -> Report:
    """Read a report's launches by NVIDIA's reader in a separate process. Raises ReportError: the reader is not
    installed, or the file is not a report, is truncated, damaged or too large, or holds no launch."""
    if is_printed(path):
        raise ReportError(
            f"{path.name}: printed output of ncu, not a report; import the .ncu-rep that it was printed from, or {_CURE}=report"
        )
    if not is_report(path):
        raise ReportError(f"{path.name}: not a report of Nsight Compute; {_CURE}")
    if path.stat().st_size > _MOST_BYTES:
        raise ReportError(f"{path.name}: larger than {_MOST_BYTES >> 30} GB; profile fewer launches, with --launch-count")
    if not has_module("ncu_report"):
        raise ReportError(f"{path.name}: {_NO_READER}")
    header = read_header(path)
    content = _content(path)
    if content is None:
        raise ReportError(f"{path.name}: damaged, or newer than the installed ncu-report; {_CURE}, or update ncu-report")
    if not content["launches"]:
        raise ReportError(f"{path.name}: no launch can be read, so the file is damaged or nothing was profiled; {_CURE}")
    return Report(
        path.name,
        tuple(ProfiledLaunch(**launch) for launch in content["launches"]),
        content["total"],
        header.launches,
        {key: ReportedCode(**code) for key, code in content["codes"].items()},
        content["files"],
    )


def _content(path: Path) -> dict[str, Any] | None:
    """Read a report with NVIDIA's reader, in a process of its own; None where that process fails. Raises ReportError."""
    with tempfile.TemporaryFile() as output:
        command = [sys.executable, "-m", "warpladder.collectors.nsight_compute.reader", str(path.resolve())]
        try:
            completed = subprocess.run(command, cwd=IMPORT_ROOT, stdout=output, stderr=subprocess.DEVNULL, timeout=_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise ReportError(
                f"{path.name}: not read within {_SECONDS} s; profile fewer launches, with --launch-count"
            ) from error
        if completed.returncode != 0:
            return None
        output.seek(0)
        content: dict[str, Any] = json.load(output)
        return content


def tables_of(path: Path, variants: Iterable[Mapping[Any, Any]]) -> Tables:
    """Return the tables of a report for the cells of this project's NVTX ranges, one execution per cell. Raises
    ReportError: as for `read_report`, or no launch was inside such a range.

    Args:
        variants: rows of `variants`, whose sources the instructions come from.
    """
    report = read_report(path)
    placed = cells_of(report.launches, path.stem, None, Notes())
    if not placed.ours:
        raise ReportError(f"{path.name}: no launch was inside a range of Warpladder; profile with ncu --nvtx")
    notes = Notes()
    _note_unread(report, notes)
    return {**tables.rows_of(placed.cells, report.codes, variants), "diagnostics": notes.finish()}


def import_report(
    path: Path, data_dir: Path, label: str, range_naming: Naming | None, arguments: Sequence[str], notes: Notes | None = None
) -> str:
    """Write a report as a run. Returns the run's id.

    Args:
        path: the `.ncu-rep`.
        range_naming: finds the NVTX ranges that name a variant; None for this project's ranges. Without ranges, each kernel is a
            variant.

    Raises:
        ReportError: the file is not a report, or cannot be read.
        NamingError: the naming's pattern takes too long.
        StoreError: the data folder cannot be written.
    """
    report = read_report(path)
    notes = Notes() if notes is None else notes
    placed = cells_of(report.launches, path.stem, range_naming, notes)
    _note_what_is_missing(report, notes)
    launches = sum(map(len, placed.cells.values()))
    notes.add(
        "info",
        Source.NSIGHT_COMPUTE,
        f"{launches:,} launch{'es are' if launches != 1 else ' is'} counted as {counted(len(placed.cells), 'cell')}. Nothing was verified, precision is not "
        "known and stands as fp32, and no floor is known. Durations are those of launches that were profiled one by one, and no samples",
    )
    facts = run_facts(path, report.launches, arguments, notes)
    with open_writer(data_dir, facts["started_at"], label or path.stem) as writer:
        row = {"run_id": writer.run_id, "schema_version": schema.SCHEMA_VERSION, "label": label}
        writer.append("run", [{**row, **facts}])
        variants = _variant_rows(placed.cells, report)
        writer.append("variants", variants)
        writer.append("cases", naming.case_rows(list(placed.cells)))
        writer.append("results", naming.result_rows(list(placed.cells)))
        for table, rows in tables.rows_of(placed.cells, report.codes, variants).items():
            writer.append(table, rows)
        writer.append("diagnostics", notes.finish())
        writer.commit()
    return writer.run_id


def _variant_rows(cells: Mapping[CellName, Sequence[ProfiledLaunch]], report: Report) -> list[dict[str, Any]]:
    """Return rows of `variants`. Registers and shared memory are the maxima over the launches. The source is the file that most of
    the instructions come from.
    """
    rows = naming.variant_rows(list(cells))
    for row in rows:
        launches = [
            launch
            for cell, cell_launches in cells.items()
            if cell[:2] == (row["workload"], row["variant"])
            for launch in cell_launches
        ]
        row["source"] = "launches of an imported report of Nsight Compute"
        if name := tables.main_file(launches, report.codes, report.files):
            row |= {"source_path": name, "source_text": report.files[name]}
            row["source_sha256"] = hashlib.sha256(report.files[name].encode("utf-8", "surrogatepass")).hexdigest()
        for column, metric in (("registers", REGISTERS), ("shared_bytes", SHARED_BYTES)):
            values = [int(launch.values[metric]) for launch in launches if 0 <= launch.values.get(metric, -1) < 1 << 31]
            row[column] = max(values, default=None)
    return rows


def _note_unread(report: Report, notes: Notes) -> None:
    """Note what NVIDIA's reader could not give."""
    for launch in report.launches:
        for what in launch.lacking:
            notes.count("warning", Source.NSIGHT_COMPUTE, f"of {{}} launches of {launch.kernel} cannot be read: {what}", 1)


def _note_what_is_missing(report: Report, notes: Notes) -> None:
    _note_unread(report, notes)
    if report.total > len(report.launches):
        notes.add(
            "warning", Source.NSIGHT_COMPUTE, f"only the first {len(report.launches):,} of {report.total:,} launches were read"
        )
    if report.held > report.total:
        notes.add(
            "warning",
            Source.NSIGHT_COMPUTE,
            f"{report.held - report.total:,} of {report.held:,} launches are damaged and could not be read",
        )
    present = Counter(name for launch in report.launches for name in launch.values)
    missing = sorted(
        {metric.group for metric in BY_NAME.values()} - {BY_NAME[name].group for name in present if name in BY_NAME}
    )
    if missing:
        notes.add(
            "info",
            Source.NSIGHT_COMPUTE,
            f"the report has no metric of {', '.join(missing)}; to have them, profile with ncu --set full, or with the metrics of "
            "python -m warpladder.collectors.nsight_compute.metrics",
        )
