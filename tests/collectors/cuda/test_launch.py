"""Copies of outputs to the host, and shared memory of kernels, on a CuPy that computes nothing."""

import gc
import weakref
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from tests.collectors.cuda.fake_cuda import FakeArray, install
from warpladder.collectors.core.bench import Unavailable
from warpladder.workloads.api import Launch, TensorMap


def test_an_output_without_axes_is_copied_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[object] = []
    launch = install(monkeypatch, log, "launch")
    host = np.zeros((), np.float32)
    launch.copy_to_host(FakeArray(log, (), name="sum", values=3.0), host, stream=None)
    assert host == 3.0 and log == ["sum out"]


def test_an_output_with_gaps_is_made_contiguous_on_the_current_stream_first(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[object] = []
    launch = install(monkeypatch, log, "launch")
    dense = FakeArray(log, (2,), name="dense", values=[1.0, 2.0])
    monkeypatch.setattr(launch.cupy, "ascontiguousarray", lambda array: dense, raising=False)
    gaps = FakeArray(log, (2,), name="gaps")
    gaps.flags = SimpleNamespace(c_contiguous=False)
    host = np.zeros(2, np.float32)
    launch.copy_to_host(gaps, host, stream=None)
    assert host.tolist() == [1.0, 2.0] and log == ["dense out"]


Bound = tuple[Callable[[int], object], dict[int, int]]
_STATIC, _DYNAMIC = 1, 8  # as cuFuncGetAttribute numbers them


@pytest.fixture
def bind(monkeypatch: pytest.MonkeyPatch) -> Bound:
    """Binds a launch with so many bytes of dynamic shared memory, on a GPU with 100,000 bytes a block; and its kernel's attributes."""
    launch = install(monkeypatch, [], "launch")
    attributes = {_STATIC: 1000, _DYNAMIC: (48 << 10) - 1000}
    monkeypatch.setattr(launch.driver, "funcGetAttribute", lambda which, kernel: attributes[which])
    monkeypatch.setattr(launch.driver, "funcSetAttribute", lambda kernel, which, value: attributes.update({which: value}))
    limits = {"MaxSharedMemoryPerBlockOptin": 100_000}
    monkeypatch.setattr(launch.cupy.cuda, "Device", lambda: SimpleNamespace(attributes=limits))
    kernel = SimpleNamespace(ptr=0)
    return lambda size: launch.bind(Launch("tile<4>", (1, 1, 1), (32, 1, 1), (), size), kernel, {}), attributes


def test_a_kernel_may_take_the_shared_memory_of_its_largest_launch(bind: Bound) -> None:
    launch, attributes = bind
    for size, allowed in ((4096, 48_152), (48_200, 48_200), (99_000, 99_000), (60_000, 99_000), (0, 99_000)):
        launch(size)
        assert attributes[_DYNAMIC] == allowed


def test_a_launch_that_needs_more_shared_memory_than_the_gpu_has_says_so(bind: Bound) -> None:
    with pytest.raises(Unavailable, match=r"tile<4> needs 100,001 bytes of shared memory a block, and this GPU has 100,000"):
        bind[0](99_001)
    assert bind[1][_DYNAMIC] == 48_152


def test_a_launch_keeps_the_memory_that_only_a_tensor_map_names(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = install(monkeypatch, [], "launch")
    monkeypatch.setattr(launch, "encode", lambda *of_map: np.zeros(()))
    scratch = FakeArray([], (8, 8), name="scratch")
    freed = weakref.ref(scratch)
    of_map = Launch("tile<4>", (1, 1, 1), (32, 1, 1), (TensorMap("scratch", (8, 8)),))
    enqueue = launch.bind(of_map, lambda *arguments, **more: None, {"scratch": scratch})
    del scratch
    gc.collect()
    enqueue(None)
    assert freed() is not None


def test_an_early_launch_goes_by_the_driver_to_the_stream_or_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    launch, enqueued = install(monkeypatch, [], "launch"), []
    monkeypatch.setattr(launch, "bind_early", lambda of, function, arguments: enqueued.append)
    monkeypatch.setattr(launch.cupy.cuda, "get_current_stream", lambda: SimpleNamespace(ptr=5), raising=False)
    enqueue = launch.bind(Launch("k", (1, 1, 1), (32, 1, 1), (), early=True), SimpleNamespace(ptr=0), {})
    enqueue(SimpleNamespace(ptr=9))
    enqueue()
    assert enqueued == [9, 5]
