"""Files that would keep a reader busy for ever: each is refused, or what is hostile in it is passed over."""

import os
import sqlite3
import threading
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from tests.collectors.nsight_systems.reports import small, without_a_warning, write
from tests.fuzz.sqlite_files import ENDLESS, circle, hostile
from tests.limits import cpu_seconds, no_hang
from warpladder.collectors.nsight_compute import parse as nsight_compute
from warpladder.collectors.nsight_systems import source
from warpladder.collectors.nsight_systems.parse import import_report
from warpladder.collectors.nsight_systems.report import Report
from warpladder.collectors.trace.model import ReportError
from warpladder.data.store import open_run


def test_a_full_text_table_over_an_endless_view_is_no_table(tmp_path: Path) -> None:
    tables = small()
    path = write(tmp_path / "report.sqlite", {name: rows for name, rows in tables.items() if name != "NVTX_EVENTS"})
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"create view endless as {ENDLESS}")
        database.execute(
            "create  virtual table NVTX_EVENTS using fts4(start, end, eventType, text, globalTid, content=endless)"
        )
        database.commit()
    with cpu_seconds(5):
        run = open_run(tmp_path / "runs" / import_report(path, tmp_path / "runs", "", None, []))
    assert "ranges" not in run.tables
    assert len(run.table("kernels")) == 4


def test_pages_that_are_their_own_children_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "report.sqlite", without_a_warning())
    circle("NVTX_EVENTS")(path)
    with cpu_seconds(10), pytest.raises(ReportError, match="NVTX_EVENTS has more rows than the file has room for"):
        import_report(path, tmp_path / "runs", "", None, [])


def test_an_old_sqlite_that_cannot_tell_tables_apart_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Old:
        def __init__(self, database: sqlite3.Connection) -> None:
            self._database = database

        def execute(self, text: str) -> sqlite3.Cursor:
            return self._database.execute(text.replace("table_list", "no_such_pragma"))

        def __getattr__(self, name: str) -> object:
            return getattr(self._database, name)

    path = write(tmp_path / "report.sqlite", small())
    with closing(sqlite3.connect(path)) as database, pytest.raises(ReportError, match=r"SQLite 3\.37 or later"):
        source._columns(Old(database), "report.sqlite")  # type: ignore[arg-type]


class Stuck(Report):
    """A report whose reader gives one batch and then never comes back, as native code may."""

    def __init__(self, seconds: float | None) -> None:
        super().__init__("stuck.sqlite", {"T": frozenset({"a"})}, seconds=seconds)
        self.back = threading.Event()

    def _has_rows(self, table: str) -> bool:
        return True

    def _read(self, table: str, integers: Sequence[str], texts: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        yield pa.record_batch({"a": pa.array([1])})
        self.back.wait()


def test_a_reader_that_does_not_come_back_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpladder.collectors.nsight_systems.report._LAST_BATCH_S", 0.1)
    stuck = Stuck(0.2)
    batches = stuck.batches("T", ["a"])
    assert next(batches).num_rows == 1
    with pytest.raises(ReportError, match=r"stuck\.sqlite: table T was not read within 0 s"):
        next(batches)
    stuck.back.set()


def test_a_signal_ends_the_wait_for_a_reader_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing the generator is what an exception of a signal handler does."""
    monkeypatch.setattr("warpladder.collectors.nsight_systems.report._LAST_BATCH_S", 0.1)
    stuck = Stuck(None)
    batches = stuck.batches("T", ["a"])
    next(batches)
    batches.close()
    stuck.back.set()


@pytest.mark.parametrize("name", ["report.sqlite", "exported/StringIds.parquet"])
def test_a_fifo_is_no_report(name: str, tmp_path: Path) -> None:
    fifo = tmp_path / name
    fifo.parent.mkdir(exist_ok=True)
    os.mkfifo(fifo)
    with no_hang(5), pytest.raises(ReportError, match="is not a file but a FIFO"):
        import_report(tmp_path / name.partition("/")[0], tmp_path / "runs", "", None, [])
    with no_hang(5):
        assert not nsight_compute.is_report(fifo)


@pytest.mark.parametrize("number", range(0, 60, 7))
def test_a_hostile_file_is_refused_in_one_line_or_read(number: int, tmp_path: Path) -> None:
    """A part of `tests.fuzz.sqlite_files`."""
    name, change = list(hostile())[number]
    path = write(tmp_path / "report.sqlite", without_a_warning())
    change(path)
    with cpu_seconds(10):
        try:
            import_report(path, tmp_path / "runs", "", None, [])
        except ReportError as refused:
            assert str(refused).isprintable(), name
