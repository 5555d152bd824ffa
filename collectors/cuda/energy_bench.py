"""The bench that reads the energy of loops of executions, by NVML's counter of the GPU."""

import math
from dataclasses import replace
from functools import cache
from typing import Any, Final

import cupy

from warpladder.collectors.core.bench import Failed, Operation, Pass, Reading, Unavailable
from warpladder.collectors.cuda.device import CudaDevice, current_device
from warpladder.collectors.cuda.energy import EnergyError, Meter
from warpladder.collectors.cuda.events import CudaBench
from warpladder.collectors.cuda.held_clock import mean_clock_mhz
from warpladder.collectors.cuda.operation import HOT, CudaOperation
from warpladder.workloads.api import Params, Variant

#: About how long a chunk of executions takes, and how much work is queued. The host may be away for as long as that takes. A call of NVML
#: can take several milliseconds.
_CHUNK_NS: Final = 5_000_000
_AHEAD_NS: Final = 100_000_000
#: Loops of a reading: a host that was away once is there again.
_MOST_LOOPS: Final = 3
#: Marks whose readings of the clocks are kept, which at 5 ms are those of 20 s.
_KEPT: Final = 4096


class EnergyBench(CudaBench):
    """Reads the energy of hot batches, one after another for more than a second."""

    passes: tuple[Pass, ...] = (HOT,)
    checks_stream = False  # the pass that takes the times has checked it

    def prepare(self, variant: Variant, config: Params) -> Operation:
        try:
            self._meter, self._idle_w = _meter()
        except EnergyError as error:
            raise Unavailable(str(error)) from error
        operation = super().prepare(variant, config)
        assert isinstance(operation, CudaOperation)
        if operation.own_inputs:
            raise Unavailable("writes its inputs, which are restored before each execution, so that no loop repeats it alone")
        return operation

    def sample(self, operation: Operation, how: Pass, seed: int | None) -> Reading:
        """Read the energy of one loop, of another one where the device ran out of work. The outputs are not compared, since the pass that
        takes the times has done so.
        """
        assert isinstance(operation, CudaOperation)
        self._use_stream()
        self._start(operation)
        if not operation.batch:
            self._make_batch(operation)
        try:
            for _ in range(_MOST_LOOPS):
                energy = self._meter.energy(_BatchLoop(self.device, operation), self._idle_w)
                if not energy.starved:
                    break
        except EnergyError as error:
            raise Failed("skipped", str(error)) from error
        finally:
            state = self.device.state.read()  # the loop is still at work
            self.device.stream.synchronize()
        energy = replace(energy, beside=self.device.state.others())
        state = {**state, "held_clock_mhz": energy.held_clock_mhz}
        return Reading(max(round(energy.execution_ns), 1), state=state, energy=energy)


@cache
def _meter() -> tuple[Meter, float]:
    """The meter of the current GPU and the GPU's idle power in W, measured on first use. Raises EnergyError."""
    device = current_device()
    if problem := device.state.energy_problem():
        raise EnergyError(problem)
    meter = Meter(device.state.energy_mj)
    device.wait()
    return meter, meter.idle_w()


class _BatchLoop:
    """Queues batches of an operation, so that the device always has some; an event and a reading of the clocks are the mark after each
    chunk of them."""

    def __init__(self, device: CudaDevice, operation: CudaOperation) -> None:
        self._device, self._replay = device, operation.replay
        batch_ns = operation.batch * operation.once_ns
        self._replays = max(1, round(_CHUNK_NS / batch_ns))
        self._ahead = 1 + math.ceil(_AHEAD_NS / (self._replays * batch_ns))
        self._executions = self._replays * operation.batch
        self._clocks = cupy.zeros((_KEPT, device.sm_count, 2), cupy.uint64)
        self._marks: list[Any] = []
        self._mark()
        self._passed = 0
        self.starved = False

    def advance(self) -> int:
        last = len(self._marks) - 1
        while self._passed < last and self._marks[self._passed + 1].done:
            self._passed += 1
        self.starved |= self._passed == last and last > 0
        for _ in range(self._passed + self._ahead - last):
            for _ in range(self._replays):
                self._replay()
            self._mark()
        return self._passed

    def execution_ns(self, first: int, last: int) -> float:
        milliseconds = cupy.cuda.get_elapsed_time(self._marks[first], self._marks[last])
        return float(milliseconds * 1e6 / ((last - first) * self._executions))

    def held_clock_mhz(self, first: int, last: int) -> float | None:
        if len(self._marks) - first > _KEPT:
            return None
        with self._device.aside():  # the loop stays at work
            return mean_clock_mhz(*(self._clocks[mark % _KEPT].get() for mark in (first, last)))

    def _mark(self) -> None:
        self._device.read_clocks(self._clocks[len(self._marks) % _KEPT])
        event = cupy.cuda.Event()
        event.record(self._device.stream)
        self._marks.append(event)
