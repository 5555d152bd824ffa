"""Operators of PyTorch's extensions that are taken from calls, with PyTorch faked at its border, and the benchmarks that they become."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warpladder.collectors.capture import child, extensions
from warpladder.collectors.capture.watch import Watch


class Tensor:
    """A tensor of the faked PyTorch, on the host."""

    dtype = "torch.float32"

    def __init__(self, host: np.ndarray, *, is_cuda: bool = True) -> None:
        self.host, self.is_cuda, self.shape = host, is_cuda, host.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(step // 4 for step in self.host.strides)

    def is_contiguous(self) -> bool:
        return bool(self.host.flags.c_contiguous)

    def contiguous(self) -> "Tensor":
        return Tensor(np.ascontiguousarray(self.host))

    def detach(self) -> "Tensor":
        return self

    def data_ptr(self) -> int:
        return int(self.host.__array_interface__["data"][0])


class Memory:
    """The memory of a faked tensor, in place of `OfTorch`."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor, self.kind, self.start = tensor, "float32", tensor.data_ptr()
        extent = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
        self.flat = np.lib.stride_tricks.as_strided(tensor.host, (extent,), (4,))
        self.shape = tensor.shape if tensor.is_contiguous() else (extent,)
        self.nbytes = 4 * extent

    def read(self) -> np.ndarray:
        return self.flat.copy().view(np.uint8)

    def write(self, data: np.ndarray) -> None:
        self.flat[...] = data.view(np.float32)


def faked(operator: Any) -> ModuleType:
    """`torch.utils.cpp_extension`, with the parameters of its functions that matter here."""

    def load(
        name: Any, sources: Any, extra_cflags: Any = None, extra_include_paths: Any = None, verbose: Any = False
    ) -> ModuleType:
        module = ModuleType(name)
        module.run = operator  # type: ignore[attr-defined]
        return module

    def load_inline(name: Any, cpp_sources: Any, cuda_sources: Any = None, functions: Any = None) -> ModuleType:
        cpp_sources.insert(0, "#include <torch/extension.h>")  # as PyTorch does
        return load(name, cpp_sources)

    module = ModuleType("cpp_extension")
    module.load, module.load_inline = load, load_inline  # type: ignore[attr-defined]
    return module


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Watch, ModuleType]]:
    def watch_of(operator: Any, **options: Any) -> tuple[Watch, ModuleType]:
        monkeypatch.setattr(extensions, "OfTorch", Memory)
        monkeypatch.setattr(extensions.inspect, "isbuiltin", callable)  # as the functions of pybind11 are
        watch, module = Watch(re.compile(""), **options), faked(operator)
        torch: Any = SimpleNamespace(cuda=SimpleNamespace(synchronize=lambda: None))
        extensions.watch_extensions(watch, torch, module)
        return watch, module

    return watch_of


def tensor(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32))


def test_an_operator_that_returns_a_tensor_is_built_of_the_kept_sources(watched: Any, tmp_path: Path) -> None:
    watch, module = watched(lambda x, y, a, axes: Tensor(a * x.host + y.host.sum()))
    sources = ["at::Tensor run(at::Tensor x);"]
    extension = module.load_inline("mine", sources, cuda_sources="__global__ void k() {}", functions=["run"])
    x, y = Tensor(np.arange(4, dtype=np.float32).reshape(2, 2).T), tensor(1)
    assert extension.run(x, y, 2.0, [0, None]).host.tolist() == [[1, 5], [3, 7]]
    (answer,) = child.written(watch, tmp_path, "prog.py")
    assert answer == {"kernel": "run", "launches": 1, "folder": "run", "why": ""}
    folder = tmp_path / "run"
    assert (folder / "cpp_sources_0.cpp").read_text() == "at::Tensor run(at::Tensor x);"
    assert (folder / "cuda_sources_0.cu").read_text() == "__global__ void k() {}"
    text = (folder / "bench.py").read_text()
    compile(text, "bench.py", "exec")
    assert "BUILT.run(a0.as_strided((2, 2), (1, 2)), a1, 2.0, [0, None])" in text
    assert "cuda_sources=[(FOLDER / 'cuda_sources_0.cu').read_text()], functions=['run'], build_directory=" in text
    assert 'return {"result_new": result}' in text and "writes_inputs" not in text
    kept = np.load(folder / "arguments.npz")
    assert kept["result_after"].tolist() == [[1, 5], [3, 7]] and kept["a0"].tolist() == [0, 1, 2, 3]


def test_sources_in_files_are_kept_with_the_headers_beside_them(watched: Any, tmp_path: Path) -> None:
    (tmp_path / "csrc/inc").mkdir(parents=True)
    (tmp_path / "csrc/op.cu").write_text('#include <cuda.h>\n#include "inc/op.h"\n')
    (tmp_path / "csrc/inc/op.h").write_text("#pragma once\n")

    def add_in_place(x: Tensor, y: Tensor) -> Tensor:
        x.host += y.host
        return x

    watch, module = watched(add_in_place)
    extension = module.load(
        name="mine", sources=str(tmp_path / "csrc/op.cu"), extra_include_paths=[str(tmp_path / "csrc")], verbose=True
    )
    x = tensor(1, 2)
    extension.run(x, y=tensor(3, 4))
    assert x.host.tolist() == [4, 6]
    list(child.written(watch, tmp_path / "out", "prog.py"))
    folder = tmp_path / "out/run"
    assert (folder / "inc/op.h").is_file() and (folder / "op.cu").is_file()
    text = (folder / "bench.py").read_text()
    assert "sources=[str(FOLDER / 'op.cu')]" in text and "verbose" not in text
    assert "@bench.variant(baseline=True, writes_inputs=True)\ndef as_captured(a0, y_):" in text
    assert 'BUILT.run(a0, y=y_)\n    return {"a0_new": a0}' in text


def test_an_output_that_is_only_written_is_empty_before_the_call(watched: Any, tmp_path: Path) -> None:
    def write(out: Tensor, x: Tensor) -> None:
        out.host[...] = 2 * x.host

    watch, module = watched(write, number=2)
    extension = module.load("mine", [])
    for _ in range(3):
        extension.run(out := tensor(0, 0), tensor(1, 2))
    assert out.host.tolist() == [2, 4]
    list(child.written(watch, tmp_path, "prog.py"))
    text = (tmp_path / "run/bench.py").read_text()
    assert 'a0 = torch.empty((2,), dtype=torch.float32, device="cuda")' in text and "launch=[2]" in text


@pytest.mark.parametrize(
    ("argument", "answer", "why"),
    [
        (Tensor(np.zeros(2, np.float32), is_cuda=False), None, "its argument a0 is a tensor on the host"),
        (math, None, "its argument a0 is module: neither a tensor nor a number, a text or a list of them"),
        (tensor(1), "text", "it returns str, which is no tensor"),
    ],
)
def test_what_cannot_be_kept_is_called_all_the_same(watched: Any, argument: Any, answer: Any, why: str) -> None:
    watch, module = watched(lambda given: answer)
    assert module.load("mine", []).run(argument) == answer
    assert watch.refused == {"run": why} and not watch.kept
