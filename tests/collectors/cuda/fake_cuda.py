"""A CuPy that computes nothing and keeps what is asked of it, for tests of what a collector enqueues and in which order."""

import importlib
import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from warpladder.collectors import cuda as ours
from warpladder.collectors.core.bench import OneProcess

#: Those of `warpladder.collectors.cuda` that import CuPy or NVML.
_OURS = (
    "allreduce",
    "bandwidths",
    "device",
    "energy_bench",
    "events",
    "gpu_state",
    "input_sets",
    "launch",
    "overlap",
    "peer_memory",
    "pinned",
)


class CUDARuntimeError(Exception):
    """As the runtime raises it."""


class FakePointer:
    """Into an allocation of its own, unless it was made by adding to another one."""

    def __init__(self, mem: object, ptr: int, of: "FakeArray") -> None:
        self.mem, self.ptr, self.of = mem, ptr, of

    def __add__(self, offset: int) -> "FakePointer":
        return FakePointer(self.mem, self.ptr + offset, self.of)

    def copy_from_device_async(self, source: "FakePointer", nbytes: int, stream: object) -> None:
        self.of.values = source.of.values.copy()


class FakeArray:
    """Of the device; a name to be told by, and values where a test looks at them."""

    def __init__(self, log: list[object], shape: tuple[int, ...], dtype: Any = "float32", name: str = "", values: Any = None):
        self.log, self.shape, self.dtype, self.name = log, shape, np.dtype(dtype), name
        self.size = int(np.prod(shape))
        self.nbytes = self.size * self.dtype.itemsize
        self.flags = SimpleNamespace(c_contiguous=True)
        self.values = np.zeros(shape, dtype) if values is None else np.array(values, dtype)
        self.data = FakePointer(self, 16 * hash(name), self)

    def __getitem__(self, rows: slice | int) -> "FakeArray":
        if isinstance(rows, int):
            return FakeArray(self.log, self.shape[1:], self.dtype, self.name)
        part = FakeArray(self.log, (len(range(*rows.indices(self.shape[0]))), *self.shape[1:]), self.dtype, self.name)
        part.data = self.data + (rows.start or 0) * self.nbytes // self.shape[0]
        return part

    def reshape(self, *shape: Any) -> "FakeArray":
        return self

    def fill(self, value: float) -> None: ...

    def get(self, stream: object, out: np.ndarray | None = None, blocking: bool = True) -> np.ndarray:
        assert blocking == (out is None)
        if out is None:
            return self.values
        out[...] = self.values
        self.log.append(f"{self.name} out")
        return out

    def set(self, host: np.ndarray, stream: object) -> None:
        self.values = host.copy()
        self.log.append(f"{self.name} in")


class FakeStream:
    """Work in order; a capture fails where `refuses`."""

    ptr, done, refuses = 99, True, False

    def __init__(self, log: list[object], name: str = "another", **options: object) -> None:
        self._log, self.name = log, name

    def use(self) -> "FakeStream":
        return self

    def synchronize(self) -> None:
        self._log.append("wait")

    def wait_event(self, event: object) -> None: ...

    def begin_capture(self, mode: int = 0) -> None:
        if self.refuses:
            raise CUDARuntimeError("not permitted")

    def end_capture(self) -> SimpleNamespace:
        return SimpleNamespace(launch=lambda stream: self._log.append("graph"))


class FakeNccl:
    """Keeps what is asked of it."""

    available, NCCL_INT8, NCCL_FLOAT32 = True, 0, 7

    def __init__(self, log: list[object]) -> None:
        self.log = log

    def groupStart(self) -> None:  # noqa: N802
        self.log.append("start")

    def groupEnd(self) -> None:  # noqa: N802
        self.log.append("end")

    def get_unique_id(self) -> bytes:
        return b"rank 0's"

    def NcclCommunicator(self, size: int, number: bytes, rank: int) -> SimpleNamespace:  # noqa: N802
        self.log.append((size, number, rank))
        return SimpleNamespace(allReduce=lambda *call: self.log.append(call), allGather=lambda *call: self.log.append(call))


class FakeCommunicator(OneProcess):
    """Of rank 1 of two, whose other rank has zeros and is `slower` than this one by a factor."""

    rank, size = 1, 2

    def __init__(self, log: list[object], slower: int = 1) -> None:
        self.log, self.slower, self.waits = log, slower, 0

    def wait(self) -> None:
        self.waits += 1

    def largest(self, value: int) -> int:
        return value * self.slower

    def broadcast(self, value: object) -> object:
        self.log.append(("broadcast", value))
        return b"rank 0's"

    def average(self, arrays: list[np.ndarray]) -> None:
        for array in arrays:
            array /= 2
        self.log.append("average")


def install(monkeypatch: pytest.MonkeyPatch, log: list[object], module: str) -> ModuleType:
    """A module of `warpladder.collectors.cuda` on this CuPy, every two events of which are 33 us apart; as it was after the test."""
    cuda, function, cupy = ModuleType("cupy.cuda"), ModuleType("cupy.cuda.function"), ModuleType("cupy")
    properties = {
        "major": 9,
        "minor": 0,
        "l2CacheSize": 1 << 20,
        "multiProcessorCount": 132,
        "totalGlobalMem": 1 << 30,
        "name": b"none",
    }
    runtime = MagicMock(CUDARuntimeError=CUDARuntimeError, getDeviceProperties=lambda index: properties)

    def kernel(name: str) -> Any:
        return MagicMock(side_effect=lambda *arguments, **options: log.append(name))

    facts: dict[ModuleType, dict[str, Any]] = {
        function: {"Module": lambda: SimpleNamespace(load=lambda cubin: None, get_function=kernel, get_global_var=kernel)},
        cuda: {
            "nccl": FakeNccl(log), "driver": MagicMock(funcGetAttribute=lambda which, kernel: 0), "runtime": runtime, "function": function,
            "Event": lambda **_: SimpleNamespace(record=lambda stream: log.append("event"), synchronize=lambda: None),
            "Stream": lambda **options: FakeStream(log, **options), "Device": lambda *_: SimpleNamespace(id=0, attributes={"MaxSharedMemoryPerBlockOptin": 227 << 10}, mem_info=(1 << 30, 1 << 30)),
            "get_elapsed_time": lambda start, stop: 0.033, "alloc_pinned_memory": _Pinned,
            "MemoryPool": MagicMock, "using_allocator": lambda allocate: nullcontext(),
        },
        cupy: {
            "cuda": cuda, "ndarray": _view, "uint8": "uint8", "uint64": "uint64", "float32": "float32", "asarray": lambda array: FakeArray(log, array.shape, array.dtype, values=array if isinstance(array, np.ndarray) else None),
            "empty": lambda shape, dtype: FakeArray(log, tuple(np.atleast_1d(shape)), dtype),
            "zeros": lambda shape, dtype: FakeArray(log, tuple(np.atleast_1d(shape)), dtype),
            "ones": lambda size, dtype: FakeArray(log, (size,), dtype), "zeros_like": lambda array: array,
            "get_default_pinned_memory_pool": MagicMock(), "get_default_memory_pool": MagicMock(),
        },
    }  # fmt: skip
    for owner, names in facts.items():
        vars(owner).update(names)
        monkeypatch.setitem(sys.modules, owner.__name__, owner)
    monkeypatch.setitem(sys.modules, "pynvml", MagicMock())
    for name in _OURS:
        monkeypatch.delitem(sys.modules, f"warpladder.collectors.cuda.{name}", raising=False)
        monkeypatch.delattr(ours, name, raising=False)
    return imported(f"warpladder.collectors.cuda.{module}")


def imported(module: str) -> ModuleType:
    """A module on the CuPy that is installed; whoever comes next imports anew what it imports."""
    found = importlib.import_module(module)
    for name in _OURS:
        sys.modules.pop(f"warpladder.collectors.cuda.{name}", None)
        vars(ours).pop(name, None)
    return found


def install_events(monkeypatch: pytest.MonkeyPatch, log: list[object]) -> ModuleType:
    """The bench of CUDA events on this CuPy, whose kernels need no compiler and do nothing."""
    module = install(monkeypatch, log, "events")
    device = module.current_device.__globals__
    monkeypatch.setitem(device, "GpuState", lambda bus: SimpleNamespace(read=lambda: dict.fromkeys(("throttle_reasons",), 0)))
    monkeypatch.setitem(device, "compile_variant", compiled)
    monkeypatch.setattr(device["CudaDevice"], "fingerprint", lambda device, array: 0)
    monkeypatch.setattr(module, "is_throttled", lambda state: False)
    monkeypatch.setattr(module, "compile_variant", compiled)
    return module


def compiled(variant: object, kernels: list[str], arch: str) -> SimpleNamespace:
    found = {name: SimpleNamespace(symbol=name, registers=1, static_shared_bytes=0, spill_bytes=0) for name in kernels}
    return SimpleNamespace(cubin=b"", kernels=found, constants={}, ptx="")


def _view(shape: tuple[int, ...], dtype: Any, memptr: FakePointer) -> FakeArray:
    """What lies there, as another array; the same where it is all of one."""
    of = memptr.of
    if memptr.ptr == of.data.ptr and int(np.prod(shape)) == of.size:
        return of
    view = FakeArray(of.log, shape, dtype, of.name)
    view.data = memptr
    return view


class _Pinned(bytearray):
    ptr = 16
