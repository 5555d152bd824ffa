"""Runs one program at a time and times it, in a separate process that imports only the standard library.

A program gets its own session. Its input is a file or `/dev/null`. Its output is a pipe, which this process reads while the program
runs, in every run alike, whether the output is kept or not. Its messages go to a file.

The clock runs from before the program is started until none of its processes is left. This process is a subreaper (prctl(2)), so
that Linux makes orphans its children.
"""

import ctypes
import fcntl
import gc
import mmap
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

_SET_CHILD_SUBREAPER: Final = 36
#: Seconds between two looks at the deadline and at the files that a running program writes.
_LOOK_S: Final = 0.1
#: Milliseconds between two looks at a process group whose orphans another process reaps, and at processes that were killed.
_SOON_MS: Final = 1
#: Seconds in which killed processes have to end, and after which a wait for leftover processes is reported.
_KILL_S, _PATIENCE_S = 5.0, 5.0
#: Largest output that is kept for a comparison; longest stderr that is kept.
MOST_OUTPUT: Final = 1 << 30
_MOST_STDERR: Final = 1 << 24
#: Bytes of the pipe, and of one read from it.
_PIPE_BYTES, _READ_BYTES = 1 << 20, 1 << 18
#: Bytes of an output that stay in memory until the clock has stopped.
_MEMORY_BYTES: Final = 1 << 27
_MOST_NAMES: Final = 3
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
        timeout_s: seconds after which it is killed, with all that it started.
        stdin: file that it reads.
        stdout: file that receives its output; empty to drop the output.
        stderr: file that its messages replace; of very many, the last ones.
        padding: length of the variable `PADDING`; None to leave the variable out.
    """

    path: str
    words: tuple[str, ...]
    timeout_s: float
    stdin: str = os.devnull
    stdout: str = ""
    stderr: str = os.devnull
    padding: int | None = None


@dataclass(frozen=True)
class Ended:
    """How a run of a program ended.

    Attributes:
        duration_ns: wall-clock time from before its start until its last process has ended, in ns.
        after_ns: how much of that is later than the exit of the program itself, in ns.
        cpu_ns: processor time of user and system, of all its processes that were reaped, in ns.
        code: exit code; negative for the number of a signal.
        problem: `timeout`, `output` (more than `MOST_OUTPUT`), `start`, `keep` (its output cannot be written), or empty.
        detail: with `start` and `keep`, the system's reason.
        leftovers: names of processes that still ran after its exit, and that had to be killed.
    """

    duration_ns: int = 0
    after_ns: int = 0
    cpu_ns: int = 0
    code: int = 0
    problem: str = ""
    detail: str = ""
    leftovers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Waiting:
    """A program has exited, and processes with these names, which it started, still run."""

    names: tuple[str, ...]


def run(launch: Launch, *, whole_tree: bool = True, tell: Callable[[Waiting], None] = lambda waiting: None) -> Ended:
    """Run a program, and wait until all its processes have ended. Kills them if they take too long or print too much.

    Args:
        whole_tree: wait for all descendants; every child of this process must then be the program's. Otherwise only the program's
            process group is waited for: other processes may belong to a profiler.
        tell: called once if what the program left still runs some seconds after its exit.
    """
    environment = dict(os.environ)
    if launch.padding is not None:
        environment[PADDING] = "x" * launch.padding
    with _woken() as wake, _Output(launch.stdout) as output, _opened(launch) as (stdin, stderr):
        files = ((stdin, 0), (output.theirs, 1), (stderr, 2))
        actions = [(os.POSIX_SPAWN_DUP2, file, number) for file, number in files]
        started = time.perf_counter_ns()
        try:
            pid = os.posix_spawn(launch.path, launch.words, environment, file_actions=actions, setsid=True, setsigdef=_RESET)
        except OSError as error:
            return Ended(problem="start", detail=error.strerror or str(error))
        output.close_theirs()
        tree = _Tree(pid, whole_tree)
        ended, problem, leftovers = _follow(tree, output, wake, stderr, started + int(launch.timeout_s * 1e9), tell)
        output.finish()
    after = ended - tree.exited_ns if tree.exited_ns else 0
    code = os.waitstatus_to_exitcode(tree.status)
    return Ended(
        ended - started, after, tree.cpu_ns, code, problem or ("keep" if output.failed else ""), output.failed, leftovers
    )


@contextmanager
def _woken() -> Iterator[int]:
    """A file descriptor that can be read when a child of this process has ended."""
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    handler = signal.signal(signal.SIGCHLD, lambda *_: None)
    before = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    try:
        yield woken
    finally:
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGCHLD, handler)
        os.close(woken)
        os.close(wake)


@contextmanager
def _opened(launch: Launch) -> Iterator[tuple[int, int]]:
    """The file that a program reads, and the file for its messages."""
    stdin = os.open(launch.stdin, os.O_RDONLY)
    stderr = os.open(launch.stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    try:
        yield stdin, stderr
    finally:
        os.close(stdin)
        os.close(stderr)


class _Output:
    """A pipe for a program's output. It is read in the same way whether the output is kept or not.

    What is read goes to memory that all runs share. It is written to the file when the clock has stopped, or when that memory is
    full.

    Args:
        file: file that receives the output; empty to drop it.

    Attributes:
        pipe, theirs: the ends of the pipe: to read, and to write.
        failed: why the output cannot be written; empty if it can.
    """

    _memory: memoryview | None = None

    def __init__(self, file: str) -> None:
        if _Output._memory is None:
            _Output._memory = memoryview(mmap.mmap(-1, _MEMORY_BYTES))
        self._read_into = _Output._memory
        self._file = Path(file).open("wb", buffering=0) if file else None  # noqa: SIM115
        self._filled = self._bytes = 0
        self.failed = ""
        self.pipe, self.theirs = os.pipe()
        os.set_blocking(self.pipe, False)
        with suppress(AttributeError, OSError):  # Linux; the user may have many pipes
            fcntl.fcntl(self.theirs, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def take(self) -> bool:
        """Read once. Returns False at the end of the output."""
        if self._filled == _MEMORY_BYTES:
            self._store()
        try:
            read = os.readv(self.pipe, [self._read_into[self._filled : self._filled + _READ_BYTES]])
        except BlockingIOError:
            return True
        self._filled += read
        self._bytes += read
        return read > 0

    @property
    def is_too_long(self) -> bool:
        """Whether it is kept, and is more than can be kept."""
        return self._file is not None and self._bytes > MOST_OUTPUT

    def finish(self) -> None:
        """Read what is in the pipe, and write what is left in memory."""
        before, end = -1, self._bytes + _PIPE_BYTES
        while before != self._bytes < end:
            before = self._bytes
            self.take()
        self._store()

    def _store(self) -> None:
        at = 0
        try:
            while self._file is not None and not self.failed and at < self._filled:
                at += self._file.write(self._read_into[at : self._filled])
        except OSError as error:
            self.failed = error.strerror or str(error)
        self._filled = 0

    def close_theirs(self) -> None:
        if self.theirs >= 0:
            os.close(self.theirs)
            self.theirs = -1

    def __enter__(self) -> "_Output":
        return self

    def __exit__(self, *_: object) -> None:
        self.close_theirs()
        os.close(self.pipe)
        if self._file is not None:
            self._file.close()


class _Tree:
    """The processes of a program.

    Args:
        pid: the program's process, which leads a process group.
        whole: whether orphans become children of this process; otherwise the process group stands for all.

    Attributes:
        status: the program's wait status; the status of a killed process until it has exited.
        exited_ns: when the program itself had exited, by `time.perf_counter_ns`; 0 before.
        cpu_ns: processor time of what was reaped, in ns.
    """

    def __init__(self, pid: int, whole_tree: bool) -> None:
        self._pid, self.whole_tree = pid, whole_tree
        self.status, self.exited_ns, self.cpu_ns = int(signal.SIGKILL), 0, 0

    def reap(self, now_ns: int) -> bool:
        """Reap what has ended by now. Returns whether nothing is left."""
        while True:
            try:
                pid, status, usage = os.wait4(-1 if self.whole_tree else self._pid, os.WNOHANG)
            except ChildProcessError:
                return self.whole_tree or not _in_group(self._pid)
            if not pid:
                return False
            self.cpu_ns += round((usage.ru_utime + usage.ru_stime) * 1e9)
            if pid == self._pid:
                self.status, self.exited_ns = status, now_ns

    def kill(self) -> None:
        """Kill what is there now. Children of killed processes become children of this process, and the next call kills them."""
        with suppress(ProcessLookupError, PermissionError):
            if not self.exited_ns or not self.whole_tree:  # otherwise the number may belong to another group
                os.killpg(self._pid, signal.SIGKILL)
        for pid in _children() if self.whole_tree else ():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def names_left(self) -> tuple[str, ...]:
        """Names of some of the processes that run although the program has exited."""
        if not self.exited_ns:
            return ()
        names = []
        for pid in _children() if self.whole_tree else _in_group(self._pid):
            with suppress(OSError):
                names.append(Path(f"/proc/{pid}/comm").read_text(errors="replace").strip())
        return tuple(dict.fromkeys(names))[:_MOST_NAMES] or ("a process",)


def _children() -> list[int]:
    """Return the ids of the children of this process; their own children follow when they have been killed."""
    children: list[int] = []
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            children += map(int, file.read_text().split())
    return children


def _in_group(group: int) -> list[int]:
    """Return the ids of the processes of a group that run."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return []
    members = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, its_group = file.read_bytes().rpartition(b")")[2].split()[:3]
            if int(its_group) == group and state not in b"ZX":  # who reaps orphans may do so late, or never
                members.append(int(file.parent.name))
    return members


def _follow(
    tree: _Tree, output: _Output, wake: int, stderr: int, deadline_ns: int, tell: Callable[[Waiting], None]
) -> tuple[int, str, tuple[str, ...]]:
    """Read the output until no process is left. Kills them at the deadline, or if they print too much. Returns the time
    at which the last one had ended, by `time.perf_counter_ns`; `Ended.problem`; and `Ended.leftovers`."""
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    poll.register(output.pipe, select.POLLIN)
    problem, killed_ns, looked_ns, has_told_waiting = "", 0, 0, False
    leftovers: tuple[str, ...] = ()
    while True:
        is_group = bool(tree.exited_ns) and not tree.whole_tree
        left_ms = (deadline_ns - time.perf_counter_ns()) / 1e6
        ready = dict(poll.poll(_SOON_MS if problem or is_group else max(1.0, min(1000 * _LOOK_S, left_ms))))
        now = time.perf_counter_ns()
        if wake in ready or problem or is_group:
            with suppress(BlockingIOError):
                os.read(wake, 4096)
            if tree.reap(now) or (problem and now > killed_ns + _KILL_S * 1e9):
                return now, problem, leftovers
        if output.pipe in ready and not output.take():
            poll.unregister(output.pipe)
        if problem:
            tree.kill()
        elif now > deadline_ns or now > looked_ns + _LOOK_S * 1e9:
            looked_ns = now
            if os.fstat(stderr).st_size > _MOST_STDERR:
                os.ftruncate(stderr, 0)
            problem = "timeout" if now > deadline_ns else "output" if output.is_too_long else ""
            if problem:
                killed_ns, leftovers = now, tree.names_left()
                tree.kill()
            elif tree.exited_ns and not has_told_waiting and now > tree.exited_ns + _PATIENCE_S * 1e9:
                has_told_waiting = True
                tell(Waiting(tree.names_left()))


def begin() -> None:
    """Prepare this process for measuring."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the recorder handles it
    gc.disable()


def main(connection: int) -> None:
    """Run what the recorder asks for, until it closes the pipe."""
    begin()
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.set_inheritable(connection, False)
    pipe = Connection(connection)
    try:
        while True:
            pipe.send(run(pipe.recv(), tell=pipe.send))
    except (EOFError, ConnectionError):
        sys.exit(0)
