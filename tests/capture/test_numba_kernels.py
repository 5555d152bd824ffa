"""Kernels of Numba that are taken from launches, with its launches and the device's memory faked, and its types real."""

import ctypes
import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import cuda, types

from warpladder.collectors.capture import child, numba_kernels
from warpladder.collectors.capture.watch import Watch
from warpladder.workloads import registry
from warpladder.workloads.api import CudaVariant

FACTOR = 2


@cuda.jit
def doubled(value: float) -> float:
    return FACTOR * value


def axpy(x, y, size, a):  # type: ignore[no-untyped-def]
    """Stands for a kernel; what it does is given beside it."""
    y[0] = doubled(a) * x[0] + size[0]


class OnDevice:
    """An array that shows its memory as CuPy, PyTorch and Numba do."""

    def __init__(self, host: np.ndarray) -> None:
        self.host = host

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        known = self.host.__array_interface__
        return {name: known[name] for name in ("shape", "typestr", "data", "strides")} | {"version": 3}


class Flat:
    """The array that Numba makes of bytes on the device."""

    def __init__(self, shown: Any) -> None:
        interface = shown.__cuda_array_interface__
        memory = (ctypes.c_uint8 * interface["shape"][0]).from_address(interface["data"][0])
        self.bytes = np.frombuffer(memory, np.uint8)

    def copy_to_host(self) -> np.ndarray:
        return self.bytes.copy()

    def copy_to_device(self, data: np.ndarray) -> None:
        self.bytes[...] = data


def add(x: Any, y: Any, size: Any, a: Any) -> None:
    y.host[...] += a.real * x.host + size[0]


def scale(x: Any, y: Any, size: Any, a: Any) -> None:
    y.host[...] = a.real * x.host + size[0]


def copy_to_host(x: Any, y: Any, size: Any, a: Any) -> None:
    y.value[...] = x.host


def type_of(value: Any) -> Any:
    """The type that Numba compiles for."""
    if isinstance(value, tuple):
        return types.Tuple([type_of(each) for each in value])
    if isinstance(value, int | float | complex | np.generic):
        return {bool: types.boolean, int: types.int64, complex: types.complex64}.get(type(value), types.float32)
    return types.float32[:]


def launched(does: Any, *args: Any, number: int = 1, launches: int = 1, **about: Any) -> Watch:
    class Launched:
        entry_name = "_ZN8__main__4axpyB2v1B92cw51"
        library = SimpleNamespace(_nvvm_options={"fastmath": True, "opt": 3}, _max_registers=None)
        cooperative, extensions = about.get("cooperative", False), ()
        argument_types = tuple(type_of(value) for value in args)

        def launch(
            self, args: Sequence[Any], griddim: Sequence[int], blockdim: Sequence[int], stream: Any = 0, sharedmem: int = 0
        ) -> None:
            does(*args)

        def inspect_asm(self, cc: Any) -> str:
            return str(about.get("ptx", ".entry _Z4axpy() { ret; }"))

    if about.get("function", True):
        Launched.py_func = staticmethod(axpy)  # type: ignore[attr-defined]
    watch, waited = Watch(re.compile(""), number), list[int]()
    module = ModuleType("dispatcher")
    module._Kernel = Launched  # type: ignore[attr-defined]
    of_cuda: Any = SimpleNamespace(as_cuda_array=Flat, synchronize=lambda: waited.append(1))
    numba_kernels.watch_numba(watch, module, of_cuda)
    for _ in range(launches):
        Launched().launch(args, (2, 1, 1), (4, 1, 1), 0, 64)
    return watch


def array(*values: float) -> OnDevice:
    return OnDevice(np.array(values, np.float32))


def test_a_kernel_gets_each_array_as_seven_words_tuples_as_their_parts_and_complex_numbers_as_two(tmp_path: Path) -> None:
    x, y = array(1, 2), array(0, 0)
    watch = launched(scale, x, y, (3, True), 2 + 1j)
    (kernel,) = watch.kept
    of_array = [np.uint64(0), np.uint64(0), np.int64(2), np.int64(4)]
    expected = [*of_array, "x", np.int64(2), np.int64(4), *of_array, "y", np.int64(2), np.int64(4)]
    expected += [np.int64(3), np.uint8(1), np.float32(2), np.float32(1)]
    words = kernel.arguments  # type: ignore[union-attr]
    assert list(words) == expected and [type(each) for each in words] == [type(each) for each in expected]
    assert y.host.tolist() == [5, 7]
    (answer,) = child.written(watch, tmp_path, "prog.py")
    assert answer["folder"] == "axpy"
    (workload,) = (each for each, _ in registry.load_with_files([], [tmp_path / "axpy/bench.py"]) if each.name == "axpy")
    (variant, in_numba), (case,) = workload.variants, workload.cases
    assert isinstance(variant, CudaVariant) and in_numba.name == "in_numba"
    given = workload.make_inputs(case, np.random.default_rng(0))
    assert [each.tolist() for each in workload.reference(case, given).values()] == [[5, 7]]
    launch = variant.launches(case, {})[0]
    assert (launch.grid, launch.block, launch.args[4], launch.args[11]) == ((2, 1, 1), (4, 1, 1), "x", "y_new")
    text = (tmp_path / "axpy/bench.py").read_text()
    assert "axpy[(2, 1, 1), (4, 1, 1), stream, 64](x, y, (np.int64(3), True,), np.complex64((2+1j)))" in text
    module = (tmp_path / "axpy/kernel.py").read_text()
    assert "FACTOR = 2\n" in module and "@cuda.jit\ndef doubled(" in module and "@cuda.jit(fastmath=True)\ndef axpy(" in module
    compile(module, "kernel.py", "exec")


def test_a_kernel_from_the_cache_of_numba_has_the_name_of_its_symbol() -> None:
    watch = launched(scale, array(1), array(0), (1,), 1j, function=False)
    (kernel,) = watch.kept
    assert (kernel.name, kernel.symbol, kernel.python) == ("axpy", "_ZN8__main__4axpyB2v1B92cw51", "")  # type: ignore[union-attr]
    assert [each.name for each in kernel.arrays] == ["a0", "a1"]


def test_what_a_kernel_adds_to_is_copied_before_each_call(tmp_path: Path) -> None:
    x, y = array(1, 2), array(10, 10)
    watch = launched(add, x, y, (3,), 1j)
    assert y.host.tolist() == [13, 13] and watch.kept[0].arrays[1].is_read
    list(child.written(watch, tmp_path, "prog.py"))
    text = (tmp_path / "axpy/bench.py").read_text()
    assert text.count("writes_inputs=True") == 2
    compile(text, "bench.py", "exec")


def test_the_launch_that_is_wanted_of_a_loop_is_kept() -> None:
    watch = launched(add, array(1, 2), array(0, 0), (1,), 1 + 0j, number=3, launches=4)
    assert watch.counts["axpy"] == 4 and watch.kept[0].number == 3
    before, after = watch.kept[0].arrays[1].before, watch.kept[0].arrays[1].after
    assert after is not None
    assert before.view(np.float32).tolist() == [4, 6] and after.view(np.float32).tolist() == [6, 9]


def test_an_array_given_twice_is_one_argument_and_slices_keep_their_strides() -> None:
    both = np.arange(8, dtype=np.float32)
    y = OnDevice(both[::2])
    watch = launched(add, y, y, (0,), 1 + 0j)
    (kernel,) = watch.kept
    (only,) = kernel.arrays
    assert kernel.arguments[4] == kernel.arguments[11] == "x"  # type: ignore[union-attr]
    assert kernel.arguments[5:7] == (np.int64(4), np.int64(8))  # type: ignore[union-attr]
    assert only.shape == (7,) and both.tolist() == [0, 1, 4, 3, 8, 5, 12, 7]


def test_an_array_on_the_host_is_one_that_numba_copies() -> None:
    y = np.zeros(2, np.float32)
    (kernel,) = launched(copy_to_host, array(1, 2), cuda.Out(y), (0,), 1j).kept
    assert kernel.arrays[1].kind == "float32" and y.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("args", "about", "why"),
    [
        ((OnDevice(np.zeros(4, np.float32)[::-1]),), {}, "its argument x is a slice in reverse order"),
        ((OnDevice(np.zeros(4, "M8[s]")),), {}, "its argument x has elements of type datetime64[s]"),
        ((), {"cooperative": True}, "its blocks wait for one another: it is launched as a cooperative grid"),
        ((), {"ptx": ".extern .func f"}, "it is linked with other code"),
    ],
)
def test_what_cannot_be_kept_is_launched_all_the_same(args: tuple[Any, ...], about: dict[str, Any], why: str) -> None:
    calls = list[int]()

    def does(x: Any, y: Any, size: Any, a: Any) -> None:
        calls.append(1)
        y.host[...] = 1

    x, y, size, a = (*args, *(array(1, 2), array(0, 0), (1,), 1j)[len(args) :])
    watch = launched(does, x, y, size, a, **about)
    assert watch.refused == {"axpy": why} and not watch.kept and calls
