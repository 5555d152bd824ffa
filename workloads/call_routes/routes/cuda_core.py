"""cuda.core, NVIDIA's Python objects for the CUDA runtime."""

from collections.abc import Callable
from typing import Any

import numpy as np

from warpladder.workloads.api import Array, NotInstalled
from warpladder.workloads.call_routes.routes.route import Route, current_stream, kernel_text
from warpladder.workloads.call_routes.rungs import NAME


class CudaCore(Route):
    """NVIDIA's own objects: Program, ObjectCode, Kernel, LaunchConfig, launch.

    Idea: The steps of the driver's interface as objects, without its handles and status codes. Arrays of other libraries are viewed.
    Bottleneck: A launch checks and packs its arguments anew, in compiled code.
    Next: The same calls by hand: `cuda_bindings_driver`.
    Source: cuda.core 1.2, Program, StridedMemoryView and launch.
    """

    interface = "StridedMemoryView"

    def start(self) -> None:
        try:
            from cuda import core
            from cuda.core import utils
        except ImportError as missing:  # `cuda` is there by cuda-bindings alone
            raise NotInstalled(f"needs the Python package cuda-core ({missing})") from missing
        self._core, self._utils = core, utils
        self._device = core.Device()
        self._device.set_current()

    def compile(self) -> None:
        options = self._core.ProgramOptions(std="c++17", arch=f"sm_{self._device.arch}")
        self._code = self._core.Program(kernel_text(), "c++", options).compile("cubin")

    def load(self) -> None:
        self._kernel = self._code.get_kernel(NAME)

    def hand_over(self, array: Array) -> Any:
        return self._utils.StridedMemoryView.from_any_interface(array, stream_ptr=-1)

    def address_of(self, handle: Any) -> int:
        return int(handle.ptr)

    def launcher(self, x: Any, y: Any) -> Callable[[], object]:
        launch, kernel = self._core.launch, self._kernel
        stream = self._core.Stream.from_handle(current_stream())
        config = self._core.LaunchConfig(grid=self.grid, block=self.block)
        arguments = (x.ptr, y.ptr, np.int32(self.height), np.int32(self.width))
        views = x, y  # they own what they look at

        def once(kept: object = views) -> None:
            launch(stream, config, kernel, *arguments)

        return once
