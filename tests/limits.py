"""Bounds on the processor's time that a piece of a test may take: what grows with the square of its input would take many times as much."""

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
