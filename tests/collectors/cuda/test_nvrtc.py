"""NVRTC is found by its version, its folder and its path, and another one compiles beside the installed one."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings")

from warpladder.collectors.cuda import compiler
from warpladder.collectors.cuda.nvrtc import find, nvrtc
from warpladder.errors import Error
from warpladder.workloads.api import CudaVariant

SOURCE = """extern "C" __global__ void k(float* y) {
  float own[64];
  for (int i = 0; i < 64; ++i) own[int(y[i])] = y[i];
  y[0] = own[int(y[1])];
}"""


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """The installed NVRTC under another path, in a folder of its own."""
    installed = Path(nvrtc().path)
    for each in (installed, *installed.parent.glob("libnvrtc-builtins.so.*")):
        (tmp_path / each.name).symlink_to(each)
    return tmp_path / installed.name


def test_it_is_found_by_version_by_folder_and_by_path(beside: Path) -> None:
    version = nvrtc().version
    assert find(version).version == version and "sm_90" in find(version).architectures
    assert find(str(beside)).path == find(str(beside.parent)).path == str(beside)


def test_another_path_compiles_the_same_and_has_its_own_entry_in_the_cache(beside: Path) -> None:
    variant = CudaVariant("own", "own", "rung", source=SOURCE)
    installed = compiler.compilation_of(variant, ["k"], "sm_90")
    other = compiler.compilation_of(replace(variant, nvrtc=str(beside)), ["k"], "sm_90")
    assert installed.key != other.key
    modules = [compiler.compile_uncached(each) for each in (installed, other)]
    assert modules[0] == modules[1]
    assert modules[0].kernels["k"].stack_bytes == 256


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("9.9", "9.9: no such NVRTC here; pip install --no-deps --target nvrtc-9.9 'nvidia-cuda-nvrtc==9.9.*'"),
        ("12.0", "'nvidia-cuda-nvrtc-cu12==12.0.*', and name that folder"),
        ("{folder}", "no NVRTC in it; give a version, such as 12.4, or a folder"),
        ("{folder}/none", "no such file; give a version"),
        ("{folder}/damaged", "no NVRTC"),
    ],
)
def test_what_is_no_nvrtc_is_refused(name: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "damaged").write_text("no library")
    with pytest.raises(Error) as refused:
        find(name.format(folder=tmp_path))
    assert problem in str(refused.value) and "\n" not in str(refused.value)


def test_the_headers_beside_a_compiler_come_first(tmp_path: Path) -> None:
    from warpladder.collectors.cuda import headers

    toolkit = tmp_path / "cuda-12.4"
    (toolkit / "include").mkdir(parents=True)
    (toolkit / "include" / "cuda_runtime_api.h").write_text("#define CUDART_VERSION  12040\n")
    package = tmp_path / "nvidia" / "cuda_runtime" / "include"
    package.mkdir(parents=True)
    (package / "cuda_runtime_api.h").write_text("#define CUDART_VERSION  12040\n")
    assert headers.toolkit_folders(str(toolkit / "lib64" / "libnvrtc.so.12"))[0] == toolkit / "include"
    assert headers.toolkit_folders(str(package.parents[1] / "cuda_nvrtc" / "lib" / "libnvrtc.so.12"))[0] == package
