"""The parent's side of the measuring processes. The parent sends questions, watches progress, and ends a process that hangs."""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.messages import CELL, STEP, Answer, Question

# -- processes that end with this one ------------------------------------------------------------------------------------------

_GUARD: Final = Path(__file__).with_name("guard.py")
_END_TIMEOUT_S: Final = 15.0
POLL_S: Final = 0.1
#: The main module of child processes. It imports every collector, so that `core` names it only as text.
ENTRY: Final = "warpladder.collectors.child"


def never() -> bool:
    return False


class Guarded:
    """A command that runs under a guard process.

    Args:
        command: the program and its arguments.
        pass_fds: file descriptors that the command inherits under the same numbers.
        own_group: whether it gets its own session, so that a terminal's signals (Ctrl-C) reach only this process.
        popen: further arguments of `subprocess.Popen`.

    Attributes:
        process: the guard; it ends with the command's exit code or signal.

    Raises:
        OSError: the process cannot be started.
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


# -- the measuring processes ---------------------------------------------------------------------------------------------------

#: A starting child imports CuPy and perhaps PyTorch, and compiles kernels.
START_TIMEOUT_S: Final = 180.0
STOP_TIMEOUT_S: Final = 5.0
_STDERR: Final = 2


class ChildLost(Exception):
    """The child died, or was ended because it hung."""

    def __init__(self, cell: Cell | None, status: str, detail: str) -> None:
        super().__init__(detail)
        self.cell, self.status, self.detail = cell, status, detail


def _nothing() -> None: ...


class Child(ABC):
    """One measuring process, or several, and the connection to it.

    Attributes:
        connection: pipe to the process that answers.
        progress: int64 array in memory shared with that process; see `warpladder.collectors.core.messages`.
    """

    connection: Connection
    progress: Any

    def ask(
        self,
        question: Question,
        cells: Sequence[Cell],
        timeout_s: float,
        take: Callable[[Answer], bool],
        check: Callable[[], None] = _nothing,
    ) -> None:
        """Send a question and hand every answer to `take` until it returns True.

        Args:
            question: see `warpladder.collectors.core.messages`.
            cells: cells of the question; the child reports progress by their index.
            timeout_s: longest time without a step, in seconds.
            take: called with each answer.
            check: called while waiting; an exception that it raises ends the wait.

        Raises:
            ChildLost: the child died, or made no step for `timeout_s`.
        """
        last_step, last_sign_s = -1, time.monotonic()
        self.progress[CELL] = -1
        try:
            self.connection.send(question)
            while True:
                check()
                if self.connection.poll(POLL_S):
                    last_sign_s = time.monotonic()
                    if take(self.connection.recv()):
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


def of_signal(code: int) -> tuple[str, str]:
    """Return status and detail for a process that ended with this exit code; a negative code is a signal's number."""
    if code == -9:
        return "out_of_memory", "its process was killed (signal 9), as the system does when memory runs out"
    return "launch_error", f"its process died ({f'signal {-code}' if code < 0 else f'exit code {code}'})"


class ChildProcess(Child):
    """One process and the pipe to it. The process's output goes to stderr.

    Args:
        collector: name of the collector.
        modules: modules that it imports before its first question; modules that are missing are skipped.
        argv: the arguments of the script that the process imports.

    Raises:
        OSError: the process cannot be started.
    """

    def __init__(self, collector: str, modules: Sequence[str] = (), *, argv: Sequence[str] = ("-c",)) -> None:
        self.connection, child_end = multiprocessing.Pipe()
        with child_end, tempfile.TemporaryFile() as shared:
            self.progress = np.memmap(shared, np.int64, "w+", shape=(2,)).view(np.ndarray)
            self.progress[:] = -1, 0
            fds = (child_end.fileno(), shared.fileno())
            # The child finds the same modules as this process, in any folder. It ignores SIGINT: the parent handles it.
            code = (
                "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
                f"sys.path[:], sys.argv[:] = {sys.path!r}, {list(argv)!r}; from {ENTRY} import measure; "
                f"measure({fds[0]}, {fds[1]}, {collector!r}, {tuple(modules)!r})"
            )
            self._process = Guarded([sys.executable, "-c", code], pass_fds=fds, stdin=subprocess.DEVNULL, stdout=_STDERR)

    def why_dead(self) -> tuple[str, str]:
        self._process.wait(STOP_TIMEOUT_S)
        return of_signal(self._process.process.returncode or 0)

    def stop(self, patience_s: float = 0.0, hurry: Callable[[], bool] = never) -> None:
        self.dismiss()
        self._process.wait(patience_s, hurry)
        self._process.end()
