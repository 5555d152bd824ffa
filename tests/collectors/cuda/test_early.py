"""Launches that start early: what the driver is asked for."""

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warpladder.collectors.cuda import early
from warpladder.workloads.api import Launch

ARRAY = SimpleNamespace(data=SimpleNamespace(ptr=0x7F00_1234_5678))


def asked(monkeypatch: pytest.MonkeyPatch, status: Any, *arguments: Any) -> tuple[Any, list[int]]:
    """The configuration of a launch on stream 7, and the addresses of its parameters, which hold their values then."""
    calls = []
    monkeypatch.setattr(early.driver, "cuLaunchKernelEx", lambda *call: calls.append(call) or (status,))
    launch = Launch("k<4>", (3, 2, 1), (96, 1, 1), (), 5000, early=True)
    early.bind_early(launch, 11, arguments)(7)
    ((config, function, pointers, _),) = calls
    assert int(function) == 11
    return config, list((ctypes.c_void_p * len(arguments)).from_address(pointers))


def test_the_driver_is_given_the_shape_the_stream_and_leave_to_start_early(monkeypatch: pytest.MonkeyPatch) -> None:
    config, _ = asked(monkeypatch, early.driver.CUresult.CUDA_SUCCESS)
    assert (config.gridDimX, config.gridDimY, config.gridDimZ) == (3, 2, 1)
    assert (config.blockDimX, config.sharedMemBytes, int(config.hStream)) == (96, 5000, 7)
    (attribute,) = config.attrs
    assert config.numAttrs == 1
    assert attribute.id == early.driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    assert attribute.value.programmaticStreamSerializationAllowed == 1


def test_parameters_are_addresses_of_arrays_numbers_and_structures(monkeypatch: pytest.MonkeyPatch) -> None:
    of_map = np.frombuffer(bytes(range(128)), "V128").reshape(())
    seen: list[object] = []

    def launch_kernel(config: object, function: object, pointers: int, extra: int) -> tuple[Any]:
        array, number, real, structure = (ctypes.c_void_p * 4).from_address(pointers)
        seen.append(ctypes.c_uint64.from_address(array).value)
        seen.append(ctypes.c_int32.from_address(number).value)
        seen.append(ctypes.c_float.from_address(real).value)
        seen.append(ctypes.string_at(structure, 128))
        return (early.driver.CUresult.CUDA_SUCCESS,)

    monkeypatch.setattr(early.driver, "cuLaunchKernelEx", launch_kernel)
    enqueue = early.bind_early(Launch("k", (1, 1, 1), (32, 1, 1), ()), 11, (ARRAY, np.int32(-3), np.float32(0.5), of_map))
    enqueue(0)
    assert seen == [0x7F00_1234_5678, -3, 0.5, bytes(range(128))]


def test_a_launch_that_the_driver_refuses_names_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(early.EarlyLaunchError, match=r"k<4>: the driver refuses the launch \(CUDA_ERROR_INVALID_VALUE\)"):
        asked(monkeypatch, early.driver.CUresult.CUDA_ERROR_INVALID_VALUE)
