"""What every collector's bench offers the shared core: prepare an operation of a case, run it, and take samples of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Final, Protocol

import numpy as np

from warpladder.workloads.api import Array, Buffer, Buffers, Case, Params, Variant, Workload
from warpladder.workloads.communication import Alone, Communicator

#: Compared at once: as much as fits a processor's cache.
_CHUNK_BYTES: Final = 1 << 18


@dataclass(frozen=True)
class Pass:
    """One way to sample a case: what is timed, and the state of the cache."""

    scope: str
    cache: str


@dataclass(frozen=True)
class Reading:
    """One timed repetition.

    Attributes:
        duration_ns: time of one execution.
        phases_ns: named parts of it, by scope, e.g. `phase:h2d`.
        state: columns `sm_clock_mhz`, `temperature_c`, `power_w` and `throttle_reasons` as read beside it.
        throttled: the clock was held down while it ran.
        pending: the clock stopped while the device was still at work.
        held: the work was all queued before the clock started; False where the operation itself waited for the device.
        ranks: what each rank read, where several did the repetition together; this reading is then the whole's.
    """

    duration_ns: int
    phases_ns: dict[str, int] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    throttled: bool = False
    pending: bool = False
    held: bool = True
    ranks: "tuple[Reading, ...]" = ()


def of_all(ranks: Sequence[Reading]) -> Reading:
    """The reading of what ranks did together, from the barrier on: as long as the slowest of them took."""
    return Reading(
        max(each.duration_ns for each in ranks),
        throttled=any(each.throttled for each in ranks),
        pending=any(each.pending for each in ranks),
        held=all(each.held for each in ranks),
        ranks=tuple(ranks),
    )


class Unavailable(Exception):
    """A cell that cannot run here, though nothing is wrong with it. The message is the reason."""


class Failed(Exception):
    """What a cell's verdict is, found in another process.

    Attributes:
        status, detail: of its row in `results`.
        lasting: that process cannot go on.
    """

    def __init__(self, status: str, detail: str, lasting: bool = False) -> None:
        super().__init__(detail)
        self.status, self.detail, self.lasting = status, detail, lasting


@dataclass(frozen=True)
class Resources:
    """What the kernels of an operation take, the most of any: registers a thread, shared bytes a block, spill bytes a thread."""

    registers: int
    shared_bytes: int
    spill_bytes: int


@dataclass
class Operation:
    """A variant ready to run on a bench's buffers.

    Attributes:
        run: enqueues (or, on the host, does) one operation; gives the outputs when it allocates them itself.
        resources: of its kernels; None where there are none of ours.
        refresh: brings what is derived from the inputs up to date, such as constants; part of the end-to-end scope.
        synchronizes: whether host timing waits for the device.
        from_end_to_end: runs it once with copies of its own, that the scope `end_to_end` then times, and gives the outputs as they
            came back to the host; None where its copies are those of every variant.
        from_batch: runs once the batch of executions that hot samples time, such as a CUDA graph of them, and gives the outputs; None
            where they time the same as the others.
        passes: those of the bench's that mean something to it; None for all.
        note: what a reader of its samples should know; empty where nothing.
    """

    run: Callable[[], Buffers | None]
    resources: Resources | None = None
    refresh: Callable[[], object] = lambda: None
    synchronizes: bool = True
    from_end_to_end: Callable[[], Buffers] | None = None
    from_batch: Callable[[], Buffers] | None = None
    passes: tuple[Pass, ...] | None = None
    note: str = ""

    def takes(self, how: Pass) -> bool:
        """Whether it is sampled so."""
        return self.passes is None or how in self.passes


class BenchCommunicator(Communicator, Protocol):
    """What joins the ranks that share a case. Every rank calls the same methods in the same order."""

    def wait(self) -> None:
        """Return once every rank has called it."""
        ...

    def largest(self, value: int) -> int:
        """The largest of all ranks' numbers: what they must agree on, though each measured its own."""
        ...


class OneProcess(Alone):
    """The communicator of a process alone."""

    def wait(self) -> None:
        """Nothing: nobody else is waited for."""

    def largest(self, value: int) -> int:
        return value


ONE_PROCESS = OneProcess()


class Bench(Protocol):
    """One case's buffers on one device.

    The inputs are lent to variants, which must not change them: `changed` says whether one did.

    Attributes:
        gpus: GPUs that a sample uses, 0 on the host; ranks where several share it.
        passes: scopes and cache states that it can sample.
        inputs, outputs: the buffers that variants read, and those that they write.
        communicator: of the ranks that share the case, which meet there before the clock of a sample starts.
    """

    gpus: int
    passes: tuple[Pass, ...]
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    communicator: BenchCommunicator

    def join(self, communicator: BenchCommunicator) -> None:
        """Share the case with other ranks. Comes before anything is prepared."""
        ...

    def prepare(self, variant: Variant, config: Params) -> Operation:
        """Make a variant ready. Raises Unavailable where this machine lacks what it needs."""
        ...

    def run(self, operation: Operation) -> Buffers:
        """Run once, wait until it is done, and give the outputs."""
        ...

    def poison(self, again: bool) -> None:
        """Fill everything that outputs are read from, as `warpladder.collectors.core.verify.poison` does."""
        ...

    def changed(self) -> tuple[str, ...]:
        """Names of the inputs that are not what they were; they are restored."""
        ...

    def load(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Take other inputs of the same shapes and types."""
        ...

    def place(self, references: Mapping[str, Array]) -> Mapping[str, Array]:
        """References brought to where the outputs are."""
        ...

    def sample(self, operation: Operation, how: Pass) -> Reading:
        """Take one sample."""
        ...

    def close(self) -> None:
        """Give the buffers' memory back."""
        ...


MakeBench = Callable[[Workload, Case, Mapping[str, np.ndarray]], Bench]


def check_importable(modules: tuple[str, ...]) -> None:
    """Raises Unavailable naming the first module that is not installed."""
    for package in (module.split(".")[0] for module in modules):
        if find_spec(package) is None:
            raise Unavailable(f"needs the Python package {package}, which is not installed")


def check_declared(outputs: Any, declared: Mapping[str, Buffer]) -> str:
    """Why what a variant returned is not the outputs that the workload declares; empty where it is."""
    if not isinstance(outputs, Mapping):
        return f"returned {type(outputs).__name__}; return None after writing to the outputs, or a dict of arrays by name"
    for name, buffer in declared.items():
        if name not in outputs:
            return f"output {name} is missing"
        if not (hasattr(outputs[name], "dtype") and hasattr(outputs[name], "shape")):
            return f"output {name} is {type(outputs[name]).__name__}, not an array"
        if str(outputs[name].dtype) != buffer.dtype:
            return f"output {name} has type {outputs[name].dtype}, not {buffer.dtype}"
    return ""


class Lent:
    """Inputs in host memory, lent to variants as read-only arrays, beside what they were.

    Args:
        given: the inputs by name; not changed.
    """

    def __init__(self, given: Mapping[str, np.ndarray]) -> None:
        self._given = given
        # A proxy, as a variant may replace an array as well as write to it.
        self.arrays = MappingProxyType({name: np.copy(array) for name, array in given.items()})
        self._writable(False)

    def load(self, given: Mapping[str, np.ndarray]) -> None:
        """Hold other inputs of the same shapes and types."""
        self._given = given
        self._writable(True)
        for name, array in self.arrays.items():
            np.copyto(array, given[name])
        self._writable(False)

    def changed(self) -> tuple[str, ...]:
        """Names of those that are not what they were; they are restored."""
        names = tuple(name for name, array in self.arrays.items() if not same(array, self._given[name]))
        if names:
            self.load(self._given)
        self._writable(False)
        return names

    def _writable(self, writable: bool) -> None:
        for array in self.arrays.values():
            array.flags.writeable = writable


def writes(names: Sequence[str]) -> str:
    """The verdict on a variant that changes inputs of these names."""
    what = f"input{'s' if len(names) > 1 else ''} {', '.join(names)}"
    return f"changes its {what}, which the other variants read; write to the outputs instead"


def same(array: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays of one shape and type hold the same, bit for bit."""
    first, second = (np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (array, other))
    parts = range(0, first.size, _CHUNK_BYTES)
    return all(np.array_equal(first[at : at + _CHUNK_BYTES], second[at : at + _CHUNK_BYTES]) for at in parts)
