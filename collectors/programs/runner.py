"""Runs one program at a time and times it, in a process of its own that imports only the standard library.

A program gets its own session. Its input and outputs are files or `/dev/null`. The clock runs from before the program is started
until the system reports its exit. What a program leaves behind is ended before the next one starts: this process is a subreaper,
so that orphans become its children.
"""

import ctypes
import gc
import os
import select
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

_SET_CHILD_SUBREAPER: Final = 36
#: Seconds between two looks at the files that a running program writes.
_LOOK_S: Final = 0.1
#: Seconds in which processes that a program left may end by themselves, and in which killed ones have to be gone.
_GRACE_S, _KILL_S = 0.2, 5.0
#: Largest output that is kept for a comparison; longest stderr that is kept.
MOST_OUTPUT: Final = 1 << 30
_MOST_STDERR: Final = 1 << 24
#: Variable whose length differs from run to run. The length of the environment moves the stack, and with it the speed of some
#: programs (Mytkowicz and others, Producing wrong data without doing anything obviously wrong, ASPLOS 2009).
PADDING: Final = "WARPLADDER_PADDING"
#: Signals that Python or this process ignores; a program gets the system's default.
_RESET: Final = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT)


@dataclass(frozen=True)
class Launch:
    """One run of a program.

    Attributes:
        path: the program's file.
        words: the program's name and its arguments.
        timeout_s: seconds after which it is killed.
        stdin: file that it reads.
        stdout: file that its output replaces.
        stderr: file that its messages replace; of very many, the last ones.
        padding: length of the variable `PADDING`; None to leave the variable out.
    """

    path: str
    words: tuple[str, ...]
    timeout_s: float
    stdin: str = os.devnull
    stdout: str = os.devnull
    stderr: str = os.devnull
    padding: int | None = None


@dataclass(frozen=True)
class Ended:
    """How a run of a program ended.

    Attributes:
        duration_ns: wall-clock time from before its start to its exit, in ns.
        cpu_ns: processor time of user and system, its own and that of processes that it waited for, in ns.
        code: exit code; negative for the number of a signal.
        problem: `timeout`, `output` (more than `MOST_OUTPUT`), `start`, or empty.
        detail: with `start`, the system's reason.
        left: number of processes that it left and that were killed.
    """

    duration_ns: int = 0
    cpu_ns: int = 0
    code: int = 0
    problem: str = ""
    detail: str = ""
    left: int = 0


def run(launch: Launch, *, group_only: bool = False) -> Ended:
    """Run a program and wait for its exit. Kills it if it takes too long or prints too much.

    Args:
        launch: the program.
        group_only: of what it leaves, end its process group alone: other processes may be those of a profiler.
    """
    environment = dict(os.environ)
    if launch.padding is not None:
        environment[PADDING] = "x" * launch.padding
    written = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    files = [os.open(launch.stdin, os.O_RDONLY), os.open(launch.stdout, written, 0o600), os.open(launch.stderr, written, 0o600)]
    actions = [(os.POSIX_SPAWN_DUP2, file, number) for number, file in enumerate(files)]
    try:
        started = time.perf_counter_ns()
        try:
            pid = os.posix_spawn(launch.path, launch.words, environment, file_actions=actions, setsid=True, setsigdef=_RESET)
        except OSError as error:
            return Ended(problem="start", detail=error.strerror or str(error))
        problem = _wait(pid, started + int(launch.timeout_s * 1e9), files)
        ended = time.perf_counter_ns()
        _, status, usage = os.wait4(pid, 0)
    finally:
        for file in files:
            os.close(file)
    cpu_ns = round((usage.ru_utime + usage.ru_stime) * 1e9)
    left = _end_group(pid) if group_only else _end_leftovers()
    return Ended(ended - started, cpu_ns, os.waitstatus_to_exitcode(status), problem, left=left)


def _wait(pid: int, deadline_ns: int, files: list[int]) -> str:
    """Wait until a process ends. Kills its group at the deadline, or if it prints too much. Returns `Ended.problem`."""
    ending = os.pidfd_open(pid)
    problem = ""
    try:
        poll = select.poll()
        poll.register(ending, select.POLLIN)
        while not poll.poll(max(1.0, min(1000 * _LOOK_S, (deadline_ns - time.perf_counter_ns()) / 1e6))):
            problem = problem or ("timeout" if time.perf_counter_ns() > deadline_ns else _too_much(*files[1:]))
            if problem:
                os.killpg(pid, signal.SIGKILL)  # its parent is this process, so that the number is still its own
    finally:
        os.close(ending)
    return problem


def _too_much(stdout: int, stderr: int) -> str:
    """Cut a long stderr. Returns `output` if stdout is too long."""
    if os.fstat(stderr).st_size > _MOST_STDERR:
        os.ftruncate(stderr, 0)
    return "output" if os.fstat(stdout).st_size > MOST_OUTPUT else ""


def _end_group(group: int) -> int:
    """Kill what is left of a process group. Returns 0, since its members are not counted."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    return 0


def _end_leftovers() -> int:
    """Wait a moment for processes that a program left, then kill them. Returns the number of those that were killed."""
    killed: set[int] = set()
    begun = time.monotonic()
    while time.monotonic() < begun + _GRACE_S + _KILL_S:
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            break
        if time.monotonic() > begun + _GRACE_S:
            for pid in _children():
                killed.add(pid)
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
    return len(killed)


def _children() -> list[int]:
    """Return the ids of the children of this process; their own children follow when they have been killed."""
    found: list[int] = []
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, file.read_text().split())
    return found


def begin() -> None:
    """Prepare this process for measuring."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the recorder handles it
    gc.disable()


def main(connection: int) -> None:
    """Run what the recorder asks for, until it closes the pipe.

    Args:
        connection: file descriptor of the pipe.
    """
    begin()
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.set_inheritable(connection, False)
    pipe = Connection(connection)
    try:
        while True:
            pipe.send(run(pipe.recv()))
    except (EOFError, ConnectionError):
        sys.exit(0)
