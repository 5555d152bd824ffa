"""Where the time of a recording goes: nanoseconds by phase."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Part:
    """A phase; that of samples also has what they cover.

    Attributes:
        name: of `Spent`.
        scope, cache: of samples; else empty.
    """

    name: str
    scope: str = ""
    cache: str = ""


class Stopwatch:
    """Adds up the time by phase. A phase within another one interrupts it, so that the times add up to the time since
    the start. `rest`: what is done outside of all other phases."""

    def __init__(self, rest: str, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock, self._now, self._since = clock, Part(rest), clock()
        self._spent_ns: Counter[Part] = Counter()

    @contextmanager
    def phase(self, name: str, scope: str = "", cache: str = "") -> Iterator[None]:
        """Count the block's time to a phase."""
        outer = self._turn(Part(name, scope, cache))
        try:
            yield
        finally:
            self._turn(outer)

    def _turn(self, to: Part) -> Part:
        """Begin another phase. Returns the one before."""
        before, now = self._now, self._clock()
        self._spent_ns[before] += now - self._since
        self._now, self._since = to, now
        return before

    def move(self, nanoseconds: int, to: str = "") -> None:
        """Count time of the present phase to another one; to none, because others have counted it."""
        self._spent_ns[self._now] -= nanoseconds
        if to:
            self._spent_ns[Part(to)] += nanoseconds

    def take(self) -> Mapping[Part, int]:
        """Nanoseconds by phase since the last call."""
        self._turn(self._now)
        taken, self._spent_ns = self._spent_ns, Counter()
        return taken


def phase_rows(
    spent_ns: Mapping[Part, int], workload: str = "", case: str = "", gpus: int = 0, process: int = 0
) -> Sequence[dict[str, Any]]:
    """Rows of `phases`, of phases that took time: of a case, or of the recording as a whole."""
    key = {"workload": workload, "case": case, "gpus": gpus, "process": process}
    return [
        {**key, "phase": part.name, "scope": part.scope, "cache": part.cache, "duration_ns": duration_ns}
        for part, duration_ns in spent_ns.items()
        if duration_ns > 0
    ]
