"""Recording and profiling under a tool; the tools here are scripts."""

import sys
from pathlib import Path

import pytest

from collectors import under_tool
from collectors.choice import CollectorError
from collectors.nsight_systems import profile as profiling
from collectors.nsight_systems import run as nsys_run
from collectors.plan import Request
from collectors.tools import Tool
from data.store import StoreError, list_runs, open_run

FIXTURE = Path(__file__).parents[1] / "fixtures" / "nsight-systems-2025.3" / "graph_traced_by_node"
HOST_ONLY = Request(names=["tensor_transpose"], cases=["n=64,perm=210"], variants=["numpy"], max_rounds=6)


def fake_nsys(folder: Path, monkeypatch: pytest.MonkeyPatch, *, writes: bool = True) -> None:
    """An nsys that runs the command it is given, and whose report is always the fixture."""
    copying = f'/bin/cp -r "{FIXTURE / "parquetdir"}" "$5"; exit 0'
    report = 'printf "NVIDIA Tegra Profiler Report 2025@3@1" > "${report#--output=}"' if writes else ":"
    path = folder / "nsys"
    path.write_text(f"""#!/bin/sh
case "$1" in
--version) echo NVIDIA Nsight Systems version 2025.3.1.90; exit 0;;
export) [ "$2" = --help ] && echo parquetdir && exit 0; {copying};;
esac
shift
while :; do case "$1" in --output=*) report=$1;; --*) ;; *) break;; esac; shift; done
"$@"
ended=$?
{report}
exit $ended
""")
    path.chmod(0o755)
    tool = Tool("no-such-nsys-on-path", "Nsight Systems", (str(path),))
    for module in (nsys_run, profiling):
        monkeypatch.setattr(module, "NSYS", tool)


def test_a_recording_inside_a_tool_gives_its_run_and_what_the_tool_said(tmp_path: Path) -> None:
    run, interrupted, said = under_tool.record_inside(["env"], HOST_ONLY, "host_clock", tmp_path / "runs")
    assert (run.info["collector"], interrupted) == ("host_clock", False)
    assert set(run.table("results")["variant"]) == {"numpy"}
    assert run.table("samples").groupby("twin")["round"].max().to_dict() == {0: 5, 1: 5}
    assert run.run_id in said


def test_a_tool_under_which_no_run_is_written_is_told_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(
        CollectorError, match=r"sh: the recording under it wrote no run \(exit code 3\): licence expired; record"
    ):
        under_tool.record_inside(["sh", "-c", "echo licence expired; exit 3"], HOST_ONLY, "host_clock", tmp_path)


def test_a_program_is_profiled_imported_and_its_exit_code_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    fake_nsys(tmp_path, monkeypatch)
    command = [sys.executable, "-c", "print('trained'); raise SystemExit(4)"]
    kept = tmp_path / "kept.nsys-rep"
    run_id, exit_code = profiling.profile(command, tmp_path / "runs", "", None, kept, [])
    run = open_run(tmp_path / "runs" / run_id)
    assert (exit_code, len(run.table("kernels")), run.info["label"]) == (4, 20, Path(sys.executable).stem)
    assert kept.read_bytes().startswith(b"NVIDIA Tegra")
    assert "trained" in capfd.readouterr().out


def test_what_cannot_be_profiled_is_refused_before_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nsys(tmp_path, monkeypatch)
    ran = tmp_path / "ran"
    touch = ["touch", str(ran)]
    with pytest.raises(CollectorError, match="no-such-program: no such program"):
        profiling.profile(["no-such-program"], tmp_path / "runs", "", None, None, [])
    with pytest.raises(CollectorError, match="exists; choose another name"):
        profiling.profile(touch, tmp_path / "runs", "", None, tmp_path / "nsys", [])
    with pytest.raises(StoreError, match="cannot be written"):
        profiling.profile(touch, Path("/dev/null/runs"), "", None, None, [])
    assert not ran.exists()


def test_an_nsys_that_writes_no_report_leaves_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nsys(tmp_path, monkeypatch, writes=False)
    with pytest.raises(CollectorError, match="nsys wrote no report"):
        profiling.profile(["true"], tmp_path / "runs", "", None, None, [])
    assert list_runs([tmp_path / "runs"]) == ([], [])
    assert not any((tmp_path / "runs").iterdir())


def test_without_nsys_profiling_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "NSYS", Tool("no-such-nsys-on-path", "Nsight Systems", ()))
    with pytest.raises(CollectorError, match="install Nsight Systems"):
        profiling.profile(["true"], tmp_path / "runs", "", None, None, [])
