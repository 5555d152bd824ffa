"""The guard between a recorder and its children ends as they do, and ends all of them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from warpladder.collectors.core.children import Guarded

needs_proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds descendants by Linux's /proc")


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -ABRT $$", -signal.SIGABRT),
        ("kill -KILL $$", -signal.SIGKILL),
        ("exec no-such", 127),
    ],
)
def test_it_ends_as_the_command_does(script: str, code: int) -> None:
    with Guarded(["sh", "-c", script]) as command:
        assert command.wait(30)
    assert command.process.returncode == code


def test_it_does_not_fork_where_a_tool_has_started_threads(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A lock that a thread holds stays locked after a fork. The tool here ends a process that forks."""
    source, library = tmp_path / "tool.c", tmp_path / "tool.so"
    source.write_text(
        "#include <pthread.h>\n#include <unistd.h>\n"
        "static void die(void) { _exit(99); }\n"
        "static void *idle(void *none) { pause(); return none; }\n"
        "__attribute__((constructor)) static void begin(void)\n"
        "{ pthread_t thread; pthread_create(&thread, 0, idle, 0); pthread_atfork(die, 0, 0); }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-pthread", str(source), "-o", str(library)], check=True)
    loaded = {**os.environ, "LD_PRELOAD": str(library), "PYTHONWARNINGS": "always"}
    with Guarded(["sh", "-c", "exit 4"], env=loaded) as command:
        assert command.wait(30)
    assert (command.process.returncode, capfd.readouterr().err) == (4, "")


def test_a_command_that_is_not_there_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    with Guarded(["/no/such/program"]) as command:
        assert command.wait(30)
    assert command.process.returncode == 127
    assert capfd.readouterr().err == "/no/such/program: cannot be started (No such file or directory)\n"


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def is_soon_gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.005)
    return not is_alive(pid)


#: Starts a process in a session of its own, whose parent ends at once, and prints its number.
DAEMON = "(setsid sh -c 'echo $$; exec sleep 3600' &) ; "


@needs_proc
@pytest.mark.parametrize("then", ["read go; exit 3", "exec sleep 3600"])
def test_a_daemon_that_the_command_left_is_ended_too(then: str) -> None:
    with Guarded(["sh", "-c", DAEMON + then], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as command:
        assert command.process.stdin and command.process.stdout
        daemon = int(command.process.stdout.readline())
        command.process.stdin.write("go\n")
        command.process.stdin.close()
        if then.endswith("exit 3"):
            assert command.wait(30)
            assert command.process.returncode == 3
        else:
            assert is_alive(daemon)
        command.end()
        command.process.stdout.close()
    assert not is_alive(daemon)


@pytest.mark.slow
@needs_proc
def test_all_end_when_the_process_that_started_them_is_killed() -> None:
    code = (
        "import sys; from warpladder.collectors.core.children import Guarded; "
        f"Guarded(['sh', '-c', {DAEMON!r} + 'echo $$; exec sleep 3600']).wait(3600)"
    )
    starter = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])
    assert starter.stdout
    pids = [int(starter.stdout.readline()) for _ in range(2)]
    starter.kill()
    starter.wait()
    starter.stdout.close()
    assert all(is_soon_gone(pid) for pid in pids)


@needs_proc
def test_the_command_dies_with_a_guard_that_is_killed() -> None:
    with Guarded(["sh", "-c", "echo $$; exec sleep 3600"], stdout=subprocess.PIPE, text=True) as command:
        assert command.process.stdout
        pid = int(command.process.stdout.readline())
        command.process.kill()
        assert is_soon_gone(pid)
        command.process.stdout.close()


def test_a_signal_that_the_whole_group_received_is_not_sent_twice() -> None:
    counting = "trap 'echo got' INT; trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done"
    with Guarded(["sh", "-c", counting], stdout=subprocess.PIPE, text=True) as command:
        assert command.process.stdout
        assert command.process.stdout.readline() == "ready\n"
        os.kill(
            command.process.pid, signal.SIGINT
        )  # as a terminal sends it to the guard; the command here has a group of its own
        command.tell(signal.SIGINT)
        command.tell(signal.SIGTERM)
        assert command.process.stdout.read() == ""
        assert command.wait(30)
    with Guarded(["sh", "-c", counting], stdout=subprocess.PIPE, text=True) as command:
        assert command.process.stdout
        assert command.process.stdout.readline() == "ready\n"
        command.tell(signal.SIGINT)
        assert command.process.stdout.readline() == "got\n"
        command.end()
        command.process.stdout.close()


def test_commands_do_not_inherit_what_python_ignores() -> None:
    with Guarded(["sh", "-c", "kill -PIPE $$; exit 5"]) as command:
        assert command.wait(30)
    assert command.process.returncode == -signal.SIGPIPE
