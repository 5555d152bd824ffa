"""The process that runs programs: what it times, and what it ends."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from warpladder.collectors.core.tools import CollectorError
from warpladder.collectors.programs import outputs, runner
from warpladder.collectors.programs.launcher import Launcher
from warpladder.collectors.programs.runner import PADDING, Launch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are timed on Linux")


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as found:
        yield found


def shell(script: str, timeout_s: float = 20.0, **files: object) -> Launch:
    return Launch("/bin/sh", ("sh", "-c", script), timeout_s, **files)  # type: ignore[arg-type]


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_wall_clock_and_processor_time_are_those_of_the_program(launcher: Launcher) -> None:
    slept = launcher.run(shell("sleep 0.3"))
    assert (slept.code, slept.problem, slept.left) == (0, "", 0)
    assert 0.3e9 <= slept.duration_ns < 1.5e9
    assert slept.cpu_ns < 0.1e9
    busy = launcher.run(Launch(sys.executable, ("python", "-c", "import time\nwhile time.process_time() < 0.3: pass"), 20.0))
    assert 0.3e9 <= busy.cpu_ns <= 1.2 * busy.duration_ns


def test_exit_codes_and_signals_are_told_apart(launcher: Launcher) -> None:
    assert launcher.run(shell("exit 7")).code == 7
    assert launcher.run(shell("kill -SEGV $$")).code == -signal.SIGSEGV
    missing = launcher.run(Launch("/no/such", ("such",), 5.0))
    assert (missing.problem, missing.detail) == ("start", "No such file or directory")


def test_a_program_has_no_terminal_and_reads_the_end_of_its_input_at_once(launcher: Launcher, tmp_path: Path) -> None:
    printed = tmp_path / "out"
    assert launcher.run(shell("cat; test -t 0 || echo none; echo 'int: '$(trap)", stdout=str(printed))).code == 0
    assert printed.read_text() == "none\nint: \n"
    assert launcher.run(shell("exec <&-; exec >&-; exec 2>&-; true")).code == 0


def test_a_closed_pipe_ends_a_program_as_under_a_shell(launcher: Launcher, tmp_path: Path) -> None:
    """Python ignores SIGPIPE; a program that inherits that would print an error or never end."""
    said = tmp_path / "err"
    assert launcher.run(shell("yes | head -n 1 >/dev/null", stderr=str(said))).code == 0
    assert said.read_text() == ""


def test_a_program_that_hangs_is_killed_with_its_group(launcher: Launcher, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    ended = launcher.run(shell("sleep 60 & echo $! $$; trap '' TERM; sleep 61", 0.4, stdout=str(pids)))
    assert (ended.problem, ended.code) == ("timeout", -signal.SIGKILL)
    assert 0.4e9 <= ended.duration_ns < 5e9
    assert not any(map(lives, map(int, pids.read_text().split())))


def test_what_outlives_a_program_is_ended_and_counted_and_not_timed(launcher: Launcher, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    ended = launcher.run(shell("sleep 60 & echo $!; setsid sleep 60 & echo $!; exit 0", stdout=str(pids)))
    assert (ended.code, ended.left) == (0, 2)
    assert ended.duration_ns < 2e9
    assert not any(map(lives, map(int, pids.read_text().split())))


def test_under_a_profiler_only_the_program_s_group_is_ended(tmp_path: Path) -> None:
    """The processes of a profiler may be children of the process that runs the programs."""
    pids = tmp_path / "pids"
    helper = subprocess.Popen(["sleep", "60"])
    assert runner.run(shell("sleep 60 & echo $!; exit 0", stdout=str(pids)), group_only=True).code == 0
    deadline = time.monotonic() + 5
    while lives(int(pids.read_text())) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not lives(int(pids.read_text()))
    assert helper.poll() is None
    helper.kill()
    helper.wait()


def test_a_child_that_ends_soon_after_the_program_is_left_alone(launcher: Launcher, tmp_path: Path) -> None:
    file = tmp_path / "done"
    assert launcher.run(shell(f"(sleep 0.05; touch {file}) & exit 0")).left == 0
    assert file.exists()


def test_a_hundred_megabytes_are_printed_to_a_file_or_to_nothing(launcher: Launcher, tmp_path: Path) -> None:
    printed = tmp_path / "out"
    assert launcher.run(shell("head -c 100000000 /dev/zero", stdout=str(printed))).code == 0
    assert printed.stat().st_size == 100_000_000
    assert launcher.run(shell("head -c 100000000 /dev/zero")).code == 0


def test_an_output_without_end_is_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MOST_OUTPUT", 1 << 20)
    printed = tmp_path / "out"
    ended = runner.run(shell("exec yes", 60.0, stdout=str(printed)), group_only=True)
    assert (ended.problem, ended.code) == ("output", -signal.SIGKILL)
    assert ended.duration_ns < 20e9


def test_a_flood_of_messages_does_not_fill_the_disk_and_its_last_line_is_kept(launcher: Launcher, tmp_path: Path) -> None:
    said = tmp_path / "err"
    script = "i=0; while [ $i -lt 4 ]; do head -c 20000000 /dev/zero >&2; sleep 0.25; i=$((i+1)); done; echo >&2; echo last >&2; exit 1"
    ended = launcher.run(shell(script, stderr=str(said)))
    assert said.stat().st_size < 40_000_000
    failed = outputs.failure(ended, 20.0, said)
    assert failed is not None
    assert failed.detail.endswith("last")


def test_the_environment_differs_in_length_only_where_asked(launcher: Launcher, tmp_path: Path) -> None:
    printed = tmp_path / "out"
    launcher.run(shell(f"echo ${{#{PADDING}}}-${{{PADDING}-unset}}", stdout=str(printed)))
    assert printed.read_text() == "0-unset\n"
    launcher.run(shell(f"echo ${{#{PADDING}}}", stdout=str(printed), padding=123))
    assert printed.read_text() == "123\n"


def test_nothing_outlives_the_recorder_even_if_it_is_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = (
        "from warpladder.collectors.programs.launcher import Launcher\n"
        "from warpladder.collectors.programs.runner import Launch\n"
        f"script = 'setsid sleep 60 & echo $! $$; exec sleep 61'\n"
        f"Launcher().run(Launch('/bin/sh', ('sh', '-c', script), 100.0, stdout={str(pids)!r}))"
    )
    recorder = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).resolve().parents[3])
    deadline = time.monotonic() + 30
    while not (pids.exists() and len(pids.read_text().split()) == 2) and time.monotonic() < deadline:
        time.sleep(0.05)
    recorder.kill()
    recorder.wait()
    found = [int(pid) for pid in pids.read_text().split()]
    while any(map(lives, found)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(found) == 2
    assert not any(map(lives, found))


def test_a_killed_runner_is_an_error_and_not_a_hang() -> None:
    with Launcher() as found:
        script = "kill -9 $(ps -o ppid= -p $$)"
        with pytest.raises(CollectorError, match="the process that runs it died"):
            found.run(shell(script))


def test_standard_files_are_the_only_ones_that_a_program_inherits(launcher: Launcher, tmp_path: Path) -> None:
    printed = tmp_path / "out"
    launcher.run(Launch("/bin/ls", ("ls", "/proc/self/fd"), 5.0, stdout=str(printed)))
    assert printed.read_text().split() == ["0", "1", "2", "3"]  # 3 is the folder that ls reads
