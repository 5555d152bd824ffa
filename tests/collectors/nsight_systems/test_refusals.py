"""What is not a report is refused in one line, and nothing is written."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from tests.collectors.nsight_systems.reports import schema_3_20, small, without_a_warning, write
from warpladder.__main__ import command
from warpladder.collectors.core.environment import Tool
from warpladder.collectors.nsight_systems import source
from warpladder.collectors.nsight_systems.parse import import_report
from warpladder.collectors.nsight_systems.report import TEXT_LIMIT
from warpladder.collectors.nsight_systems.source import open_report
from warpladder.collectors.trace.model import ReportError
from warpladder.data import store
from warpladder.data.store import StoreError, listing, open_run

pytestmark = pytest.mark.slow


def import_by_command(*arguments: str) -> Result:
    return CliRunner().invoke(command(), ["import", *arguments])


def empty(path: Path) -> None:
    path.touch()


def pointer(path: Path) -> None:
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")


def text(path: Path) -> None:
    path.write_text("Time (%),Total Time (ns)\n")


def other_database(path: Path) -> None:
    write(path, {"users": [{"name": "a"}]})


def nvprof(path: Path) -> None:
    write(path, {"StringTable": [{"_id_": 1, "value": "a"}], "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL": [{"start": 1, "end": 2}]})


def truncated(path: Path) -> None:
    write(path, schema_3_20())
    path.write_bytes(path.read_bytes()[:8192])


def overwritten(path: Path) -> None:
    write(path, schema_3_20())
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))


def folder_of_nothing(path: Path) -> None:
    path.mkdir()


def folder_of_text(path: Path) -> None:
    path.mkdir()
    (path / "StringIds.parquet").write_text("no parquet")


def missing(path: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (empty, "empty"),
        (pointer, "git-lfs pointer"),
        (text, "not a report of Nsight Systems"),
        (other_database, "no table StringIds"),
        (nvprof, "nvprof"),
        (truncated, "truncated"),
        (overwritten, "damaged"),
        (folder_of_nothing, "a folder without tables; name a .nsys-rep"),
        (folder_of_text, "not a readable parquet file"),
        (missing, "No such file"),
    ],
)
def test_what_is_not_a_report_is_refused_and_nothing_is_written(
    tmp_path: Path, make: Callable[[Path], None], reason: str
) -> None:
    path = tmp_path / "report.sqlite"
    make(path)
    with pytest.raises(ReportError) as refused:
        import_report(path, tmp_path / "runs", "", None, [])
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").iterdir())


#: How the line begins that follows several imports.
NEXT = "where the time of each goes: "


def test_the_command_refuses_in_one_line_and_still_imports_what_is_good(tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.sqlite", write(tmp_path / "odd name?#%20.sqlite", small())
    text(bad)
    done = import_by_command(str(bad), str(good), "--data-dir", str(tmp_path / "runs"))
    assert done.exit_code == 2
    every = done.stderr.replace("\n  ", " ").splitlines()
    of_bad = [line for line in every if not line.startswith(("odd name?#%20.sqlite: warning: ", NEXT))]
    assert len(of_bad) == 1 and of_bad[0].startswith("bad.sqlite: not a report")
    assert open_run(tmp_path / "runs" / done.stdout.splitlines()[-1]).info["source"] == "odd name?#%20.sqlite"


@pytest.mark.thorough
def test_several_reports_give_several_runs_and_the_last_line_is_the_last_run(tmp_path: Path) -> None:
    first, second = (write(tmp_path / f"{name}.sqlite", without_a_warning()) for name in "ab")
    done = import_by_command(str(first), str(second), "--data-dir", str(tmp_path / "runs"), "--label", "ours")
    assert done.exit_code == 0 and done.stderr.startswith(NEXT) and done.stderr.count("\n") == 1
    runs = [open_run(tmp_path / "runs" / line) for line in done.stdout.splitlines()]
    assert [(run.info["source"], run.info["label"]) for run in runs] == [("a.sqlite", "ours"), ("b.sqlite", "ours")]


def only_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one nsys there is, if any, is in that folder."""
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(source, "NSYS", Tool("nsys", "Nsight Systems", ()))


def native(path: Path) -> Path:
    path.write_bytes(b"NVIDIA Tegra Profiler Report 2026@1@1@204-x\n" + bytes(200))
    return path


def test_without_nsys_a_native_report_is_refused_with_where_to_export_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_here(tmp_path, monkeypatch)
    with pytest.raises(
        ReportError, match=r"written by Nsight Systems 2026\.1; no nsys on PATH.*nsys export --type sqlite r\.nsys-rep"
    ):
        import_report(native(tmp_path / "r.nsys-rep"), tmp_path / "runs", "", None, [])


def fake_nsys(path: Path, script: str) -> None:
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then echo NVIDIA Nsight Systems version 2023.4.4; exit; fi\n{script}\n'
    )
    path.chmod(0o755)


def test_an_nsys_that_is_too_old_is_named_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nsys(tmp_path / "nsys", "exit 1")
    only_here(tmp_path, monkeypatch)
    with pytest.raises(ReportError, match=r"written by Nsight Systems 2026\.1; the nsys found here is 2023\.4\.4"):
        import_report(native(tmp_path / "r.nsys-rep"), tmp_path / "runs", "", None, [])


def test_a_native_report_is_exported_by_nsys_and_keeps_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exported = write(tmp_path / "made.sqlite", small())
    fake_nsys(tmp_path / "nsys", f'/bin/cp "{exported}" "$5"')
    only_here(tmp_path, monkeypatch)
    run_id = import_report(native(tmp_path / "r.nsys-rep"), tmp_path / "runs", "", None, [])
    imported = open_run(tmp_path / "runs" / run_id)
    assert (imported.info["source"], len(imported.table("kernels"))) == ("r.nsys-rep", 4)


def test_rows_made_up_by_a_view_or_a_generated_column_are_never_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "report.sqlite", {"StringIds": small()["StringIds"], "ProcessStreams": []})
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            "create view CUPTI_ACTIVITY_KIND_KERNEL as with recursive n(start) as (select 1 union all select start + 1 from n) "
            "select start, start + 1 as end from n"
        )
        database.execute(
            "create table NVTX_EVENTS (start, end, eventType, text as (printf('%.*c', 10000000, 'x')), globalTid, domainId)"
        )
        database.execute("insert into NVTX_EVENTS values (1, 2, 59, 3, 0)")
        database.commit()
    run = open_run(tmp_path / "runs" / import_report(path, tmp_path / "runs", "", None, []))
    assert "kernels" not in run.tables
    assert run.table("ranges")["text"].tolist() == [""]


def test_a_text_of_many_megabytes_is_cut(tmp_path: Path) -> None:
    tables = small()
    tables["NVTX_EVENTS"][1]["text"] = "long" * 5_000_000
    path = write(tmp_path / "report.sqlite", tables)
    run = open_run(tmp_path / "runs" / import_report(path, tmp_path / "runs", "", None, []))
    assert max(run.table("ranges")["text"].str.len()) == TEXT_LIMIT


def test_bytes_that_are_not_text_are_replaced(tmp_path: Path) -> None:
    path = write(tmp_path / "report.sqlite", small())
    with closing(sqlite3.connect(path)) as database:
        database.execute("update NVTX_EVENTS set text = cast(x'ff41' as text) where text = 'outer'")
        database.commit()
    run = open_run(tmp_path / "runs" / import_report(path, tmp_path / "runs", "", None, []))
    assert "\N{REPLACEMENT CHARACTER}A" in set(run.table("ranges")["text"])


def test_a_parquet_column_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_TEXT_BYTES_A_GROUP", 10_000)
    pq.write_table(pa.table({"id": [1], "value": ["x" * 100_000]}), tmp_path / "StringIds.parquet", compression="zstd")
    with pytest.raises(StoreError, match=r"StringIds\.parquet: column value unpacks to over"):
        list(store.scan_foreign(tmp_path / "StringIds.parquet", ["id"], ["value"], 10, 5))


def test_a_parquet_text_is_cut(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2], "value": ["x" * 100, None]}), tmp_path / "StringIds.parquet")
    (batch,) = store.scan_foreign(tmp_path / "StringIds.parquet", ["id"], ["value"], 10, 5)
    assert batch.column("value").to_pylist() == ["xxxxx", None]


def test_reading_only_the_first_rows_leaves_no_thread_behind(tmp_path: Path) -> None:
    import threading

    many = {**small(), "StringIds": [{"id": number, "value": "a"} for number in range(1000)]}
    before = threading.active_count()
    with open_report(write(tmp_path / "report.sqlite", many)) as report:
        assert len(report.rows("StringIds", ["id"], ["value"], limit=3)) == 3
    assert threading.active_count() == before
