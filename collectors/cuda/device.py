"""The current GPU: its stream, timing events, the flush of its L2, and fingerprints of arrays."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Final

import cupy
import numpy as np
from cupy.cuda import runtime

from warpladder.collectors.core.nvtx_ranges import executions_text, nvtx_range
from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.collectors.cuda.gpu_state import GpuState
from warpladder.collectors.cuda.held_clock import mean_clock_mhz
from warpladder.collectors.cuda.launch import graph_of, load
from warpladder.collectors.cuda.persisting import PersistingLines
from warpladder.workloads.api import Array, CudaVariant

#: Repetitions of measurements of the device itself, and kernels per measurement where one is too short to time.
REPETITIONS: Final = 15
EMPTY_KERNELS: Final = 500
#: Times in ns that the kernels of known length wait, on one multiprocessor and on all.
_KNOWN_NS: Final = (0, 500, 1000, 2000, 4000, 8000)
_KNOWN_KERNELS: Final = 50
#: A cold sample averages executions up to this time in ns, because the events' resolution is too coarse for one of them.
_COLD_NS: Final = 40_000
_COLD_MOST: Final = 10
_BATCH_NS: Final = 200_000
_BATCH_MOST: Final = 64
_HOLD_LIMIT_NS: Final = 20_000_000
_KERNELS: Final = Path(__file__).parent / "kernels"


def cold_executions(about_ns: float) -> int:
    """Executions of a cold sample, where one takes about so long."""
    return int(max(1, min(_COLD_MOST, _COLD_NS // about_ns)))


def batch_size(about_ns: float) -> int:
    """Executions of a hot sample, where one takes about so long."""
    return int(max(1, min(_BATCH_MOST, _BATCH_NS // about_ns)))


@dataclass(frozen=True)
class EmptyKernels:
    """Times in ns of an empty kernel: one between two events, one of many queued, and one of many in a CUDA graph."""

    one_ns: float
    queued_ns: float
    graph_node_ns: float


class CudaDevice:
    """The current GPU: its stream, its timing events, and the kernels that flush its L2 and hold its stream."""

    def __init__(self) -> None:
        index = cupy.cuda.Device().id
        properties = runtime.getDeviceProperties(index)
        self.index = index
        self.compute_capability = (properties["major"], properties["minor"])
        self.arch = f"sm_{properties['major']}{properties['minor']}"
        self.l2_bytes = int(properties["l2CacheSize"])
        self.sm_count = int(properties["multiProcessorCount"])
        self._persisting = PersistingLines(runtime, int(properties.get("persistingL2CacheMaxSize", 0)))
        self.memory_bytes = int(properties["totalGlobalMem"])
        self.name = properties["name"].decode()
        self.state = GpuState(runtime.deviceGetPCIBusId(index))
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.stream.use()
        self._aside = cupy.cuda.Stream(non_blocking=True)
        self.start, self.stop = cupy.cuda.Event(), cupy.cuda.Event()
        timing = CudaVariant("timing", "timing", "ceiling", source=_KERNELS / "timing.cu")
        self._timing = load(
            compile_variant(timing, ("write_lines", "read_lines", "hold_stream", "empty", "read_clocks", "wait_ns"), self.arch)
        )
        fingerprint = CudaVariant("fingerprint", "fingerprint", "ceiling", source=_KERNELS / "fingerprint.cu")
        self._fingerprint = load(compile_variant(fingerprint, ("fingerprint",), self.arch))["fingerprint"]
        # Twice the size of the L2, so that no line of the inputs stays under any replacement policy.
        self._dirty = cupy.zeros(2 * max(self.l2_bytes, 1 << 22), cupy.uint8)
        self._clean = cupy.zeros_like(self._dirty)
        self._sum = cupy.zeros(1, cupy.uint64)
        self._clocks = cupy.zeros((2, self.sm_count, 2), cupy.uint64)
        pinned = cupy.cuda.alloc_pinned_memory(8)
        self._flags = np.frombuffer(pinned, np.uint32, 2)
        self._flags_pointer = np.uintp(pinned.ptr)
        self.empty_kernels = self._measure_empty_kernels()
        self.measure_event_overhead()

    def facts(self) -> dict[str, Any]:
        """Return the columns of table `run` about the GPU."""
        version = runtime.runtimeGetVersion()
        return {
            "device_name": self.name,
            "device_count": 1,
            "compute_capability": ".".join(map(str, self.compute_capability)),
            "sm_count": self.sm_count,
            "l2_bytes": self.l2_bytes,
            "memory_bytes": self.memory_bytes,
            "driver_version": self.state.driver_version(),
            "cuda_version": f"{version // 1000}.{version % 1000 // 10}",
        }

    def median_ns(self, enqueue: Callable[[], object]) -> float:
        """Median device time in ns of the enqueued work, including the events' overhead. The first call is not counted."""
        enqueue()
        return statistics.median(self.time_queued(enqueue)[0] for _ in range(REPETITIONS))

    def _measure_empty_kernels(self) -> "EmptyKernels":
        def launch() -> None:
            self._timing["empty"]((1,), (32,), ())

        def many() -> None:
            for _ in range(EMPTY_KERNELS):
                launch()

        return EmptyKernels(
            self.median_ns(launch), self.median_ns(many) / EMPTY_KERNELS, self._in_graph_ns(launch, EMPTY_KERNELS)
        )

    def measure_event_overhead(self) -> None:
        """Measure what two events add to a kernel between them: the median over kernels of known length, and the largest distance of a
        kernel from it. Benches do so for each case, because on an H200 it moved by up to 0.6 us between two of them."""
        added_ns = [*self._added_by_events()]
        self.event_overhead_ns = statistics.median(added_ns)
        self.event_uncertainty_ns = max(abs(each - self.event_overhead_ns) for each in added_ns)

    def _added_by_events(self) -> Iterator[float]:
        """The time in ns between two events around each kernel of known length, less its length, which is its time as a node of a
        CUDA graph."""
        for blocks in (1, self.sm_count):
            for ns in _KNOWN_NS:
                launch = partial(self._timing["wait_ns"], (blocks,), (32,), (np.uint64(ns),))
                yield self.median_ns(launch) - self._in_graph_ns(launch, _KNOWN_KERNELS)

    def _in_graph_ns(self, enqueue: Callable[[], object], times: int) -> float:
        """Median device time in ns of the enqueued work, as one of many nodes of a CUDA graph."""
        replay = graph_of(self.stream, enqueue, times)
        return self.median_ns(replay) / times

    def without_events(self, duration_ns: float) -> float:
        """Subtract the events' overhead from a time between two events, in ns."""
        return max(duration_ns - self.event_overhead_ns, 1.0)

    def time_allocation(self, sizes: Sequence[int]) -> tuple[int, int]:
        """Host times in ns of cudaMalloc and cudaFree for buffers of these sizes in bytes, outside of CuPy's memory pool."""
        started = perf_counter_ns()
        pointers = [runtime.malloc(size) for size in sizes]
        allocated = perf_counter_ns()
        for pointer in pointers:
            runtime.free(pointer)
        return allocated - started, perf_counter_ns() - allocated

    def settle(self) -> None:
        """Wait for the timed stream, and launch an empty kernel after that.

        Else the next launch would wait for the engine that copied the inputs, although it is done.
        """
        self.stream.synchronize()
        self._timing["empty"]((1,), (32,), ())
        self.stream.synchronize()

    def flush_l2(self) -> None:
        """Enqueue kernels that leave neither inputs nor dirty lines in the L2, also where a variant set a part of it aside."""
        self._persisting.reset()
        lines = np.uint64(self._dirty.size // 16)
        grid, block = (4 * self.sm_count,), (256,)
        self._timing["write_lines"](grid, block, (self._dirty, lines, np.float32(1)))
        self._timing["read_lines"](grid, block, (self._clean, lines, self._dirty))

    def fingerprint(self, array: Array) -> int:
        """Return a 64-bit hash of a contiguous array. Two different arrays have the same hash with probability 2^-64."""
        self._sum.fill(0)
        self.add_fingerprint(array, self._sum)
        return int(self._sum.get(self.stream)[0])

    def add_fingerprint(self, array: Array, into: Array) -> None:
        """Enqueue a kernel that adds the fingerprint of a contiguous array to `into`, one element of 64 bits."""
        words, rest = divmod(array.nbytes, 8)
        arguments = (array.data.ptr, np.uint64(words), np.int32(rest), into)
        self._fingerprint((4 * self.sm_count,), (256,), arguments)

    def new_prints(self, count: int) -> Array:
        """Return `count` zeros, for `add_fingerprint`."""
        return cupy.zeros(count, cupy.uint64)

    def read_clocks(self, into: Array) -> None:
        """Enqueue a kernel that reads the cycles and nanoseconds of each multiprocessor, a row of `into` of 64 bits each. The row of one that
        runs no block stays as it is."""
        self._timing["read_clocks"]((self.sm_count,), (1,), (into,))

    def wait(self) -> None:
        """Wait for all work on the device, in every stream."""
        runtime.deviceSynchronize()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Run the block in a stream that waits for no other, and wait for its work at the end."""
        self._aside.use()  # CuPy's `with` would leave the null stream current, instead of the timed one
        try:
            yield
            self._aside.synchronize()
        finally:
            self.stream.use()

    @contextmanager
    def held(self, limit_ns: int = _HOLD_LIMIT_NS) -> Iterator[None]:
        """Hold the stream: work enqueued in the block starts when the block ends, or after `limit_ns`."""
        self._flags[:] = 0
        self._timing["hold_stream"]((1,), (1,), (self._flags_pointer, np.uint64(limit_ns)))
        try:
            yield
        finally:
            self._flags[0] = 1

    def with_default_stream(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A call whose work on CUDA's default stream waits for the timed stream, which then waits for that work."""
        default = cupy.cuda.Stream.null
        before, after = (cupy.cuda.Event(disable_timing=True) for _ in range(2))

        def joined(*arguments: Any) -> Any:
            before.record(self.stream)
            default.wait_event(before)
            returned = call(*arguments)
            after.record(default)
            self.stream.wait_event(after)
            return returned

        return joined

    @contextmanager
    def profiled(self) -> Iterator[None]:
        """Have a profiler around this process capture the work of the block."""
        runtime.profilerStart()
        try:
            yield
            self.stream.synchronize()
        finally:
            runtime.profilerStop()

    @property
    def gave_up(self) -> bool:
        """Whether the last hold ended before its block. Read it after the stream is done."""
        return bool(self._flags[1])

    def time_queued(
        self,
        enqueue: Callable[[], object],
        executions: int = 1,
        meet: Callable[[], object] = lambda: None,
        first: Callable[[], object] = lambda: None,
    ) -> tuple[int, bool]:
        """Time the work that `enqueue` enqueues. The stream is held until all of it is queued. Returns device time in
        ns, and whether the stream was held: False if `enqueue` itself waited for the device.

        Args:
            executions: number of executions of an operation; goes into the NVTX range.
            meet: called when all work is queued, before the stream is released. Ranks pass a barrier there, so that no device
                time includes the wait for another rank's host.
            first: enqueues work that comes right before, outside of the time.
        """
        with self.held():
            first()
            self.start.record(self.stream)
            with nvtx_range(executions_text(executions)):
                enqueue()
            self.stop.record(self.stream)
            meet()
        self.stop.synchronize()
        return round(cupy.cuda.get_elapsed_time(self.start, self.stop) * 1e6), not self.gave_up

    def each_ns(
        self,
        enqueue: Callable[[], object],
        executions: int,
        between: Callable[[], object],
        meet: Callable[[], object] = lambda: None,
    ) -> tuple[float, bool]:
        """Mean device time in ns of executions that are timed one by one, with the work of `between` before each.

        The events' overhead is subtracted. The other arguments and returned values are the same as for `time_queued`.
        """
        total_ns, all_held = 0, True
        for _ in range(executions):
            between()
            duration_ns, held = self.time_queued(enqueue, meet=meet)
            total_ns += duration_ns
            all_held &= held
        return self.without_events(total_ns / executions), all_held

    def batch_ns(
        self,
        replay: Callable[[], object],
        executions: int,
        first: Callable[[], object],
        meet: Callable[[], object] = lambda: None,
    ) -> tuple[float, bool]:
        """Mean device time in ns of the executions that `replay` enqueues, right after the work of `first`; as `each_ns` otherwise."""

        def started() -> None:
            self.read_clocks(self._clocks[0])
            first()

        def queued() -> None:
            self.read_clocks(self._clocks[1])
            meet()

        duration_ns, held = self.time_queued(replay, executions, queued, started)
        return self.without_events(duration_ns) / executions, held

    @property
    def held_clock_mhz(self) -> float | None:
        """Mean clock of the multiprocessors in the last batch and the work before it. Waits for the stream."""
        return mean_clock_mhz(*self._clocks.get(self.stream))


def current_device() -> CudaDevice:
    """The process's GPU, set up on first use. Its stream becomes the current one of this thread: CuPy keeps one for each thread."""
    device = _set_up()
    device.stream.use()
    return device


@cache
def _set_up() -> CudaDevice:
    return CudaDevice()
