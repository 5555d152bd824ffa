"""Reports of several versions, imported: rows, sums and facts counted by hand."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.collectors.nsight_systems.reports import (
    GLOBAL_PID,
    OTHER_TID,
    TID,
    Tables,
    call,
    copy,
    kernel,
    nvtx,
    schema_2_9,
    schema_3_20,
    schema_2020,
    small,
    without_a_warning,
    write,
)
from warpladder.collectors.nsight_systems.parse import import_report
from warpladder.data.naming import Naming, NamingError
from warpladder.data.store import Run, open_run


def imported(folder: Path, tables: Tables, naming: Naming | None = None) -> Run:
    report = write(folder / "report.sqlite", tables)
    before = report.read_bytes()
    run = open_run(folder / "runs" / import_report(report, folder / "runs", "mine", naming, ["import", str(report)]))
    assert report.read_bytes() == before
    assert [file.name for file in folder.iterdir() if file.name != "runs"] == ["report.sqlite"]
    return run


def by_text(run: Run) -> pd.DataFrame:
    return run.table("ranges").set_index("text")


def texts(run: Run) -> str:
    return "\n".join(run.table("diagnostics")["text"])


def test_kernels_are_joined_to_their_launch_by_process_and_correlation(tmp_path: Path) -> None:
    run = imported(tmp_path, small())
    kernels = run.table("kernels")
    assert (kernels["end_ns"] - kernels["start_ns"]).tolist() == [10, 20, 40, 1]
    assert kernels["launch_start_ns"].tolist() == [110, 130, 250, pd.NA]
    assert kernels["process"].tolist() == [70, 70, 70, 71]
    assert set(kernels["name"]) == {"gemm"}
    assert set(kernels["full_name"]) == {"void gemm<float>(float *)"}
    ranges = run.table("ranges").set_index("range_id")["text"]
    assert [ranges.get(number) for number in kernels["range_id"]] == ["outer", "from a table", None, None]
    assert "1 of 4 kernels have no launch" in texts(run)


def test_ranges_have_domain_depth_parent_and_device_time_of_all_that_they_launched(tmp_path: Path) -> None:
    ranges = by_text(imported(tmp_path, small()))
    assert set(ranges.index) == {"outer", "from a table", "left open", "elsewhere"}
    assert ranges["depth"].to_dict() == {"outer": 0, "from a table": 1, "left open": 0, "elsewhere": 0}
    assert ranges.loc["from a table", "parent_id"] == ranges.loc["outer", "range_id"]
    assert ranges["domain"].to_dict() == {"outer": "", "from a table": "mine", "left open": "", "elsewhere": ""}
    assert set(ranges.index[ranges["style"] == "start_end"]) == {"elsewhere"}
    # outer: [1000, 1010) and [1005, 1025) overlap, then a copy [1030, 1035); inner: the second kernel and the copy.
    device = ["gpu_start_ns", "gpu_end_ns", "gpu_busy_ns"]
    assert ranges.loc["outer", device].tolist() == [1000, 1035, 30]
    assert ranges.loc["from a table", device].tolist() == [1005, 1035, 25]
    assert ranges.loc["elsewhere", device].isna().all()


def test_a_range_that_was_never_closed_has_no_end_and_still_holds_its_launches(tmp_path: Path) -> None:
    run = imported(tmp_path, small())
    left_open = by_text(run).loc["left open"]
    assert left_open["end_ns"] is pd.NA
    assert left_open[["gpu_start_ns", "gpu_end_ns", "gpu_busy_ns"]].tolist() == [3000, 3012, 11]
    assert "1 NVTX ranges were never closed" in texts(run)


def test_copies_sets_and_migrations_are_told_apart(tmp_path: Path) -> None:
    rows = imported(tmp_path, small()).table("memory_ops")
    assert rows[["kind", "bytes"]].to_numpy().tolist() == [
        ["h2d", 4096],
        ["d2h", 100],
        ["unified_h2d", 65536],
        ["memset", 256],
    ]
    assert rows["src_memory"].fillna("-").tolist() == ["pageable", "device", "managed", "-"]
    assert rows["dst_memory"].tolist() == ["device", "pinned", "managed", "device"]


def test_api_calls_stand_once_and_without_a_version_of_four_digits(tmp_path: Path) -> None:
    calls = imported(tmp_path, small()).table("api_calls")
    assert len(calls) == 6
    assert calls["name"].value_counts().to_dict() == {"cudaLaunchKernel": 3, "cudaMemcpyAsync_ptsz": 2, "cuMemAlloc_v2": 1}
    assert (calls["end_ns"] - calls["start_ns"]).sum() == 12


@pytest.mark.parametrize(
    ("tables", "device", "memory", "version"),
    [
        (schema_2020(), "Quadro RTX 8000", 1000 << 20, ""),
        (schema_2_9(), "Tesla T4", 16_000_000_000, "2022.1.3.3"),
        (schema_3_20(), "Tesla T4", 16_000_000_000, "2025.3.1.90"),
    ],
)
def test_the_device_is_found_in_the_tables_of_every_version(
    tmp_path: Path, tables: Tables, device: str, memory: int, version: str
) -> None:
    info = imported(tmp_path, tables).info
    assert (info["device_name"], info["memory_bytes"], info["collector_version"]) == (device, memory, version)
    assert (info["compute_capability"], info["device_count"], info["driver_version"]) == ("7.5", 1, "550.54")
    assert (info["kind"], info["collector"], info["source"]) == ("import", "nsight_systems", "report.sqlite")


def test_the_run_keeps_the_time_of_the_capture_and_nothing_of_its_host(tmp_path: Path) -> None:
    run = imported(tmp_path, schema_3_20())
    assert run.info["started_at"] == datetime(2025, 6, 15, 15, 6, 40, tzinfo=UTC)
    assert run.info["command"] == "warpladder import report.sqlite"
    everything = "".join(run.table(name).to_csv() for name in run.tables)
    assert "secret" not in everything
    assert str(tmp_path) not in everything


def test_warnings_of_nsys_are_taken_over_without_folders(tmp_path: Path) -> None:
    messages = [{"severity": 2, "text": "Cannot read /home/someone/data/trace.bin today"}, {"severity": 1, "text": "started"}]
    found = texts(imported(tmp_path, {**small(), "DIAGNOSTIC_EVENT": messages}))
    assert "Cannot read trace.bin today" in found
    assert "someone" not in found
    assert "started" not in found


def test_a_graph_launched_as_a_whole_is_one_row_with_its_device_time(tmp_path: Path) -> None:
    tables = small()
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"].append(call(9, 150, 152, 8))
    tables["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] = [
        {"start": 1040, "end": 1100, "deviceId": 0, "streamId": 7, "correlationId": 9, "globalPid": GLOBAL_PID, "graphId": 2}
    ]
    run = imported(tmp_path, tables)
    graph = run.table("kernels").query("name == '[CUDA graph]'").iloc[0]
    assert (graph["end_ns"] - graph["start_ns"], graph["graph_id"], graph["launch_start_ns"]) == (60, 2, 150)
    assert by_text(run).loc["outer", "gpu_busy_ns"] == 30 + 60
    assert "1 CUDA graph launches were traced as a whole" in texts(run)


def test_our_own_ranges_tell_workload_case_variant_scope_and_round(tmp_path: Path) -> None:
    ours = [nvtx("warpladder", 0, None, 75, domainId=1), nvtx("conv2d", 1, 99, domainId=1), nvtx("n=64", 2, 98, domainId=1)]
    ours += [nvtx("somebody else's", 2, 97, domainId=0), nvtx("v01_tile[block=16]", 3, 9, domainId=1)]
    ours += [nvtx("device.cold#4", 4, 8, domainId=1), nvtx("v02", 11, 19, domainId=1)]
    ranges = by_text(imported(tmp_path, {**small(), "NVTX_EVENTS": ours}))
    columns = ["workload", "case", "variant", "config", "scope", "round"]
    assert ranges.loc["device.cold#4", columns].tolist() == ["conv2d", "n=64", "v01_tile", "block=16", "device", 4]
    assert ranges.loc["v02", columns].fillna("-").tolist() == ["conv2d", "n=64", "v02", "", "-", "-"]
    assert ranges.loc["n=64", columns[:3]].fillna("-").tolist() == ["conv2d", "n=64", "-"]
    assert ranges.loc["somebody else's", columns].isna().all()


def test_anybodys_ranges_become_variants_with_samples(tmp_path: Path) -> None:
    tables = small()
    tables["NVTX_EVENTS"] = [
        nvtx("naive n=8", 100, 120),
        nvtx("naive n=8", 125, 135),
        nvtx("tiled n=8", 240, 260),
        nvtx("other", 1, 2),
    ]
    run = imported(tmp_path, tables, Naming.parse(r"nvtx:(?P<variant>naive|tiled) n=(?P<case>\d+)"))
    assert run.table("variants")[["workload", "variant", "rung"]].to_numpy().tolist() == [
        ["report", "naive", 0],
        ["report", "tiled", 1],
    ]
    samples = run.table("samples").sort_values(["scope", "variant", "round"])
    assert samples[["scope", "variant", "case", "round", "duration_ns"]].to_numpy().tolist() == [
        ["device", "naive", "8", 0, 10],
        ["device", "naive", "8", 1, 20],
        ["device", "tiled", "8", 0, 40],
        ["operation", "naive", "8", 0, 20],
        ["operation", "naive", "8", 1, 10],
        ["operation", "tiled", "8", 0, 20],
    ]
    assert run.table("results")["status"].tolist() == ["ok", "ok"]
    assert by_text(run).loc["tiled n=8", "variant"] == "tiled"
    assert "3 NVTX ranges are taken as samples" in texts(run)
    assert "3 of the named ranges end before the work that they launched" in texts(run)


@pytest.mark.parametrize("wrong", ["gemm", "nvtx:", "nvtx:(", "nvtx:gemm", "nvtx:(?P<variant>a)(?P<colour>b)"])
def test_a_wrong_naming_is_refused_with_an_example(wrong: str) -> None:
    with pytest.raises(NamingError, match=r"\(\?P<variant>"):
        Naming.parse(wrong)


@pytest.mark.slow
def test_a_folder_of_parquet_gives_the_same_run(tmp_path: Path) -> None:
    tables = schema_3_20()
    folder = tmp_path / "report_pqtdir"
    folder.mkdir()
    for table, rows in tables.items():
        columns = dict.fromkeys(column for row in rows for column in row)
        pq.write_table(pa.table({name: [row.get(name) for row in rows] for name in columns}), folder / f"{table}.parquet")
    data_dir, sqlite = tmp_path / "parquet", tmp_path / "sqlite"
    sqlite.mkdir()
    ours = open_run(data_dir / import_report(folder, data_dir, "", None, []))
    other = imported(sqlite, tables)
    for name in ("ranges", "kernels", "memory_ops", "api_calls", "diagnostics"):
        pd.testing.assert_frame_equal(ours.table(name), other.table(name))


def test_kernels_of_two_threads_go_to_the_ranges_of_the_thread_that_launched(tmp_path: Path) -> None:
    run = imported(
        tmp_path,
        {
            "StringIds": small()["StringIds"],
            "NVTX_EVENTS": [nvtx("one", 0, 100, tid=TID), nvtx("two", 0, 100, tid=OTHER_TID)],
            "CUPTI_ACTIVITY_KIND_RUNTIME": [call(1, 10, 11, tid=TID), call(2, 10, 11, tid=OTHER_TID)],
            "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(1, 20, 30), kernel(2, 20, 50)],
            "CUPTI_ACTIVITY_KIND_MEMCPY": [copy(2, 60, 70, 99, 5)],
        },
    )
    assert by_text(run)["gpu_busy_ns"].to_dict() == {"one": 10, "two": 40}
    assert "1 copies are of an unknown direction" in texts(run)
    assert run.table("memory_ops")["kind"].tolist() == ["unknown"]


@pytest.mark.parametrize("text", ["executions=1", "device.cold.warm_up#0"])
def test_a_sample_outside_of_a_variants_range_names_no_variant(tmp_path: Path, text: str) -> None:
    ours = {"domainId": 1}
    events = [nvtx("warpladder", 0, None, 75, **ours), nvtx("conv2d", 0, 10_000, **ours)]
    events += [nvtx("n=64", 1, 9_999, **ours), nvtx(text, 10, 80, **ours)]
    events += [nvtx("v01_tile[block=16]", 100, 190, **ours)]
    ranges = imported(tmp_path, {**small(), "NVTX_EVENTS": events}).table("ranges", ["text", "variant"])
    assert ranges.dropna().to_numpy().tolist() == [["v01_tile[block=16]", "v01_tile"]]


_CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
_COLUMNS = {table: list(rows[0]) for table, rows in without_a_warning().items() if table != "StringIds"}
_MOST_COLUMNS = max(map(len, _COLUMNS.values()))


@pytest.mark.parametrize(
    "lacking",
    [
        *({table: names[place] for table, names in _COLUMNS.items() if place < len(names)} for place in range(_MOST_COLUMNS)),
        *(pytest.param({table: name}, marks=pytest.mark.thorough) for table, names in _COLUMNS.items() for name in names),
    ],
    ids=lambda lacking: ",".join(map(".".join, lacking.items())),
)
def test_a_report_whose_tables_lack_a_column_becomes_a_run_that_opens(lacking: Mapping[str, str], tmp_path: Path) -> None:
    tables = without_a_warning()
    for table, column in lacking.items():
        tables[table] = [{name: value for name, value in row.items() if name != column} for row in tables[table]]
    path = write(tmp_path / "report.sqlite", tables)
    run = open_run(tmp_path / "runs" / import_report(path, tmp_path / "runs", "", None, []))
    calls = {"start": 0, "end": 0, "eventClass": 7}  # without its class, a call with a backtrace stands twice
    assert run.rows("api_calls") == calls.get(lacking.get(_CALLS, ""), 6)
    assert all(len(run.table(name)) == run.rows(name) for name in run.tables)
