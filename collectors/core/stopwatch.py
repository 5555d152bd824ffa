"""Where the time of a recording goes: nanoseconds by phase."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: A phase of `Spent`; that of samples has the scope and the cache that they cover, else both are empty.
_Part = tuple[str, str, str]


class Stopwatch:
    """Adds up the time by phase. A phase within another one interrupts it, so that the times add up to the time since
    the start. `rest`: what is done outside of all other phases."""

    def __init__(self, rest: str, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock, self._now, self._since = clock, (rest, "", ""), clock()
        self._spent_ns: Counter[_Part] = Counter()

    @contextmanager
    def phase(self, name: str, scope: str = "", cache: str = "") -> Iterator[None]:
        """Count the block's time to a phase."""
        outer = self._turn((name, scope, cache))
        try:
            yield
        finally:
            self._turn(outer)

    def _turn(self, to: _Part) -> _Part:
        """Begin another phase. Returns the one before."""
        before, now = self._now, self._clock()
        self._spent_ns[before] += now - self._since
        self._now, self._since = to, now
        return before

    def add(self, nanoseconds: int, to: str) -> None:
        """Count time to a phase that was before the start."""
        self._spent_ns[to, "", ""] += nanoseconds

    def move(self, nanoseconds: int, to: str = "") -> None:
        """Count time of the present phase to another one; to none, because others have counted it."""
        self._spent_ns[self._now] -= nanoseconds
        if to:
            self.add(nanoseconds, to)

    def take_rows(self, workload: str = "", case: str = "", gpus: int = 0, process: int = 0) -> list[dict[str, Any]]:
        """Rows of `phases`, of those that took time since the last call: of a case, or of the recording as a whole."""
        self._turn(self._now)
        taken, self._spent_ns = self._spent_ns, Counter()
        key = {"workload": workload, "case": case, "gpus": gpus, "process": process}
        return [
            {**key, "phase": phase, "scope": scope, "cache": cache, "duration_ns": duration_ns}
            for (phase, scope, cache), duration_ns in taken.items()
            if duration_ns > 0
        ]
