"""Compiled functions, cells of notebooks and strange objects have a text too, or are named."""

import builtins
import ctypes
import functools
import linecache
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.workloads.functions.loading import build_extension, loaded, text_of
from warpladder.workloads.declare.functions.sources import source_file_of, source_of

pytestmark = pytest.mark.slow


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
    assert source_file_of(bench.fast.twice) in [tmp_path / "bench.py", None]
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
    assert source_file_of(function) is None


def test_a_function_of_exec_is_told_by_its_bytecode() -> None:
    def made(text: str) -> Any:
        namespace: dict[str, Any] = {"__name__": "somewhere"}
        exec(text, namespace)
        return namespace["f"]

    one, same, other = made("def f(x): return x + 1"), made("def f(x): return x + 1"), made("def f(x): return x + 2")
    assert source_of(one).startswith("# somewhere.f: its text is not known; bytecode of Python 3.")
    assert source_of(one) == source_of(same) != source_of(other)
    assert source_file_of(one) is None


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
    assert source_file_of(namespace["outer"]) is None


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


def test_a_circle_of_wrapped_functions_ends(tmp_path: Path) -> None:
    bench = loaded(tmp_path, "def f(x):\n    return g(x)\n\ndef g(x):\n    return f(x)\n")
    bench.f.__wrapped__ = bench.g
    bench.g.__wrapped__ = bench.f
    assert text_of(bench.f)[-2:] == ["def f(x):\n    return g(x)", "def g(x):\n    return f(x)"]


def test_no_library_is_imported() -> None:
    code = (
        "import sys; from warpladder.workloads.declare.functions import sources; sources.source_of(sources.source_of);"
        "print([m for m in ('cupy', 'torch', 'numba', 'triton', 'jax') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
