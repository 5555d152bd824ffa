"""Threads of Python, and child processes, that a variant leaves at work when its execution has ended."""

import os
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
#: Executions of a cell after which a new child process is there each time, until it counts as leaving processes behind. A pool is started once.
_LEAVES: Final = 3
#: Seconds to wait, in steps, for the threads of other cells before one runs.
_STEP_S: Final = 0.0003
_WAIT_S: Final = 0.2
#: The low bits of the number that Linux gives the clock of the processor time of a thread, and of a process (clock_getcpuclockid(3),
#: include/linux/posix-timers.h).
_OF_THREAD: Final = 6
_OF_PROCESS: Final = 2


class LeftThreads:
    """The processor time of every thread of Python but the one that measures, and of every child process, in pauses after samples."""

    def __init__(self) -> None:
        self._owners: dict[int, Cell | None] = dict.fromkeys([*_others(), *_children()], None)
        self._used: dict[int, Counter[Cell]] = defaultdict(Counter)
        self._paused: Counter[Cell] = Counter()
        self._pauses: Counter[Cell] = Counter()
        self._restless: set[int] = set()
        self._left: defaultdict[Cell, list[int]] = defaultdict(list)

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
        """Note that a cell has run: threads and processes that are new are its own."""
        children = _children()
        if new := set(children) - self._owners.keys():
            self._left[cell].append(len(new))
        for thread in (*_others(), *children):
            self._owners.setdefault(thread, cell)

    def pause(self, cell: Cell) -> None:
        """Wait after some samples of a cell, where there are threads or processes, and see which of them work."""
        if self._pauses[cell] >= _PAUSES:
            return
        clocks = dict.fromkeys(_others(), _OF_THREAD) | dict.fromkeys(_children(), _OF_PROCESS)
        if not clocks:
            return
        self._pauses[cell] += 1
        started, before = time.perf_counter_ns(), {each: _processor_ns(each, kind) for each, kind in clocks.items()}
        time.sleep(_PAUSE_S)
        for thread, earlier in before.items():
            self._used[thread][cell] += max(_processor_ns(thread, clocks[thread]) - earlier, 0)
        self._paused[cell] += time.perf_counter_ns() - started

    def left_behind(self) -> Mapping[Cell, int]:
        """Cells whose executions leave new child processes behind, with the number of these processes."""
        return {cell: sum(counts) for cell, counts in self._left.items() if len(counts) >= _LEAVES}

    def at_work(self) -> Mapping[Cell, float]:
        """Cells that left threads or processes at work, with the part of the pauses that these took.

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


def has_children() -> bool:
    """Whether this process has started others that have not been waited for; False where the system does not tell."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    except (AttributeError, OSError):
        return False


def _children() -> list[int]:
    """The ids of the processes that this thread has started; none where the system does not tell."""
    if not has_children():  # which is known quickly
        return []
    try:
        return [int(each) for each in Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()]
    except OSError:
        return []


def _is_at_work(thread: int) -> bool:
    """Whether a thread runs or waits for a processor; False where the system does not tell."""
    try:
        return Path(f"/proc/self/task/{thread}/stat").read_text().rpartition(")")[2].split()[0] == "R"
    except OSError:
        return False


def _processor_ns(number: int, kind: int) -> int:
    """Processor time of a thread or process, up to now; 0 where the system does not tell, or it has ended."""
    try:
        return time.clock_gettime_ns((~number << 3) | kind)
    except OSError:
        return 0


#: The system's times by kind, in ticks: user, nice, system, idle, iowait, irq, softirq, steal (proc(5)).
_STAT: Final = Path("/proc/stat")
_BUSY: Final = (0, 1, 2, 5, 6, 7)
#: Others disturb if they take this part of the processors. A case that takes less time than this, in seconds, does not tell.
_LARGEST: Final = 0.25
_LEAST_S: Final = 1.0


class Load:
    """The load since it was made."""

    def __init__(self) -> None:
        self._started, self._own, self._busy = time.monotonic(), _own_s(), busy_s()

    def text(self) -> str:
        """The load by other processes, where it disturbs; empty where it does not, or is not known."""
        seconds, busy = time.monotonic() - self._started, busy_s()
        if self._busy is None or busy is None or seconds < _LEAST_S:
            return ""
        others = (busy - self._busy - (_own_s() - self._own)) / seconds
        count = os.cpu_count() or 1
        if others < _LARGEST * count:
            return ""
        return f"other programs took {others:.1f} of {count} processors meanwhile; end them, or expect wide intervals and ties"


def busy_s(stat: Path = _STAT) -> float | None:
    """Processor time of all programs since the start of the system, in seconds; None where the system does not tell."""
    try:
        ticks = [int(word) for word in stat.read_text().splitlines()[0].split()[1:]]
        return sum(ticks[place] for place in _BUSY) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def _own_s() -> float:
    """Processor time of this process and of its children that have ended, in seconds."""
    return sum(os.times()[:4])
