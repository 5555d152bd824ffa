"""How much of the processors other programs take while a case is measured."""

import os
import time
from pathlib import Path
from typing import Final

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
