"""What SQLite keeps beside a database belongs to the report: it is read with it, or the report is refused; the files stay as they are."""

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.collectors.nsight_systems.reports import kernel, small, write
from warpladder.collectors.nsight_systems.parse import import_report
from warpladder.collectors.trace.model import ReportError
from warpladder.data.store import Run, open_run


def imported(path: Path, folder: Path) -> Run:
    return open_run(folder / import_report(path, folder, "", None, []))


def told(run: Run) -> list[tuple[str, str]]:
    found = run.table("diagnostics")
    found = found[found["source"] == "report"]
    return list(zip(found["severity"], found["text"], strict=True))


@pytest.fixture
def unfinished(tmp_path: Path) -> Iterator[Path]:
    """A report of 4 kernels and a fifth that is in its -wal alone; the program that wrote it still has it open."""
    path = write(tmp_path / "report.sqlite", small())
    row = kernel(6, 6000, 6001)
    with closing(sqlite3.connect(path)) as database:
        database.execute("pragma journal_mode = wal")
        database.execute(
            f"insert into CUPTI_ACTIVITY_KIND_KERNEL ({', '.join(row)}) values ({', '.join('?' * len(row))})",
            list(row.values()),
        )
        database.commit()
        yield path


def test_rows_in_a_wal_are_read_and_said_to_be(unfinished: Path, tmp_path: Path) -> None:
    assert Path(f"{unfinished}-wal").stat().st_size > 0
    run = imported(unfinished, tmp_path / "runs")
    assert sorted(run.table("kernels")["start_ns"]) == [1000, 1005, 2000, 5000, 6000]
    ((severity, text),) = told(run)
    assert severity == "info"
    assert text.startswith("read with report.sqlite-wal beside it")


def test_the_files_of_the_user_stay_as_they_are(unfinished: Path, tmp_path: Path) -> None:
    # Copies, of which nobody keeps a -shm: SQLite itself would make one beside them, or could not read the -wal where it may not.
    folder = tmp_path / "given"
    folder.mkdir()
    for ending in ("", "-wal"):
        shutil.copy(f"{unfinished}{ending}", folder / f"given.sqlite{ending}")
    folder.joinpath("given.sqlite").chmod(0o400)
    before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()}
    assert imported(folder / "given.sqlite", tmp_path / "runs").rows("kernels") == 5
    assert {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()} == before


def test_a_wal_is_found_beside_the_file_that_a_link_leads_to(unfinished: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "link.sqlite"
    link.parent.mkdir()
    link.symlink_to(unfinished)
    assert imported(link, tmp_path / "runs").rows("kernels") == 5


def test_a_wal_that_sqlite_cannot_read_is_told_of(tmp_path: Path) -> None:
    path = write(tmp_path / "report.sqlite", small())
    Path(f"{path}-wal").write_bytes(b"no frames of this database" * 1000)
    run = imported(path, tmp_path / "runs")
    assert run.rows("kernels") == 4
    ((severity, text),) = told(run)
    assert severity == "warning"
    assert text.startswith("report.sqlite-wal beside it holds nothing that SQLite can read")


def test_an_empty_wal_and_a_journal_that_is_done_with_are_nothing_to_speak_of(tmp_path: Path) -> None:
    path = write(tmp_path / "report.sqlite", small())
    Path(f"{path}-wal").touch()
    Path(f"{path}-journal").write_bytes(bytes(512))
    assert told(imported(path, tmp_path / "runs")) == []


def test_a_change_that_was_broken_off_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "report.sqlite", small())
    with closing(sqlite3.connect(path)) as database:
        database.execute("pragma cache_size = 1")
        database.execute("begin immediate")
        database.execute("update NVTX_EVENTS set text = 'changed' || hex(zeroblob(20000))")
        assert Path(f"{path}-journal").stat().st_size > 0
        with pytest.raises(
            ReportError, match=r"report\.sqlite: a write to it was interrupted \(report\.sqlite-journal"
        ) as refused:
            imported(path, tmp_path / "runs")
    assert "\n" not in str(refused.value)
    assert not list(tmp_path.glob("runs/*"))


def test_a_report_that_is_being_written_is_refused(unfinished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = shutil.copyfile

    def and_write(source: Path, target: Path) -> None:
        copy(source, target)
        with source.open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(shutil, "copyfile", and_write)
    with pytest.raises(ReportError, match=r"report\.sqlite: is being written; close the program that has it open"):
        imported(unfinished, tmp_path / "runs")


def test_no_room_for_a_copy_is_one_line_with_the_cure(
    unfinished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(ReportError, match=r"No space left on device.*wal_checkpoint") as refused:
        imported(unfinished, tmp_path / "runs")
    assert "\n" not in str(refused.value)
