"""Bounds on the time of a piece of a test: on the processor's for what may grow with the square of its input, on the clock's for a wait."""

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType


def cpu_seconds(most: float) -> AbstractContextManager[None]:
    """Fails where the block takes more of the processor, whatever else the machine does meanwhile."""
    return _limit(most, signal.ITIMER_PROF, signal.SIGPROF, f"took more than {most:g} s of the processor")


def no_hang(most: float) -> AbstractContextManager[None]:
    """Fails where the block takes more seconds. For what waits and takes no time of the processor, such as opening a FIFO."""
    return _limit(most, signal.ITIMER_REAL, signal.SIGALRM, f"waited for more than {most:g} s")


@contextmanager
def _limit(most: float, timer: int, number: signal.Signals, said: str) -> Iterator[None]:
    """Fails where the block takes more seconds of a timer, which sends a signal."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise AssertionError(said)

    before = signal.signal(number, stop)
    signal.setitimer(timer, most)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)
