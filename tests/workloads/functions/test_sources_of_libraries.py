"""Objects of Numba, Triton, PyTorch and CuPy bring the text that they were made of."""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numba
import pytest

from tests.workloads.functions.loading import loaded, text_of
from warpladder.workloads.declare.functions.sources import source_file_of, source_of

pytestmark = pytest.mark.slow


def test_numba_s_functions_are_followed(tmp_path: Path) -> None:
    text = """
        import numba
        STEP = 2

        @numba.njit(inline="never")
        def inner(x):
            return x + STEP

        @numba.vectorize
        def each(x):
            return x * STEP

        @numba.njit
        def outer(x):
            return inner(x)

        def f(x):
            return outer(x) + each(x)
    """
    bench = loaded(tmp_path, text)
    assert isinstance(bench.outer, numba.core.registry.CPUDispatcher)
    inner, outer = (
        '@numba.njit(inline="never")\ndef inner(x):\n    return x + STEP',
        "@numba.njit\ndef outer(x):\n    return inner(x)",
    )
    assert text_of(bench.outer) == ["import numba\nSTEP = 2", inner, outer]
    each = "@numba.vectorize\ndef each(x):\n    return x * STEP"
    assert text_of(bench.f) == ["import numba\nSTEP = 2", inner, each, outer, "def f(x):\n    return outer(x) + each(x)"]
    assert source_file_of(bench.outer) == tmp_path / "bench.py"
    inline = numba.njit(bench.inner.py_func)
    assert "# numba.core.registry.CPUDispatcher(inner)" not in source_of(inline)  # its own decorator says it
    assert source_of(bench.each) == source_of(bench.each)


TRITON = """
    import triton
    import triton.language as tl
    BLOCK: tl.constexpr = 64
    CONFIGS = [triton.Config({"B": 64})]

    @triton.jit
    def _inner(x):
        return x * 2

    @triton.autotune(configs=CONFIGS, key=["n"])
    @triton.heuristics({"EVEN": lambda a: a["n"] % 2 == 0})
    @triton.jit
    def kernel(x, n, B: tl.constexpr, EVEN: tl.constexpr):
        tl.store(x, _inner(tl.load(x)) + BLOCK)

    def fused(x):
        kernel[(1,)](x, 1)
        return x
"""
FAKE_TRITON = """
    class JITFunction:
        def __init__(self, fn):
            self.fn = fn
            self.__globals__ = fn.__globals__
            self.__name__ = fn.__name__
        def __getitem__(self, grid):
            return lambda *arguments: None
        run = print

    class Autotuner:
        def __init__(self, fn, configs):
            self.fn, self.configs = fn, configs
        run = __getitem__ = print

    class Heuristics:
        def __init__(self, fn, values):
            self.fn, self.values = fn, values
        run = __getitem__ = print

    class Config:
        def __init__(self, kwargs):
            self.kwargs = kwargs

    jit = JITFunction

    def autotune(configs, key):
        return lambda fn: Autotuner(fn, configs)

    def heuristics(values):
        return lambda fn: Heuristics(fn, values)
"""
KERNEL = [
    'import triton\nimport triton.language as tl\nBLOCK: tl.constexpr = 64\nCONFIGS = [triton.Config({"B": 64})]',
    "@triton.jit\ndef _inner(x):\n    return x * 2",
    '@triton.autotune(configs=CONFIGS, key=["n"])\n@triton.heuristics({"EVEN": lambda a: a["n"] % 2 == 0})\n@triton.jit\n'
    "def kernel(x, n, B: tl.constexpr, EVEN: tl.constexpr):\n    tl.store(x, _inner(tl.load(x)) + BLOCK)",
]


@pytest.fixture
def fake_triton(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package shaped as Triton 3.6 is, installed in a folder of packages."""
    package = tmp_path / "site-packages" / "triton"
    (package / "language").mkdir(parents=True)
    (package / "__init__.py").write_text(textwrap.dedent(FAKE_TRITON))
    (package / "language" / "__init__.py").write_text("constexpr = int\nload = store = print\n")
    real = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "triton"}
    with monkeypatch.context() as patched:
        patched.syspath_prepend(str(package.parent))
        yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "triton"]:
        del sys.modules[name]
    sys.modules.update(real)


@pytest.mark.usefixtures("fake_triton")
def test_triton_s_kernels_are_followed_through_their_decorators(tmp_path: Path) -> None:
    bench = loaded(tmp_path, TRITON)
    assert type(bench.kernel.fn.fn).__name__ == "JITFunction"
    assert text_of(bench.fused) == [*KERNEL, "def fused(x):\n    kernel[(1,)](x, 1)\n    return x"]
    assert text_of(bench.kernel) == KERNEL


def test_real_triton_s_kernels_are_followed(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    bench = loaded(tmp_path, TRITON)
    assert text_of(bench.fused) == [*KERNEL, "def fused(x):\n    kernel[(1,)](x, 1)\n    return x"]
    assert text_of(bench.kernel) == KERNEL
    assert source_file_of(bench.kernel) == tmp_path / "bench.py"


@pytest.mark.usefixtures("fake_triton")
def test_a_kernel_that_a_function_makes_is_followed(tmp_path: Path) -> None:
    text = """
        import triton

        def make(block):
            @triton.jit
            def kernel(x):
                return x + block

            def launch(x):
                return kernel[(1,)](x)
            return launch
    """
    kernel = "# block = 8, in the function around it\n@triton.jit\ndef kernel(x):\n    return x + block"
    assert text_of(loaded(tmp_path, text).make(8)) == ["import triton", kernel, "def launch(x):\n    return kernel[(1,)](x)"]


def test_real_functions_that_pytorch_compiles_say_so_and_in_which_mode(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    text = """
        import torch

        def eager(x):
            return torch.softmax(x, dim=1)

        compiled = torch.compile(eager)

        class Net(torch.nn.Module):
            def forward(self, x):
                return eager(x)
    """
    bench = loaded(tmp_path, text)
    eager = "def eager(x):\n    return torch.softmax(x, dim=1)"
    assert text_of(bench.eager) == ["import torch", eager]
    assert text_of(bench.compiled) == ["import torch", eager, "compiled = torch.compile(eager)"]
    assert text_of(torch.compile(bench.eager)) == ["import torch", f"# torch.compile(eager)\n{eager}"]
    modes = "coordinate_descent_tuning=True, triton.cudagraphs=True"
    tuned = torch.compile(bench.eager, mode="max-autotune")
    assert text_of(tuned) == ["import torch", f"# torch.compile(eager, max_autotune=True, {modes})\n{eager}"]
    net = "class Net(torch.nn.Module):\n    def forward(self, x):\n        return eager(x)"
    assert text_of(bench.Net()) == ["import torch", eager, net]
    assert text_of(torch.compile(bench.Net())) == ["import torch", eager, f"# torch.compile(Net.forward)\n{net}"]


class RawKernel:
    """Shaped as CuPy's: an object of a type without Python text that holds its CUDA C++."""

    def __init__(self, code: str | None, name: str, file_path: str | None = None) -> None:
        self.code, self.name, self.file_path, self.options = code, name, file_path, ()

    def __call__(self, *arguments: object) -> None: ...


RawKernel.__module__ = "cupy._core.raw"
RAW = '''
    import cupy

    CODE = r"""
    __global__ void f(float* x) { *x = BLOCK; }
    """
    kernel = cupy.RawKernel(CODE, "f")
    other = cupy.RawKernel(CODE.replace("BLOCK", "64"), "f")

    def launched(x):
        kernel((1,), (1,), (x,))

    def tuned(x):
        other((1,), (1,), (x,))
'''


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    fake = ModuleType("cupy")
    fake.RawKernel = RawKernel  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", fake)
    return fake


CODE = 'CODE = r"""\n__global__ void f(float* x) { *x = BLOCK; }\n"""'


def check_raw_kernels(bench: ModuleType) -> None:
    kernel = 'kernel = cupy.RawKernel(CODE, "f")'
    assert text_of(bench.launched) == ["import cupy", CODE, kernel, "def launched(x):\n    kernel((1,), (1,), (x,))"]
    assert text_of(bench.kernel) == ["import cupy", CODE, kernel]
    assert text_of(bench.tuned)[-1] == "# other, as the file makes it\n__global__ void f(float* x) { *x = 64; }"


def test_cupy_s_kernels_bring_their_code(tmp_path: Path, cupy: ModuleType) -> None:
    check_raw_kernels(loaded(tmp_path, RAW))


def test_real_cupy_s_kernels_bring_their_code(tmp_path: Path) -> None:
    pytest.importorskip("cupy", reason="CuPy is not installed")
    check_raw_kernels(loaded(tmp_path, RAW))


def test_code_that_is_read_from_a_file_counts(tmp_path: Path, cupy: ModuleType) -> None:
    text = """
        from pathlib import Path
        import cupy
        kernel = cupy.RawKernel((Path(__file__).parent / "f.cu").read_text(), "f")
        def f(x):
            kernel((1,), (1,), (x,))
    """
    (tmp_path / "f.cu").write_text("__global__ void f() {}\n// one\n")
    before = source_of(loaded(tmp_path, text).f)
    (tmp_path / "f.cu").write_text("__global__ void f() {}\n// two\n")
    assert "// one" in before
    assert source_of(loaded(tmp_path, text).f) == before.replace("// one", "// two")


def test_a_kernel_from_a_compiled_file_counts_by_its_digest(tmp_path: Path) -> None:
    (tmp_path / "f.cubin").write_bytes(b"abc")
    kernel = RawKernel(None, "f", str(tmp_path / "f.cubin"))
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # SHA-256 of abc, FIPS 180-2
    assert f"f.cubin, SHA-256 {digest}" in source_of(kernel)
