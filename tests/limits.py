"""Bounds on the time of a piece of a test: on the processor's for what may grow with the square of its input, on the clock's for a wait."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def cpu_seconds(most: float) -> Iterator[None]:
    """Fails where the block takes more of the processor, whatever else the machine does meanwhile."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"took more than {most:g} s of the processor")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def no_hang(most: float) -> Iterator[None]:
    """Fails where the block takes more seconds. For what waits and takes no time of the processor, such as opening a FIFO."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"waited for more than {most:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
