"""The process that runs programs: what it times, and what it ends."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from warpladder.collectors.core.environment import CollectorError
from warpladder.collectors.programs import outputs, runner
from warpladder.collectors.programs.record import Launcher
from warpladder.collectors.programs.runner import PADDING, Launch

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="programs are timed on Linux"), pytest.mark.slow]


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
    assert (slept.code, slept.problem, slept.leftovers, slept.after_ns) == (0, "", (), 0)
    assert 0.3e9 <= slept.duration_ns < 15e9
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


def test_a_program_that_hangs_is_killed_with_all_that_it_started(launcher: Launcher, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    ended = launcher.run(shell("sleep 60 & setsid sleep 62 & echo $! $$; trap '' TERM; sleep 61", 1.0, stdout=str(pids)))
    assert (ended.problem, ended.code, ended.leftovers) == ("timeout", -signal.SIGKILL, ())
    assert 1e9 <= ended.duration_ns < 15e9
    assert not any(map(lives, map(int, pids.read_text().split())))


@pytest.mark.parametrize(
    "background",
    [
        "(sleep 0.3; echo result 42) &",
        "setsid sh -c 'sleep 0.3; echo result 42' &",
        "(setsid sh -c '(sleep 0.3; echo result 42) &' &)",
        f"{sys.executable} -c 'import os, time\nif not os.fork():\n os.setsid()\n if not os.fork(): time.sleep(0.3); print(\"result 42\")'",
    ],
    ids=["in its group", "in a session of its own", "an orphan of an orphan", "a daemon"],
)
def test_work_that_goes_on_after_the_exit_is_waited_for_and_timed(background: str, launcher: Launcher, tmp_path: Path) -> None:
    printed = tmp_path / "out"
    ended = launcher.run(shell(f"{background}\nexit 0", stdout=str(printed)))
    assert (ended.code, ended.problem, ended.leftovers) == (0, "", ())
    assert 0.3e9 <= ended.duration_ns < 15e9
    assert 0.2e9 <= ended.after_ns < ended.duration_ns
    assert printed.read_text() == "result 42\n"


def test_the_processor_time_of_an_orphan_counts(launcher: Launcher) -> None:
    work = f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.3: pass'"
    assert launcher.run(shell(f"{work} & exit 0")).cpu_ns >= 0.3e9


def test_a_daemon_that_never_ends_is_a_timeout_with_its_name(
    launcher: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    ended = launcher.run(shell("sleep 60 & echo $!; setsid sleep 60 & echo $!; exit 0", 1.0, stdout=str(pids)))
    assert (ended.code, ended.problem, ended.leftovers) == (0, "timeout", ("sleep",))
    assert 1e9 <= ended.duration_ns < 15e9
    assert not any(map(lives, map(int, pids.read_text().split())))


def test_a_long_wait_for_what_a_program_left_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_PATIENCE_S", 0.1)
    told: list[runner.Waiting] = []
    assert runner.run(shell("sleep 0.6 & exit 0"), whole_tree=False, tell=told.append).problem == ""
    assert told == [runner.Waiting(("sleep",))]


def test_under_a_profiler_only_the_program_s_group_is_waited_for_and_ended(tmp_path: Path) -> None:
    """The processes of a profiler may be children of the process that runs the programs."""
    pids = tmp_path / "pids"
    helper = subprocess.Popen(["sleep", "60"])
    waited = runner.run(shell("sleep 1 & exit 0"), whole_tree=False)
    assert (waited.code, waited.problem) == (0, "")
    assert 0.5e9 <= waited.duration_ns < 15e9  # the clock starts after the program has
    ended = runner.run(shell("sleep 60 & echo $!; exit 0", 1.0, stdout=str(pids)), whole_tree=False)
    assert (ended.code, ended.problem, ended.leftovers) == (0, "timeout", ("sleep",))
    assert not lives(int(pids.read_text()))
    assert helper.poll() is None
    helper.kill()
    helper.wait()


@pytest.mark.parametrize("kept", [True, False])
def test_the_output_is_a_pipe_whether_it_is_kept_or_not(kept: bool, launcher: Launcher, tmp_path: Path) -> None:
    """A program may write less to /dev/null, or in other portions to a file."""
    seen = tmp_path / "seen"
    kind = f"import os, stat; print(stat.filemode(os.fstat(1).st_mode)[0], os.isatty(1), file=open('{seen}', 'w'))"
    assert (
        launcher.run(Launch(sys.executable, ("python", "-c", kind), 20.0, stdout=str(tmp_path / "out") if kept else "")).code
        == 0
    )
    assert seen.read_text() == "p False\n"


def test_a_hundred_megabytes_are_printed_to_a_file_or_to_nothing(launcher: Launcher, tmp_path: Path) -> None:
    printed = tmp_path / "out"
    assert launcher.run(shell("head -c 100000000 /dev/zero", stdout=str(printed))).code == 0
    assert printed.stat().st_size == 100_000_000
    launcher.run(shell("head -c 200000000 /dev/zero; echo end", stdout=str(printed)))  # more than stays in memory
    with printed.open("rb") as file:
        file.seek(200_000_000)
        assert file.read() == b"end\n"
    assert launcher.run(shell("head -c 100000000 /dev/zero")).code == 0


def test_an_output_without_end_is_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MOST_OUTPUT", 1 << 20)
    printed = tmp_path / "out"
    ended = runner.run(shell("exec yes", 60.0, stdout=str(printed)), whole_tree=False)
    assert (ended.problem, ended.code) == ("output", -signal.SIGKILL)
    assert ended.duration_ns < 20e9


def test_an_output_without_end_that_is_not_kept_ends_at_the_timeout() -> None:
    ended = runner.run(shell("exec yes", 0.5), whole_tree=False)
    assert (ended.problem, ended.code) == ("timeout", -signal.SIGKILL)
    assert ended.duration_ns < 5e9


def test_an_output_that_cannot_be_written_is_a_failure() -> None:
    ended = runner.run(shell("echo result"), whole_tree=False)
    assert ended.problem == ""
    full = runner.run(shell("echo result", stdout="/dev/full"), whole_tree=False)
    assert (full.problem, full.detail) == ("keep", "No space left on device")


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
        "from warpladder.collectors.programs.record import Launcher\n"
        "from warpladder.collectors.programs.runner import Launch\n"
        f"script = 'setsid sleep 60 & echo $! $$ > {pids}; exec sleep 61'\n"
        "Launcher().run(Launch('/bin/sh', ('sh', '-c', script), 100.0))"
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


@pytest.mark.thorough
def test_standard_files_are_the_only_ones_that_a_program_inherits(launcher: Launcher, tmp_path: Path) -> None:
    printed = tmp_path / "out"
    launcher.run(Launch("/bin/ls", ("ls", "/proc/self/fd"), 5.0, stdout=str(printed)))
    assert printed.read_text().split() == ["0", "1", "2", "3"]  # 3 is the folder that ls reads
