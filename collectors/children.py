"""The processes that measure, as their parent sees them: asked, watched, and ended when they hang."""

import multiprocessing
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, Final

from collectors.plan import Cell
from collectors.worker import CELL, STEP, serve

POLL_S: Final = 0.1
#: Starting a child imports CuPy, and perhaps PyTorch, and compiles.
START_TIMEOUT_S: Final = 180.0
STOP_TIMEOUT_S: Final = 5.0


class ChildLost(Exception):
    """The child died, or was ended because it hung."""

    def __init__(self, cell: Cell | None, status: str, detail: str) -> None:
        super().__init__(detail)
        self.cell, self.status, self.detail = cell, status, detail


class Child(ABC):
    """What measures, in a process or several, and the way to it.

    Attributes:
        connection: to the one that answers.
        progress: shared with it; see `collectors.worker`.
    """

    connection: Connection
    progress: Any

    def ask(self, request: Any, cells: Sequence[Cell], timeout_s: float, take: Callable[[str, Any], bool]) -> None:
        """Send a request and hand every answer to `take` until it returns True.

        Raises:
            ChildLost: the child died, or made no step for `timeout_s`.
        """
        seen, since = -1, time.monotonic()
        self.progress[CELL] = -1
        try:
            self.connection.send(request)
            while True:
                if self.connection.poll(POLL_S):
                    since = time.monotonic()
                    if take(*self.connection.recv()):
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

    @abstractmethod
    def stop(self, patience_s: float = 0.0) -> None:
        """End the child, which may take so long to go by itself: a profiler around it writes what it has when it does."""


def of_signal(code: int) -> tuple[str, str]:
    """Status and detail for a process that ended with this exit code, negative for a signal."""
    if code == -9:
        return "out_of_memory", "its process was killed (signal 9), as the system does when memory runs out"
    return "launch_error", f"its process died ({f'signal {-code}' if code < 0 else f'exit code {code}'})"


class ChildProcess(Child):
    """One process and the pipe to it."""

    def __init__(self, collector: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.progress = context.Array("q", [-1, 0], lock=False)
        self._process = context.Process(target=serve, args=(theirs, self.progress, collector), daemon=True)
        self._process.start()
        theirs.close()

    def why_dead(self) -> tuple[str, str]:
        self._process.join(STOP_TIMEOUT_S)
        return of_signal(self._process.exitcode or 0)

    def stop(self, patience_s: float = 0.0) -> None:
        self.connection.close()
        self._process.join(patience_s)
        self._process.terminate()
        self._process.join(STOP_TIMEOUT_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
