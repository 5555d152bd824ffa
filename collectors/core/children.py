"""The processes that measure, as their parent sees them: asked, watched, and ended when they hang."""

import multiprocessing
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, Final

import numpy as np

from warpladder.collectors.core.messages import CELL, STEP, Answer, Question
from warpladder.collectors.core.processes import ENTRY, POLL_S, Guarded, never
from warpladder.collectors.core.verdicts import Cell

#: Starting a child imports CuPy, and perhaps PyTorch, and compiles.
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
    """What measures, in a process or several, and the way to it.

    Attributes:
        connection: to the one that answers.
        progress: shared with it; see `warpladder.collectors.core.messages`.
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
            cells: those that the child numbers.
            timeout_s: longest time without a step.
            take: given an answer.
            check: called while waiting; what it raises ends the wait.

        Raises:
            ChildLost: the child died, or made no step for `timeout_s`.
        """
        seen, since = -1, time.monotonic()
        self.progress[CELL] = -1
        try:
            self.connection.send(question)
            while True:
                check()
                if self.connection.poll(POLL_S):
                    since = time.monotonic()
                    if take(self.connection.recv()):
                        return
                    continue
                step = self.progress[STEP]
                if step != seen:
                    seen, since = step, time.monotonic()
                elif time.monotonic() - since > timeout_s:
                    cell, where = self._working_on(cells), self.where_it_hangs()
                    self.stop()
                    raise ChildLost(cell, "timeout", f"{where}no progress for {timeout_s:g} s, so its process was ended")
        except (EOFError, ConnectionError) as error:
            raise ChildLost(self._working_on(cells), *self.why_dead()) from error

    def _working_on(self, cells: Sequence[Cell]) -> Cell | None:
        number = self.progress[CELL]
        return cells[number] if 0 <= number < len(cells) else None

    def where_it_hangs(self) -> str:
        """Which of several processes is not done, to stand before why it was ended."""
        return ""

    @abstractmethod
    def why_dead(self) -> tuple[str, str]:
        """Status and detail of what it was at work on when it died."""

    def dismiss(self) -> None:
        """Let it know that no more is wanted, so that it leaves by itself."""
        self.connection.close()

    @abstractmethod
    def stop(self, patience_s: float = 0.0, hurry: Callable[[], bool] = never) -> None:
        """End the child and all that it forked.

        Args:
            patience_s: time for it to go by itself: a profiler around it writes what it has when it does.
            hurry: whether to wait no more.
        """


def of_signal(code: int) -> tuple[str, str]:
    """Status and detail for a process that ended with this exit code, negative for a signal."""
    if code == -9:
        return "out_of_memory", "its process was killed (signal 9), as the system does when memory runs out"
    return "launch_error", f"its process died ({f'signal {-code}' if code < 0 else f'exit code {code}'})"


class ChildProcess(Child):
    """One process and the pipe to it. What it prints goes to stderr.

    Args:
        collector: name of the collector.
        modules: what it imports before it takes its first question; those that it cannot import it leaves.

    Raises:
        OSError: no process can be started.
    """

    def __init__(self, collector: str, modules: Sequence[str] = ()) -> None:
        self.connection, theirs = multiprocessing.Pipe()
        with theirs, tempfile.TemporaryFile() as shared:
            self.progress = np.memmap(shared, np.int64, "w+", shape=(2,)).view(np.ndarray)
            self.progress[:] = -1, 0
            fds = (theirs.fileno(), shared.fileno())
            # The same modules as here, from whatever folder; an interrupt is the parent's business, from the first moment on.
            code = (
                "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
                f"sys.path[:] = {sys.path!r}; from {ENTRY} import measure; "
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
