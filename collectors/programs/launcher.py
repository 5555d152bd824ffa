"""The recorder's side of the process that runs the programs; see `warpladder.collectors.programs.runner`."""

import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Final

from warpladder.collectors.core.children import POLL_S, Guarded
from warpladder.collectors.core.environment import CollectorError
from warpladder.collectors.programs.runner import Ended, Launch, Waiting

_RUNNER: Final = "warpladder.collectors.programs.runner"
_STDERR: Final = 2


def _nothing() -> None: ...


def _untold(waiting: Waiting) -> None: ...


class Launcher:
    """The process that runs programs. It ends with this process, and everything that it started with it.

    Args:
        check: called before a program runs and meanwhile; an exception that it raises ends the wait.
        told: called where a program has exited, and what it started runs on for seconds.

    Raises:
        CollectorError: the process cannot be started.
    """

    def __init__(self, check: Callable[[], None] = _nothing, show: Callable[[Waiting], None] = _untold) -> None:
        self._check, self._show = check, show
        self._connection, runner_end = multiprocessing.Pipe()
        code = f"import sys; sys.path[:] = {sys.path!r}; from {_RUNNER} import main; main({runner_end.fileno()})"
        try:
            with runner_end:
                command = [sys.executable, "-c", code]
                self._process = Guarded(command, pass_fds=(runner_end.fileno(),), stdin=subprocess.DEVNULL, stdout=_STDERR)
        except OSError as error:
            raise CollectorError(
                f"the process that runs the programs cannot be started ({error.strerror}); try again"
            ) from error

    def run(self, launch: Launch) -> Ended:
        """Run a program and return how it ended.

        Raises:
            CollectorError: the process that runs the programs died.
        """
        self._check()
        try:
            self._connection.send(launch)
            while True:
                while not self._connection.poll(POLL_S):
                    self._check()
                message: Ended | Waiting = self._connection.recv()
                if isinstance(message, Ended):
                    return message
                self._show(message)
        except (EOFError, ConnectionError) as error:
            raise CollectorError(f"{launch.words[0]}: the process that runs it died; record again") from error

    def __enter__(self) -> "Launcher":
        return self

    def __exit__(self, *_: Any) -> None:
        self._connection.close()
        self._process.end()
