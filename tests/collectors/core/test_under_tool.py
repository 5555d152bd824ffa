"""Recording and profiling under a tool; the tools here are scripts."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.collectors.core.recordings import QUICK_CASES
from warpladder.collectors.core import under_tool
from warpladder.collectors.core.environment import CollectorError, Tool
from warpladder.collectors.core.plan import Request
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.nsight_systems import entry, source
from warpladder.collectors.nsight_systems import record as profiling
from warpladder.data.names import Source
from warpladder.data.store import Run, RunWriter, StoreError, list_runs, open_run

pytestmark = pytest.mark.slow

FIXTURE = Path(__file__).parents[2] / "fixtures" / "nsight-systems-2025.3" / "graph_traced_by_node"
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
"$@" &
trap 'kill $!' INT
wait $!
ended=$?
{report}
exit $ended
""")
    path.chmod(0o755)
    tool = Tool("no-such-nsys-on-path", "Nsight Systems", (str(path),))
    for module in (entry, source, profiling):
        monkeypatch.setattr(module, "NSYS", tool)


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, int, str]:
    """A run that was recorded under a tool, the signal that ended it, and what the tool said."""
    return under_tool.record_inside(["env"], HOST_ONLY, "host_clock", tmp_path_factory.mktemp("inside") / "runs")


def test_a_recording_inside_a_tool_gives_its_run_and_what_the_tool_said(inside: tuple[Run, int, str]) -> None:
    run, interrupted, said = inside
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


@pytest.mark.thorough
def test_a_signal_reaches_the_recording_inside_and_keeps_what_it_has_finished(tmp_path: Path) -> None:
    """The tool itself gets none: it might end the recording before it has written."""
    request = Request(files=[QUICK_CASES], max_rounds=7)
    folder = tmp_path / "runs"

    def interrupt_after_a_case() -> None:
        deadline = time.monotonic() + 60
        while not any('"results": [' in file.read_text() for file in folder.glob(".*/events.jsonl")):
            assert time.monotonic() < deadline, "no case was finished"
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    sender = threading.Thread(target=interrupt_after_a_case)
    sender.start()
    run, number, _ = under_tool.record_inside(["sh", "-c", 'trap "exit 9" TERM; "$@"', "tool"], request, "host_clock", folder)
    sender.join()
    assert number == signal.SIGTERM
    results = run.table("results")
    assert results.set_index("case").loc["n=100", "status"].eq("ok").all()
    assert "the run was interrupted before it" in set(results["detail"])


def test_a_tool_that_was_interrupted_and_left_no_report_does_not_take_the_run_with_it(
    tmp_path: Path, inside: tuple[Run, int, str]
) -> None:
    run, _, _ = inside

    def no_report(writer: RunWriter) -> None:
        writer.append("run", [{**run.info, "run_id": writer.run_id}])
        raise CollectorError("nsys wrote no report")

    for interrupted in (0, signal.SIGTERM):
        with under_tool.begin(tmp_path / "runs", "") as writer:
            if not interrupted:
                with pytest.raises(CollectorError):
                    under_tool.finish(writer, tmp_path / "runs", "", run, no_report, interrupted)
                continue
            run_id = under_tool.finish(writer, tmp_path / "runs", "", run, no_report, interrupted)
    kept = open_run(tmp_path / "runs" / run_id)
    assert kept.table("samples").equals(run.table("samples"))
    assert Source.TRACING in set(kept.table("diagnostics")["source"])


def test_a_signal_ends_the_profiled_program_and_its_report_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nsys(tmp_path, monkeypatch)
    running = tmp_path / "running"
    code = f"import pathlib, time; pathlib.Path({str(running)!r}).touch(); time.sleep(3600)"

    def terminate() -> None:
        while not running.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    sender = threading.Thread(target=terminate)
    sender.start()
    with Stop() as stop:
        run_id, _ = profiling.profile([sys.executable, "-c", code], tmp_path / "runs", "", None, None, [], stop)
    sender.join()
    assert stop.exit_code == 143
    assert len(open_run(tmp_path / "runs" / run_id).table("kernels")) == 20


def test_a_report_that_cannot_be_imported_for_want_of_room_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nsys(tmp_path, monkeypatch)

    def full(*_: object) -> str:
        raise StoreError("runs: cannot be written (No space left on device)")

    monkeypatch.setattr(profiling, "import_report", full)
    with pytest.raises(StoreError, match=r"No space .*; the report is kept: warpladder import /\S+/true.nsys-rep$") as error:
        profiling.profile(["true"], tmp_path / "runs", "", None, None, [])
    kept = Path(str(error.value).split()[-1])
    assert kept.read_bytes().startswith(b"NVIDIA Tegra")
    kept.unlink()
    kept.parent.rmdir()
