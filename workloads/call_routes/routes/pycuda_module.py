"""PyCUDA."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from warpladder.workloads.api import Array
from warpladder.workloads.call_routes.routes.extension import CACHE_VARIABLE, folder_for, nvcc
from warpladder.workloads.call_routes.routes.route import Route, address_by_interface, kernel_text
from warpladder.workloads.call_routes.rungs import NAME


class PycudaModule(Route):
    """PyCUDA compiles the text by nvcc and launches it with prepared types.

    Idea: The oldest route. The text goes through nvcc to a cubin, which PyCUDA keeps on disk. A prepared call packs numbers of known
        types.
    Bottleneck: PyCUDA takes no stream of another library. Its own stream waits for the current one by an event, and the current one
        for it: two events for each operation.
    Next: A route that takes the stream: `cupy_raw_module`.
    Source: PyCUDA 2026.1, pycuda.compiler.compile and Function.prepared_async_call; the report's section 0.3.2.
    """

    interface = "__cuda_array_interface__"
    caches = (CACHE_VARIABLE,)

    def start(self) -> None:
        import pycuda.autoprimaryctx  # the context that all libraries share, put on PyCUDA's own stack of contexts
        import pycuda.compiler

        self._driver, self._compiler = pycuda.driver, pycuda.compiler
        self._nvcc = nvcc()

    def compile(self) -> None:
        folder = folder_for(NAME, self._nvcc)
        options = ["-O3", "-std=c++17"]
        self._cubin = self._compiler.compile(
            kernel_text(), nvcc=self._nvcc, options=options, no_extern_c=True, cache_dir=str(folder)
        )

    def load(self) -> None:
        self._module = self._driver.module_from_buffer(self._cubin)
        self._function = self._module.get_function(NAME)
        self._function.prepare("PPii")

    def hand_over(self, array: Array) -> int:
        return address_by_interface(array)

    def address_of(self, handle: Any) -> int:
        return int(handle)

    def launcher(self, x: Any, y: Any) -> Callable[[], object]:
        call, grid, block, stream = self._function.prepared_async_call, self.grid, self.block, self._stream
        height, width = np.int32(self.height), np.int32(self.width)
        return lambda: call(grid, block, stream, x, y, height, width)

    def bind(self, handles: Mapping[str, Any]) -> Callable[[], object]:
        import cupy

        self._stream = self._driver.Stream()
        current, own = cupy.cuda.get_current_stream(), cupy.cuda.ExternalStream(self._stream.handle)
        before, after = (cupy.cuda.Event(disable_timing=True) for _ in range(2))
        in_a_row = super().bind(handles)

        def operation() -> None:
            before.record(current)
            own.wait_event(before)
            in_a_row()
            after.record(own)
            current.wait_event(after)

        return operation
