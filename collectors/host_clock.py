"""Collector `host_clock`: host variants, timed by `perf_counter_ns`. Needs nothing."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from collectors.bench import ONE_PROCESS, BenchCommunicator, Operation, Unavailable
from collectors.rounds import Pass, Reading
from workloads.api import Array, Buffers, Case, HostVariant, Params, Variant, Workload
from workloads.communication import Communicator

NAME = "host_clock"


class TimedCommunicator:
    """A communicator that says how long its averages took, by the host's clock; what a rank waits for the others is in it."""

    def __init__(self, communicator: Communicator) -> None:
        self._communicator = communicator
        self.rank, self.size = communicator.rank, communicator.size
        self.spent_ns = 0

    def average(self, arrays: Sequence[Array]) -> None:
        started = time.perf_counter_ns()
        self._communicator.average(arrays)
        self.spent_ns += time.perf_counter_ns() - started


@dataclass
class HostOperation(Operation):
    """An operation on the host; `communicator` is what it was given, where it is shared and communicates."""

    communicator: TimedCommunicator | None = None


class HostBench:
    """A case's buffers in host memory."""

    gpus = 0
    passes: tuple[Pass, ...] = (Pass("operation", "hot"),)

    def __init__(self, workload: Workload, case: Case, inputs: Mapping[str, np.ndarray]) -> None:
        _, outputs = workload.buffers(case)
        self._case = case
        self._inputs = inputs
        self.communicator: BenchCommunicator = ONE_PROCESS
        self.outputs: Mapping[str, Array] = {name: np.empty(b.shape, b.dtype) for name, b in outputs.items()}

    def join(self, communicator: BenchCommunicator) -> None:
        self.communicator = communicator

    def prepare(self, variant: Variant, config: Params) -> Operation:
        if not isinstance(variant, HostVariant):
            raise Unavailable("needs an NVIDIA GPU; the collector host_clock runs host variants only")
        check_importable(variant.requires)
        if not variant.communicates or self.communicator.size == 1:
            return HostOperation(lambda: variant.run(self._case, self._inputs, self.outputs))
        timed = TimedCommunicator(self.communicator)
        return HostOperation(lambda: variant.run(self._case, self._inputs, self.outputs, timed), communicator=timed)

    def run(self, operation: Operation) -> Buffers:
        returned = operation.run()
        return self.outputs if returned is None else returned

    def place(self, references: Mapping[str, Array]) -> Mapping[str, Array]:
        return references

    def sample(self, operation: Operation, how: Pass) -> Reading:
        assert isinstance(operation, HostOperation)
        timed = operation.communicator
        if timed:
            timed.spent_ns = 0
        self.communicator.wait()
        started = time.perf_counter_ns()
        operation.run()
        duration_ns = time.perf_counter_ns() - started
        return Reading(duration_ns, {"phase:allreduce": timed.spent_ns} if timed else {}, NO_GPU_STATE)

    def close(self) -> None:
        self.outputs = {}


#: Columns of `samples` that only a GPU fills.
NO_GPU_STATE: dict[str, Any] = dict.fromkeys(("sm_clock_mhz", "temperature_c", "power_w", "throttle_reasons"))


def check_importable(modules: tuple[str, ...]) -> None:
    """Raises Unavailable naming the first module that is not installed."""
    for module in modules:
        if find_spec(module.split(".")[0]) is None:
            raise Unavailable(f"needs the Python package {module}, which is not installed")


def median_duration_ns(call: Callable[[], object], repetitions: int) -> float:
    """Median time of a call by the host's clock, after one call that is not counted."""
    call()
    durations = []
    for _ in range(repetitions):
        started = time.perf_counter_ns()
        call()
        durations.append(time.perf_counter_ns() - started)
    return statistics.median(durations)
