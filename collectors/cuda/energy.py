"""Energy of one execution, from a counter of the whole GPU's energy that is updated every 20 to 100 ms.

A loop of executions keeps the GPU at work. Two updates of the counter, at least a second apart, bound a stretch of the loop, so that
neither the period of the counter nor the start and the end of the loop are in the figure. Imports no package of a GPU.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Final, Protocol

from warpladder.collectors.core.bench import Energy

#: Seconds of a loop before the first reading, in which the power reaches that of the loop, and the least seconds between two readings.
SETTLE_S: Final = 0.3
LEAST_S: Final = 1.0
#: Seconds without work before the idle power is measured, in which the power falls, and seconds over which it is measured.
IDLE_SETTLE_S: Final = 2.0
IDLE_S: Final = 5.0
#: Seconds between two looks at the counter. An update is seen so much too late at most.
POLL_S: Final = 0.0005
#: A counter that is not updated for so many seconds stands still.
STILL_S: Final = 2.0
#: A measurement starts again where the counter goes back; the last of so many such falls ends it.
MOST_FALLS: Final = 3


class EnergyError(Exception):
    """The counter cannot be used. The message is the reason."""


class Loop(Protocol):
    """Executions that keep the device at work. Marks divide them: mark 0 is at the start, and each chunk of executions ends with one."""

    @property
    def starved(self) -> bool:
        """Whether the device ran out of work."""
        ...

    def advance(self) -> int:
        """Queue more executions if few are left. Returns the last mark that the device has passed."""
        ...

    def execution_ns(self, first: int, last: int) -> float:
        """Mean time of an execution between two marks, in ns."""
        ...

    def held_clock_mhz(self, first: int, last: int) -> float | None:
        """Mean clock of the multiprocessors between two marks; None if it is not known."""
        ...


@dataclass(frozen=True)
class _Update:
    """An update of the counter: when it was seen, its value, and the last mark that the device had passed."""

    time_ns: int
    energy_mj: int
    mark: int


class Meter:
    """Measures energy and idle power by a counter. `read_mj`: reads the counter, in mJ."""

    def __init__(
        self,
        read_mj: Callable[[], int],
        clock_ns: Callable[[], int] = time.perf_counter_ns,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._read_mj, self._clock_ns, self._sleep = read_mj, clock_ns, sleep

    def idle_w(self) -> float:
        """Power in W of the device, which must have no work. Takes `IDLE_SETTLE_S` and `IDLE_S`. Raises EnergyError:
        the counter stands still or goes back."""
        self._sleep(IDLE_SETTLE_S)
        first, last = self._stretch(IDLE_S, count().__next__)
        return (last.energy_mj - first.energy_mj) / (last.time_ns - first.time_ns) * 1e6

    def energy(self, loop: Loop, idle_w: float) -> Energy:
        """Read the counter over a stretch of a loop of at least `LEAST_S` and one chunk of executions. Raises
        EnergyError: the counter stands still or goes back.

        Args:
            loop: keeps the device at work; it still does so when this returns.
            idle_w: power without work.
        """
        settled_ns = self._clock_ns() + round(SETTLE_S * 1e9)
        while self._clock_ns() < settled_ns:
            loop.advance()
            self._sleep(POLL_S)
        first, last = self._stretch(LEAST_S, loop.advance)
        execution_ns = loop.execution_ns(first.mark, last.mark)
        clock_mhz = loop.held_clock_mhz(first.mark, last.mark)
        duration_ns = last.time_ns - first.time_ns
        return Energy(
            last.energy_mj - first.energy_mj, duration_ns, execution_ns, idle_w, loop.starved, held_clock_mhz=clock_mhz
        )

    def _stretch(self, seconds: float, advance: Callable[[], int]) -> tuple[_Update, _Update]:
        """Two updates of the counter, so many seconds and one mark apart at least."""
        first: _Update | None = None
        falls = 0
        before = self._look(advance)
        updated_ns = before.time_ns
        while True:
            self._sleep(POLL_S)
            now = self._look(advance)
            if now.energy_mj != before.energy_mj:
                updated_ns = now.time_ns
            if now.energy_mj < before.energy_mj:
                first, falls = None, falls + 1
                if falls == MOST_FALLS:
                    fell = f"from {before.energy_mj:,} to {now.energy_mj:,} mJ"
                    raise EnergyError(f"NVML's counter of energy went back {falls} times, at last {fell}")
            elif now.energy_mj > before.energy_mj and first is None:
                first = now
            elif now.energy_mj > before.energy_mj and first is not None:
                if now.time_ns - first.time_ns >= seconds * 1e9 and now.mark > first.mark:
                    return first, now
            elif now.time_ns - updated_ns > STILL_S * 1e9:
                raise EnergyError(f"NVML's counter of energy stood still for {STILL_S:g} s at {now.energy_mj:,} mJ")
            before = now

    def _look(self, advance: Callable[[], int]) -> _Update:
        """The counter now. The time is the middle of the call that reads it."""
        mark = advance()
        started_ns = self._clock_ns()
        energy_mj = self._read_mj()
        return _Update((started_ns + self._clock_ns()) // 2, energy_mj, mark)
