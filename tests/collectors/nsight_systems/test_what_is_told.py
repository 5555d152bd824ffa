"""What an import says of a report beside its figures: what is not known, not taken, or not to be trusted."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.collectors.nsight_systems.reports import (
    GPU,
    Tables,
    call,
    copy,
    kernel,
    schema_3_20,
    schema_2020,
    small,
    without_a_warning,
    write,
)
from warpladder.__main__ import command
from warpladder.collectors.nsight_systems.parse import driver_version, import_report
from warpladder.data.store import Run, open_run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
LAUNCHES = "have no launch in the report"


def imported(folder: Path, tables: Tables) -> Run:
    report = write(folder / "report.sqlite", tables)
    os.utime(report, (1_700_000_000, 1_700_000_000))
    return open_run(folder / "runs" / import_report(report, folder / "runs", "", None, []))


def told(run: Run, text: str) -> list[tuple[str, str]]:
    """Severity and text of the findings that say this."""
    rows = run.table("diagnostics")
    return [(row["severity"], row["text"]) for row in rows.to_dict("records") if text in row["text"]]


def invoked(*arguments: str) -> Result:
    return CliRunner().invoke(command(), arguments)


def test_a_report_without_a_session_start_gets_the_date_of_its_file_and_says_so(tmp_path: Path) -> None:
    run = imported(tmp_path, small())
    assert run.info["started_at"] == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    ((severity, _),) = told(run, "does not tell when it was made")
    assert severity == "warning"


def test_a_report_with_a_session_start_says_nothing_of_its_date(tmp_path: Path) -> None:
    assert not told(imported(tmp_path, schema_3_20()), "when it was made")


@pytest.mark.parametrize(
    ("packed", "version"),
    [
        ("52510517", "525.105.17"),
        ("5154304", "515.43.04"),
        ("47014103", "470.141.03"),
        ("5602803", "560.28.03"),
        ("51601", "516.01"),
        ("550.163.01", "550.163.01"),
        ("595.84", "595.84"),
        ("", ""),
        ("123", "123"),
        ("1234567890", "1234567890"),
    ],
)
def test_a_driver_version_without_dots_gets_them_back(packed: str, version: str) -> None:
    assert driver_version(packed) == version


def test_the_run_has_the_driver_version_with_its_dots(tmp_path: Path) -> None:
    tables = {**small(), "TARGET_INFO_SYSTEM_ENV": [{"name": "NvDriverVersion", "value": "52510517"}]}
    assert imported(tmp_path, tables).info["driver_version"] == "525.105.17"


def test_a_gpu_of_which_one_table_has_the_name_alone_is_described_by_the_other(tmp_path: Path) -> None:
    cuda_gpu = schema_2020()["TARGET_INFO_CUDA_GPU"][0]
    other = {**cuda_gpu, "deviceId": 1, "numMultiprocessors": 30, "globalMemorySize": 7}
    tables = {
        **small(),
        "TARGET_INFO_GPU": [{"deviceId": 1, "name": "Idle"}, {"deviceId": 0, "name": "Quadro RTX 8000"}],
        "TARGET_INFO_CUDA_GPU": [other, cuda_gpu],
    }
    info = imported(tmp_path, tables).info
    assert (info["device_name"], info["compute_capability"]) == ("Quadro RTX 8000", "7.5")
    assert (info["sm_count"], info["l2_bytes"], info["memory_bytes"]) == (72, 6 << 20, 1000 << 20)


def test_a_gpu_that_the_newer_table_describes_is_not_changed_by_the_older(tmp_path: Path) -> None:
    tables = {**schema_2020(), "TARGET_INFO_GPU": [{**GPU, "deviceId": 0}]}
    info = imported(tmp_path, tables).info
    assert (info["device_name"], info["sm_count"], info["memory_bytes"]) == ("Tesla T4", 40, 16_000_000_000)


@pytest.mark.parametrize(("launched", "severity"), [(19, "info"), (18, "warning")])
def test_kernels_without_a_launch_are_told_as_a_share_and_above_5_percent_as_a_warning(
    tmp_path: Path, launched: int, severity: str
) -> None:
    tables = {
        "StringIds": small()["StringIds"],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [call(number, number, number + 1) for number in range(1, launched + 1)],
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(number, 100 + number, 101 + number) for number in range(1, 21)],
    }
    ((found, text),) = told(imported(tmp_path, tables), LAUNCHES)
    assert found == severity
    assert text.startswith(f"{20 - launched} of 20 kernels")


def test_copies_without_a_launch_are_told_and_migrations_are_no_copies(tmp_path: Path) -> None:
    tables = small()
    tables["CUPTI_ACTIVITY_KIND_MEMCPY"] += [copy(99, 4010, 4011, 1, 8), copy(0, 4020, 4021, 12, 8), copy(0, 4030, 4031, 13, 8)]
    tables["CUPTI_ACTIVITY_KIND_MEMCPY"] += [copy(0, 4040, 4041, 11, 8)]
    ((_, text),) = told(imported(tmp_path, tables), LAUNCHES)
    assert text.startswith("1 of 4 kernels and 1 of 3 copies have no launch")


def test_where_a_report_has_no_calls_at_all_that_is_said_once(tmp_path: Path) -> None:
    tables = {name: rows for name, rows in small().items() if name != "CUPTI_ACTIVITY_KIND_RUNTIME"}
    run = imported(tmp_path, tables)
    assert len(told(run, "the profile has no launches")) == 1
    assert not told(run, LAUNCHES)


def test_the_import_prints_its_warnings_to_stderr_and_the_id_to_stdout(tmp_path: Path) -> None:
    tables = {
        "StringIds": small()["StringIds"],
        "META_DATA_EXPORT": small()["TARGET_INFO_SYSTEM_ENV"],
        "DIAGNOSTIC_EVENT": [{"severity": 2, "text": f"message {number}"} for number in range(20)],
    }
    write(tmp_path / "idle.sqlite", tables)
    done = invoked("import", str(tmp_path / "idle.sqlite"), "--data-dir", str(tmp_path / "runs"))
    assert done.exit_code == 0
    *answer, run_id = done.stdout.splitlines()
    assert open_run(tmp_path / "runs" / run_id)
    assert answer[:2] == ["idle.sqlite: Nsight Systems", "no device work in this profile"]
    lines = done.stderr.replace("\n  ", " ").splitlines()
    assert max(map(len, done.stderr.splitlines())) <= 80
    assert "warning: the report has no kernels, copies or memsets; profile with --trace cuda" in lines
    left = 'Nsight Systems itself left 20 messages in the report, such as "message 0" (all: warpladder summary RUN --all)'
    assert lines[-1] == left, "what was found comes before what the profiler left in the report"


@pytest.mark.thorough
def test_an_import_without_a_warning_prints_nothing_but_the_id(tmp_path: Path) -> None:
    write(tmp_path / "r.sqlite", without_a_warning())
    done = invoked("import", str(tmp_path / "r.sqlite"), "--data-dir", str(tmp_path / "runs"))
    assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.thorough
def test_the_profile_command_prints_the_warnings_of_its_report_to_stderr(tmp_path: Path) -> None:
    idle = write(
        tmp_path / "idle.sqlite", {"StringIds": small()["StringIds"], "META_DATA_EXPORT": [{"name": "a", "value": "b"}]}
    )
    nsys = tmp_path / "nsys"
    nsys.write_text(
        "#!/bin/sh\n"
        'case "$1" in --version) echo "NVIDIA Nsight Systems version 2025.3.1.90";;\n'
        f'*) for word; do case "$word" in --output=*) cp {idle} "${{word#--output=}}";; esac; done;; esac\n'
    )
    nsys.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "warpladder", "profile", "--data-dir", str(tmp_path / "runs"), "--", "true"],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "warning: the report has no kernels, copies or memsets" in done.stderr.replace("\n  ", " ")


def test_tables_with_rows_that_are_not_taken_are_named(tmp_path: Path) -> None:
    event = {"start": 1, "end": 2}
    tables = {
        **small(),
        "OSRT_API": [event],
        "CUPTI_ACTIVITY_KIND_OVERHEAD": [event],
        "SCHED_EVENTS": [event],
        "MPI_P2P_EVENTS": [],
    }
    ((severity, text),) = told(imported(tmp_path, tables), "are not taken over")
    assert severity == "info"
    assert "overhead of CUDA (CUPTI_ACTIVITY_KIND_OVERHEAD)" in text
    assert "OSRT_API" in text and "SCHED_EVENTS" in text
    assert "MPI" not in text, "a table without rows has nothing to take"


def without(tables: Tables, table: str, *columns: str) -> Tables:
    return {**tables, table: [{name: row[name] for name in row if name not in columns} for row in tables[table]]}


def test_a_missing_column_is_told_where_something_is_empty_for_it(tmp_path: Path) -> None:
    run = imported(tmp_path, without(small(), "CUPTI_ACTIVITY_KIND_KERNEL", "globalPid"))
    assert told(run, "table CUPTI_ACTIVITY_KIND_KERNEL lacks globalPid; columns that depend on it are empty")
    assert run.table("kernels")["launch_start_ns"].isna().all()


@pytest.mark.parametrize("case", ["a table without rows", "migrations alone", "names of the other column"])
def test_a_missing_column_that_nothing_misses_is_not_told(tmp_path: Path, case: str) -> None:
    memcpy = "CUPTI_ACTIVITY_KIND_MEMCPY"
    if case == "a table without rows":
        tables = {**small(), memcpy: []}
    elif case == "migrations alone":
        tables = without({**small(), memcpy: [copy(0, 4000, 4001, 11, 65536, src=4, dst=4)]}, memcpy, "globalPid")
    else:
        tables = without(small(), "CUPTI_ACTIVITY_KIND_KERNEL", "shortName")
    assert not told(imported(tmp_path, tables), "lacks")
