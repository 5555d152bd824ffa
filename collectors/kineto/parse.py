"""Imports one trace of PyTorch's profiler as a run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from warpladder.collectors.core.environment import import_facts
from warpladder.collectors.core.new_runs import open_writer
from warpladder.collectors.kineto.collectives import OF_KERNELS
from warpladder.collectors.kineto.events import Head
from warpladder.collectors.kineto.trace import KinetoTrace
from warpladder.collectors.trace.attribution import LaunchedWork
from warpladder.collectors.trace.compressed import UNREADABLE, NotTheFile, text_blocks
from warpladder.collectors.trace.model import API_CALLS, COPIES, KERNELS, SETS, ReportError, Trace, arrays_of, process_of
from warpladder.collectors.trace.notes import Notes, date_of_file
from warpladder.collectors.trace.nvtx_table import Ranges
from warpladder.collectors.trace.parts import Part, PartOfTrace
from warpladder.collectors.trace.tables import write_tables
from warpladder.data import files, schema
from warpladder.data.arrays import NONE, Int64s, Places, coded, free_unused, integers, numbered, occurrence
from warpladder.data.columns import FAR
from warpladder.data.iterations import Steps, find_steps, launch_times
from warpladder.data.naming import Naming
from warpladder.data.store import RunWriter

_COMPRESSION_LEVEL: Final = 1
#: Endings of the names of traces, which may be compressed.
_NAMED: Final = re.compile(r".*\.json(\.(gz|xz|zst|bz2|zip))?\Z", re.DOTALL)
#: How a trace begins whose name says nothing.
_BEGINS: Final = re.compile(rb"\s*(\{\s*\"|\[\s*\{)")
_BEGIN_BYTES: Final = 4096
_OF_RANK: Final = re.compile(r"(?i)rank[-_=]?(\d{1,9})|worker(\d{1,9})")
#: Ranks of the largest job. Larger numbers are damage.
_MOST_RANKS: Final = 1 << 17
_MOST_NAMED: Final = 4
#: A time before any trace.
_BEFORE: Final = -FAR
_AFTER_2000_NS: Final = 946_684_800 * 10**9


def is_trace(path: Path) -> bool:
    """Whether a file has the name of a trace of PyTorch's profiler, or begins like one, compressed or not."""
    if has_name_of_trace(path):
        return True
    try:
        return path.is_file() and bool(_BEGINS.match(next(text_blocks(path, _BEGIN_BYTES))))
    except NotTheFile as error:
        return error.is_archive
    except UNREADABLE:
        return False


def has_name_of_trace(path: Path) -> bool:
    """Whether a file has the name of a trace of PyTorch's profiler."""
    return bool(_NAMED.match(path.name))


class SeveralProcesses(ReportError):
    """A trace holds those of several processes. `names`: ids of the processes, in order."""

    def __init__(self, file: str, names: Sequence[str]) -> None:
        listed = ", ".join(each[:40] for each in names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
        super().__init__(f"{file}: holds the traces of {len(names)} processes ({listed}); import it as a job, with --job")
        self.names = tuple(names)


class OneOf(NamedTuple):
    """One of the processes in a trace of several: its number among them, and its rank."""

    number: int
    rank: int


@dataclass(frozen=True)
class Imported:
    """The part of an imported trace that a job keeps.

    Attributes:
        run_id: of the run.
        rank: of the process in its job; None where neither the trace nor its name has it.
        ranks: of the job, 0 where the trace lacks them.
        events: in the file.
        gpus: that the process sees, 0 where the trace lacks them.
    """

    run_id: str
    rank: int | None
    ranks: int
    events: int
    gpus: int = 0


def import_report(
    path: Path, data_dir: Path, label: str, naming: Naming | None, arguments: Sequence[str], notes: Notes | None = None
) -> str:
    """Write a trace as a run. Arguments, result and errors are as for `nsight_systems.parse.import_report`. Raises
    SeveralProcesses: the trace has those of several processes."""
    notes = Notes() if notes is None else notes
    return import_trace(path, data_dir, label, naming, arguments, notes, files.sha256(path)).run_id


def import_trace(
    path: Path,
    data_dir: Path,
    label: str,
    naming: Naming | None,
    arguments: Sequence[str],
    notes: Notes,
    digest: str | None = None,
    one: OneOf | None = None,
) -> Imported:
    """The same, with what a job keeps of it. Raises SeveralProcesses: the trace has several, and none was chosen.

    Args:
        digest: SHA-256 of the file, which is kept with the run.
        one: the process that is imported, of a trace of several.
    """
    whole = KinetoTrace(path, notes)
    parts = whole.ranks()
    if parts and one is None:
        raise SeveralProcesses(path.name, [part.name for part in parts])
    part = parts[one.number] if one else None
    trace = PartOfTrace(whole, part) if part else whole
    started = _started(trace, path, notes)
    rank, ranks = (one.rank, 0) if one else rank_of(whole.file.head, path.name)
    with open_writer(data_dir, started, label or path.name.split(".")[0], _COMPRESSION_LEVEL) as writer:
        _fill(whole, part, trace, writer, naming, path.name.split(".")[0], rank or 0, notes)
        row = {"run_id": writer.run_id, "schema_version": schema.SCHEMA_VERSION, "label": label, "source_sha256": digest}
        writer.append("run", [{**row, **_facts(trace, whole.file.head, started, arguments)}])
        writer.append("diagnostics", notes.finish())
        writer.commit()
    free_unused()
    seen = whole.file.head.device_properties
    return Imported(writer.run_id, rank, ranks, 0 if one else whole.events, len(seen) if isinstance(seen, list) else 0)


def _fill(
    whole: KinetoTrace,
    part: Part | None,
    trace: Trace,
    writer: RunWriter,
    naming: Naming | None,
    workload: str,
    rank: int,
    notes: Notes,
) -> None:
    """Write all tables except run and diagnostics. `trace` is the whole one, or a part of it."""
    free_unused()
    written = write_tables(trace, writer, naming, workload, notes)
    free_unused()
    launches = _Launches(trace, whole.launched())
    _write_collectives(whole, trace, writer, launches, written.ranges, rank)
    if whole.operations:
        processes = (part.process, *part.helpers) if part else None
        work = launches.work()
        del launches
        for rows in whole.operations.tables(whole.base_ns, work, written.innermost, written.by_time, whole.threads, processes):
            writer.append("operations", rows)


def _write_collectives(
    whole: KinetoTrace, trace: Trace, writer: RunWriter, launches: "_Launches", ranges: Ranges, rank: int
) -> None:
    """Write the table `collectives`, if there are any."""
    communicate = [batch.filter(batch["collective"].is_valid()) for batch in trace.batches(KERNELS, OF_KERNELS)]
    if any(map(len, communicate)):
        gathered = whole.collectives.gathered(pa.Table.from_batches(communicate))
        launched = launches.start_of(integers(gathered["correlation"]), _BEFORE)
        gathered = whole.collectives.with_messages(gathered, launched, whole.base_ns)
        writer.append("collectives", _collectives(gathered, launched, _steps(ranges), rank))


class _Launches:
    """The calls of a trace, by the correlation of the device work that they launched.

    Args:
        launched: correlations of all device work.
    """

    def __init__(self, trace: Trace, launched: Int64s) -> None:
        self._trace = trace
        kept, names = Places(launched), ("correlation", "thread", "start_ns")
        every = trace.batches(API_CALLS, names)
        own = (batch.filter(pa.array(kept.of(integers(batch["correlation"])) != NONE)) for batch in every)
        correlation, thread, start = arrays_of(own, names)
        self._thread, self._start, self._places = thread, start, Places(correlation)

    def find(self, correlation: Int64s) -> Int64s:
        """The place of the call of each piece of device work; `NONE` where the trace lacks it."""
        return np.where(correlation > 0, self._places.of(correlation), NONE)

    def start_of(self, correlation: Int64s, otherwise: int) -> Int64s:
        """When each piece of device work was launched; another time where the trace lacks the call."""
        place = self.find(correlation)
        return np.where(place >= 0, np.append(self._start, 0)[place], otherwise)

    def work(self) -> LaunchedWork:
        """All device work with a call."""
        parts = []
        for table in (KERNELS, COPIES, SETS):
            correlation, start, end = self._trace.arrays(table, ("correlation", "start_ns", "end_ns"))
            place = self.find(correlation)
            known = place >= 0
            parts.append((self._thread[place[known]], self._start[place[known]], start[known], end[known]))
        return LaunchedWork(*map(np.concatenate, zip(*parts, strict=True)))


def _steps(ranges: Ranges) -> Steps:
    return find_steps(ranges.texts, ranges.text, process_of(ranges.thread), ranges.thread, ranges.start, ranges.end)


def _collectives(gathered: pa.Table, launched: Int64s, steps: Steps, rank: int) -> pa.Table:
    """Rows of `collectives`, not matched yet. `launched`: when each was launched."""
    stream, _ = numbered(*(integers(gathered[name], -1) for name in ("device", "stream")))
    iteration = steps.numbers_at(launch_times(integers(gathered["start_ns"]), stream, launched, launched != _BEFORE))
    groups, _ = coded(gathered["group"])
    rows = gathered.num_rows
    columns = {
        **{name: gathered.column(name) for name in gathered.column_names if name in schema.TABLES["collectives"].arrow.names},
        "rank": np.full(rows, rank, np.int32),
        "iteration": pa.array(iteration, mask=iteration < 0),
        "number": occurrence(groups).astype(np.int32),
    }
    return schema.TABLES["collectives"].bounded(schema.TABLES["collectives"].completed(columns, rows))


def rank_of(head: Head, name: str) -> tuple[int | None, int]:
    """The rank of a trace and the number of ranks of its job, from the trace, or the rank from the name of its file."""
    distributed = head.distributed if isinstance(head.distributed, dict) else {}
    rank, ranks = distributed.get("rank"), distributed.get("world_size")
    if not isinstance(rank, int) or not 0 <= rank < _MOST_RANKS:
        rank = rank_in(name)
    return rank, ranks if isinstance(ranks, int) and 0 < ranks <= _MOST_RANKS else 0


def rank_in(name: str) -> int | None:
    """The rank in the name of a file, such as `rank-13.json` or `worker3_step_12.json`; None where it has none."""
    found = _OF_RANK.search(name)
    rank = int(found[1] or found[2]) if found else _MOST_RANKS
    return rank if rank < _MOST_RANKS else None


def _started(trace: Trace, path: Path, notes: Notes) -> datetime:
    """When the trace begins. Times of older traces count from 1970, those of newer ones from a base that they have."""
    first = min(
        (integers(batch["start_ns"]).min() for batch in trace.batches(API_CALLS, ("start_ns",)) if len(batch)), default=0
    )
    return datetime.fromtimestamp(first / 1e9, UTC) if first > _AFTER_2000_NS else date_of_file(path, notes)


def _facts(trace: Trace, head: Head, started: datetime, arguments: Sequence[str]) -> dict[str, Any]:
    """Columns of `run` except run_id, schema_version and label."""
    parts = [trace.arrays(table, ("device",))[0] for table in (KERNELS, COPIES)]
    devices, count = np.unique(np.concatenate(parts), return_counts=True)
    busiest = devices[np.argmax(count)] if len(devices) else 0
    listed = head.device_properties if isinstance(head.device_properties, list) else []
    listed = [each for each in listed if isinstance(each, dict)]
    gpu = next((each for each in listed if each.get("id") == busiest), listed[0] if listed else {})
    major, minor = gpu.get("computeMajor"), gpu.get("computeMinor", 0)
    version = head.cuda_runtime_version
    return {
        **import_facts(arguments),
        "device_name": str(gpu.get("name", "")),
        "device_count": min(max(len(devices), 1), 1 << 14),
        "compute_capability": f"{major}.{minor}" if isinstance(major, int) else "",
        "sm_count": _positive(gpu.get("numSms"), 31),
        "memory_bytes": _positive(gpu.get("totalGlobalMem"), 62),
        "cuda_version": f"{version // 1000}.{version % 1000 // 10}" if isinstance(version, int) else "",
        "started_at": started,
        "collector": trace.collector,
        "collector_version": str(head.cupti_version or head.hip_runtime_version or ""),
        "source": trace.name,
    }


def _positive(value: Any, bits: int) -> int | None:
    return value if isinstance(value, int) and 0 < value < 1 << bits else None
