"""The current GPU: its stream, what times it, what empties its L2, and fingerprints of what it holds."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import cupy
import numpy as np
from cupy.cuda import runtime

from warpladder.collectors.core.nvtx_ranges import nvtx_range
from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.collectors.cuda.gpu_state import GpuState
from warpladder.collectors.cuda.launch import load
from warpladder.data.range_texts import executions_text
from warpladder.workloads.api import Array, CudaVariant

#: Repetitions of what is measured of the device itself, and kernels in a row where one is too short to time.
REPETITIONS: Final = 15
EMPTY_KERNELS: Final = 500
_HOLD_LIMIT_NS: Final = 20_000_000
_KERNELS: Final = Path(__file__).parent / "kernels"


@dataclass(frozen=True)
class EmptyKernels:
    """Times of kernels that do nothing, in ns: one between two events, each of many queued, and each of many in a CUDA graph."""

    one_ns: float
    queued_ns: float
    graph_node_ns: float

    @property
    def event_overhead_ns(self) -> float:
        """What two events around a kernel read more than the kernel takes; a node of a graph is little more than the kernel."""
        return self.one_ns - self.graph_node_ns


class CudaDevice:
    """The current GPU: its stream, its timing events, and what empties its L2 and holds its stream."""

    def __init__(self) -> None:
        index = cupy.cuda.Device().id
        properties = runtime.getDeviceProperties(index)
        self.index = index
        self.compute_capability = (properties["major"], properties["minor"])
        self.arch = f"sm_{properties['major']}{properties['minor']}"
        self.l2_bytes = int(properties["l2CacheSize"])
        self.sm_count = int(properties["multiProcessorCount"])
        self.memory_bytes = int(properties["totalGlobalMem"])
        self.name = properties["name"].decode()
        self.state = GpuState(runtime.deviceGetPCIBusId(index))
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.stream.use()
        self._aside = cupy.cuda.Stream(non_blocking=True)
        self.start, self.stop = cupy.cuda.Event(), cupy.cuda.Event()
        timing = CudaVariant("timing", "timing", "ceiling", source=_KERNELS / "timing.cu")
        self._timing = load(compile_variant(timing, ("write_lines", "read_lines", "hold_stream", "empty"), self.arch))
        fingerprint = CudaVariant("fingerprint", "fingerprint", "ceiling", source=_KERNELS / "fingerprint.cu")
        self._fingerprint = load(compile_variant(fingerprint, ("fingerprint",), self.arch))["fingerprint"]
        # Twice the L2, so that no replacement policy keeps a line of the inputs.
        self._dirty = cupy.zeros(2 * max(self.l2_bytes, 1 << 22), cupy.uint8)
        self._clean = cupy.zeros_like(self._dirty)
        self._sum = cupy.zeros(1, cupy.uint64)
        pinned = cupy.cuda.alloc_pinned_memory(8)
        self._flags = np.frombuffer(pinned, np.uint32, 2)
        self._flags_pointer = np.uintp(pinned.ptr)
        self.empty_kernels = self._measure_empty_kernels()

    def facts(self) -> dict[str, Any]:
        """Columns of table `run` about the GPU."""
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
        """Median device time of what `enqueue` enqueues, after one call that is not counted; the events' own time is in it."""
        enqueue()
        return statistics.median(self.time_queued(enqueue)[0] for _ in range(REPETITIONS))

    def _measure_empty_kernels(self) -> "EmptyKernels":
        def one() -> None:
            self._timing["empty"]((1,), (32,), ())

        def many() -> None:
            for _ in range(EMPTY_KERNELS):
                one()

        self.stream.begin_capture()
        many()
        graph = self.stream.end_capture()
        in_graph_ns = self.median_ns(lambda: graph.launch(self.stream))
        return EmptyKernels(self.median_ns(one), self.median_ns(many) / EMPTY_KERNELS, in_graph_ns / EMPTY_KERNELS)

    def without_events(self, duration_ns: float) -> float:
        """A time between two events, less what they read more than the work between them takes."""
        return max(duration_ns - self.empty_kernels.event_overhead_ns, 1.0)

    def time_allocation(self, sizes: Sequence[int]) -> tuple[int, int]:
        """Host time of cudaMalloc and of cudaFree of buffers of so many bytes, outside CuPy's memory pool."""
        started = time.perf_counter_ns()
        pointers = [runtime.malloc(size) for size in sizes]
        allocated = time.perf_counter_ns()
        for pointer in pointers:
            runtime.free(pointer)
        return allocated - started, time.perf_counter_ns() - allocated

    def flush_l2(self) -> None:
        """Enqueue what leaves neither inputs nor dirty lines in L2."""
        lines = np.uint64(self._dirty.size // 16)
        grid, block = (4 * self.sm_count,), (256,)
        self._timing["write_lines"](grid, block, (self._dirty, lines, np.float32(1)))
        self._timing["read_lines"](grid, block, (self._clean, lines, self._dirty))

    def fingerprint(self, array: Array) -> int:
        """A number of 64 bits that is another one where any byte of a contiguous array is: the chance of the same is 2^-64."""
        self._sum.fill(0)
        self.add_fingerprint(array, self._sum)
        return int(self._sum.get(self.stream)[0])

    def add_fingerprint(self, array: Array, into: Array) -> None:
        """Enqueue what adds the fingerprint of a contiguous array to the one element of `into`, of 64 bits."""
        words, rest = divmod(array.nbytes, 8)
        arguments = (array.data.ptr, np.uint64(words), np.int32(rest), into)
        self._fingerprint((4 * self.sm_count,), (256,), arguments)

    def new_prints(self, count: int) -> Array:
        """So many sums that `add_fingerprint` adds to, all 0."""
        return cupy.zeros(count, cupy.uint64)

    def wait(self) -> None:
        """Wait for all that the device has to do, on every stream."""
        runtime.deviceSynchronize()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """A block whose work goes to a stream that waits for no other. It is done when the block ends."""
        self._aside.use()  # CuPy's `with` would leave the null stream current, not the timed one
        try:
            yield
            self._aside.synchronize()
        finally:
            self.stream.use()

    @contextmanager
    def held(self, limit_ns: int = _HOLD_LIMIT_NS) -> Iterator[None]:
        """Keep what is enqueued on the stream from starting until the block ends, or for so long."""
        self._flags[:] = 0
        self._timing["hold_stream"]((1,), (1,), (self._flags_pointer, np.uint64(limit_ns)))
        try:
            yield
        finally:
            self._flags[0] = 1

    @contextmanager
    def profiled(self) -> Iterator[None]:
        """A block whose work a profiler around this process captures."""
        runtime.profilerStart()
        try:
            yield
            self.stream.synchronize()
        finally:
            runtime.profilerStop()

    @property
    def gave_up(self) -> bool:
        """Whether the last hold ended before its block did. Known once the stream is done."""
        return bool(self._flags[1])

    def time_queued(
        self, enqueue: Callable[[], object], executions: int = 1, meet: Callable[[], object] = lambda: None
    ) -> tuple[int, bool]:
        """Device time of what `enqueue` enqueues, with the stream held until all of it is queued.

        Args:
            enqueue: enqueues the work.
            executions: how many of an operation that is, for a profiler to read.
            meet: called when all is queued, before the stream is let go: where ranks wait for one another, so that none of them
                is timed while it waits for another one's host.

        Returns:
            nanoseconds, and whether the stream could be held: False where `enqueue` itself waited for the device.
        """
        with self.held():
            self.start.record(self.stream)
            with nvtx_range(executions_text(executions)):
                enqueue()
            self.stop.record(self.stream)
            meet()
        self.stop.synchronize()
        return round(cupy.cuda.get_elapsed_time(self.start, self.stop) * 1e6), not self.gave_up


@cache
def current_device() -> CudaDevice:
    """The process's GPU, set up on first use."""
    return CudaDevice()
