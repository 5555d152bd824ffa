"""Threads of Python that a variant leaves at work while others are timed."""

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter_ns, thread_time_ns
from typing import Final

from warpladder.collectors.core.cells import Cell

#: A thread disturbs others if it takes this part of the processor time that the thread which measures takes for their samples: on a busy
#: machine both get little. That time counts as at least a part of the whole, for samples that wait.
_SHARE: Final = 0.2
_WAITS: Final = 0.1
#: It rests while a variant is timed if it then takes less than this part of what it takes of the others.
_RESTS: Final = 0.25
#: Such time of other cells that tells, in ns.
_LEAST_NS: Final = 1_000_000
_TASKS: Final = Path("/proc/self/task")


class LeftThreads:
    """The processor time of every thread of Python but the one that measures, during the samples of each cell."""

    def __init__(self) -> None:
        self._owners: dict[int, Cell | None] = dict.fromkeys(_others(), None)
        self._used: dict[int, dict[Cell, int]] = defaultdict(lambda: defaultdict(int))
        self._timed: dict[Cell, int] = defaultdict(int)

    def note(self, cell: Cell) -> None:
        """Note that a cell has run: threads that are new are its own."""
        for thread in _others():
            self._owners.setdefault(thread, cell)

    @contextmanager
    def watched(self, cell: Cell) -> Iterator[None]:
        """Watch an execution of a cell."""
        before = {thread: _processor_ns(thread) for thread in _others()}
        started, own = perf_counter_ns(), thread_time_ns()
        yield
        self._timed[cell] += max(thread_time_ns() - own, round(_WAITS * (perf_counter_ns() - started)))
        for thread, earlier in before.items():
            self._used[thread][cell] += max(_processor_ns(thread) - earlier, 0)

    def disturbing(self) -> Mapping[Cell, float]:
        """Cells whose threads work while others are timed, with the part of that time that these take.

        A thread of the file itself is the cell's while which it rests, if there is one.
        """
        found: dict[Cell, float] = {}
        timed = {cell: ns for cell, ns in self._timed.items() if ns}
        for thread, owner in self._owners.items():
            used = self._used[thread]
            least = min(timed, key=lambda cell: used[cell] / timed[cell], default=None)
            cell = owner or least
            others_ns = sum(ns for each, ns in timed.items() if each != cell)
            if cell is None or others_ns < _LEAST_NS:
                continue
            share = sum(ns for each, ns in used.items() if each != cell) / others_ns
            rests = used[cell] < _RESTS * share * timed.get(cell, 0)
            if share >= _SHARE and (owner or rests):
                found[cell] = max(share, found.get(cell, 0.0))
        return found


def _others() -> list[int]:
    """The system's ids of the threads of Python, but of the first one and of this one."""
    if threading.active_count() == 1:
        return []
    mine = (threading.main_thread(), threading.current_thread())
    return [each.native_id for each in threading.enumerate() if each not in mine and each.native_id]


def _processor_ns(thread: int) -> int:
    """Processor time of a thread; 0 where the system does not tell, or it has ended."""
    try:
        return int((_TASKS / str(thread) / "schedstat").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0
