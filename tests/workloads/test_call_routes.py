"""The routes from Python to one kernel: the workload's cases, its two pitfalls, and the steps that each route goes through."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warpladder.workloads.api import LibraryVariant, NotInstalled, read_source
from warpladder.workloads.call_routes import host, peers, problem
from warpladder.workloads.call_routes.routes import extension, route
from warpladder.workloads.call_routes.routes.cuda_bindings import CudaBindings
from warpladder.workloads.call_routes.routes.cuda_core import CudaCore
from warpladder.workloads.call_routes.routes.cupy_raw import CupyRaw
from warpladder.workloads.call_routes.routes.pybind_extension import PybindExtension
from warpladder.workloads.call_routes.routes.route import Route, kernel_text
from warpladder.workloads.call_routes.rungs import KERNEL, block, grid_of
from warpladder.workloads.call_routes.workload import ROUTES, WORKLOAD
from warpladder.workloads.declare.stepwise import HandOver, Stepwise


def of(shape: str, calls: str = "1"):
    return problem.case({"shape": shape, "calls": calls})


class FakeArray:
    """Of the device: an address, and the interface that tells it."""

    def __init__(self, address: int) -> None:
        self.data = SimpleNamespace(ptr=address)
        self.__cuda_array_interface__ = {"data": (address, False)}


class Logged(Route):
    """A route that keeps what is asked of it; it gives each array another address if `copies`."""

    interface = "a log"

    def __init__(self, *arguments: Any, copies: bool = False) -> None:
        self.log: list[object] = []
        self.copies = copies
        super().__init__(*arguments)

    def start(self) -> None:
        self.log.append("start")

    def compile(self) -> None:
        self.log.append("compile")

    def load(self) -> None:
        self.log.append("load")

    def hand_over(self, array: FakeArray) -> int:
        return array.data.ptr + 8 * self.copies

    def address_of(self, handle: int) -> int:
        return handle

    def launcher(self, x: int, y: int) -> Callable[[], object]:
        return lambda: self.log.append(("launch", x, y))


X, Y = {"x": FakeArray(16)}, {"y": FakeArray(32)}


def test_a_case_moves_each_byte_once_for_each_call() -> None:
    assert WORKLOAD.case("n=1024,calls=1").min_bytes == 8_388_608  # 4 MiB in and 4 MiB out
    hundred = WORKLOAD.case("n=1024,calls=100")
    assert (hundred.min_bytes, hundred.passes) == (838_860_800, 100)
    assert WORKLOAD.case("shape=1001x517,calls=1").min_bytes == 4_140_136  # 517,517 elements


def test_calls_in_a_row_are_no_size_of_the_case() -> None:
    """Else the checks would compare one call with a hundred, and a time that grows with the calls would hide one that does not with n."""
    assert all(isinstance(case.params["calls"], str) for case in WORKLOAD.cases)


def test_the_first_use_is_timed_at_one_case_which_is_the_report_s() -> None:
    assert [case.name for case in WORKLOAD.cases if problem.is_first_use(case)] == ["n=1024,calls=1"]
    assert {
        variant.name for variant in WORKLOAD.variants if getattr(variant, "first_use", lambda case: False)(WORKLOAD.cases[3])
    } == {variant.name for variant in ROUTES}


def test_the_recorder_s_own_launch_is_repeated_for_each_call() -> None:
    (rung,) = (variant for variant in WORKLOAD.variants if variant.kind == "cuda")
    launches = rung.launches(of("65x100", "10"), {})
    assert len(launches) == 10 and len(set(map(str, launches))) == 1
    assert (launches[0].grid, launches[0].block) == ((4, 3, 1), (32, 8, 1))  # 100 columns and 65 rows of 32


def test_there_are_eight_routes_of_one_text() -> None:
    assert len(ROUTES) == 8
    assert kernel_text() == read_source(KERNEL)
    assert 'extern "C" __global__' in kernel_text()
    assert all(issubclass(variant.prepare, Stepwise) for variant in ROUTES)


def test_a_variant_shows_the_source_of_its_route() -> None:
    shown = WORKLOAD.variant("cupy_raw_module")
    assert shown.source_text.startswith("class CupyRaw(Route):")
    assert shown.source_path == "workloads/call_routes/routes/cupy_raw.py"


def test_a_route_goes_through_its_steps_and_launches_as_often_as_the_case_says() -> None:
    once, many = Logged(of("4x6"), X, Y), Logged(of("4x6", "10"), X, Y)
    assert once.log == many.log == ["start", "compile", "load"]
    once()
    many()
    assert once.log[3:] == [("launch", 16, 32)]
    assert many.log[3:] == [("launch", 16, 32)] * 10


def test_a_route_made_for_a_case_alone_waits_for_its_steps() -> None:
    steps = Logged(of("4x6"))
    assert steps.log == []
    with pytest.raises(AssertionError, match="take"):
        steps()


def test_zero_copy_is_told_by_the_addresses() -> None:
    assert Logged(of("4x6"), X, Y).handed_over == HandOver(True, "a log")
    assert Logged(of("4x6"), X, Y, copies=True).handed_over == HandOver(False, "a log")


def test_a_route_that_loads_while_it_compiles_has_no_step_of_loading() -> None:
    assert not CupyRaw(of("4x6")).loads
    assert CudaBindings(of("4x6")).loads


def test_a_route_by_numbers_takes_the_address_of_the_interface() -> None:
    array = FakeArray(4096)
    for made in (CudaBindings(of("4x6")), PybindExtension(of("4x6"))):
        assert made.address_of(made.hand_over(array)) == 4096


def test_cuda_core_that_is_not_installed_is_told_though_cuda_bindings_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    with pytest.raises(NotInstalled, match="needs the Python package cuda-core"):
        CudaCore(of("4x6")).start()


def test_nvcc_that_is_not_there_is_told_with_where_it_was_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(extension.shutil, "which", lambda name, path=None: None)
    with pytest.raises(NotInstalled, match="needs nvcc, which is neither on PATH nor in CUDA_HOME"):
        extension.nvcc()
    monkeypatch.setattr(
        extension.shutil, "which", lambda name, path=None: f"{path}/{name}" if path == str(tmp_path / "bin") else None
    )
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert extension.nvcc() == str(tmp_path / "bin" / "nvcc")


def test_extensions_are_built_in_the_user_s_cache_and_not_beside_the_source(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WARPLADDER_CACHE_DIR", str(tmp_path))
    one, same, other = (
        extension.folder_for("text", "sm_90"),
        extension.folder_for("text", "sm_90"),
        extension.folder_for("text"),
    )
    assert one == same and one != other and one.is_dir()
    assert one.parent == tmp_path / "extensions"


def test_without_a_driver_there_is_no_architecture_to_build_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise OSError("no such file")

    monkeypatch.setattr(extension.ctypes, "CDLL", absent)
    with pytest.raises(NotInstalled, match="needs an NVIDIA driver"):
        extension.compute_capability()


def test_an_extension_that_does_not_build_says_the_compiler_s_first_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WARPLADDER_CACHE_DIR", str(tmp_path))
    compiler = tmp_path / "nvcc"
    compiler.write_text("#!/bin/sh\necho 'a note' >&2\necho 'x.cu(3): error: no such type' >&2\nexit 1\n")
    compiler.chmod(0o755)
    module = sys.modules[PybindExtension.__module__]
    monkeypatch.setattr(module, "compute_capability", lambda: (9, 0))
    steps = PybindExtension(of("4x6"))
    steps._headers, steps._compiler = str(tmp_path), str(compiler)
    with pytest.raises(RuntimeError, match=r"does not build the pybind11 extension: x\.cu\(3\): error: no such type"):
        steps.compile()


@pytest.mark.parametrize("module", ["pybind_extension", "torch_extension"])
def test_a_binding_launches_the_kernel_with_its_own_tile_and_grid(module: str) -> None:
    """The text after the kernel's takes the tile from the kernel, so that a changed tile needs no change there."""
    found = __import__(f"{route.__package__}.{module}", fromlist=["_"])
    text = found._BINDING if module == "pybind_extension" else found._LAUNCH
    assert "(width + kTile - 1) / kTile, (height + kTile - 1) / kTile" in text
    assert "block(kTile, kRowsAtOnce)" in text
    case = of("65x100")
    assert grid_of(case)[:2] == (-(-100 // block()[0]), -(-65 // block()[0]))


# -- the report's two pitfalls -----------------------------------------------------------------------------------------------


def test_the_specimens_are_the_report_s_two_pitfalls_on_host_and_gpu() -> None:
    found = {variant.name: variant for variant in WORKLOAD.variants if variant.role == "specimen"}
    assert set(found) == {"numpy_view", "cupy_view", "cupy_unsynchronized"}
    waited: Mapping[str, bool] = {
        name: variant.synchronizes for name, variant in found.items() if isinstance(variant, LibraryVariant)
    }
    assert waited == {"cupy_view": True, "cupy_unsynchronized": False}


def test_a_view_is_right_and_shares_the_memory_of_its_input(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    monkeypatch.setitem(sys.modules, "cupy", np)
    for view in (host.numpy_view(of("3x4"), {"x": x}, {})["y"], peers.cupy_view(of("3x4", "10"), {"x": x}, {})()["y"]):
        assert np.shares_memory(view, x)
        assert np.array_equal(view, problem.reference(of("3x4"), {"x": x})["y"])


def test_the_host_is_measured_at_one_call() -> None:
    for variant in (each for each in WORKLOAD.variants if each.kind == "host"):
        reasons = {case.params["calls"]: variant.skip(case, {}) for case in WORKLOAD.cases}
        assert reasons["1"] is None and all("nothing is queued" in str(reasons[calls]) for calls in ("10", "100"))


@pytest.mark.gpu
def test_every_route_that_is_installed_transposes_odd_shapes() -> None:
    import cupy

    case = of("33x70", "10")
    x = cupy.random.random((33, 70), dtype=cupy.float32)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        for variant in ROUTES:
            y = cupy.zeros((70, 33), cupy.float32)
            try:
                made = variant.prepare(case, {"x": x}, {"y": y})
            except (ImportError, NotInstalled):
                continue
            made()
            stream.synchronize()
            assert (y == x.T).all(), variant.name
            assert made.handed_over is not None and made.handed_over.zero_copy, variant.name
