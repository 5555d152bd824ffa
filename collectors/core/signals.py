"""Signals that ask a command to end: noted at once, answered where nothing can be lost."""

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
    """The recording was asked to end, and this is a place where it can."""


class _Handlers(ABC):
    """Handlers for ASKING while the block runs. A signal that is ignored, as under nohup, stays so."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}

    @abstractmethod
    def handle(self, number: int, frame: FrameType | None) -> None:
        """What a signal does."""

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # no other may set handlers, nor receives signals
            for number in ASKING:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self.handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before.clear()


class Stop(_Handlers):
    """Counts signals; whoever can end safely asks it.

    Attributes:
        number: the first that came; 0 for none.
        count: how many came.
    """

    number = 0
    count = 0
    _since = float("inf")

    def handle(self, number: int, frame: FrameType | None) -> None:
        self._since = min(self._since, time.monotonic())
        self.number = self.number or number
        self.count += 1

    def check(self) -> None:
        """Raises Stopped after a signal."""
        if self.number:
            raise Stopped

    @property
    def again(self) -> bool:
        """Whether a second one came: what still ends by itself is to be ended now."""
        return self.count > 1

    @property
    def seconds_ago(self) -> float:
        """Since the first; negative without one."""
        return time.monotonic() - self._since

    @property
    def exit_code(self) -> int:
        """As a shell gives it for a program that the signal ended; 0 without one."""
        return 128 + self.number if self.number else 0


class Leave(_Handlers):
    """Ends the command silently at the first signal, by way of its `with` and `finally` blocks: nothing half-written stays."""

    def handle(self, number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)
