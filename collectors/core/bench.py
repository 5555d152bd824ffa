"""The interface of a bench. A bench prepares the operations of one case, runs them, and takes samples of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from importlib.util import find_spec
from random import Random
from types import MappingProxyType
from typing import Any, Final, Protocol

import numpy as np

from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.verify import ErrorsOnDevice, multiply
from warpladder.data.names import Phase
from warpladder.workloads.api import Array, Buffer, Buffers, Case, Params, Variant, Workload, WorkloadError, WrongOutput
from warpladder.workloads.declare.functions.extensions import CallFailed
from warpladder.workloads.declare.launches import Alone, Communicator
from warpladder.workloads.declare.locate import text_of, where

#: Bytes compared at once; they fit a processor's cache.
_CHUNK_BYTES: Final = 1 << 18


#: Columns of `samples` that only GPUs have.
NO_GPU_STATE: Final[Mapping[str, Any]] = dict.fromkeys(
    ("sm_clock_mhz", "held_clock_mhz", "temperature_c", "power_w", "throttle_reasons")
)


#: Part of a function's call, by the name that `warpladder.workloads.declare.functions` gives it -> its scope.
PARTS: Final[Mapping[str, str]] = {"forward": Phase.FORWARD, "backward": Phase.BACKWARD}


@dataclass(frozen=True)
class Pass:
    """One way to sample a case: the scope that is timed, and the state of the cache (`cold` or `hot`)."""

    scope: str
    cache: str


@dataclass(frozen=True)
class Energy:
    """The reading of a counter of energy while a loop of executions kept the device at work.

    Attributes:
        energy_mj: energy of the whole device between two readings of the counter, in mJ.
        duration_ns: time between the readings.
        execution_ns: time of one execution, the mean between the readings.
        idle_w: power of the device without work, in W.
        starved: the device ran out of work in the loop, because the host queued it late.
        beside: other processes that used the device, with their numbers.
        held_clock_mhz: mean clock of the multiprocessors between the readings; None if it is not known.
    """

    energy_mj: int
    duration_ns: int
    execution_ns: float
    idle_w: float
    starved: bool = False
    beside: tuple[str, ...] = ()
    held_clock_mhz: float | None = None

    @property
    def columns(self) -> dict[str, float]:
        """Columns of table `energy`."""
        names = ("energy_mj", "duration_ns", "execution_ns", "idle_w")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Reading:
    """One timed repetition.

    Attributes:
        duration_ns: time of one execution, in ns.
        phases_ns: times of its named parts in ns, by scope, e.g. `phase:h2d`.
        state: the columns of `NO_GPU_STATE`, read next to the sample.
        throttled: the device reduced its clock while the repetition ran.
        interrupted: another program took the processor while the repetition ran.
        processor_ns: the processor time of one execution; None if it is not known.
        waited: a thread of it gave its processor up, to wait for another thread, a device or a file; or child processes may work for it.
        pending: the clock stopped while the device was still at work.
        held: all work was queued before the clock started; False if the operation itself waited for the device.
        inputs: number of the input set that the last execution used; None if its outputs cannot be compared.
        ranks: each rank's reading, if several ranks did the repetition together; this reading then covers all of them.
    """

    duration_ns: int
    phases_ns: dict[str, int] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    _: KW_ONLY
    throttled: bool = False
    interrupted: bool = False
    processor_ns: int | None = None
    waited: bool = False
    pending: bool = False
    held: bool = True
    inputs: int | None = None
    ranks: "tuple[Reading, ...]" = ()
    energy: Energy | None = None

    @property
    def own_ns(self) -> int:
        """The time without that of other programs, as far as that is known."""
        return min(self.duration_ns, self.processor_ns) if self.interrupted and self.processor_ns else self.duration_ns

    def without_others(self) -> "Reading":
        """The reading without the time in which other programs had its processor, if it never waited by itself."""
        return self if self.waited else replace(self, duration_ns=self.own_ns)


def of_all(ranks: Sequence[Reading]) -> Reading:
    """Combine the readings of all ranks, which start at one barrier. Its duration is the duration of the slowest rank."""
    return Reading(
        max(each.duration_ns for each in ranks),
        throttled=any(each.throttled for each in ranks),
        interrupted=any(each.interrupted for each in ranks),
        pending=any(each.pending for each in ranks),
        held=all(each.held for each in ranks),
        inputs=ranks[0].inputs,
        ranks=tuple(ranks),
    )


@dataclass(frozen=True)
class FirstUse:
    """Times of the first use of a variant in one fresh process.

    Attributes:
        number: which of the processes, from 0.
        cache: `cold` if no compiled code was cached on disk, else `hot`.
        phases_ns: times in ns of its steps, by scope.
    """

    number: int
    cache: str
    phases_ns: Mapping[str, int]


class Unavailable(Exception):
    """A cell cannot run on this machine, although nothing is wrong with it. The message is the reason."""


class Failed(Exception):
    """A cell failed in another process. The exception carries its status. `lasting`: the process that failed cannot go
    on."""

    def __init__(
        self, status: str, detail: str, lasting: bool = False, errors: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.lasting, self.errors = status, detail, lasting, errors


class Ended(BaseException):
    """Raised in a thread that measures, to end it. No handler of a variant's exceptions catches it."""


@dataclass
class Operation:
    """A variant ready to run on a bench's buffers.

    Attributes:
        run: enqueues one operation (on the host: executes it); returns the outputs if it allocates them itself.
        resources: columns of `variants`, the maximum over its kernels: `registers` and `spill_bytes` of a thread, `shared_bytes` of a block;
            None if it has no kernels of this project.
        refresh: recomputes data derived from the inputs, such as constants; part of the scope `end_to_end`.
        synchronizes: whether host timing waits for the device.
        from_end_to_end: runs the operation once with its own copies, which the scope `end_to_end` then times. Returns the
            outputs in host memory. None if it uses the bench's default copies.
        from_batch: runs once the batch of executions that hot samples time, such as a CUDA graph, and returns the outputs.
            None if hot samples time the same calls as cold ones.
        from_changing_batch: runs a CUDA graph of two executions whose inputs change in between, and returns the outputs of the second, for
            the set that was loaded before. None if hot samples time no graph.
        outputs: turns what `run` returned into the outputs by name, outside of the time; None if it wrote the bench's outputs.
        first_call_ns: host time of the first call, until the device was done; 0 if it was not timed.
        parts: named parts of an operation by scope, in order. Each takes what the one before it returned.
        passes: passes of the bench that apply to the operation; None for all.
        first_uses: times its first use in fresh processes; None if that is not asked.
        last_inputs: number of the input set of its last execution; None before the first.
    """

    run: Callable[[], Any]
    resources: Mapping[str, int] | None = None
    refresh: Callable[[], object] = lambda: None
    synchronizes: bool = True
    from_end_to_end: Callable[[], Buffers] | None = None
    from_batch: Callable[[], Buffers] | None = None
    from_changing_batch: Callable[[], Buffers] | None = None
    outputs: Callable[[Any], Buffers | None] = lambda returned: returned
    first_call_ns: int = 0
    parts: tuple[tuple[str, Callable[..., Any]], ...] = ()
    passes: tuple[Pass, ...] | None = None
    note: str = ""
    first_uses: Callable[[], Iterable[FirstUse]] | None = None
    last_inputs: int | None = None

    def remark(self, text: str) -> None:
        """Add a remark to the note."""
        self.note = f"{self.note}; {text}" if self.note else text

    def takes(self, how: Pass) -> bool:
        """Whether the operation is sampled in this pass."""
        return self.passes is None or how in self.passes


class BenchCommunicator(Communicator, Protocol):
    """The communicator of the ranks that share a case. All ranks call the same methods in the same order."""

    def wait(self) -> None:
        """Return once every rank has called it."""
        ...

    def largest(self, value: int) -> int:
        """Return the maximum over all ranks, so that all ranks continue with the same number."""
        ...

    def of_all(self, value: Any) -> list[Any]:
        """Return the values that all ranks have passed, by rank."""
        ...


class OneProcess(Alone):
    """The communicator of a single process."""

    def wait(self) -> None:
        """Return at once: there is no other rank."""

    def largest(self, value: int) -> int:
        return value

    def of_all(self, value: Any) -> list[Any]:
        return [value]


ONE_PROCESS = OneProcess()


class Bench(Protocol):
    """The buffers of one case on one device.

    Variants read the inputs from the same buffers at each execution. The bench keeps several input sets, and fills the buffers from one
    of them. Variants must not change the inputs. `changed` names the inputs that one has changed.

    Attributes:
        gpus: number of GPUs that a sample uses, 0 on the host; the number of ranks if several share the case.
        inputs, outputs: arrays by name, with the shapes and types that the workload declares for the case.
        communicator: connects the ranks that share the case; they pass a barrier before the clock of a sample starts.
        on_device: finds the errors of outputs that are on a device; None if outputs are in host memory.
    """

    gpus: int
    passes: tuple[Pass, ...]
    on_device: ErrorsOnDevice | None
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    communicator: BenchCommunicator

    def join(self, communicator: BenchCommunicator) -> None:
        """Share the case with other ranks. Must be called before `prepare`."""
        ...

    def keep(self, sets: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Keep these input sets. The inputs that the bench was made with are the first of them."""
        ...

    def use(self, number: int) -> None:
        """Fill the input buffers from one of the sets."""
        ...

    def load(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Fill the input buffers from inputs that do not belong to the sets."""
        ...

    def prepare(self, variant: Variant, config: Params) -> Operation:
        """Make a variant ready to run. Raises Unavailable if this machine lacks something that it needs."""
        ...

    def run(self, operation: Operation) -> Buffers:
        """Run the operation once, wait for it, and return the outputs by name."""
        ...

    def poison(self, again: bool) -> None:
        """Fill all output buffers, as `warpladder.collectors.core.verify.poison` does, and free memory that outputs may get."""
        ...

    def changed(self) -> tuple[str, ...]:
        """Return the names of the inputs that have changed, and restore them."""
        ...

    def place(self, references: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the references in the memory that the outputs are in (host or device)."""
        ...

    def has_room(self, size_bytes: int) -> bool:
        """Whether so many bytes of references may stay in that memory, beside what variants need."""
        ...

    def draw(self, operation: Operation, seed: int | None) -> None:
        """Fill the input buffers for the operation's next execution, and what it derives from them.

        Args:
            seed: chooses one of the sets; see `next_inputs`. None to leave in the buffers what was loaded.
        """
        ...

    def alter(self, operation: Operation, part: float) -> bool:
        """Give the inputs other last digits, after `draw`; see `verify.multiply`. Returns whether it did: a bench that has them on a
        device does not."""
        ...

    def sample(self, operation: Operation, how: Pass, seed: int | None) -> Reading:
        """Take one sample, after `draw`.

        Args:
            seed: chooses the input sets of further executions. None for a single execution.
        """
        ...

    def last_outputs(self) -> Buffers:
        """Return the outputs that the last sample, or `run`, left, by name."""
        ...

    def release(self) -> None:
        """Overwrite the arrays that the last execution allocated for its outputs, and free them."""
        ...

    def close(self) -> None:
        """Free the buffers."""
        ...


def next_inputs(count: int, loaded: int | None, last: int | None, chance: Random) -> int:
    """Choose the input set of the next execution at random.

    It is neither the set in the buffers, whose right outputs the previous execution left, nor the set of the operation's own
    last execution, as far as there are other sets.

    Args:
        count: number of sets.
        loaded: number of the set in the buffers; None for other inputs.
        last: number of the set of the operation's last execution.
    """
    every = range(count)
    choices = (
        [number for number in every if number not in (loaded, last)] or [number for number in every if number != last] or every
    )
    return chance.choice(choices)


MakeBench = Callable[[Workload, Case, Mapping[str, np.ndarray]], Bench]


def check_importable(modules: tuple[str, ...]) -> None:
    """Raise Unavailable if a module is not installed; the message names the first one."""
    for package in (module.split(".")[0] for module in modules):
        if find_spec(package) is None:
            raise Unavailable(f"needs the Python package {package}, which is not installed")


def check_declared(outputs: Any, declared: Mapping[str, Buffer]) -> str:
    """Return why the value that a variant returned does not match the declared outputs; empty if it does."""
    if not isinstance(outputs, Mapping):
        return f"returned {type(outputs).__name__}; return None after writing to the outputs, or a dict of arrays by name"
    for name, buffer in declared.items():
        if name not in outputs:
            return f"output {name} is missing"
        if not (hasattr(outputs[name], "dtype") and hasattr(outputs[name], "shape")):
            return f"output {name} is {type(outputs[name]).__name__}, not an array"
        if str(outputs[name].dtype) != buffer.storage:
            return f"output {name} has type {outputs[name].dtype}, not {buffer.dtype}"
    return ""


class ReadOnlyInputs:
    """Inputs in host memory. Variants get read-only copies; the originals show whether a variant changed one.
    `originals`: the inputs that variants have copies of."""

    def __init__(self, inputs: Mapping[str, np.ndarray]) -> None:
        self.originals = inputs
        # A proxy: otherwise a variant could replace an array in the mapping.
        self.arrays = MappingProxyType({name: np.copy(array) for name, array in inputs.items()})
        self._writable(False)

    def load(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Replace the inputs by others of the same shapes and types."""
        self.originals = inputs
        self._writable(True)
        for name, array in self.arrays.items():
            np.copyto(array, inputs[name])
        self._writable(False)

    def alter(self, names: Sequence[str], part: float) -> None:
        """Make the real numbers of these inputs smaller by a part; see `verify.multiply`. `changed` then finds them changed."""
        self._writable(True)
        for name in names:
            multiply(self.arrays[name], part)
        self._writable(False)

    def changed(self) -> tuple[str, ...]:
        """Return the names of the inputs that have changed, and restore them."""
        names = tuple(name for name, array in self.arrays.items() if not same(array, self.originals[name]))
        if names:
            self.load(self.originals)
        self._writable(False)
        return names

    def _writable(self, writable: bool) -> None:
        for array in self.arrays.values():
            array.flags.writeable = writable


def writes(names: Sequence[str]) -> str:
    """Return the failure of a variant that changes these inputs."""
    what = f"input{'s' if len(names) > 1 else ''} {', '.join(names)}"
    return f"changes its {what}, which the other variants read; write to the outputs instead"


def same(array: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays of one shape and type are equal bit by bit."""
    first, second = (np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (array, other))
    parts = range(0, first.size, _CHUNK_BYTES)
    return all(np.array_equal(first[at : at + _CHUNK_BYTES], second[at : at + _CHUNK_BYTES]) for at in parts)


# -- statuses of exceptions ---------------------------------------------------------------------------------------------------


class CellCrashed(Exception):
    """A cell made the process unusable, for example by a sticky CUDA error."""

    def __init__(self, cell: Cell, status: str, detail: str) -> None:
        super().__init__(detail)
        self.cell, self.status, self.detail = cell, status, detail


def classify(error: BaseException) -> tuple[str, str]:
    """Return status and detail of the result row for an exception that a variant raised."""
    if isinstance(error, Failed):
        return error.status, error.detail
    if isinstance(error, WrongOutput):
        return "wrong_result", str(error)
    if isinstance(error, WorkloadError):
        return "launch_error", str(error)
    name, text = type(error).__name__, text_of(error)
    detail = ": ".join(filter(None, [where(error), name, text]))
    if isinstance(error, MemoryError) or "OutOfMemory" in name or "out of memory" in text.lower():
        return "out_of_memory", detail
    return "launch_error", detail


def is_sticky(error: BaseException) -> bool:
    """Whether the error leaves the process's CUDA context unusable, so that every later call fails too."""
    if isinstance(error, Failed | CallFailed):
        return error.lasting
    of_device = ("CUDARuntimeError", "CUDADriverError", "AcceleratorError", "NcclError")
    return type(error).__name__ in of_device and "out of memory" not in text_of(error)
