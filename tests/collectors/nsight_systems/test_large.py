"""Reports that are large in one way: a long text in very many rows, very many tables, ranges nested very deep."""

import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.collectors.nsight_systems.reports import TID, Tables, call, kernel, nvtx, small, write
from tests.limits import cpu_seconds
from warpladder.collectors.core.nvtx_ranges import DOMAIN
from warpladder.collectors.nsight_systems import source
from warpladder.collectors.nsight_systems.parse import import_report
from warpladder.collectors.trace.model import ReportError
from warpladder.data.store import Run, open_run

ROOT = Path(__file__).resolve().parents[3]
LONG = "long " * 1600
ROWS = 400_000


def in_parquet(folder: Path, tables: Tables) -> Path:
    folder.mkdir()
    for name, rows in tables.items():
        columns = dict.fromkeys(column for row in rows for column in row)
        pq.write_table(pa.table({column: [row.get(column) for row in rows] for column in columns}), folder / f"{name}.parquet")
    return folder


def all_alike(text: pa.Array, text_id: pa.Array) -> pa.Table:
    """Very many ranges that differ in their times alone."""
    start = np.arange(ROWS) * 10
    same = {"eventType": np.full(ROWS, 59), "globalTid": np.full(ROWS, TID), "domainId": np.zeros(ROWS, np.int64)}
    return pa.table({"start": start, "end": start + 5, **same, "text": text, "textId": text_id})


def often(text: str) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(ROWS, np.int32)), pa.array([text]))


#: The command, and then its own peak. The one that the parent is told of a child (ru_maxrss) is at least the parent's own.
IMPORT = """
import re, sys
from pathlib import Path
from warpladder.__main__ import command
try:
    command()(sys.argv[1:])
finally:
    print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


def memory_of_import(report: Path, folder: Path) -> tuple[Run, int]:
    """The run, and the most bytes that a process of its own held for it."""
    command = [sys.executable, "-c", IMPORT, "import", str(report), "--data-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    run_id, held_kb = done.stdout.split()[-2:]
    return open_run(folder / run_id), int(held_kb) * 1024


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["in the rows", "by many ids"])
def test_a_long_text_that_stands_in_very_many_rows_is_held_once(tmp_path: Path, place: str) -> None:
    # Laid out, the texts are 3.2 GB, and those of one batch 2 GB.
    tables = small()
    folder = in_parquet(tmp_path / "report", tables)
    assert ROWS * len(LONG) == 3_200_000_000
    if place == "in the rows":
        ranges = all_alike(often(LONG), pa.nulls(ROWS, pa.int64()))
    else:
        ranges = all_alike(pa.nulls(ROWS, pa.string()), pa.array(np.arange(ROWS) + 100))
        known = [row["value"] for row in tables["StringIds"]]
        ids = [*(row["id"] for row in tables["StringIds"]), *range(100, 100 + ROWS)]
        numbers = pa.array([*range(len(known)), *[len(known)] * ROWS], pa.int32())
        strings = pa.table({"id": ids, "value": pa.DictionaryArray.from_arrays(numbers, pa.array([*known, LONG]))})
        pq.write_table(strings, folder / "StringIds.parquet")
    pq.write_table(ranges, folder / "NVTX_EVENTS.parquet")
    assert sum(file.stat().st_size for file in folder.iterdir()) < 10e6
    run, held = memory_of_import(folder, tmp_path / "runs")
    assert held < 1.0e9
    text = run.arrow("ranges", ["text"])["text"]
    assert text.chunk(0).dictionary.to_pylist() == [LONG]
    assert len(text) == ROWS
    assert sorted(run.table("kernels")["name"]) == ["gemm"] * 4


def test_a_parquetdir_gives_the_texts_of_the_same_tables_in_sqlite(tmp_path: Path) -> None:
    tables = small()
    tables["NVTX_EVENTS"] += [nvtx("outer", 500 + number, 600) for number in range(3)] + [
        nvtx(None, 700, 710),
        nvtx("", 800, 810, textId=6),
    ]
    tables["StringIds"] += [{"id": 20, "value": None}, {"id": 21, "value": "gemm"}]
    tables["CUPTI_ACTIVITY_KIND_KERNEL"] += [
        kernel(4, 9000, 9001, shortName=20),
        kernel(4, 9002, 9003, shortName=21, demangledName=99),
    ]
    folder = in_parquet(tmp_path / "report", tables)
    runs = [
        open_run(tmp_path / "runs" / import_report(report, tmp_path / "runs", "", None, []))
        for report in (write(tmp_path / "report.sqlite", tables), folder)
    ]
    for table in ("ranges", "kernels", "api_calls", "memory_ops", "diagnostics"):
        ours, theirs = (run.table(table) for run in runs)
        assert ours.equals(theirs), table
    assert Counter(runs[0].table("ranges")["text"])["from a table"] == 2
    assert list(runs[0].table("kernels").query("start_ns >= 9000")["full_name"]) == ["void gemm<float>(float *)", "gemm"]


@pytest.fixture
def many_tables(tmp_path: Path) -> Iterator[Path]:
    """A report with 100,000 tables more. They share their page: to make each takes SQLite longer than the one before."""
    path = write(tmp_path / "report.sqlite", small())
    with closing(sqlite3.connect(path)) as database:
        (page,) = database.execute("select rootpage from sqlite_master").fetchone()
        database.execute("pragma writable_schema = on")
        rows = ((f"T{number}", f"T{number}", page, f'create table "T{number}" (a, b)') for number in range(100_000))
        database.executemany("insert into sqlite_master values ('table', ?, ?, ?, ?)", rows)
        database.commit()
    yield path


@pytest.mark.thorough
def test_a_hundred_thousand_tables_are_refused_at_once(many_tables: Path, tmp_path: Path) -> None:
    with cpu_seconds(3), pytest.raises(ReportError, match=r"report\.sqlite: has over 10,000 tables") as refused:
        import_report(many_tables, tmp_path / "runs", "", None, [])
    assert "\n" not in str(refused.value)


def test_as_many_tables_as_may_be_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {**small(), **{f"T{number}": [{"a": 1}] for number in range(50)}}
    monkeypatch.setattr(source, "_MOST_TABLES", len(tables))
    for report in (write(tmp_path / "report.sqlite", tables), in_parquet(tmp_path / "report", tables)):
        assert open_run(tmp_path / "runs" / import_report(report, tmp_path / "runs", "", None, [])).rows("kernels") == 4
    monkeypatch.setattr(source, "_MOST_TABLES", len(tables) - 1)
    for report in (tmp_path / "report.sqlite", tmp_path / "report"):
        with pytest.raises(ReportError, match=rf"has over {len(tables) - 1} tables"):
            import_report(report, tmp_path / "runs", "", None, [])


@pytest.mark.thorough
@pytest.mark.parametrize("closed", [True, False])
def test_ranges_nested_a_hundred_thousand_deep_are_imported_with_their_device_time(tmp_path: Path, closed: bool) -> None:
    # A kernel in each: 5,000,000,000 pairs of a range and a kernel in it.
    deep = 100_000
    tables = {
        name: rows for name, rows in small().items() if name not in ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
    }
    ends = [4 * deep - place if closed else None for place in range(deep)]
    tables["NVTX_EVENTS"] = [nvtx(DOMAIN, 0, None, 75, domainId=3)]
    tables["NVTX_EVENTS"] += [nvtx(f"n={place % 7}", 2 * place, end, domainId=3) for place, end in enumerate(ends)]
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"] = [call(place + 1, 2 * place, 2 * place + 1) for place in range(deep)]
    tables["CUPTI_ACTIVITY_KIND_KERNEL"] = [
        kernel(place + 1, 10**6 + 10 * place, 10**6 + 10 * place + 4) for place in range(deep)
    ]
    report = write(tmp_path / "report.sqlite", tables)
    with cpu_seconds(10):
        run = open_run(tmp_path / "runs" / import_report(report, tmp_path / "runs", "", None, []))
    ranges = run.table("ranges")
    assert ranges["depth"].tolist() == list(range(deep))
    # Each holds its own kernel and those of the ranges in it, which run one after the other.
    assert ranges["gpu_busy_ns"].tolist() == [4 * (deep - place) for place in range(deep)]
    assert (ranges["gpu_end_ns"] == 10**6 + 10 * deep - 6).all()
    assert ranges["gpu_start_ns"].tolist() == [10**6 + 10 * place for place in range(deep)]
    assert run.table("kernels")["range_id"].tolist() == list(range(deep))
    # They are in our domain: the outermost names the workload of all, the next one the case of all but that.
    assert set(ranges["workload"]) == {"n=0"}
    assert set(ranges["case"][1:]) == {"n=1"}
