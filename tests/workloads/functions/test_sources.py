"""The text of a function variant holds all of the user's that it reaches, and changes exactly when that changes."""

import builtins
import ctypes
import functools
import linecache
import math
import subprocess
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

from warpladder.workloads import neighbours
from warpladder.workloads.functions.sources import line_of, source_file_of, source_of


def loaded(folder: Path, text: str, **beside: str) -> ModuleType:
    """A file `bench.py` with others beside it, run as a workload file is."""
    for name, content in beside.items():
        file = folder / (name.replace("_in_", "/") + ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(content))
    (folder / "bench.py").write_text(textwrap.dedent(text))
    return neighbours.load(folder / "bench.py")


def text_of(function: Any) -> list[str]:
    """The text in parts: what blank lines separate."""
    return source_of(function).rstrip("\n").split("\n\n")


BENCH = """
    import functools
    import helpers
    from helpers import shifted as moved

    BLOCK = 256
    WIDE = BLOCK * 2
    NAMES = ("a", "b")
    UNUSED = 7

    def unused(x):
        return x * UNUSED

    def halved(x):
        return x / 2 + WIDE

    def plain(x):
        return halved(x) + helpers.scaled(x)

    def imported(x):
        return moved(x)

    def recursive(n):
        return recursive(n - 1) if n else 0

    def shadowed(BLOCK):
        UNUSED = BLOCK
        return [WIDE for WIDE in range(UNUSED)]

    def local(x):
        from helpers import scaled
        import helpers as h
        return scaled(x) + h.OTHER
"""
HELPERS = """
    import json
    SCALE = 3
    OTHER = 5

    def scaled(x):
        return x * SCALE

    def shifted(x):
        return x + OTHER
"""


def test_a_function_brings_what_it_reaches_in_the_order_of_the_files(tmp_path: Path) -> None:
    bench = loaded(tmp_path, BENCH, helpers=HELPERS)
    assert text_of(bench.plain) == [
        "import helpers",
        "BLOCK = 256\nWIDE = BLOCK * 2",
        "def halved(x):\n    return x / 2 + WIDE",
        "def plain(x):\n    return halved(x) + helpers.scaled(x)",
        "# helpers.py",
        "SCALE = 3",
        "def scaled(x):\n    return x * SCALE",
    ]


def test_a_name_that_an_import_renames_is_followed(tmp_path: Path) -> None:
    bench = loaded(tmp_path, BENCH, helpers=HELPERS)
    assert text_of(bench.imported) == [
        "from helpers import shifted as moved",
        "def imported(x):\n    return moved(x)",
        "# helpers.py",
        "OTHER = 5",
        "def shifted(x):\n    return x + OTHER",
    ]


def test_imports_within_the_function_are_followed(tmp_path: Path) -> None:
    assert "def scaled(x):\n    return x * SCALE" in text_of(loaded(tmp_path, BENCH, helpers=HELPERS).local)
    assert "SCALE = 3\nOTHER = 5" in text_of(loaded(tmp_path, BENCH, helpers=HELPERS).local)


def test_a_module_that_is_imported_when_the_function_runs_counts_as_a_whole(tmp_path: Path) -> None:
    bench = loaded(
        tmp_path,
        """
        def f(x):
            from kit.late import twice
            import absent
            return twice(x)
        """,
        kit_in_late="from .more import FACTOR\n\ndef twice(x):\n    return FACTOR * x",
        kit_in_more="import kit.late\nFACTOR = 2",
    )
    before = source_of(bench.f)
    assert before.split("# kit/")[1:] == [
        "late.py\n\nfrom .more import FACTOR\n\ndef twice(x):\n    return FACTOR * x\n\n",
        "more.py\n\nimport kit.late\nFACTOR = 2\n",
    ]
    assert bench.f.__globals__["__builtins__"]["__import__"]("kit.late", bench.f.__globals__)
    assert "def twice(x):\n    return FACTOR * x\n" in source_of(bench.f)


def test_local_names_bring_nothing_and_recursion_ends(tmp_path: Path) -> None:
    bench = loaded(tmp_path, BENCH, helpers=HELPERS)
    assert len(text_of(bench.shadowed)) == 1
    assert len(text_of(bench.recursive)) == 1


def test_the_text_is_the_same_in_every_process_and_names_no_folder(tmp_path: Path) -> None:
    loaded(tmp_path, BENCH, helpers=HELPERS)
    code = (
        "import sys; from pathlib import Path; from warpladder.workloads import neighbours;"
        "from warpladder.workloads.functions.sources import source_of;"
        f"print(source_of(neighbours.load(Path({str(tmp_path / 'bench.py')!r})).plain), end='')"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert texts == {source_of(loaded(tmp_path, BENCH, helpers=HELPERS).plain)}
    assert str(tmp_path) not in texts.pop()


def test_the_text_changes_with_what_is_reached_and_with_nothing_else(tmp_path: Path) -> None:
    before = source_of(loaded(tmp_path, BENCH, helpers=HELPERS).plain)
    assert source_of(loaded(tmp_path, BENCH.replace("UNUSED = 7", "UNUSED = 8"), helpers=HELPERS).plain) == before
    assert source_of(loaded(tmp_path, BENCH.replace("BLOCK = 256", "BLOCK = 512"), helpers=HELPERS).plain) != before
    assert source_of(loaded(tmp_path, BENCH.replace("x / 2", "x * 0.5"), helpers=HELPERS).plain) != before


def test_a_nested_package_beside_and_a_relative_import_are_followed(tmp_path: Path) -> None:
    bench = loaded(
        tmp_path,
        "import kit.tiles\nfrom kit import deep\ndef f(x):\n    return kit.tiles.g(x) + deep.inner.h(x)\n",
        kit_in_tiles="from .other import OFFSET\ndef g(x):\n    return x + OFFSET\n",
        kit_in_other="OFFSET = 2\nUNUSED = 3\n",
        kit_in_deep_in___init__="from . import inner\n",
        kit_in_deep_in_inner="def h(x):\n    return x\n",
    )
    text = source_of(bench.f)
    beside = ["# kit/deep/__init__.py", "# kit/deep/inner.py", "# kit/other.py", "# kit/tiles.py"]
    assert [line for line in text.splitlines() if line.startswith("# ")] == beside
    assert "OFFSET = 2" in text
    assert "UNUSED" not in text


def test_all_names_of_a_module_and_a_whole_module_are_followed(tmp_path: Path) -> None:
    star = loaded(tmp_path, "from helpers import *\ndef f(x):\n    return scaled(x)\n", helpers=HELPERS)
    assert "def scaled(x):\n    return x * SCALE" in text_of(star.f)
    whole = loaded(tmp_path, "import helpers\ndef f(x):\n    return vars(helpers)['scaled'](x)\n", helpers=HELPERS)
    assert "def shifted(x):" in source_of(whole.f)


def test_installed_modules_are_not_followed(tmp_path: Path) -> None:
    bench = loaded(tmp_path, "import numpy as np\ndef f(x):\n    return np.linalg.norm(x)\n")
    assert text_of(bench.f) == ["import numpy as np", "def f(x):\n    return np.linalg.norm(x)"]


def test_a_benchmark_that_the_decorator_names_is_no_part_of_the_variant(tmp_path: Path) -> None:
    text = """
        from warpladder.workloads.api import Case
        case = Case({"n": 1}, flops=0, min_bytes=0)
        CONFIGS = [{"block": 256}]

        def variant(one, two):
            return lambda function: function

        @variant(case, CONFIGS)
        def f(x):
            return x
    """
    assert text_of(loaded(tmp_path, text).f) == [
        'CONFIGS = [{"block": 256}]',
        "def variant(one, two):\n    return lambda function: function",
        "@variant(case, CONFIGS)\ndef f(x):\n    return x",
    ]


# -- closures, partial functions, lambdas, classes -----------------------------------------------------------------------


def test_what_a_closure_holds_is_told(tmp_path: Path) -> None:
    text = """
        def twice(x):
            return 2 * x

        def make(block, inner, array):
            def f(x):
                return inner(x) * block + array
            return f
    """
    bench = loaded(tmp_path, text)
    made = [bench.make(size, bench.twice, np.ones(3)) for size in (3, 4)]
    assert text_of(made[0]) == [
        "def twice(x):\n    return 2 * x",
        "# block = 3, in the function around it\ndef f(x):\n    return inner(x) * block + array",
    ]
    assert source_of(made[0]) != source_of(made[1])


def test_defaults_that_a_loop_gives_are_told(tmp_path: Path) -> None:
    text = """
        found = []
        for block in (64, 128):
            @found.append
            def f(x, block=block, *, wide=2 * block, fixed=3):
                return x
    """
    first, second = (source_of(function) for function in loaded(tmp_path, text).found)
    assert "# block = 64 by default\n# wide = 128 by default\n@found.append\ndef f(" in first
    assert "# block = 128 by default\n# wide = 256 by default\n@found.append\ndef f(" in second


def test_arguments_of_a_partial_function_are_told_where_no_statement_does(tmp_path: Path) -> None:
    text = """
        import functools

        def scaled(x, by, of=None):
            return x

        def square(x):
            return x * x

        named = functools.partial(scaled, by=3)
    """
    bench = loaded(tmp_path, text)
    inline = functools.partial(bench.scaled, 2, of=bench.square)
    assert text_of(inline) == [
        "# functools.partial(scaled, 2, of=bench.square)\ndef scaled(x, by, of=None):\n    return x",
        "def square(x):\n    return x * x",
    ]
    assert text_of(bench.named)[-1] == "named = functools.partial(scaled, by=3)"


def test_a_lambda_is_told_from_others_on_its_line(tmp_path: Path) -> None:
    text = """
        BLOCK = 2
        double = lambda x: x * BLOCK
        pair = (lambda x: x + 1, lambda x: (x -
            1), lambda x: x + 1)
        nested = lambda a: (lambda b: a + b)
    """
    bench = loaded(tmp_path, text)
    assert text_of(bench.double) == ["BLOCK = 2\ndouble = lambda x: x * BLOCK"]
    assert text_of(bench.pair[0]) == ["lambda x: x + 1"]
    assert text_of(bench.pair[1]) == ["lambda x: (x -\n    1)"]
    assert text_of(bench.nested(5)) == ["# a = 5, in the function around it\nlambda b: a + b"]
    assert [line_of(bench.double), line_of(bench.pair[1])] == [3, 4]


def test_a_decorator_of_one_s_own_belongs_to_the_text(tmp_path: Path) -> None:
    text = """
        import functools

        def repeated(times):
            def around(function):
                @functools.wraps(function)
                def wrapper(*arguments):
                    return [function(*arguments) for _ in range(times)]
                return wrapper
            return around

        @repeated(3)
        def f(x):
            return x
    """
    bench = loaded(tmp_path, text)
    parts = text_of(bench.f)
    assert [part.splitlines()[-1].strip() for part in parts] == ["import functools", "return around", "return x"]
    assert (line_of(bench.f), source_file_of(bench.f)) == (13, tmp_path / "bench.py")


def test_methods_and_callable_objects_bring_their_classes(tmp_path: Path) -> None:
    text = """
        SCALE = 2

        class Base:
            def go(self, x):
                return x * SCALE

        class Soft(Base):
            def __call__(self, x):
                return self.go(x)

        soft = Soft()

        def uses(x):
            return soft(x)
    """
    bench = loaded(tmp_path, text)
    classes = ["SCALE = 2", "class Base:\n    def go(self, x):\n        return x * SCALE"]
    soft = "class Soft(Base):\n    def __call__(self, x):\n        return self.go(x)"
    assert text_of(bench.soft.go) == [*classes, soft]
    assert text_of(bench.Soft()) == [*classes, soft]
    assert text_of(bench.soft) == [*classes, soft, "soft = Soft()"]
    assert text_of(bench.uses)[-2:] == ["soft = Soft()", "def uses(x):\n    return soft(x)"]


def test_of_two_definitions_the_one_that_runs_is_taken_and_settings_of_a_name_with_it(tmp_path: Path) -> None:
    text = """
        FAST = False
        if FAST:
            def g(x):
                return x
        else:
            def g(x):
                return -x
        table = {}
        table["a"] = 1

        def f(x):
            return g(x) + table["a"]
    """
    assert text_of(loaded(tmp_path, text).f) == [
        "def g(x):\n    return -x",
        'table = {}\ntable["a"] = 1',
        'def f(x):\n    return g(x) + table["a"]',
    ]


# -- objects of libraries ------------------------------------------------------------------------------------------------


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
    assert (line_of(bench.outer), source_file_of(bench.outer)) == (14, tmp_path / "bench.py")
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
    assert line_of(bench.kernel) == 14


def test_real_triton_s_kernels_are_followed(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    bench = loaded(tmp_path, TRITON)
    assert text_of(bench.fused) == [*KERNEL, "def fused(x):\n    kernel[(1,)](x, 1)\n    return x"]
    assert text_of(bench.kernel) == KERNEL
    assert (line_of(bench.kernel), source_file_of(bench.kernel)) == (14, tmp_path / "bench.py")


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


# -- without Python text -------------------------------------------------------------------------------------------------

EXTENSION = """
#define PY_SSIZE_T_CLEAN
#include <Python.h>
static PyObject* twice(PyObject* self, PyObject* x) { return PyNumber_Add(x, x); }
static PyMethodDef methods[] = {{"twice", twice, METH_O, "x + x"}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast", NULL, -1, methods};
PyMODINIT_FUNC PyInit_fast(void) { return PyModule_Create(&module); }
"""


def build_extension(folder: Path, text: str = EXTENSION) -> Path:
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").is_file():
        pytest.skip("Python's headers are not installed")
    (folder / "fast.c").write_text(text)
    made = folder / f"fast{sysconfig.get_config_var('EXT_SUFFIX')}"
    subprocess.run(["gcc", "-shared", "-fPIC", f"-I{include}", "-o", str(made), str(folder / "fast.c")], check=True)
    return made


def test_a_function_of_a_c_extension_is_named_with_the_digest_of_its_library(tmp_path: Path) -> None:
    made = build_extension(tmp_path)
    text = "import fast\nfrom fast import twice\ndef f(x):\n    return fast.twice(x)\n"
    bench = loaded(tmp_path, text)
    assert bench.f(4) == 8
    line = source_of(bench.f).splitlines()[-1]
    assert line.startswith(f"# fast: compiled, in {made.name}, SHA-256 ")
    digest = line.rpartition(" ")[2]
    assert len(digest) == 64
    named = source_of(bench.fast.twice)
    assert f"# fast.twice: compiled, in {made.name}, SHA-256 {digest}" in named
    assert str(tmp_path) not in named
    assert (source_file_of(bench.fast.twice), line_of(bench.fast.twice)) in [(tmp_path / "bench.py", None), (None, None)]
    before = source_of(bench.f)
    (tmp_path / "again").write_bytes(made.read_bytes() + b"\0")
    (tmp_path / "again").replace(made)  # the loaded one stays as it is
    assert source_of(bench.f) != before


def test_a_library_that_ctypes_loads_counts_by_its_digest(tmp_path: Path) -> None:
    made = build_extension(tmp_path)
    text = f"import ctypes\nlib = ctypes.CDLL({str(made)!r})\ndef f(x):\n    return lib.twice(x)\n"
    bench = loaded(tmp_path, text)
    assert isinstance(bench.lib, ctypes.CDLL)
    assert source_of(bench.f).splitlines()[-1].startswith(f"# {made.name}, SHA-256 ")


@pytest.mark.parametrize(
    ("function", "start"),
    [
        (builtins.sum, "# builtins.sum: compiled, of Python "),
        (np.add, f"# numpy.add: compiled, of numpy {np.__version__}"),
        (np.sum, f"# numpy.sum: compiled, of numpy {np.__version__}"),
        (math.hypot, "# math.hypot: compiled, "),
        (functools.partial(np.sum, axis=1), "# functools.partial(numpy.sum, axis=1)\n# numpy.sum: compiled"),
    ],
    ids=["sum", "add", "np.sum", "hypot", "partial"],
)
def test_a_compiled_function_is_named_with_its_version(function: Callable[..., object], start: str) -> None:
    assert source_of(function).startswith(start)
    assert source_of(function).count("\n") == 1 + start.count("\n")
    assert source_file_of(function) is line_of(function) is None


def test_a_function_of_exec_is_told_by_its_bytecode() -> None:
    def made(text: str) -> Any:
        namespace: dict[str, Any] = {"__name__": "somewhere"}
        exec(text, namespace)
        return namespace["f"]

    one, same, other = made("def f(x): return x + 1"), made("def f(x): return x + 1"), made("def f(x): return x + 2")
    assert source_of(one).startswith("# somewhere.f: its text is not known; bytecode of Python 3.")
    assert source_of(one) == source_of(same) != source_of(other)
    assert source_file_of(one) is line_of(one) is None


def test_a_file_that_changed_or_went_since_it_was_loaded_raises_nothing(tmp_path: Path) -> None:
    bench = loaded(tmp_path, "def f(x):\n    return x\n\ndef g(x):\n    return f(x)\n")
    (tmp_path / "bench.py").write_text("def f(x:\n")
    assert source_of(bench.g).startswith("# bench.g: its text is not known")
    (tmp_path / "bench.py").write_text("\n\n\ndef g(x):\n    return 2\n")
    assert source_of(bench.g) == "def g(x):\n    return 2\n"
    (tmp_path / "bench.py").unlink()
    assert source_of(bench.g).startswith("# bench.g: its text is not known")
    assert source_file_of(bench.g) is None


def cell(number: int, text: str, namespace: dict[str, Any]) -> None:
    """Run a cell as IPython does: its text is in linecache, and in no file."""
    name = f"<ipython-input-{number}-0a1b2c>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), namespace)


def test_functions_and_constants_of_other_cells_of_a_notebook_are_followed() -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cell(91, "BLOCK = 128\nTYPED = 3\n", namespace)
    cell(92, "def inner(x):\n    return x + BLOCK + ABSENT\n", namespace)
    cell(93, "def outer(x):\n    return inner(x)\n", namespace)
    namespace["ABSENT"] = 5
    assert text_of(namespace["outer"]) == [
        "BLOCK = 128",
        "ABSENT = 5\ndef inner(x):\n    return x + BLOCK + ABSENT",
        "def outer(x):\n    return inner(x)",
    ]
    assert (source_file_of(namespace["outer"]), line_of(namespace["outer"])) == (None, 1)


class Hostile:
    """Makes up every attribute, or refuses it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise RuntimeError(name)
        return Hostile()

    def __call__(self, x: object) -> object:
        return x

    @property
    def fn(self) -> Any:
        raise OSError("no such thing")


@pytest.mark.parametrize(
    "thing",
    [Hostile, lambda: functools.partial(Hostile()), lambda: 3, lambda: None, lambda: np.ones(3), object, lambda: sys],
    ids=range(7),
)
def test_strange_objects_raise_nothing(thing: Any) -> None:
    thing = thing()
    assert source_of(thing).endswith("\n")
    source_file_of(thing)
    line_of(thing)


def test_a_circle_of_wrapped_functions_ends(tmp_path: Path) -> None:
    bench = loaded(tmp_path, "def f(x):\n    return g(x)\n\ndef g(x):\n    return f(x)\n")
    bench.f.__wrapped__ = bench.g
    bench.g.__wrapped__ = bench.f
    assert text_of(bench.f)[-2:] == ["def f(x):\n    return g(x)", "def g(x):\n    return f(x)"]


def test_no_library_is_imported() -> None:
    code = (
        "import sys; from warpladder.workloads.functions import sources; sources.source_of(sources.source_of);"
        "print([m for m in ('cupy', 'torch', 'numba', 'triton', 'jax') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
