"""Collector `cuda_events`: times GPU variants by CUDA events on the device and by the host's clock."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from time import perf_counter_ns
from types import MappingProxyType
from typing import Any, Final

import cupy
import numpy as np
from cupy.cuda import runtime

from warpladder.collectors.core.bench import (
    ONE_PROCESS,
    BenchCommunicator,
    Operation,
    Pass,
    Reading,
    ReadOnlyInputs,
    Unavailable,
    check_importable,
    next_inputs,
)
from warpladder.collectors.core.nvtx_ranges import executions_text, nvtx_range
from warpladder.collectors.core.verify import ErrorsOnDevice, overwrite, poison, poison_free_memory
from warpladder.collectors.cuda import parameters, peer_memory
from warpladder.collectors.cuda.allreduce import bound_steps, in_one_piece
from warpladder.collectors.cuda.calls import prepare_function, prepare_library
from warpladder.collectors.cuda.compiler import CompiledModule, compile_variant
from warpladder.collectors.cuda.device import batch_size, cold_executions, current_device
from warpladder.collectors.cuda.errors import errors_of
from warpladder.collectors.cuda.gpu_state import is_throttled
from warpladder.collectors.cuda.input_sets import InputSets
from warpladder.collectors.cuda.launch import allocators, copy_to_host, graph_of, load, make_scratch
from warpladder.collectors.cuda.operation import COLD, END_TO_END, HOT, OPERATION, CudaOperation
from warpladder.collectors.cuda.overlap import copies_of, overlap
from warpladder.collectors.cuda.parts import parts_ns
from warpladder.collectors.cuda.pinned import PinnedBuffers
from warpladder.collectors.cuda.transfers import PartPlan, kernel_names, plan_parts
from warpladder.data.names import Phase
from warpladder.workloads import torch_bridge
from warpladder.workloads.api import (
    Array,
    Buffers,
    Case,
    CudaVariant,
    LibraryVariant,
    Overlapped,
    Pageable,
    Params,
    Variant,
    Workload,
    WorkloadError,
    WrongOutput,
    kernels_of,
)
from warpladder.workloads.declare.functions.variants import FunctionVariant
from warpladder.workloads.declare.launches import scalars

#: The references of a set stay on the device if they take at most this share of the free memory.
_REFERENCES_OF_FREE: Final = 1 / 16


class CudaBench:
    """A case's buffers on the current GPU. `checks_stream`: check that a library's work is all on the timed stream."""

    gpus = 1
    checks_stream = True
    passes: tuple[Pass, ...] = (COLD, HOT, OPERATION, END_TO_END)

    def __init__(self, workload: Workload, case: Case, inputs: Mapping[str, np.ndarray]) -> None:
        self.device = current_device()
        self.on_device: ErrorsOnDevice | None = partial(errors_of, self.device.arch)
        self._use_stream()
        self.device.measure_event_overhead()
        _, outputs = workload.buffers(case)
        self._workload = workload
        self._case = case
        self.communicator: BenchCommunicator = ONE_PROCESS
        self.inputs: Mapping[str, Array] = MappingProxyType({name: cupy.asarray(array) for name, array in inputs.items()})
        self._sets = InputSets(self.device, self.inputs, inputs)
        self._host_inputs: ReadOnlyInputs | None = None  # inputs on the host, for programs that take them there
        self.outputs: Mapping[str, Array] = {name: cupy.empty(b.shape, b.storage) for name, b in outputs.items()}
        self._host_outputs = {name: np.empty(b.shape, b.storage) for name, b in outputs.items()}
        self._pinned = PinnedBuffers(inputs, self._host_outputs)
        self._host_poison: bool | None = None  # the argument of the last `poison`, until outputs on the host are filled
        self._last_outputs: Callable[[], Buffers] = lambda: self.outputs
        self._last: CudaOperation | None = None
        self._altered: tuple[CompiledModule, dict[str, Any]] | None = None  # kernels in place of those of the next variant
        self._last_altered: tuple[CompiledModule, dict[str, Any]] | None = None
        self._returned: Any = None  # what the last execution of `_last` returned

    def join(self, communicator: BenchCommunicator) -> None:
        """Share the case. Outputs move to one block of memory, so that one all-reduce can average several."""
        self.communicator = communicator
        self.outputs = in_one_piece(self.outputs)

    def _use_stream(self) -> None:
        """Make the timed stream CuPy's and PyTorch's current one again: a function may have chosen another."""
        self.device.stream.use()
        torch_bridge.use_current_stream_if_on_gpu()

    # -- preparing -------------------------------------------------------------------------------------------------

    def prepare(self, variant: Variant, config: Params) -> Operation:
        self._use_stream()
        if isinstance(variant, CudaVariant):
            return self._prepare_cuda(variant, config)
        if isinstance(variant, FunctionVariant) and variant.on_gpu:
            arrays = self.inputs, self.outputs
            return prepare_function(variant, config, self._case, self.device, *arrays, self.checks_stream)
        if isinstance(variant, LibraryVariant):
            check_importable(variant.requires)
            if not variant.device_only:
                return self._prepare_program(variant, config)
            among = self.communicator if variant.communicates else None
            place = self._workload.name, self._case, self.device
            return prepare_library(variant, config, *place, self.inputs, self.outputs, among, self.checks_stream)
        raise Unavailable("runs on the host")

    def _prepare_program(self, variant: LibraryVariant, config: Params) -> Operation:
        if self._case.resident:
            raise Unavailable("takes all its inputs on the host, and the case has some on the device")
        self._host_inputs = self._host_inputs or ReadOnlyInputs(self._sets.on_host)
        self._load_programs()
        with torch_bridge.own_choice_of_stream():
            run = variant.prepare(self._case, self._host_inputs.arrays, self._host_outputs, **config)
        return CudaOperation(run, passes=(OPERATION, END_TO_END), on_host=True)

    def _prepare_cuda(self, variant: CudaVariant, config: Params) -> Operation:
        if self.device.compute_capability < variant.min_compute_capability:
            least = ".".join(map(str, variant.min_compute_capability))
            raise Unavailable(f"needs compute capability {least}, and {self.device.name} has less")
        if variant.only_architecture not in ("", f"{self.device.arch}a"):
            raise Unavailable(f"is written for {variant.only_architecture}, and {self.device.name} is {self.device.arch}")
        steps = variant.launches(self._case, config)
        launches = kernels_of(steps)
        parts = plan_parts(self._workload, self._case, variant, config)
        module, loaded = self._loaded(variant, kernel_names(steps, parts))
        parameters.check(launches, module)
        declared = variant.scratch(self._case, config)
        scratch = {**make_scratch(declared), **peer_memory.shared(launches, declared, self.communicator)}
        buffers = {**self.inputs, **self.outputs, **scratch}
        streams, allreduces = bound_steps(steps, loaded, buffers, self.communicator, self.device.stream)
        kernels = [module.kernels[launch.kernel] for launch in launches]
        shared = [k.static_shared_bytes + launch.dynamic_shared_bytes for k, launch in zip(kernels, launches, strict=True)]
        resources = {
            "registers": max(k.registers for k in kernels),
            "shared_bytes": max(shared),
            "spill_bytes": max(k.spill_bytes for k in kernels),
        }

        def refresh() -> None:
            for symbol, name in variant.constants.items():
                source = self.inputs[name]
                runtime.memcpyAsync(
                    loaded[symbol], source.data.ptr, source.nbytes, runtime.memcpyDeviceToDevice, self.device.stream.ptr
                )

        refresh()
        enqueue, pinned = streams.enqueue, not isinstance(variant.end_to_end, Pageable)
        operation = CudaOperation(
            enqueue,
            resources,
            refresh,
            enqueue=enqueue,
            pinned=pinned,
            allreduces=allreduces,
            has_constants=bool(variant.constants),
        )
        if operation.waits:
            operation.passes = (OPERATION, END_TO_END)
        if allreduces:
            enqueue()  # NCCL connects the GPUs at its first call, which cannot be captured
            self.device.stream.synchronize()
        if variant.graph:
            if operation.waits:
                raise WorkloadError(f"{variant.name}: an allreduce by MPI waits for the device; give it graph=False")
            operation.run = graph_of(self.device.stream, enqueue)
        if parts:
            self._overlap(operation, variant, parts, loaded, scratch)
        return operation

    def _loaded(self, variant: CudaVariant, kernels: Sequence[str]) -> tuple[CompiledModule, dict[str, Any]]:
        """The kernels of a variant, compiled and loaded, or the altered ones in their place."""
        if self._altered:
            return self._altered
        module = compile_variant(variant, kernels, self.device.arch)
        return module, load(module)

    def prepare_altered(self, variant: CudaVariant, config: Params, module: CompiledModule) -> tuple[Operation, dict[str, Any]]:
        """The operation with other kernels, and the addresses of what their module declares. A module that follows itself stays loaded."""
        if self._last_altered is None or self._last_altered[0] is not module:
            self._last_altered = module, load(module)
        self._altered = self._last_altered
        try:
            return self.prepare(variant, config), self._altered[1]
        finally:
            self._altered = None

    def _overlap(
        self,
        operation: CudaOperation,
        variant: CudaVariant,
        parts: Sequence[PartPlan],
        loaded: Mapping[str, Any],
        scratch: Buffers,
    ) -> None:
        """Give an operation its overlapped copies."""
        assert isinstance(variant.end_to_end, Overlapped)
        gathered = variant.end_to_end.gathered if self.communicator.size > 1 else ()
        copies = copies_of(parts, self._pinned, self.inputs, self.outputs, gathered, self.communicator)
        enqueue = overlap(parts, loaded, copies, scratch, operation.refresh, self.device.stream)
        if gathered:
            self._pinned.load(self._sets.on_host)  # the copies below bring to the device what the host has
            enqueue()  # NCCL connects the GPUs here too
            self.device.stream.synchronize()
        operation.overlapped = graph_of(self.device.stream, enqueue) if variant.graph else enqueue
        operation.from_end_to_end = partial(self._run_overlapped, operation.overlapped, copies.inputs)

    def _run_overlapped(self, enqueue: Callable[[], object], inputs: Buffers) -> Buffers:
        """Poison inputs on the device, and run with overlapped copies. Returns the outputs that were copied to the host."""
        self._pinned.load(self._sets.on_host)
        self._poison_host(self._pinned.outputs)
        poison(self._moved(inputs))
        enqueue()
        self.device.stream.synchronize()
        return self.place(self._pinned.outputs)

    # -- inputs and outputs ------------------------------------------------------------------------------------------

    def keep(self, sets: Sequence[Mapping[str, np.ndarray]]) -> None:
        self._sets.keep(sets)

    def use(self, number: int) -> None:
        self._sets.use(number)

    def load(self, inputs: Mapping[str, np.ndarray]) -> None:
        self._use_stream()
        self._sets.load(inputs)

    # Copies on the host follow the device's inputs when work starts there: a set may have gigabytes.

    def _load_programs(self) -> None:
        if self._host_inputs and self._host_inputs.originals is not self._sets.on_host:
            self._host_inputs.load(self._sets.on_host)

    def draw(self, operation: Operation, seed: int | None) -> None:
        self._use_stream()
        self._draw(operation, None if seed is None else Random(seed))

    def alter(self, operation: Operation, part: float) -> bool:
        return False

    def _draw(self, operation: Operation, chance: Random | None) -> None:
        assert isinstance(operation, CudaOperation)
        if chance is not None:
            self._sets.use(next_inputs(self._sets.count, self._sets.loaded, operation.last_inputs, chance))
        operation.last_inputs = self._sets.loaded
        if operation.on_host:
            self._load_programs()
        operation.refresh()

    def run(self, operation: Operation) -> Buffers:
        assert isinstance(operation, CudaOperation)
        self._use_stream()
        self._start(operation)
        self._draw(operation, None)
        if operation.on_host:
            self._poison_host(self._host_outputs)
        operation.before()
        self._returned = operation.run()
        return self.last_outputs()

    def _start(self, operation: CudaOperation) -> None:
        """Free what the operation before left, and note where this one leaves its outputs."""
        self.release()
        self._last = operation
        self._last_outputs = (lambda: self.place(self._host_outputs)) if operation.on_host else self._outputs_returned

    def _outputs_returned(self) -> Buffers:
        """The outputs of the last execution, on the device."""
        assert self._last
        return self._outputs_of(self._last, self._returned)

    def _outputs_of(self, operation: CudaOperation, returned: Any) -> Buffers:
        """What an execution returned, or the outputs of the bench, which it wrote. What is no dict is refused when it is compared."""
        outputs = operation.outputs(returned)
        return self.outputs if outputs is None else outputs

    def last_outputs(self) -> Buffers:
        self.device.stream.synchronize()
        return self._last_outputs()

    def release(self) -> None:
        if self._returned is not None and self._last and not self._last.on_host:
            with suppress(WrongOutput):
                outputs = self._outputs_returned()
                if isinstance(outputs, Mapping) and outputs is not self.outputs:
                    overwrite(outputs, self.inputs)
        self._returned = None

    def place(self, references: Mapping[str, Array]) -> Mapping[str, Array]:
        return {name: cupy.asarray(array) for name, array in references.items()}

    def has_room(self, size_bytes: int) -> bool:
        return bool(size_bytes <= _REFERENCES_OF_FREE * cupy.cuda.Device().mem_info[0])

    def poison(self, again: bool) -> None:
        poison(self.outputs, again)
        self._host_poison = again
        for allocate in allocators():
            poison_free_memory(self.outputs, again, allocate)

    def _poison_host(self, outputs: Buffers) -> None:
        """Fill outputs on the host as the last `poison` asks. It leaves this to the work that ends there."""
        if self._host_poison is not None:
            poison(outputs, self._host_poison)
            self._host_poison = None

    def changed(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._sets.changed(), *(self._host_inputs.changed() if self._host_inputs else ()))))

    # -- sampling --------------------------------------------------------------------------------------------------

    def sample(self, operation: Operation, how: Pass, seed: int | None) -> Reading:
        assert isinstance(operation, CudaOperation)
        self._use_stream()
        self._start(operation)
        self.communicator.wait()
        match how:
            case Pass("device", _):
                chance = None if seed is None else Random(seed)
                # Each cold execution starts after an L2 flush. Their number depends on the events' resolution.
                cold = partial(self._mean, operation, self.device.flush_l2, chance)
                reading = cold() if how == COLD else self._hot(operation, chance)
            case _:
                reading = self._operation(operation) if how == OPERATION else self._end_to_end(operation)
        return replace(reading, inputs=self._sets.loaded)

    def _mean(self, operation: CudaOperation, between: Callable[[], object], chance: Random | None) -> Reading:
        """Take the mean of executions that are timed one by one, with other inputs and the work of `between` before each."""
        others = None if operation.has_constants else chance
        renew: Iterator[Random | None] = itertools.chain([None], itertools.repeat(others))
        if operation.has_constants and chance:
            operation.run()  # the copy into constants emptied their caches, which a flush of the L2 does not

        def prepare() -> None:
            if (chance := next(renew)) is not None:
                self._draw(operation, chance)
            operation.before()
            between()

        def execute() -> None:
            self._returned = None  # frees the memory, which the next call takes again
            self._returned = operation.run()

        executions = cold_executions(self._about_ns(operation)) if chance else 1
        duration_ns, held = self.device.each_ns(execute, executions, prepare, self.communicator.wait)
        return self._reading(round(duration_ns), held=held)

    def _about_ns(self, operation: CudaOperation) -> int:
        """Rough time of one execution. It is the same on all ranks, so that all ranks execute equally often."""

        def once_ns() -> int:
            operation.before()
            return self.device.time_queued(operation.run, meet=self.communicator.wait)[0]

        if not operation.once_ns:
            about_ns = min(once_ns() for _ in range(3))
            operation.once_ns = self.communicator.largest(max(1, about_ns))
        return operation.once_ns

    def _hot(self, operation: CudaOperation, chance: Random | None) -> Reading:
        if operation.own_inputs:  # to be restored before each execution, so that no batch can be timed
            return self._mean(operation, lambda: None, chance)
        if not operation.batch:
            self._make_batch(operation)
        # One execution before the clock starts: else the first of a batch finds the caches as another variant left them.
        duration_ns, held = self.device.batch_ns(operation.replay, operation.batch, operation.run, self.communicator.wait)
        self._last_outputs = lambda: self._outputs_of(operation, operation.of_batch())
        reading = self._reading(max(round(duration_ns), 1), held=held)
        return replace(reading, state={**reading.state, "held_clock_mhz": self.device.held_clock_mhz})

    def _make_batch(self, operation: CudaOperation) -> None:
        """Make a batch long enough to time: a CUDA graph, or plain launches if the operation cannot be captured."""
        operation.batch = batch_size(self._about_ns(operation))
        stream, returned = self.device.stream, [None]
        operation.of_batch = lambda: returned[-1]
        execute = _keeping(returned, operation.enqueue or operation.run)
        plain = _keeping(returned, operation.run)
        if operation.batch == 1:
            operation.replay = plain
            return
        why = f" ({operation.no_graph})" if operation.no_graph else ""
        try:
            if not why:
                operation.replay = graph_of(stream, execute, operation.batch)
        except Exception as error:  # of CUDA, or of a library that refuses before CUDA does
            why = f" ({' '.join(str(error).split())[:200]})"
        if self.communicator.largest(bool(why)):  # all ranks must use a graph, or none
            operation.replay = lambda: [plain() for _ in range(operation.batch)]
            operation.remark(f"hot: {operation.batch} queued launches, as no CUDA graph could be captured{why}")
        else:
            operation.from_batch = partial(self._run_batch, operation)
            operation.from_changing_batch = partial(self._run_changing_batch, operation)
        operation.replay()
        stream.synchronize()

    def _run_batch(self, operation: CudaOperation) -> Buffers:
        self._draw(operation, None)
        operation.replay()
        self.device.stream.synchronize()
        return self._outputs_of(operation, operation.of_batch())

    def _run_changing_batch(self, operation: CudaOperation) -> Buffers:
        """Run a graph of two executions. The first reads another set than the one that is loaded, and the second reads that one."""
        loaded, returned = self._sets.loaded, [None]
        assert loaded is not None
        execute = _keeping(returned, operation.enqueue or operation.run)

        def enqueue() -> None:
            execute()
            self._sets.enqueue(loaded)
            operation.refresh()
            execute()

        replay = graph_of(self.device.stream, enqueue)
        self._sets.use((loaded + 1) % self._sets.count)
        operation.refresh()
        replay()
        self._sets.use(loaded)
        self.device.stream.synchronize()
        return self._outputs_of(operation, returned[-1])

    def _operation(self, operation: CudaOperation) -> Reading:
        stream = self.device.stream
        operation.before()
        self.device.settle()
        started = perf_counter_ns()
        returned = operation.run()
        if operation.synchronizes:
            stream.synchronize()
        duration_ns = perf_counter_ns() - started
        pending = not stream.done
        stream.synchronize()
        self._returned = returned
        phases = parts_ns(operation, self.device, self.communicator)
        return self._reading(duration_ns, phases=phases, pending=pending)

    def _end_to_end(self, operation: CudaOperation) -> Reading:
        if operation.on_host:
            return self._operation(operation)
        if operation.overlapped:
            self._pinned.load(self._sets.on_host)
            return self._end_to_end_overlapped(operation.overlapped)
        if operation.pinned:
            self._pinned.load(self._sets.on_host)
            host = self._pinned.arrays
        else:
            # In C order: CuPy would copy an input in another order first, while the clock runs.
            inputs = {name: np.asarray(array, order="C") for name, array in self._sets.on_host.items()}
            host = {**inputs, **self._host_outputs}
        self._last_outputs = lambda: self.place({name: host[name] for name in self._host_outputs})
        moved = self._moved(operation.own_inputs or self.inputs)
        sizes = [array.nbytes for array in (*moved.values(), *self.outputs.values())]
        operation.before()  # its own copies of resident inputs
        self.device.settle()
        allocate_ns, free_ns = self.device.time_allocation(sizes)
        stream, marks = self.device.stream, [cupy.cuda.Event() for _ in range(4)]
        self.communicator.wait()  # the time for allocating differs between ranks
        started = perf_counter_ns()
        marks[0].record(stream)
        for name, array in moved.items():
            array.set(host[name], stream)
        operation.refresh()
        marks[1].record(stream)
        self._returned = operation.run()
        outputs = self._outputs_of(operation, self._returned)
        marks[2].record(stream)
        for name in self._host_outputs:
            copy_to_host(outputs[name], host[name], stream)
        marks[3].record(stream)
        stream.synchronize()
        duration_ns = perf_counter_ns() - started
        h2d, compute, d2h = (round(cupy.cuda.get_elapsed_time(a, b) * 1e6) for a, b in itertools.pairwise(marks))
        copied = {Phase.H2D: h2d, Phase.COMPUTE: compute, Phase.D2H: d2h}
        return self._reading(duration_ns, phases={Phase.ALLOCATE: allocate_ns, **copied, Phase.FREE: free_ns})

    def _moved(self, inputs: Buffers) -> Buffers:
        """The inputs that the scope `end_to_end` copies to the device."""
        return {name: array for name, array in inputs.items() if name not in self._case.resident}

    def _end_to_end_overlapped(self, enqueue: Callable[[], object]) -> Reading:
        """Time one execution with overlapped copies. It has no phases, because copies and kernels overlap."""
        self._last_outputs = lambda: self.place(self._pinned.outputs)
        self.device.settle()
        started = perf_counter_ns()
        enqueue()
        self.device.stream.synchronize()
        return self._reading(perf_counter_ns() - started)

    def close(self) -> None:
        self.inputs, self.outputs, self._pinned, self._host_inputs = {}, {}, PinnedBuffers({}, {}), None
        self._returned, self._last, self._last_outputs = None, None, dict
        self._sets.close()
        cupy.get_default_pinned_memory_pool().free_all_blocks()
        cupy.get_default_memory_pool().free_all_blocks()
        torch_bridge.forget_compiled()
        torch_bridge.free_memory()

    def _reading(
        self, duration_ns: int, *, phases: dict[str, int] | None = None, held: bool = True, pending: bool = False
    ) -> Reading:
        state = self.device.state.read()
        return Reading(duration_ns, phases or {}, state, throttled=is_throttled(state), pending=pending, held=held)


class SingleLaunchBench(CudaBench):
    """Runs each operation once between cudaProfilerStart and cudaProfilerStop, for a tool around it that replays launches.

    Of launches of one kind, only the first is between the two; see `Launch.kind`. Samples are meaningless: the tool replays each kernel, and
    flushes the caches itself.
    """

    passes: tuple[Pass, ...] = (COLD,)
    checks_stream = False  # nothing is timed, and the tool may serialise streams

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._looked_at: list[Operation] = []
        self._repeating: list[Operation] = []  # those with several launches of a kind
        self.begun: set[Any] | None = None  # the launches that were profiled; None while none is to be

    def _prepare_cuda(self, variant: CudaVariant, config: Params) -> Operation:
        operation = super()._prepare_cuda(variant, config)
        launches = kernels_of(variant.launches(self._case, config))
        if len({each.kind for each in launches}) < len(launches):
            self._repeating.append(operation)
        return operation

    def _loaded(self, variant: CudaVariant, kernels: Sequence[str]) -> tuple[CompiledModule, dict[str, Any]]:
        module, loaded = super()._loaded(variant, kernels)
        return module, loaded | {name: _ProfiledKernel(self, name, loaded[name]) for name in module.kernels}

    def sample(self, operation: Operation, how: Pass, seed: int | None) -> Reading:
        started = perf_counter_ns()
        if not any(operation is each for each in self._looked_at):
            self._looked_at.append(operation)
            self.device.stream.synchronize()
            with nvtx_range(executions_text(1)):
                self._look_at(operation)
        return Reading(perf_counter_ns() - started, state=self.device.state.read())

    def _look_at(self, operation: Operation) -> None:
        if isinstance(operation, CudaOperation) and operation.enqueue and any(operation is each for each in self._repeating):
            self.begun = set()
            operation.enqueue()
            self.begun = None
            return
        with self.device.profiled():
            operation.run()


@dataclass(frozen=True)
class _ProfiledKernel:
    """A loaded kernel whose first launch of each kind a profiler captures, while the bench asks for it."""

    bench: SingleLaunchBench
    name: str
    function: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __call__(self, grid: Any, block: Any, arguments: Any, *, shared_mem: int, stream: Any) -> None:
        kind = (self.name, grid, block, shared_mem, scalars(arguments))
        is_first = self.bench.begun is not None and kind not in self.bench.begun
        with self.bench.device.profiled() if is_first else nullcontext():
            self.function(grid, block, arguments, shared_mem=shared_mem, stream=stream)
        if self.bench.begun is not None:
            self.bench.begun.add(kind)


def _keeping(returned: list[Any], execute: Callable[[], Any]) -> Callable[[], None]:
    """A function that executes, and keeps what was returned last as the only element of a list."""

    def keep() -> None:
        returned.clear()  # frees the memory, which the next call takes again
        returned.append(execute())

    return keep
