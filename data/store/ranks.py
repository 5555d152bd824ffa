"""The traces of some ranks of a job as one trace on the job's clock."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warpladder.data import schema
from warpladder.data.arrays import Int64s
from warpladder.data.store.errors import StoreError
from warpladder.data.store.listing import glance, open_run
from warpladder.data.store.run import BadRun, Run
from warpladder.data.store.tables import SUFFIX, Rows, conform

#: Folder of the runs of the ranks in the folder of their job.
FOLDER: Final = "ranks"
_TRACE: Final = ("ranges", "kernels", "memory_ops", "memory_in_use", "api_calls", "operations")
TABLES_OF_RANKS: Final = frozenset(_TRACE)
#: Columns with ids that are unique within a rank.
_IDS: Final = {
    "ranges": ("range_id", "parent_id"),
    "kernels": ("range_id", "time_range_id"),
    "memory_ops": ("range_id", "time_range_id"),
    "api_calls": ("range_id",),
    "memory_in_use": (),
    "operations": ("operation_id", "parent_id", "forward_id", "range_id", "time_range_id"),
}
_OF_OPERATIONS: Final = ("operation_id", "parent_id", "forward_id")


def folder_of(job: Path, rank: int) -> Path:
    """The folder of the run of a rank in the folder of its job."""
    return job / FOLDER / f"{rank:05d}"


def add_tables(run: Path, tables: Mapping[str, Rows]) -> None:
    """Write further tables into the folder of a rank's run. A table without rows has no file."""
    for name, rows in tables.items():
        table = conform(name, rows)
        if table.num_rows:
            # With zstd, to begin a column takes longer than to write it.
            pq.write_table(table, run / f"{name}{SUFFIX}", compression="lz4")


def any_rank_has(job: Run, name: str) -> bool:
    """Whether the run of some rank of a job has a table."""
    return next((job.path / FOLDER).glob(f"*/{name}{SUFFIX}"), None) is not None


def profiled_ranks(job: Run) -> list[int]:
    """The ranks of a job that have a profile."""
    return sorted(int(path.name) for path in (job.path / FOLDER).glob("[0-9]*") if path.is_dir())


def joined(job: Path, ranks: Sequence[int], name: str) -> pa.Table:
    """A table of several ranks, rank by rank. Its texts are dictionaries, since ranks have the same texts."""
    texts = [field.name for field in schema.TABLES[name].arrow if pa.types.is_string(field.type)]
    files = (folder_of(job, rank) / f"{name}{SUFFIX}" for rank in ranks)
    tables = []
    for file in (each for each in files if each.exists()):
        with pq.ParquetFile(file, read_dictionary=texts, pre_buffer=False) as parquet:
            tables.append(parquet.read(use_threads=False))  # to start threads takes longer than to read a short table
    if not tables:
        return schema.TABLES[name].arrow.empty_table()
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def written(path: Path) -> Run:
    """A run that this project has just written, without the check of its values, which takes as long as to import a
    small rank. Raises StoreError: it has no readable table `run`."""
    run = glance(path)
    if isinstance(run, BadRun):
        raise StoreError(run.reason)
    return run


def open_rank(job: Run, rank: int) -> Run:
    """Open the run of a rank. Raises StoreError: the job has no such rank, or its run cannot be read."""
    path = folder_of(job.path, rank)
    if not path.is_dir():
        raise StoreError(f"{job.run_id}: has no profile of rank {rank}; table ranks has the reason")
    return open_run(path)


@dataclass(frozen=True)
class Clock:
    """A rank's clock: its offset in ns at a time of the job's clock, and its drift in s/s."""

    offset_ns: float
    at_ns: int
    drift: float

    def aligned(self, times: Int64s) -> Int64s:
        """Times of the rank on the job's clock, in ns."""
        whole: Int64s = np.rint((times - self.at_ns - self.offset_ns) / (1 + self.drift)).astype(np.int64)
        return whole + self.at_ns

    def aligned_column(self, times: pa.ChunkedArray) -> pa.ChunkedArray:
        """The same for a column, whose nulls stay."""
        whole = self.aligned(times.fill_null(self.at_ns).to_numpy())
        return pa.chunked_array([pa.array(whole, mask=~times.is_valid().to_numpy(zero_copy_only=False))])


@dataclass(frozen=True)
class _Part:
    """A rank: its run, its clock where it is known, and what is added to its ids."""

    rank: int
    run: Run
    clock: Clock | None
    ranges: int
    operations: int


@dataclass(frozen=True)
class RanksOfJob(Run):
    """A job with the traces of some of its ranks. Their processes are the ranks; their times are on the job's clock where it is known."""

    parts: tuple[_Part, ...] = ()

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks with traces."""
        return tuple(part.rank for part in self.parts)

    def state(self, *names: str) -> Hashable:
        return self.ranks, super().state(*names), tuple(part.run.state(*names) for part in self.parts)

    def rows(self, name: str) -> int:
        return sum(part.run.rows(name) for part in self.parts) if name in _TRACE else super().rows(name)

    def scan(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if name not in _TRACE:
            yield from super().scan(name, columns)
            return
        for part in self.parts:
            yield from _of_job(part, name, part.run.arrow(name, list(columns))).to_batches()

    def _arrow(self, name: str, columns: Sequence[str], categories: bool) -> pa.Table:
        if name not in _TRACE:
            return super()._arrow(name, columns, categories)
        tables = [_of_job(part, name, part.run.arrow(name, list(columns))) for part in self.parts]
        joined = pa.concat_tables(tables).unify_dictionaries()
        return joined if categories else self._written_out(name, joined)


def ranks_of(job: Run, ranks: Sequence[int]) -> RanksOfJob:
    """A job with the traces of some of its ranks. Raises StoreError: the job has no profile of one of them, or it
    cannot be read."""
    clocks = {row["rank"]: row for row in job.records("ranks")}
    parts: list[_Part] = []
    ranges = operations = 0
    for rank in ranks:
        run = open_rank(job, rank)
        parts.append(_Part(rank, run, clock_of(clocks.get(rank, {})), ranges, operations))
        ranges, operations = ranges + run.rows("ranges"), operations + run.rows("operations")
    traced = {name for part in parts for name in part.run.tables if name in _TRACE}
    tables = (*(name for name in job.tables if name not in _TRACE), *sorted(traced))
    return RanksOfJob(job.path, job.info, tables, job.left_out, tuple(parts))


def clock_of(row: Mapping[str, Any]) -> Clock | None:
    """The clock in a row of table `ranks`; None where it could not be aligned."""
    offset, at, drift = (row.get(name) for name in ("offset_ns", "offset_at_ns", "drift_ppm"))
    return None if offset is None or at is None or drift is None else Clock(offset, at, drift / 1e6)


def _of_job(part: _Part, name: str, rows: pa.Table) -> pa.Table:
    """Rows of a rank as those of the job."""
    for place, column in enumerate(rows.schema.names):
        values = rows.column(column)
        if column == "process":
            rows = rows.set_column(place, column, pa.array(np.full(len(rows), part.rank, np.int64)))
        elif column in _IDS[name]:
            more = part.operations if name == "operations" and column in _OF_OPERATIONS else part.ranges
            rows = rows.set_column(place, column, pc.add(values, more))
        elif (
            part.clock
            and schema.TABLES[name].arrow.field(column).type == pa.int64()
            and column.endswith(("start_ns", "end_ns"))
        ):
            rows = rows.set_column(place, column, part.clock.aligned_column(values))
    return rows
