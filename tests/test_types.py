"""The types of the public interface, as the type checker of a user sees them."""

import inspect
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import warpladder
from tests.doc_pages import BLOCKS, ROOT

#: What each line reveals to a type checker.
TYPED: Final = """
from collections.abc import Callable
from typing import assert_type

import numpy as np
import numpy.typing as npt

import warpladder

Array = npt.NDArray[np.float32]
bench = warpladder.Benchmark("sums", n=[1000], title="Sums of squares")


@bench.inputs
def inputs(n: int, rng: np.random.Generator) -> Array:
    return rng.standard_normal(n, dtype=np.float32)


@bench.reference
def squares(x: Array) -> Array:
    return np.asarray([np.sum(x * x)], np.float32)


@bench.variant(name="dot", configs=[{"parts": 1}, {"parts": 2}])
def product(x: Array, parts: int) -> Array:
    return np.asarray([np.dot(x, x)], np.float32)


@bench.reference(outputs="float32", compare=warpladder.compare.allclose())
def again(x: Array) -> Array:
    return squares(x)


assert_type(inputs(3, np.random.default_rng()), Array)
assert_type(squares(np.ones(3, np.float32)), Array)
assert_type(product(np.ones(3, np.float32), 2), Array)
assert_type(again(np.ones(3, np.float32)), Array)
same: Callable[[Array], Array] = bench.variant(squares, name="second")
run = bench.record(max_rounds=6, label="mine")
assert_type(run, warpladder.Run)
assert_type(warpladder.open_run("mine"), warpladder.Run)
assert_type(warpladder.runs(), list[warpladder.Run])
assert_type(warpladder.compare_functions(squares, again, args=np.ones(3, np.float32), seconds=1).notes, tuple[str, ...])
assert_type(run.id, str)
bench.variant(squares, nmae="third")  # type: ignore[call-overload]
bench.record(max_round=6)  # type: ignore[call-arg]
bench.cuda("x.cu", kernel="k", grid=1, block=1, optoins=())  # type: ignore[arg-type]
"""


def _mypy(*words: str, folder: Path) -> str:
    environment = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file", str(folder / "none.ini")]
    (folder / "none.ini").write_text("[mypy]\nignore_missing_imports = true\n[mypy-numba.*]\nfollow_imports = skip\n")
    return subprocess.run([*environment, *words], cwd=folder, capture_output=True, text=True, check=False).stdout


@pytest.mark.thorough
def test_decorators_keep_the_type_of_a_function_and_a_misspelt_keyword_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "typed.py").write_text(TYPED)
    assert _mypy("typed.py", folder=tmp_path) == "Success: no issues found in 1 source file\n"


@pytest.mark.thorough
def test_every_python_example_of_the_docs_passes_mypy(tmp_path: Path) -> None:
    """The examples have no annotations of their own; `--strict` would ask for these, so what that asks for is left out, as are
    the names that a fragment has from the text before it."""
    files = []
    for number, block in enumerate(each for each in BLOCKS if each.language == "python" and "import warpladder\n" in each.text):
        files.append(f"example_{number}_{block.page.stem.replace('-', '_')}_{block.line}.py")
        (tmp_path / files[-1]).write_text(block.text)
    sources = [*(ROOT / "docs" / "examples").glob("*.py")]
    for source in sources:
        shutil.copy(source, tmp_path)
    files += [source.name for source in sources]
    lenient = ("defs", "calls", "decorators")
    said = _mypy(
        *files,
        "--check-untyped-defs",
        "--allow-incomplete-defs",
        "--disable-error-code=name-defined",
        *(f"--allow-untyped-{each}" for each in lenient),
        folder=tmp_path,
    )
    assert said == f"Success: no issues found in {len(files)} source files\n"


def test_every_way_to_record_takes_the_same_keywords() -> None:
    of_record, of_functions = (
        {name: each.default for name, each in inspect.signature(call).parameters.items() if each.kind is each.KEYWORD_ONLY}
        for call in (warpladder.record, warpladder.compare_functions)
    )
    of_cases = {"cases", "axis", "variants"}
    assert {name: value for name, value in of_record.items() if name not in of_cases}.items() <= of_functions.items()


def test_the_package_tells_type_checkers_that_it_is_typed() -> None:
    assert (ROOT / "warpladder" / "py.typed").is_file()
