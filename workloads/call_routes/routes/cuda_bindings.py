"""cuda.bindings: NVRTC and the driver's interface by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np

from warpladder.workloads.api import Array
from warpladder.workloads.call_routes.routes.route import Route, address_by_interface, current_stream, kernel_text
from warpladder.workloads.call_routes.rungs import NAME


class CudaBindings(Route):
    """Every call of NVRTC and of the driver by hand, each with its status.

    Idea: The kernel's arguments are packed once, as an array of pointers to values. A launch is one call of cuLaunchKernel.
    Bottleneck: Python's call of a function with eleven arguments.
    Next: A loop in C++ around the launch, or a CUDA graph.
    Source: cuda.bindings 13.0, nvrtc and driver.
    """

    interface = "__cuda_array_interface__"

    def start(self) -> None:
        from cuda.bindings import driver, nvrtc

        self._driver, self._nvrtc = driver, nvrtc
        (status,) = driver.cuInit(0)
        self._right(status)

    def compile(self) -> None:
        driver, nvrtc = self._driver, self._nvrtc
        device = self._checked(driver.cuCtxGetDevice())
        kinds = driver.CUdevice_attribute
        major = self._checked(driver.cuDeviceGetAttribute(kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
        minor = self._checked(driver.cuDeviceGetAttribute(kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
        program = self._checked(nvrtc.nvrtcCreateProgram(kernel_text().encode(), b"transpose.cu", 0, [], []))
        options = [f"--gpu-architecture=sm_{major}{minor}".encode(), b"--std=c++17"]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        self._right(status)
        self._cubin = b" " * self._checked(nvrtc.nvrtcGetCUBINSize(program))
        (status,) = nvrtc.nvrtcGetCUBIN(program, self._cubin)
        self._right(status)
        (status,) = nvrtc.nvrtcDestroyProgram(program)
        self._right(status)

    def load(self) -> None:
        self._module = self._checked(self._driver.cuModuleLoadData(self._cubin))
        self._function = self._checked(self._driver.cuModuleGetFunction(self._module, NAME.encode()))

    def hand_over(self, array: Array) -> int:
        return address_by_interface(array)

    def address_of(self, handle: Any) -> int:
        return int(handle)

    def launcher(self, x: Any, y: Any) -> Callable[[], object]:
        launch, function, success = self._driver.cuLaunchKernel, self._function, self._driver.CUresult.CUDA_SUCCESS
        stream = self._driver.CUstream(current_stream())
        values = [np.array([address], np.uint64) for address in (x, y)]
        values += [np.array([extent], np.int32) for extent in (self.height, self.width)]
        pointers = np.array([value.ctypes.data for value in values], np.uint64)
        packed, grid, block = pointers.ctypes.data, self.grid, self.block

        def once(kept: object = (values, pointers)) -> None:
            (status,) = launch(function, *grid, *block, 0, stream, packed, 0)
            if status != success:
                raise RuntimeError(f"cuLaunchKernel: {status.name}")

        return once

    def _checked(self, answer: tuple[Any, ...]) -> Any:
        """The value of a call that gives a status and one value."""
        status, value = answer
        self._right(status)
        return value

    @staticmethod
    def _right(status: Any) -> None:
        if status.value:
            raise RuntimeError(f"{type(status).__name__}: {status.name}")
