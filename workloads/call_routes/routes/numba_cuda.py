"""Numba's CUDA target."""

import warnings
from collections.abc import Callable
from typing import Any, Final

from warpladder.workloads.api import Array, NotInstalled
from warpladder.workloads.call_routes.routes.route import Route, current_stream

_TYPES: Final = "void(float32[:, ::1], float32[:, ::1])"


class NumbaCuda(Route):
    """The same tile, written in Python and compiled by Numba.

    Idea: No C++: the kernel is a Python function with shared memory and a barrier. Its types are declared, so that it is compiled
        before the first call.
    Bottleneck: Each launch unpacks the arrays into pointers, shapes and strides in Python.
    Next: Fewer arguments, or the text in C++ by `cuda_core`.
    Source: numba.cuda.jit with declared types, numba.cuda.as_cuda_array and numba.cuda.external_stream.
    """

    interface = "__cuda_array_interface__"
    caches = ("NUMBA_CACHE_DIR",)

    def start(self) -> None:
        try:
            from numba import cuda

            from warpladder.workloads.call_routes.routes import numba_kernel
        except ImportError as missing:  # Numba without its CUDA target
            raise NotInstalled(f"needs the Python package numba-cuda ({missing})") from missing
        self._cuda, self._written = cuda, numba_kernel

    def compile(self) -> None:
        self._kernel = self._cuda.jit(_TYPES, cache=True)(self._written.transpose)

    def hand_over(self, array: Array) -> Any:
        return self._cuda.as_cuda_array(array)

    def address_of(self, handle: Any) -> int:
        return int(handle.__cuda_array_interface__["data"][0])

    def launcher(self, x: Any, y: Any) -> Callable[[], object]:
        stream = self._cuda.external_stream(current_stream())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few blocks leave multiprocessors idle, as a small matrix does by every route
            configured = self._kernel[self.grid, self.block, stream]
        return lambda: configured(x, y)
