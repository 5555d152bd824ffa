"""Starts processes that end when this process ends, together with their descendants; see `warpladder.collectors.core.guard`."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

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
            left = deadline - time.monotonic()
            if left <= 0 or hurry():
                return False
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(min(left, POLL_S))
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
