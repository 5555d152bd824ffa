"""What was compiled is kept on disk, whole or not at all."""

import os
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings")

from warpladder.collectors.core import kernel_cache
from warpladder.collectors.cuda import compiler
from warpladder.workloads.api import CudaVariant

SOURCE = "__constant__ float c; template <int N> __global__ void k(float* y) { y[threadIdx.x] = N * c; }"
VARIANT = CudaVariant("v01_tiny", "tiny", "rung", source=SOURCE, constants={"c": "x"})
WHAT = compiler.compilation_of(VARIANT, ["k<1>", "k<2>"], "sm_90")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(kernel_cache.CACHE_VARIABLE, str(tmp_path / "cache"))
    compiler.compiled.cache_clear()
    return tmp_path / "cache" / "kernels"


def again(monkeypatch: pytest.MonkeyPatch) -> tuple[compiler.CompiledModule, int]:
    """The module as another process takes it, and how often that compiled."""
    calls: list[object] = []
    compile_uncached = compiler.compile_uncached
    monkeypatch.setattr(compiler, "compile_uncached", lambda what: calls.append(what) or compile_uncached(what))
    compiler.compiled.cache_clear()
    return compiler.compiled(WHAT), len(calls)


def test_a_second_process_finds_the_same_code_and_resources(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    first = compiler.compiled(WHAT)
    assert again(monkeypatch) == (first, 0)
    assert [file.name for file in folder.iterdir()] == [f"{WHAT.key}.kernel"]


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "foreign"])
def test_a_damaged_entry_is_compiled_anew_and_mended(monkeypatch: pytest.MonkeyPatch, folder: Path, damage: str) -> None:
    first = compiler.compiled(WHAT)
    file = folder / f"{WHAT.key}.kernel"
    whole = file.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    file.write_bytes({"cut": whole[:-9], "flipped": flipped, "empty": b"", "foreign": b"\x7fELF"}[damage])
    assert again(monkeypatch) == (first, 1)
    assert file.read_bytes() == whole


def test_whatever_the_code_depends_on_gives_another_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {WHAT.key}
    for other in (
        compiler.compilation_of(VARIANT, ["k<1>"], "sm_90"),
        compiler.compilation_of(VARIANT, ["k<1>", "k<2>"], "sm_80"),
        compiler.compilation_of(CudaVariant("v01_tiny", "tiny", "rung", source=SOURCE), ["k<1>", "k<2>"], "sm_90"),
        compiler.compilation_of(CudaVariant("w", "tiny", "rung", source=SOURCE + " "), ["k<1>", "k<2>"], "sm_90"),
    ):
        keys.add(other.key)
    monkeypatch.setattr(compiler, "version", lambda path: "99.1")
    keys.add(WHAT.key)
    assert len(keys) == 6


def test_what_was_not_used_for_longest_goes_when_there_is_too_much(folder: Path) -> None:
    for number, key in enumerate(("a", "b", "c")):
        kernel_cache.write(key, {}, b"x" * 1000, limit_bytes=10_000)
        os.utime(folder / f"{key}.kernel", ns=(number, number))
    kernel_cache.read("a")  # used since
    kernel_cache.write("d", {}, b"x" * 1000, limit_bytes=3_500)
    assert {file.stem for file in folder.iterdir()} == {"a", "c", "d"}


def test_a_folder_that_cannot_be_written_costs_the_cache_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(kernel_cache.CACHE_VARIABLE, str(tmp_path / "file"))
    assert set(compiler.compiled(WHAT).kernels) == {"k<1>", "k<2>"}


def test_the_folder_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(kernel_cache.CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kernel_cache.cache_dir() == tmp_path / "warpladder"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the specification says to ignore
    assert kernel_cache.cache_dir() == Path.home() / ".cache" / "warpladder"
