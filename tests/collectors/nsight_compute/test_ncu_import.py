"""A `.ncu-rep` as a run, and files that are none."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.collectors.nsight_compute.ncu_reports import CREATED, VERSION, block, field, launch, write
from warpladder.__main__ import command
from warpladder.collectors.nsight_compute import metrics, parse
from warpladder.collectors.nsight_compute.facts import MAGIC, read_header
from warpladder.collectors.nsight_compute.parse import import_report, is_report, read_report, tables_of
from warpladder.collectors.trace.model import ReportError
from warpladder.collectors.trace.notes import Notes
from warpladder.data import metrics as contract
from warpladder.data.store import open_run

SAMPLES = Path(__file__).resolve().parents[4] / "shared" / "nsys-samples"
FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "nsight-compute-2025.3" / "report.ncu-rep"
OURS = {"warpladder": ["conv2d", "n=512", "v01_naive", "device.cold#0", "executions=1"]}


def holding(monkeypatch: pytest.MonkeyPatch, *launches: Any, total: int | None = None, held: int = 0) -> None:
    """Stands in for NVIDIA's reader."""

    def read(path: Path) -> parse.Report:
        return parse.Report(path.name, launches, len(launches) if total is None else total, held)

    monkeypatch.setattr(parse, "read_report", read)


def test_a_report_becomes_a_run_with_its_device_and_its_counters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attributes = {metrics.SM_COUNT: 132.0, metrics.CAPABILITY[0]: 9.0, metrics.CAPABILITY[1]: 0.0, metrics.L2_BYTES: 5e7}
    values = {contract.TIME: 2144.0, contract.REGISTERS: 16.0, **attributes}
    holding(monkeypatch, launch("fill", values), launch("fill", {**values, contract.TIME: 2000.0}), launch("scale"))
    path = write(tmp_path / "Train.ncu-rep")

    run = open_run(tmp_path / "runs" / import_report(path, tmp_path / "runs", "before", None, ["import", str(path)]))

    info = run.info
    assert (info["kind"], info["collector"], info["collector_version"]) == ("import", "nsight_compute", VERSION)
    assert (info["device_name"], info["compute_capability"], info["sm_count"]) == ("NVIDIA H200", "9.0", 132)
    assert (info["driver_version"], info["cpu_name"], info["os"]) == ("570.133.20", "A processor", "Linux")
    assert info["started_at"] == datetime.fromtimestamp(CREATED, UTC)
    assert info["command"] == "warpladder import Train.ncu-rep"
    assert "the-host" not in str(info)
    counters = run.table("counters")
    times = counters[counters["metric"] == contract.TIME]
    assert times[["variant", "launch_index", "value"]].to_numpy().tolist() == [["fill", 0, 2144.0], ["fill", 1, 2000.0]]
    assert set(counters["metric"]) == {contract.TIME, contract.REGISTERS}, "attributes of the device are no counters"
    variants = run.table("variants").set_index("variant")
    assert variants.loc["fill", "registers"] == 16
    assert list(run.table("results")["status"]) == ["ok", "ok"]
    text = " ".join(run.table("diagnostics")["text"])
    assert "no metric of memory, operations, stalls" in text
    assert "3 launches are counted as 2 cells" in text


def test_launches_beyond_the_limit_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holding(monkeypatch, launch("k", {contract.TIME: 1.0}), total=7)
    run = open_run(tmp_path / import_report(write(tmp_path / "r.ncu-rep"), tmp_path, "", None, []))
    assert "only the first 1 of 7 launches were read" in " ".join(run.table("diagnostics")["text"])


def test_launches_that_the_reader_passed_over_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holding(monkeypatch, launch("k", {contract.TIME: 1.0}), held=4)
    run = open_run(tmp_path / import_report(write(tmp_path / "r.ncu-rep"), tmp_path, "", None, []))
    assert "3 of 4 launches are damaged and could not be read" in " ".join(run.table("diagnostics")["text"])


def test_the_recorder_gets_the_rows_of_its_own_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holding(monkeypatch, launch("k", {contract.DRAM_READ: 4096.0}, ranges=OURS), launch("elsewhere", {contract.TIME: 1.0}))
    assert tables_of(tmp_path / "report.ncu-rep", [])["counters"] == [
        {
            "workload": "conv2d", "variant": "v01_naive", "config": "", "case": "n=512", "kernel": "k", "launch_index": 0,
            "metric": "dram__bytes_read.sum", "value": 4096.0, "unit": "%",
        },
    ]  # fmt: skip


def test_a_recording_without_a_launch_in_our_ranges_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holding(monkeypatch, launch("k", {contract.TIME: 1.0}))
    with pytest.raises(ReportError, match="profile with ncu --nvtx"):
        tables_of(tmp_path / "report.ncu-rep", [])


def test_the_session_is_read_without_names_of_hosts_or_programs(tmp_path: Path) -> None:
    header = read_header(write(tmp_path / "r.ncu-rep"))
    assert header.columns == {
        "os": "Linux", "cpu_name": "A processor", "collector_version": VERSION, "driver_version": "570.133.20",
    }  # fmt: skip


def test_the_session_counts_the_launches_of_all_blocks(tmp_path: Path) -> None:
    blocks = [block(b"", b"source"), block(b"", b"results", launches=2), block(b"", b"more", launches=1)]
    assert read_header(write(tmp_path / "r.ncu-rep", blocks)).launches == 3


@pytest.mark.parametrize("kept", [5, 12, 40, -1, -30])
def test_a_truncated_report_is_refused_in_one_line(tmp_path: Path, kept: int) -> None:
    path = write(tmp_path / "r.ncu-rep")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ReportError, match=r"^r\.ncu-rep: truncated or damaged"):
        read_report(path)


@pytest.mark.parametrize(
    "broken",
    [
        b"\xff\xff\xff\xff",
        block(field(1, 1)) + b"\x04\x00\x00\x00\x0f\x0f\x0f\x0f",
        b"\x0b\x00\x00\x00" + b"\x80" * 11,
        block(field(8, field(1, b"\xff\xfe") + field(2, "x"))),
    ],
    ids=["length", "wire type", "endless number", "no text"],
)
def test_blocks_that_are_none_are_refused(tmp_path: Path, broken: bytes) -> None:
    with pytest.raises(ReportError, match="truncated or damaged"):
        read_header(write(tmp_path / "r.ncu-rep", [broken]))


def test_a_report_without_a_launch_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("ncu_report", reason="needs ncu-report, of the extra ncu")
    with pytest.raises(ReportError, match="no launch can be read"):
        read_report(write(tmp_path / "r.ncu-rep"))


@pytest.mark.parametrize("ending", ["import os; os.abort()", "raise SystemExit(3)"], ids=["crash", "error"])
def test_a_reader_that_crashes_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    run = subprocess.run
    monkeypatch.setattr(parse, "has_module", lambda name: True)
    monkeypatch.setattr(parse.subprocess, "run", lambda command, **how: run([sys.executable, "-c", ending], **how))
    with pytest.raises(ReportError, match=r"^r\.ncu-rep: damaged, or newer than the installed ncu-report"):
        read_report(write(tmp_path / "r.ncu-rep"))


def test_a_reader_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = subprocess.run
    monkeypatch.setattr(parse, "has_module", lambda name: True)
    monkeypatch.setattr(parse, "_SECONDS", 0.2)
    hang = [sys.executable, "-c", "import time; time.sleep(60)"]
    monkeypatch.setattr(parse.subprocess, "run", lambda command, **how: run(hang, **how))
    with pytest.raises(ReportError, match="not read within"):
        read_report(write(tmp_path / "r.ncu-rep"))


def test_a_file_too_large_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "_MOST_BYTES", 100)
    with pytest.raises(ReportError, match="larger than"):
        read_report(write(tmp_path / "r.ncu-rep"))


def test_the_command_tells_reports_by_their_first_bytes_and_leaves_nothing_of_a_refused_one(tmp_path: Path) -> None:
    misnamed = write(tmp_path / "report.sqlite")
    assert is_report(misnamed)
    misnamed.write_bytes(misnamed.read_bytes()[:-3])
    done = CliRunner().invoke(command(), ["import", str(misnamed), "--data-dir", str(tmp_path / "runs")])
    assert done.exit_code == 2
    assert done.stderr.splitlines() == ["report.sqlite: truncated or damaged; copy it again from where it was made"]
    assert not (tmp_path / "runs").exists()


def test_a_file_of_that_name_that_is_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.ncu-rep").write_bytes(b"not a report")
    done = CliRunner().invoke(command(), ["import", str(tmp_path / "r.ncu-rep"), "--data-dir", str(tmp_path / "runs")])
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)


@pytest.mark.parametrize(
    "printed",
    [
        '"ID","Process ID","Process Name","Host Name","Kernel Name"\n"0","7","a.out","127.0.0.1","gemm"\n',
        '==PROF== Connected to process 7 (a.out)\n"ID","Process ID","Process Name"\n',
    ],
)
def test_what_ncu_printed_is_refused_with_what_to_import_instead(tmp_path: Path, printed: str) -> None:
    (tmp_path / "counters.csv").write_text(printed)
    done = CliRunner().invoke(command(), ["import", str(tmp_path / "counters.csv"), "--data-dir", str(tmp_path / "runs")])
    assert done.exit_code == 2
    assert done.stderr.splitlines() == [
        "counters.csv: printed output of ncu, not a report; import the .ncu-rep that it was printed from, "
        "or profile again with ncu --export=report"
    ]


def test_a_report_that_does_not_say_when_it_was_captured_gets_the_date_of_its_file_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holding(monkeypatch, launch("fill"))
    path = write(tmp_path / "r.ncu-rep", [block(b"")])
    notes = Notes()
    run = open_run(tmp_path / "runs" / import_report(path, tmp_path / "runs", "", None, [], notes))
    assert run.info["started_at"].timestamp() == pytest.approx(path.stat().st_mtime, abs=1e-5)
    assert [text.split(",")[0] for text in notes.warnings()] == [
        "warning: the profile does not tell when it was made; the run's id has the date of the file"
    ]


def test_without_the_package_the_cure_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "has_module", lambda name: False)
    done = CliRunner().invoke(command(), ["import", str(write(tmp_path / "r.ncu-rep")), "--data-dir", str(tmp_path / "runs")])
    assert done.exit_code == 2
    assert done.stderr.splitlines() == ["r.ncu-rep: needs the package ncu-report: pip install 'warpladder[ncu]'"]


def test_a_file_that_begins_as_a_report_does_and_is_random_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(MAGIC + bytes(range(256)) * 20)
    with pytest.raises(ReportError):
        read_report(path)


@pytest.mark.slow
@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the reports of other people are not beside this checkout")
def test_a_report_of_somebody_else_imports(tmp_path: Path) -> None:
    pytest.importorskip("ncu_report", reason="needs ncu-report, of the extra ncu")
    (path,) = SAMPLES.glob("*.ncu-rep")
    run = open_run(tmp_path / import_report(path, tmp_path, "", None, []))
    counters = run.table("counters")
    assert (run.info["device_name"], run.info["collector_version"]) == ("NVIDIA GeForce GTX 1660 SUPER", "2024.1.1.0")
    assert set(counters["variant"]) == {"naive_gemm"}
    assert sorted(counters.loc[counters["metric"] == contract.REGISTERS, "value"]) == [51, 51]


def test_every_metric_stands_once() -> None:
    assert len(set(metrics.METRICS)) == len(metrics.METRICS) <= 80


@pytest.mark.slow
def test_our_own_capture_gives_every_metric_of_each_cell(tmp_path: Path) -> None:
    """`v01_copy`, `v05_shared` and `v11_swizzled_tile` at 64³ on an H200: 64³ * 4 bytes are 32,768 sectors each way."""
    pytest.importorskip("ncu_report", reason="needs ncu-report, of the extra ncu")
    rows = tables_of(FIXTURE, [])["counters"]
    value = {(row["variant"], row["config"], row["metric"]): row["value"] for row in rows}
    assert {row["case"] for row in rows} == {"n=64,perm=210"}
    assert {row["launch_index"] for row in rows} == {0}
    for name in (contract.LOAD_SECTORS, contract.STORE_SECTORS):
        assert value["v01_copy", "per_thread=4", name] == 64**3 * 4 / 32
        assert value["v11_swizzled_tile", "tile=64,threads=256", name] == 64**3 * 4 / 32
    assert value["v05_shared", "", contract.THEORETICAL] <= 100
    run = open_run(tmp_path / import_report(FIXTURE, tmp_path, "", None, []))
    assert (run.info["device_name"], run.info["collector_version"]) == ("NVIDIA H200", "2025.3.1.0")
    assert len(run.table("counters")) == len(rows)
    assert list(run.table("diagnostics")["severity"]) == ["info"]
