"""Writes the tables of a trace, step by step in `write_tables`."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.trace import device_tables as device
from warpladder.collectors.trace import impossible, model
from warpladder.collectors.trace.attribution import ByTime, distinct
from warpladder.collectors.trace.cells import Cells
from warpladder.collectors.trace.model import BATCH_ROWS, Trace, process_of
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.nvtx_table import Ranges, range_rows, read_ranges
from warpladder.data.advice import advice_of
from warpladder.data.arrays import Int64s
from warpladder.data.files import one_line
from warpladder.data.iterations import find_steps
from warpladder.data.names import Source
from warpladder.data.naming import ENDED_EARLY, RANGES_AS_SAMPLES, Naming
from warpladder.data.nesting import Innermost
from warpladder.data.store import RunWriter
from warpladder.data.words import joined

_TEXT_BYTES_AT_ONCE: Final = 100_000_000
#: Largest share of device work without a launch that is not a warning.
_FEW: Final = 0.05
#: Columns that join device work to its launch.
_OF_LAUNCHES: Final = ("process", "correlation")


class Written(NamedTuple):
    """Result of `write_tables`: (process, CUDA ordinal) -> rows of device work, the ranges, the rows of `ranges` in pieces, and finders
    of ranges."""

    devices: dict[tuple[int, int], int]
    ranges: Ranges
    pieces: list[pa.Table]
    innermost: Innermost
    by_time: ByTime


def write_tables(trace: Trace, writer: RunWriter, naming: Naming | None, workload: str, notes: Notes) -> Written:
    """Write all tables except run and diagnostics."""
    impossible.correct(trace, notes)
    ranges = read_ranges(trace, notes)
    innermost = Innermost(ranges.thread, ranges.start, ranges.end)
    calls = device.Calls(trace.launched())
    _append(writer, "api_calls", device.api_rows(trace, innermost, calls, notes))
    by_time = ByTime(ranges.thread, ranges.start, ranges.end, innermost, _steps(ranges, notes))
    work = device.DeviceTables(trace, calls, ranges.thread, by_time, notes)
    del calls  # `work` frees them when it has found every launch
    for table in model.WORK:
        _append(writer, device.WRITTEN[table].name, work.rows(table))
    _append(writer, "synchronizations", device.synchronization_rows(trace))
    _append(writer, "memory_in_use", device.memory_rows(trace))
    _tell_what_is_missing(trace, work, notes)
    pieces = _write_ranges(trace, ranges, work, writer, naming, workload, notes)
    return Written(work.devices, ranges, pieces, innermost, by_time)


def _steps(ranges: Ranges, notes: Notes) -> Int64s:
    """The places of the ranges that are steps, process by process."""
    process = process_of(ranges.thread)
    places = [np.empty(0, np.int64)]
    for each in distinct(process).tolist():
        rows = np.flatnonzero((process == each) & ranges.closed)
        columns = (column[rows] for column in (ranges.text, process, ranges.thread, ranges.start, ranges.end))
        found = find_steps(ranges.texts, *columns)
        places.append(np.sort(rows[found.place]))
        if found.restarts:
            times = f"{found.restarts} times" if found.restarts > 1 else "once"
            text = f"the numbers of the steps start again {times}, as in a new epoch; each step counts, and has the next number here"
            notes.add("warning", Source.NVTX, text)
        if found.others:
            listed = " and ".join(f"`{one_line(other)}`" for other in found.others)
            text = f"ranges such as `{one_line(found.example)}` count as the steps; those such as {listed} do not, and lie beside them"
            notes.add("warning", Source.NVTX, text)
    return np.concatenate(places)


def _write_ranges(
    trace: Trace,
    ranges: Ranges,
    work: device.DeviceTables,
    writer: RunWriter,
    naming: Naming | None,
    workload: str,
    notes: Notes,
) -> list[pa.Table]:
    """Write the rows of `ranges`. Returns them in pieces."""
    cells = Cells(ranges)
    cell_count = cells.name(naming, workload) if naming else 0
    own, by_time, unclear = work.launches()
    pieces = range_rows(trace, ranges, own, by_time, cells.columns(), BATCH_ROWS)
    _append(writer, "ranges", pieces)
    if naming and not cell_count:
        notes.add(
            "warning",
            Source.VARIANT_FROM,
            f"no NVTX range matches {naming.expression}, so no variant is compared",
        )
    if cell_count:
        gpu_end, busy = (_with_work_by_time(pieces, name) for name in ("gpu_end_ns", "gpu_busy_ns"))
        notes.count("warning", Source.VARIANT_FROM, ENDED_EARLY, cells.ended_before_their_work(gpu_end))
        gpus = max(1, min(len({ordinal for _, ordinal in work.devices}), 1 << 14))
        for table, rows in cells.tables(busy, unclear, gpus).items():
            writer.append(table, rows)
        notes.count("info", Source.VARIANT_FROM, RANGES_AS_SAMPLES, cell_count)
    return pieces


def _with_work_by_time(pieces: list[pa.Table], column: str) -> pa.ChunkedArray:
    """Return a column about the device work of ranges, including work attributed by time."""
    table = pa.concat_tables([piece.select([f"time_{column}", column]) for piece in pieces])
    return pc.coalesce(table.column(0), table.column(1))


def _append(writer: RunWriter, table: str, batches: Iterable[pa.Table]) -> None:
    """Write batches. Long texts go a few rows at a time, because the store expands dictionaries."""
    for rows in batches:
        text_bytes = sum(
            pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0
            for column in rows.columns
            if pa.types.is_dictionary(column.type)
            for chunk in column.chunks
        )
        at_once = max(1, rows.num_rows // (1 + text_bytes // _TEXT_BYTES_AT_ONCE))
        for begin in range(0, rows.num_rows, at_once):
            writer.append(table, rows.slice(begin, at_once))


def _tell_what_is_missing(trace: Trace, work: device.DeviceTables, notes: Notes) -> None:
    if not work.devices:
        notes.add("warning", Source.CUDA, f"the report has no kernels, copies or memsets; {advice_of(trace.collector).device}")
    if work.devices and not trace.has_rows(model.API_CALLS):
        text = "the profile has no launches (API calls), so that it tells neither why the device is idle nor which range launched a kernel"
        notes.add("warning", Source.CUDA, text)
    lost = {what: rows - with_call for what, (rows, with_call) in work.launches_of.items()}
    of_name = () if trace.has(model.KERNELS, "full_name") else ("name",)
    for table, columns in {
        model.API_CALLS: ("thread", "name", *(["correlation"] if any(lost.values()) else [])),
        model.KERNELS: (*(_OF_LAUNCHES if lost.get("kernels") else ()), "device", *of_name),
        model.COPIES: (*(_OF_LAUNCHES if lost.get("copies") else ()), "kind", "bytes"),
    }.items():
        missing = [trace.tool_name(table, column) for column in columns if not trace.has(table, column)]
        if missing and trace.has_rows(table):
            text = f"table {trace.tool_name(table)} lacks {', '.join(missing)}; columns that depend on it are empty"
            notes.add("warning", Source.COLUMNS, text)
    if trace.has_rows(model.API_CALLS):
        _tell_lost_launches(
            {what: (number, work.launches_of[what][0]) for what, number in lost.items() if number}, trace, notes
        )


def _tell_lost_launches(lost: Mapping[str, tuple[int, int]], trace: Trace, notes: Notes) -> None:
    """Note how many of how many kernels, copies and sets have no launch in the report; a warning above `_FEW`."""
    for severity in ("warning", "info"):
        parts = [
            f"{number:,} of {rows:,} {what}"
            for what, (number, rows) in lost.items()
            if (number > _FEW * rows) == (severity == "warning")
        ]
        if parts:
            text = f"{joined(parts)} have no launch in the report, so that it is not known when they were launched"
            notes.add(severity, Source.LAUNCHES, f"{text}; {advice_of(trace.collector).launches}")
