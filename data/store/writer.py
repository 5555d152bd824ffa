"""Writes a run: streamed into a staging folder, then renamed into place."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from warpladder.data import schema
from warpladder.data.staging import Staging, is_same, is_taken, sync
from warpladder.data.store.errors import RunExists, StoreError, first_line
from warpladder.data.store.tables import LONG_TABLES, SUFFIX, Rows, conform

_ROWS_A_GROUP: Final = 1_000_000


#: Tables of code, their level of zstd, and most bytes of a page.
_OF_CODE: Final = ("machine_code", "variants")
_LEVEL_OF_CODE: Final = 19
_PAGE_OF_CODE: Final = 64 << 20


class RunWriter:
    """Writes one run, table by table, and makes it visible only by `commit`. Raises StoreError: the folder cannot be
    written, the run exists, or rows do not fit the schema.

    Used as a context manager: leaving the block without `commit` removes what was written.

    Args:
        data_dir: where the run's folder goes.
        run_id: name of the folder.
        compression_level: of zstd. Low for a trace of millions of rows, where level 9 takes longer than all the rest.
        staging: the folder of a dead writer, to be written again; None for a new folder.
    """

    def __init__(self, data_dir: Path, run_id: str, compression_level: int = 9, staging: Staging | None = None) -> None:
        self.run_id = run_id
        self._compression_level = compression_level
        self._data_dir = data_dir
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._run: pa.Table | None = None
        if staging is None and self.path.exists():
            raise RunExists(f"{self.path}: a run of this name exists; runs are never changed, choose another name")
        try:
            self.staging = staging or Staging.create(data_dir, run_id)
            if staging:
                self.start_again()
        except FileExistsError as error:
            raise RunExists(f"{self.path}: is being written; choose another name") from error
        except OSError as error:
            raise StoreError(
                f"{data_dir}: cannot be written ({error.strerror}); choose another folder with --data-dir"
            ) from error

    @property
    def path(self) -> Path:
        """The folder of the run, once it is committed."""
        return self._data_dir / self.run_id

    def append(self, table: str, rows: Rows) -> None:
        """Add rows to a table, whose columns must be exactly the columns of the schema."""
        arrow = conform(table, rows)
        if arrow.num_rows == 0:
            return
        if table == "run":  # written by the commit, under the name that is free then
            self._run = arrow
            return
        with self._errors_explained():
            self._write(table, arrow)

    def commit(self, durable: bool = False) -> Path:
        """Close every table and rename the run into place. If another run has taken its id meanwhile, the id becomes
        `<run_id>-2`. Returns the folder of the run.

        Args:
            durable: come back only when the disk itself has the run. Its name is on the disk before the staging folder is gone.
        """
        if self._run is None:
            raise StoreError(f"{self.path}: has no row in table run; append it before the commit")
        with self._errors_explained():
            self._close()
            run_id, number = self.run_id, 1
            while not self._take_place(durable):
                number += 1
                self.run_id = f"{run_id}-{number}"
                index = self._run.column_names.index("run_id")
                self._run = self._run.set_column(index, self._run.schema.field(index), pa.array([self.run_id]))
            if durable:
                sync(self._data_dir)
        self.staging.remove()
        return self.path

    def start_again(self) -> None:
        """Remove what was appended."""
        with self._errors_explained():
            with suppress(OSError):
                self._close()
            self._run = None
            shutil.rmtree(self.staging.tables, ignore_errors=True)
            self.staging.tables.mkdir()

    def leave(self) -> None:
        """End without a commit and keep the staged files, which `staging.abandoned` will find."""
        with suppress(OSError):
            self._close()
        self.staging.release()

    def _take_place(self, durable: bool) -> bool:
        """Whether the rename succeeded, because no run had this id."""
        if self.path.exists():
            return False
        self._write("run", self._run)
        self._close()
        if durable:
            self.staging.sync()
        tables = self.staging.tables.stat()
        try:
            self.staging.tables.rename(self.path)
        except OSError as error:
            if is_same(self.path, tables):  # a network disk may do it, and answer a second request with an error
                return True
            if is_taken(error):
                return False
            raise
        return True

    def _write(self, table: str, arrow: pa.Table) -> None:
        if table not in self._writers:
            written, is_code = schema.TABLES[table].arrow, table in _OF_CODE
            self._writers[table] = pq.ParquetWriter(
                self.staging.tables / f"{table}{SUFFIX}",
                written,
                compression="zstd",
                compression_level=_LEVEL_OF_CODE if is_code else self._compression_level,
                # Kernels of a workload resemble each other, so that one page of all takes half the bytes of a page for each.
                data_page_size=_PAGE_OF_CODE if is_code else None,
                dictionary_pagesize_limit=_PAGE_OF_CODE if is_code else None,
                write_statistics=table in LONG_TABLES,  # of a short table they take more bytes than they save
                write_page_checksum=True,
                use_dictionary=[field.name for field in written if not _rises(field)],
                column_encoding={field.name: "DELTA_BINARY_PACKED" for field in written if _rises(field)},
            )
        self._writers[table].write_table(arrow, row_group_size=_ROWS_A_GROUP)

    @contextmanager
    def _errors_explained(self) -> Iterator[None]:
        """Turns the error of a full disk or a missing folder into a message that says what to do."""
        try:
            yield
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else first_line(error)
            raise StoreError(
                f"{self._data_dir}: cannot be written ({why}); free some space or choose another folder with --data-dir"
            ) from error

    def _close(self) -> None:
        try:
            for writer in self._writers.values():
                writer.close()
        finally:
            for writer in self._writers.values():
                writer.is_open = False  # or it would try again when it is collected, and print a traceback
            self._writers.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(OSError):  # of no use any more
            self._close()
        self.staging.remove()


def _rises(field: pa.Field) -> bool:
    """Whether a column holds times, ids or numbers of what follows each other. They differ little from row to row, so that differences take
    half the bytes of a dictionary and a third of the time to read. Of other whole numbers, such as the size of a grid, the same few come
    again and again."""
    return bool(pa.types.is_integer(field.type)) and field.name.endswith(("_ns", "_id", "correlation", "instruction", "block"))
