"""Threads of Python that a variant leaves at work when its execution has ended."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from warpladder.collectors.core.cells import Cell

#: Pauses after samples of each cell, and the length of each in seconds. Nothing is to be done meanwhile: threads of a pool rest.
_PAUSES: Final = 12
_PAUSE_S: Final = 0.001
#: A thread is at work if it takes this part of the pauses.
_SHARE: Final = 0.15
#: It rests after the samples of a cell if it takes less than this part.
_RESTS: Final = 0.03
#: Seconds to wait, in steps, for the threads of other cells before one runs.
_STEP_S: Final = 0.0003
_WAIT_S: Final = 0.2
#: The low bits of the number that Linux gives the clock of a thread's processor time (clock_getcpuclockid(3), include/linux/posix-timers.h).
_OF_THREAD: Final = 6


class LeftThreads:
    """The processor time of every thread of Python but the one that measures, in pauses after samples."""

    def __init__(self) -> None:
        self._owners: dict[int, Cell | None] = dict.fromkeys(_others(), None)
        self._used: dict[int, Counter[Cell]] = defaultdict(Counter)
        self._paused: Counter[Cell] = Counter()
        self._pauses: Counter[Cell] = Counter()
        self._restless: set[int] = set()

    def wait_for_others(self, cell: Cell) -> None:
        """Wait before a cell runs until the threads of other cells rest, since they may write to the outputs that all cells share. A thread that
        has not rested for 0.2 s is waited for no more."""
        until = time.perf_counter() + _WAIT_S
        for thread in _others():
            while thread not in self._restless and self._owners.get(thread) != cell and _is_at_work(thread):
                time.sleep(_STEP_S)
                if time.perf_counter() > until:
                    self._restless.add(thread)

    def note(self, cell: Cell) -> None:
        """Note that a cell has run: threads that are new are its own."""
        for thread in _others():
            self._owners.setdefault(thread, cell)

    def pause(self, cell: Cell) -> None:
        """Wait after some samples of a cell, where there are threads, and see which of them work."""
        if self._pauses[cell] >= _PAUSES or not (threads := _others()):
            return
        self._pauses[cell] += 1
        started, before = time.perf_counter_ns(), {thread: _processor_ns(thread) for thread in threads}
        time.sleep(_PAUSE_S)
        for thread, earlier in before.items():
            self._used[thread][cell] += max(_processor_ns(thread) - earlier, 0)
        self._paused[cell] += time.perf_counter_ns() - started

    def at_work(self) -> Mapping[Cell, float]:
        """Cells that left threads at work, with the part of the pauses that these took.

        A thread is its cell's, whichever cell's samples it goes on after. One of the file is of those cells after whose samples it works, if it
        rests after those of others.
        """
        found: dict[Cell, float] = {}
        for thread, used in self._used.items():
            shares = {cell: used[cell] / paused for cell, paused in self._paused.items() if paused}
            working = {cell: share for cell, share in shares.items() if share >= _SHARE}
            owner = self._owners.get(thread)
            if owner and working:
                found[owner] = max(*working.values(), found.get(owner, 0.0))
            elif not owner and any(share < _RESTS for share in shares.values()):
                found |= {cell: max(share, found.get(cell, 0.0)) for cell, share in working.items()}
        return found


def _others() -> list[int]:
    """The system's ids of the threads of Python, but of the first one and of this one."""
    if threading.active_count() == 1:
        return []
    mine = (threading.main_thread(), threading.current_thread())
    return [each.native_id for each in threading.enumerate() if each not in mine and each.native_id]


def _is_at_work(thread: int) -> bool:
    """Whether a thread runs or waits for a processor; False where the system does not tell."""
    try:
        return Path(f"/proc/self/task/{thread}/stat").read_text().rpartition(")")[2].split()[0] == "R"
    except OSError:
        return False


def _processor_ns(thread: int) -> int:
    """Processor time of a thread, up to now; 0 where the system does not tell, or it has ended."""
    try:
        return time.clock_gettime_ns((~thread << 3) | _OF_THREAD)
    except OSError:
        return 0
