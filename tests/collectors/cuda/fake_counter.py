"""A GPU made of a clock, a power curve and a counter of energy, and loops of executions on it."""

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

import numpy as np

IDLE_W: Final = 124.0
_STEP_S: Final = 0.001
#: The power approaches that of the work with this time constant.
_RISE_S: Final = 0.04
CHUNK_S: Final = 0.005


@dataclass
class FakeGpu:
    """Power in W over time, and a counter in mJ that is updated every `period_s`. Time passes in `sleep`, and while the counter is read.

    Attributes:
        period_s: seconds between two updates.
        noise: standard deviation of the power of an update, as a share of it.
        drift: share by which the power of work grows in a minute, as the GPU gets warm.
        work_w: power of the work that runs; None for none.
        stopped: the counter is not updated.
        falls: the numbers of the updates, from 1, that lower the counter.
    """

    period_s: float = 0.1
    noise: float = 0.005
    drift: float = 0.0
    seed: int = 0
    work_w: float | None = None
    stopped: bool = False
    falls: Collection[int] = ()
    now_s: float = 0.0
    _power_w: float = IDLE_W
    _exact_j: float = 1000.0
    _shown_mj: int = 1_000_000
    _updated_s: float = 0.0
    _updated_j: float = 1000.0
    _updates: int = 0
    _rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)

    def clock_ns(self) -> int:
        return round(self.now_s * 1e9)

    def sleep(self, seconds: float) -> None:
        while seconds > 0:
            step = min(seconds, _STEP_S)
            target = IDLE_W if self.work_w is None else self.work_w * (1 + self.drift * self.now_s / 60)
            self._power_w += (target - self._power_w) * -math.expm1(-step / _RISE_S)
            self._exact_j += self._power_w * step
            self.now_s += step
            seconds -= step
            if not self.stopped and self.now_s - self._updated_s >= self.period_s:
                self._update()

    def _update(self) -> None:
        self._updates += 1
        added = (self._exact_j - self._updated_j) * (1 + self._rng.normal(0, self.noise))
        self._shown_mj += -5_000 if self._updates in self.falls else round(added * 1000)
        self._updated_s, self._updated_j = self.now_s, self._exact_j

    def read_mj(self) -> int:
        self.sleep(0.00005)
        return self._shown_mj


class FakeLoop:
    """Executions that take `execution_ns` at `watts`, from when it is made until `end`."""

    starved = False
    clock_mhz = 1410.0

    def __init__(self, gpu: FakeGpu, watts: float, execution_ns: float) -> None:
        self._gpu, self._execution_ns = gpu, execution_ns
        self._chunk_s = max(CHUNK_S, execution_ns * 1e-9)
        self._started_s = gpu.now_s
        gpu.work_w = watts

    def advance(self) -> int:
        return int((self._gpu.now_s - self._started_s) / self._chunk_s)

    def execution_ns(self, first: int, last: int) -> float:
        assert last > first >= 0
        return self._execution_ns

    def held_clock_mhz(self, first: int, last: int) -> float:
        assert last > first >= 0
        return self.clock_mhz

    def end(self) -> None:
        self._gpu.work_w = None
