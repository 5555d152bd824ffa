"""Launches that start while the one before them ends, which CuPy has no argument for."""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from cuda.bindings import driver

from warpladder.workloads.api import Launch


class EarlyLaunchError(Exception):
    """The driver refuses an early launch."""


def bind_early(launch: Launch, function: int, arguments: Sequence[Any]) -> Callable[[int], None]:
    """Return a function that enqueues a launch on the stream of an address.

    Source: CUDA driver API, cuLaunchKernelEx with CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION.

    Args:
        function: the kernel's address.
        arguments: arrays on the device, and scalars of NumPy; a structure is an array without axes.

    Raises:
        EarlyLaunchError: the driver refuses it; from the function that is returned.
    """
    values = [np.array(each if isinstance(each, np.ndarray | np.generic) else np.uint64(each.data.ptr)) for each in arguments]
    pointers = (ctypes.c_void_p * len(values))(*(each.ctypes.data for each in values))
    attribute, value = driver.CUlaunchAttribute(), driver.CUlaunchAttributeValue()
    value.programmaticStreamSerializationAllowed = 1
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value = value
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = launch.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = launch.block
    config.sharedMemBytes, config.attrs, config.numAttrs = launch.dynamic_shared_bytes, [attribute], 1

    def enqueue(stream: int, memory: Sequence[Any] = (values, arguments)) -> None:  # the default argument keeps both alive
        config.hStream = driver.CUstream(stream)
        (status,) = driver.cuLaunchKernelEx(config, driver.CUfunction(function), ctypes.addressof(pointers), 0)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise EarlyLaunchError(f"{launch.kernel}: the driver refuses the launch ({status.name})")

    return enqueue
