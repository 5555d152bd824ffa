"""CuPy's RawModule."""

from collections.abc import Callable
from typing import Any

import numpy as np

from warpladder.workloads.api import Array
from warpladder.workloads.call_routes.routes.route import Route, kernel_text
from warpladder.workloads.call_routes.rungs import NAME


class CupyRaw(Route):
    """CuPy compiles the text by NVRTC and launches it with its own arrays.

    Idea: The arrays are CuPy's already, so nothing is handed over. A launch is a call with grid, block and a tuple of arguments.
    Bottleneck: Each launch turns the arguments into C values and takes the address of each array anew.
    Next: A launch whose arguments are converted once: `cuda_bindings_driver`.
    Source: cupy.RawModule; the report's `custom`, section 0.3.3.
    """

    interface = "cupy.ndarray itself"
    caches = ("CUPY_CACHE_DIR",)

    def start(self) -> None:
        import cupy

        self._module = cupy.RawModule(code=kernel_text(), options=("--std=c++17",))

    def compile(self) -> None:
        self._module.compile()
        self._kernel = self._module.get_function(NAME)

    def hand_over(self, array: Array) -> Array:
        return array

    def address_of(self, handle: Any) -> int:
        return int(handle.data.ptr)

    def launcher(self, x: Any, y: Any) -> Callable[[], object]:
        kernel, grid, block = self._kernel, self.grid, self.block
        arguments = (x, y, np.int32(self.height), np.int32(self.width))
        return lambda: kernel(grid, block, arguments)
