"""A run on disk. Its tables are read when they are needed."""

import os
import shlex
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from warpladder.data import schema
from warpladder.data.files import LOCAL, RECORDED, one_line
from warpladder.data.store.errors import TooLarge
from warpladder.data.store.tables import SUFFIX, as_frame, check_columns, excess_of_texts, opened, with_later

if TYPE_CHECKING:
    import pandas as pd


_SHORT: Final = 10_000  # rows


@dataclass(frozen=True)
class Run:
    """A run on disk whose schema version has been checked; its tables are read when asked for.

    Attributes:
        tables: names of the tables that have rows.
        left_out: names of tables that are too large to be read, each with the reason. They are not among `tables`.
    """

    path: Path
    info: Mapping[str, Any]
    tables: tuple[str, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        return str(self.info["run_id"])

    @property
    def argument(self) -> str:
        """The run as an argument of a command: its id where commands look for runs unasked, else its folder."""
        is_found = self.path.parent in (LOCAL, RECORDED)
        return one_line(self.path.name if is_found else shlex.quote(str(self.path)))

    @property
    def title(self) -> str:
        """The text for a list of runs: label, device, day."""
        device = self.info["device_name"] or self.info["cpu_name"]
        return one_line(f"{self.info['label'] or self.run_id} · {device} · {self.info['started_at']:%Y-%m-%d %H:%M}")

    @cached_property
    def timed(self) -> frozenset[str]:
        """Workloads of a run that has samples. Raises StoreError: a file is damaged."""
        return frozenset(self.table("cases", ["workload"])["workload"]) if self.rows("samples") else frozenset()

    def state(self, *names: str) -> Hashable:
        """A value that changes when one of these tables changes."""
        return tuple(_state(f"{self.path}/{name}{SUFFIX}") for name in names)

    def rows(self, name: str) -> int:
        """How many rows a table has, without reading them. Raises StoreError: the file is damaged."""
        if name not in self.tables:
            return 0
        with opened(self._file(name)) as parquet:
            return int(parquet.metadata.num_rows)

    def table(self, name: str, columns: Sequence[str] | None = None, *, categories: bool = False) -> "pd.DataFrame":
        """Rows of a table; no rows where the run has no such table. Raises StoreError: the file is damaged, or its
        columns do not match the schema.

        Args:
            name: a table of the schema.
            columns: the columns wanted; all when None.
            categories: text columns as pandas categories, which a long table is grouped by many times faster.
        """
        table = schema.TABLES[name]
        column_names = list(columns) if columns is not None else [column.name for column in table.columns]
        return as_frame(table, self._arrow(name, column_names, categories))

    def arrow(self, name: str, columns: Sequence[str], of: Mapping[str, str] | None = None) -> pa.Table:
        """Columns of a table, without the copies that a data frame makes. The chunks of a text column share one
        dictionary. Raises StoreError: as `table` does.

        Args:
            name: a table of the schema.
            columns: the columns wanted.
            of: the values of text columns in the rows wanted; None for all rows.
        """
        values = of or {}
        rows = self._arrow(name, list(dict.fromkeys([*columns, *values])), categories=True)
        for column, value in values.items():
            rows = rows.filter(pc.equal(rows.column(column), value))
        return rows.select(columns)

    def records(self, name: str) -> list[dict[str, Any]]:
        """Every row of a short table as a mapping, with None for a null. Raises StoreError: as `table` does."""
        rows: list[dict[str, Any]] = self._arrow(name, schema.TABLES[name].arrow.names, categories=False).to_pylist()
        return rows

    def scan(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The same in pieces of at most a million rows, for columns that need not be kept in memory. Raises StoreError:
        as `table` does."""
        if name in self.tables:
            with opened(self._file(name)) as parquet:
                check_columns(self._file(name), schema.TABLES[name], parquet.schema_arrow)
                for group in range(parquet.num_row_groups):
                    yield from parquet.read_row_group(group, columns=list(columns)).to_batches()

    def _arrow(self, name: str, columns: Sequence[str], categories: bool) -> pa.Table:
        table = schema.TABLES[name]
        if name not in self.tables:
            return table.arrow.empty_table().select(columns)
        with opened(self._file(name), table) as parquet:
            check_columns(self._file(name), table, parquet.schema_arrow)
            stored_names = set(parquet.schema_arrow.names)
            stored = [name for name in columns if name in stored_names]
            # To start threads takes longer than to read a short table.
            rows = parquet.read(columns=stored, use_threads=parquet.metadata.num_rows > _SHORT).unify_dictionaries()
            if not categories:
                rows = self._written_out(name, rows)
        return with_later(rows, table).select(columns)

    def _written_out(self, name: str, rows: pa.Table) -> pa.Table:
        """The rows with their texts in place of codes. Raises TooLarge."""
        for place, column in enumerate(rows.schema):
            if pa.types.is_dictionary(column.type):
                texts = rows.column(place)
                if excess := excess_of_texts(name, texts):
                    raise TooLarge(f"{self._file(name)}: column {column.name}", excess)
                rows = rows.set_column(place, column.name, texts.cast(column.type.value_type))
        return rows

    def _file(self, name: str) -> Path:
        return self.path / f"{name}{SUFFIX}"


def _state(file: str) -> Hashable:
    """It is asked of thousands of runs for a page."""
    try:
        status = os.stat(file)  # noqa: PTH116
    except OSError as error:
        return error.errno
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_mode


@dataclass(frozen=True)
class BadRun:
    """A run folder that cannot be opened, and why. `run` is its table `run`, if that can be read."""

    path: Path
    reason: str
    run: Run | None = None

    @property
    def name(self) -> str:
        """The folder's name as text that can be printed."""
        return one_line(self.path.name)
