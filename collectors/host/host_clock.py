"""Collector `host_clock`: times host variants by `perf_counter_ns`. Needs no GPU and no tool."""

import resource
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from time import perf_counter_ns, process_time_ns
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from warpladder.collectors.core.bench import (
    NO_GPU_STATE,
    ONE_PROCESS,
    PARTS,
    BenchCommunicator,
    Failed,
    Operation,
    Pass,
    Reading,
    ReadOnlyInputs,
    Unavailable,
    check_importable,
    next_inputs,
    same,
    writes,
)
from warpladder.collectors.core.left_threads import has_children
from warpladder.collectors.core.verify import ErrorsOnDevice, alterable, overwrite, poison, poison_free_memory
from warpladder.data.names import Phase
from warpladder.workloads import torch_bridge
from warpladder.workloads.api import Array, Buffers, Case, HostVariant, NotInstalled, Params, Variant, Workload, WrongOutput
from warpladder.workloads.declare.functions.arrays import copied, is_finished
from warpladder.workloads.declare.functions.variants import FunctionVariant
from warpladder.workloads.declare.launches import Communicator

#: In messages of NumPy and Numba, without hyphens, when code writes to a read-only array.
_READ_ONLY: Final = "readonly"
_LARGE_BYTES: Final = 33 << 20
#: glibc keeps freed blocks up to the size of the largest that a process has freed, and up to 32 MiB (mallopt(3), M_MMAP_THRESHOLD). It
#: gives larger ones back to the system, so that the same call takes twice as long where no such block was freed before.
_LARGEST_KEPT_BYTES: Final = 31 << 20


class TimedCommunicator:
    """A communicator that times its averages by the host's clock, including the wait for other ranks."""

    def __init__(self, communicator: Communicator) -> None:
        self._communicator = communicator
        self.rank, self.size = communicator.rank, communicator.size
        self.spent_ns = 0

    def average(self, arrays: Sequence[Array]) -> None:
        started = perf_counter_ns()
        self._communicator.average(arrays)
        self.spent_ns += perf_counter_ns() - started

    def broadcast(self, value: Any) -> Any:
        return self._communicator.broadcast(value)


@dataclass
class HostOperation(Operation):
    """An operation on the host.

    Attributes:
        communicator: the communicator that it was given, if ranks share the case and the variant communicates; else None.
        before: called before each execution, outside of the timed window.
        allocates: the last execution returned arrays of its own, in place of writing to those of the bench.
    """

    communicator: TimedCommunicator | None = None
    allocates: bool = False
    before: Callable[[], object] = field(default=lambda: None)


class HostBench:
    """The buffers of a case in host memory."""

    gpus = 0
    on_device: ErrorsOnDevice | None = None
    passes: tuple[Pass, ...] = (Pass("operation", "hot"),)

    def __init__(self, workload: Workload, case: Case, inputs: Mapping[str, np.ndarray]) -> None:
        np.empty(_LARGEST_KEPT_BYTES, np.uint8)  # freed at once, so that every process keeps blocks alike
        _, outputs = workload.buffers(case)
        self._case = case
        self._sets: Sequence[Mapping[str, np.ndarray]] = (inputs,)
        self._alterable = alterable(inputs)
        self._loaded: int | None = 0
        self._read_only = ReadOnlyInputs(inputs)
        self.inputs: Mapping[str, Array] = self._read_only.arrays
        self.communicator: BenchCommunicator = ONE_PROCESS
        self.outputs: Mapping[str, Array] = MappingProxyType(
            {name: np.empty(buffer.shape, buffer.storage) for name, buffer in outputs.items()}
        )
        self._returned: Buffers | None = None  # arrays that the last execution allocated

    def join(self, communicator: BenchCommunicator) -> None:
        self.communicator = communicator

    def prepare(self, variant: Variant, config: Params) -> Operation:
        if isinstance(variant, FunctionVariant) and variant.kind == "host":
            return self._prepare_function(variant, config)
        if not isinstance(variant, HostVariant):
            raise Unavailable("needs an NVIDIA GPU; the collector host_clock runs host variants only")
        check_importable(variant.requires)
        timed = TimedCommunicator(self.communicator) if variant.communicates and self.communicator.size > 1 else None
        more = (timed,) if timed else ()
        operation = HostOperation(lambda: None, communicator=timed)
        inputs = self._inputs_of(variant, operation)

        def run() -> Buffers | None:
            try:
                return variant.run(self._case, inputs, self.outputs, *more)
            except Exception as error:
                self._refuse_writing(error, partial(variant.run, self._case))
                raise

        operation.run = run
        return operation

    def _prepare_function(self, variant: FunctionVariant, config: Params) -> Operation:
        check_importable(variant.requires)
        operation = HostOperation(lambda: None)
        inputs = self._inputs_of(variant, operation)
        try:
            call = variant.bind(self._case, config, inputs, self.outputs)
            operation.before()
            started = perf_counter_ns()
            returned = call.run()
            operation.first_call_ns = perf_counter_ns() - started
            call.outputs(returned)
        except NotInstalled as missing:
            raise Unavailable(str(missing)) from missing
        except WrongOutput:
            raise
        except Exception as error:
            self._refuse_writing(error, lambda *arrays: variant.bind(self._case, config, *arrays).run())
            raise
        operation.run, operation.outputs, operation.refresh = call.run, call.outputs, call.refresh
        operation.parts = tuple((PARTS[name], part) for name, part in call.parts)
        return operation

    def _inputs_of(self, variant: HostVariant | FunctionVariant, operation: HostOperation) -> Mapping[str, Array]:
        """The inputs for a variant: the common inputs, or its own copies, which the operation refreshes before each execution."""
        if not variant.writes_inputs:
            return self.inputs
        copies = {name: array.copy() for name, array in self.inputs.items()}

        def copy_anew() -> None:
            for name, copy in copies.items():
                np.copyto(copy, self.inputs[name])

        operation.before = copy_anew
        operation.note = "writes its inputs, which are copied anew before each execution, outside of the time"
        return MappingProxyType(copies)

    def _refuse_writing(self, error: Exception, run: Callable[..., object]) -> None:
        """Raise Failed if the error comes from a variant that writes its inputs. Runs it on writable copies of inputs and outputs."""
        if not _is_read_only(error):
            return
        copies = {name: array.copy() for name, array in self.inputs.items()}
        with suppress(Exception):
            run(copies, {name: np.empty_like(array) for name, array in self.outputs.items()})
        if names := [name for name, array in self.inputs.items() if not same(array, copies[name])]:
            raise Failed("wrong_result", f"{writes(names)} ({type(error).__name__}: {error})") from error

    def keep(self, sets: Sequence[Mapping[str, np.ndarray]]) -> None:
        self._sets = sets
        self._alterable = alterable(sets[0])

    def use(self, number: int) -> None:
        self._read_only.load(self._sets[number])
        self._loaded = number

    def load(self, inputs: Mapping[str, np.ndarray]) -> None:
        self._read_only.load(inputs)
        self._loaded = None

    def run(self, operation: Operation) -> Buffers:
        assert isinstance(operation, HostOperation)
        self.draw(operation, None)
        operation.before()
        self._returned = operation.outputs(operation.run())
        operation.allocates = self._returned is not None
        return self.last_outputs()

    def last_outputs(self) -> Buffers:
        return self.outputs if self._returned is None else self._returned

    def release(self) -> None:
        returned, self._returned = self._returned, None
        if isinstance(returned, Mapping):
            overwrite(returned, self.inputs)

    def place(self, references: Mapping[str, Array]) -> Mapping[str, Array]:
        return references

    def has_room(self, size_bytes: int) -> bool:
        return True  # they are there anyway

    def poison(self, again: bool) -> None:
        poison(self.outputs, again)
        kept = {name: each for name, each in self.outputs.items() if each.nbytes < _LARGE_BYTES or large_blocks_come_back()}
        poison_free_memory(kept, again, lambda like: np.empty(like.shape, like.dtype))

    def changed(self) -> tuple[str, ...]:
        return self._read_only.changed()

    def draw(self, operation: Operation, seed: int | None) -> None:
        if seed is not None:
            self.use(next_inputs(len(self._sets), self._loaded, operation.last_inputs, Random(seed)))
        operation.last_inputs = self._loaded
        operation.refresh()

    def alter(self, operation: Operation, part: float) -> bool:
        if not self._alterable:
            return False
        self._read_only.alter(self._alterable, part)
        operation.refresh()
        return True

    def sample(self, operation: Operation, how: Pass, seed: int | None) -> Reading:
        assert isinstance(operation, HostOperation)
        self.release()
        timed = operation.communicator
        if timed:
            timed.spent_ns = 0
        operation.before()
        self._touch_outputs(operation)
        self.communicator.wait()
        before, used_ns = resource.getrusage(resource.RUSAGE_SELF), process_time_ns()
        started = perf_counter_ns()
        returned = operation.run()
        duration_ns = perf_counter_ns() - started
        if is_finished(returned):
            self._returned = operation.outputs(returned)
        else:  # it may compute when it is looked at, which is part of its time
            self._returned = _copies(operation.outputs(returned))
            duration_ns = perf_counter_ns() - started
        operation.allocates = self._returned is not None
        used_ns, after = process_time_ns() - used_ns, resource.getrusage(resource.RUSAGE_SELF)
        phases = {Phase.ALLREDUCE: timed.spent_ns} if timed else _parts_ns(operation)
        return Reading(
            duration_ns,
            phases,
            NO_GPU_STATE,
            interrupted=after.ru_nivcsw > before.ru_nivcsw,
            processor_ns=used_ns,
            waited=after.ru_nvcsw > before.ru_nvcsw or has_children(),
            inputs=self._loaded,
        )

    def _touch_outputs(self, operation: HostOperation) -> None:
        """Write to the memory that an execution will write its outputs to, so that the caches hold it alike where a variant takes `out` and where
        it allocates, and is handed the block that was freed last. Caches hold little of large outputs, which are left as they are."""
        small = {name: array for name, array in self.outputs.items() if array.nbytes < _LARGE_BYTES}
        poison({name: np.empty_like(array) for name, array in small.items()} if operation.allocates else small)

    def close(self) -> None:
        self.inputs, self.outputs, self._sets, self._returned = {}, {}, (), None
        torch_bridge.forget_compiled()


def large_blocks_come_back() -> bool:
    """Whether large blocks that were freed are handed out again with what they held. glibc gives those above 32 MiB back to the system,
    whose new blocks are zero, unless its heap has room for them; another allocator may be loaded in its place."""
    np.full(_LARGE_BYTES, 1, np.uint8)
    return bool(np.empty(_LARGE_BYTES, np.uint8).any())


def _copies(outputs: Any) -> Any:
    """Arrays of NumPy's own class in memory of their own; anything else but a mapping as it is, which is refused when it is compared."""
    if not isinstance(outputs, Mapping):
        return outputs
    return {str(name): copied(array) for name, array in outputs.items()}


def _is_read_only(error: Exception) -> bool:
    """Whether a library refused to write to a read-only array, or to make it writable."""
    try:
        text = str(error).replace("-", "").lower()
    except Exception:  # an exception of the user's own class
        return False
    return _READ_ONLY in text or "cannot set writeable flag" in text


def _parts_ns(operation: HostOperation) -> dict[str, int]:
    """Times of the parts of one more execution in ns, by scope."""
    durations_ns: dict[str, int] = {}
    if operation.parts:
        operation.before()
    returned: tuple[Any, ...] = ()
    for scope, part in operation.parts:
        started = perf_counter_ns()
        returned = (part(*returned),)
        durations_ns[scope] = perf_counter_ns() - started
    return durations_ns


def durations_ns(call: Callable[[], object], repetitions: int) -> list[int]:
    """Times of a call in ns by the host's clock. The first call is not counted."""
    call()
    durations = []
    for _ in range(repetitions):
        started = perf_counter_ns()
        call()
        durations.append(perf_counter_ns() - started)
    return durations
