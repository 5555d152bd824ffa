"""Signals that ask a command to end. They are noted at once; the command ends at the next safe point."""

import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from types import FrameType
from typing import Any, Final, Self

#: Ctrl-C, what `kill` and batch systems send, and the end of a terminal's session.
ASKING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(Exception):
    """Raised at a safe point after a signal asked the recording to end."""


class _Handlers(ABC):
    """Installs handlers for ASKING while the block runs. An ignored signal (as under nohup) stays ignored."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}

    @abstractmethod
    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # Python allows handlers in the main thread only
            for number in ASKING:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self.handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before.clear()


class Stop(_Handlers):
    """Counts signals. Code at a safe point calls `check`.

    Attributes:
        number: number of the first signal; 0 for none.
        count: number of signals received.
    """

    number = 0
    count = 0
    _first_signal_s = float("inf")

    def handle(self, number: int, frame: FrameType | None) -> None:
        self._first_signal_s = min(self._first_signal_s, time.monotonic())
        self.number = self.number or number
        self.count += 1

    def check(self) -> None:
        """Raise Stopped after a signal."""
        if self.number:
            raise Stopped

    @property
    def again(self) -> bool:
        """Whether a second signal came. The caller then kills processes instead of waiting for them."""
        return self.count > 1

    @property
    def seconds_ago(self) -> float:
        """Seconds since the first signal; negative without one."""
        return time.monotonic() - self._first_signal_s

    @property
    def exit_code(self) -> int:
        """The exit code that a shell reports for a program ended by this signal; 0 without one."""
        return 128 + self.number if self.number else 0


class Leave(_Handlers):
    """Ends the command silently at the first signal. Its `with` and `finally` blocks remove half-written files."""

    def handle(self, number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)
