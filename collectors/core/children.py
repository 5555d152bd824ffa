"""The parent's side of the measuring processes. The parent sends questions, watches progress, and ends a process that hangs."""

import multiprocessing
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, Final, Self

import numpy as np

from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.messages import CELL, STEP, Answer, Question, Started

# -- processes that end with this one ------------------------------------------------------------------------------------------

_GUARD: Final = Path(__file__).with_name("guard.py")
_END_TIMEOUT_S: Final = 15.0
POLL_S: Final = 0.1
#: The main module of child processes. It imports every collector, so that `core` names it only as text.
ENTRY: Final = "warpladder.collectors.child"


def never() -> bool:
    return False


class Guarded:
    """A command that runs under a guard process. Raises OSError: the process cannot be started.

    Args:
        pass_fds: file descriptors that the command inherits under the same numbers.
        own_group: whether it gets its own session, so that a terminal's signals (Ctrl-C) reach only this process.

    Attributes:
        process: the guard; it ends with the command's exit code or signal.
    """

    def __init__(self, command: Sequence[str], *, pass_fds: Sequence[int] = (), own_group: bool = True, **popen: Any) -> None:
        self._lifeline: int | None
        watched, self._lifeline = os.pipe()
        guard = [sys.executable, "-SPs", str(_GUARD), str(watched), "own" if own_group else "same"]
        try:
            self.process: subprocess.Popen[Any] = subprocess.Popen(
                [*guard, *command], pass_fds=(watched, *pass_fds), start_new_session=own_group, **popen
            )
        except BaseException:
            self._let_go()
            raise
        finally:
            os.close(watched)

    def tell(self, number: int) -> None:
        """Send the command a signal, unless its whole process group has already received the same one."""
        if self._lifeline is not None:
            with suppress(BrokenPipeError):
                os.write(self._lifeline, bytes([number]))

    def wait(self, timeout_s: float, hurry: Callable[[], bool] = never) -> bool:
        """Wait until the command ends, the timeout passes, or `hurry` returns True. Returns whether the command has ended."""
        deadline = time.monotonic() + timeout_s
        while self.process.poll() is None:
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0 or hurry():
                return False
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(min(remaining_s, POLL_S))
        return True

    @property
    def returncode(self) -> int | None:
        """Exit code of the command, negative for a signal; None while it runs."""
        return self.process.returncode

    def end(self) -> None:
        """Kill the command and its descendants at once."""
        self._let_go()
        try:
            self.process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:  # for example, the guard was stopped; the command dies with it
            self.process.kill()
            self.process.wait()

    def _let_go(self) -> None:
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class Zygote:
    """A process that imports what measuring processes need, and forks them; see `warpladder.collectors.core.zygote`.
    Raises OSError: the process cannot be started.

    Args:
        workloads: what loads the workloads.
        argv: the arguments of the script that the process imports.
    """

    def __init__(self, collector: str, modules: Sequence[str], workloads: Sequence[Any], argv: Sequence[str]) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            code = f"{_prelude(argv)}; from {ENTRY} import fork; fork({theirs.fileno()}, {collector!r}, {tuple(modules)!r})"
            self._process = Guarded(
                [sys.executable, "-c", code],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=_output(),
                stderr=_output(),
            )
        self._requests.send(pickle.dumps((tuple(modules), list(workloads))))

    def fork(self, connection: int, progress: int) -> "Forked":
        """Fork a process that measures. Raises OSError: the zygote is dead. `connection`, `progress`: file descriptors
        of the pipe to this process, and of the memory shared with it."""
        (watched, lifeline), (told, tell) = os.pipe(), os.pipe()
        try:
            socket.send_fds(self._requests, [b"f"], [connection, progress, watched, tell])
        except OSError:
            for each in (lifeline, told):
                os.close(each)
            raise
        finally:
            for each in (watched, tell):
                os.close(each)
        return Forked(self, lifeline, told)

    def end(self) -> None:
        """Kill the zygote and all processes that were forked from it."""
        self._requests.close()
        self._process.end()


class Forked:
    """A measuring process that was forked from a zygote, and its guard.

    Args:
        zygote: which forks it, perhaps later.
        lifeline: end of a pipe; the guard kills the process when it is closed.
        told: end of a pipe on which the guard tells the exit code.
    """

    def __init__(self, zygote: Zygote, lifeline: int, told: int) -> None:
        self._zygote, self._lifeline, self._told = zygote, lifeline, told
        self.returncode: int | None = None

    def wait(self, timeout_s: float, hurry: Callable[[], bool] = never) -> bool:
        """See `Guarded.wait`."""
        deadline = time.monotonic() + timeout_s
        while self.returncode is None:
            remaining_s = deadline - time.monotonic()
            if select.select([self._told], [], [], max(min(remaining_s, POLL_S), 0))[0]:
                self.returncode = int(os.read(self._told, 16) or -signal.SIGKILL)
            elif remaining_s <= 0 or hurry():
                return False
        return True

    def end(self) -> None:
        """Kill the process and its descendants at once."""
        if self._lifeline < 0:
            return
        os.close(self._lifeline)
        self._lifeline = -1
        if not self.wait(_FORK_TIMEOUT_S):  # the zygote hangs while it imports
            self._zygote.end()
        os.close(self._told)


# -- the measuring processes ---------------------------------------------------------------------------------------------------

#: A starting child imports CuPy and perhaps PyTorch, and compiles kernels.
START_TIMEOUT_S: Final = 180.0
STOP_TIMEOUT_S: Final = 5.0
_STDERR: Final = 2
#: The file of `printing_to`.
_printed: Final[ContextVar[IO[bytes] | None]] = ContextVar("printed", default=None)
#: Variable of the environment with this file, for a recording under a tool.
PRINTED: Final = "WARPLADDER_PRINTED"
#: Seconds for a process that is to end, before its zygote ends too.
_FORK_TIMEOUT_S: Final = 5.0


class ChildLost(Exception):
    """The child died, or was ended because it hung."""

    def __init__(self, cell: Cell | None, status: str, detail: str) -> None:
        super().__init__(detail)
        self.cell, self.status, self.detail = cell, status, detail


class Child(ABC):
    """One measuring process, or several, and the connection to it.

    Attributes:
        progress: int64 array in memory shared with that process; see `warpladder.collectors.core.messages`.
        start_ns: how long the first question waited for the process to start.
    """

    connection: Connection
    progress: Any
    start_ns = 0

    def ask(
        self,
        question: Question,
        cells: Sequence[Cell],
        timeout_s: float,
        take: Callable[[Answer], bool],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Send a question and hand every answer to `take` until it returns True. Raises ChildLost: the child died, or
        made no step for `timeout_s`.

        Args:
            cells: cells of the question; the child reports progress by their index.
            timeout_s: longest time without a step, in seconds.
            check: called while waiting; an exception that it raises ends the wait.
        """
        last_step, last_sign_s = -1, time.monotonic()
        asked_ns = time.monotonic_ns()
        self.progress[CELL] = -1
        try:
            self.connection.send(question)
            while True:
                check()
                if self.connection.poll(POLL_S):
                    last_sign_s = time.monotonic()
                    answer = self.connection.recv()
                    if isinstance(answer, Started):
                        self.start_ns = time.monotonic_ns() - asked_ns
                    elif take(answer):
                        return
                    continue
                step = self.progress[STEP]
                if step != last_step:
                    last_step, last_sign_s = step, time.monotonic()
                elif time.monotonic() - last_sign_s > timeout_s:
                    cell, where = self._working_on(cells), self.where_it_hangs()
                    self.stop()
                    raise ChildLost(cell, "timeout", f"{where}no progress for {timeout_s:g} s, {self.what_became()}")
        except (EOFError, ConnectionError) as error:
            raise ChildLost(self._working_on(cells), *self.why_dead()) from error

    def _working_on(self, cells: Sequence[Cell]) -> Cell | None:
        number = self.progress[CELL]
        return cells[number] if 0 <= number < len(cells) else None

    def what_became(self) -> str:
        """Return what became of a child that made no progress, as the end of a message."""
        return "so its process was ended"

    def where_it_hangs(self) -> str:
        """Return which of several processes is not done, as the beginning of a message."""
        return ""

    @abstractmethod
    def why_dead(self) -> tuple[str, str]:
        """Return status and detail for the cell that the child was working on when it died."""

    def dismiss(self) -> None:
        """Tell the child that no more questions follow, so that it exits."""
        self.connection.close()

    @abstractmethod
    def stop(self, patience_s: float = 0.0, hurry: Callable[[], bool] = never) -> None:
        """End the child and all of its descendants.

        Args:
            patience_s: seconds in which it may exit by itself, so that a profiler around it can write its report.
            hurry: returns True to stop waiting.
        """


@contextmanager
def printing_to(file: IO[bytes]) -> Iterator[None]:
    """Let the processes that measure, and start inside of the block, print to a file."""
    token = _printed.set(file)
    try:
        yield
    finally:
        _printed.reset(token)


def printed() -> dict[str, str]:
    """The environment that hands the file of `printing_to` on."""
    file = _printed.get()
    return {PRINTED: str(file.name)} if file else {}


def _output() -> int:
    """Where a process that measures prints to."""
    file = _printed.get()
    return file.fileno() if file else _STDERR


def of_signal(code: int) -> tuple[str, str]:
    """Return status and detail for a process that ended with this exit code; a negative code is a signal's number."""
    if code == -9:
        return "out_of_memory", "its process was killed (signal 9), as the system does when memory runs out"
    return "launch_error", f"its process died ({f'signal {-code}' if code < 0 else f'exit code {code}'})"


def _prelude(argv: Sequence[str]) -> str:
    """The first statements of a process: it finds the same modules as this one, in any folder. It ignores SIGINT: the parent handles it."""
    return (
        "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        f"sys.path[:], sys.argv[:] = {sys.path!r}, {list(argv)!r}"
    )


def measuring_command(connection: int, progress: int, collector: str, modules: Sequence[str], argv: Sequence[str]) -> list[str]:
    """The command of a process that measures."""
    call = f"measure({connection}, {progress}, {collector!r}, {tuple(modules)!r})"
    return [sys.executable, "-c", f"{_prelude(argv)}; from {ENTRY} import measure; {call}"]


class ChildProcess(Child):
    """One process and the pipe to it. The process prints to stderr, or to the file of `printing_to`. Raises OSError:
    the process cannot be started.

    Args:
        modules: modules that it imports before its first question; modules that are missing are skipped.
        argv: the arguments of the script that the process imports.
        zygote: forks it; None to start it with nothing imported, as where the zygote is dead.
    """

    def __init__(
        self, collector: str, modules: Sequence[str] = (), *, argv: Sequence[str] = ("-c",), zygote: Zygote | None = None
    ) -> None:
        self.connection, child_end = multiprocessing.Pipe()
        with child_end, tempfile.TemporaryFile() as shared:
            self.progress = np.memmap(shared, np.int64, "w+", shape=(2,)).view(np.ndarray)
            self.progress[:] = -1, 0
            fds = (child_end.fileno(), shared.fileno())
            if zygote:
                with suppress(OSError):
                    self._process: Guarded | Forked = zygote.fork(*fds)
                    return
            command = measuring_command(*fds, collector, modules, argv)
            self._process = Guarded(command, pass_fds=fds, stdin=subprocess.DEVNULL, stdout=_output(), stderr=_output())

    def why_dead(self) -> tuple[str, str]:
        self._process.wait(STOP_TIMEOUT_S)
        return of_signal(self._process.returncode or 0)

    def stop(self, patience_s: float = 0.0, hurry: Callable[[], bool] = never) -> None:
        self.dismiss()
        self._process.wait(patience_s, hurry)
        self._process.end()


class Forks:
    """Starts measuring processes, each forked from one zygote."""

    def __init__(self, collector: str, workloads: Sequence[Any], argv: Sequence[str]) -> None:
        self._collector, self._workloads, self._argv = collector, workloads, argv
        self._zygote: Zygote | None = None

    def __call__(self, modules: Sequence[str]) -> Child:
        """Start a process. The modules of the first call are imported for all."""
        if self._zygote is None:
            self._zygote = Zygote(self._collector, modules, self._workloads, self._argv)
        return ChildProcess(self._collector, modules, argv=self._argv, zygote=self._zygote)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._zygote:
            self._zygote.end()
