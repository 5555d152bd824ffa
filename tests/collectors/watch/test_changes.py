"""Which variants an edit of a user's files changes, and which edits change everything."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

from warpladder.collectors.watch.files import copy_files, files_now, files_of, python_files
from warpladder.workloads import registry
from warpladder.workloads.declare.functions.bare import of_cpp
from warpladder.workloads.declare.functions.code import PROCESS, Code, code_of

pytestmark = pytest.mark.slow

#: What Python loads though it is nested deeper than Python calls functions.
DEEP = f"""
TOTAL = {" + ".join(["1"] * 900)}
if FACTOR == 0:
    SMALL = 0
{"".join(f"elif FACTOR == {n}:{chr(10)}    SMALL = {n}{chr(10)}" for n in range(1, 500))}
@bench.variant
def deep(x):
    return scaled(x, {" + ".join(["1"] * 900)} - 897)
"""
BENCH = '''"""A docstring of the file."""
import functools
import numpy as np
import warpladder
import helpers
from helpers import scaled

BLOCK = 64
FACTOR = 3

bench = warpladder.Benchmark("double", n=[1000])

@bench.inputs
def inputs(n, rng):
    return helpers.spread(n, rng)

@bench.reference
def reference(x):
    return exact(x)

def exact(x):
    return FACTOR * x

@functools.cache
def limit():
    return BLOCK

def in_blocks(x, block):
    return scaled(x, min(block, limit()) * 0 + 3)

def traced(function):
    @functools.wraps(function)
    def run(x):
        return function(x)
    return run

@bench.variant(baseline=True)
def plain(x):
    """Idea: the plain one."""
    n = 3  # a local name
    return n * x

@bench.variant(configs=[{"block": 64}])
def blocked(x, block):
    return in_blocks(x, block)

bench.variant(helpers.other, name="other", role="peer")
again = traced(plain)
bench.variant(again, name="again")

bench.cuda("second.cu", kernel="first<{block}>", grid=1, block="block", configs=[{"block": 32}])

@bench.variant
def lazy(x):
    from late import tripled
    return tripled(x)

if __name__ == "__main__":
    print("by hand")
'''
HELPERS = """
import numpy as np

def spread(n, rng):
    return rng.random(n, np.float32)

def scaled(x, factor):
    return x * factor

def other(x):
    return x + 2 * x
"""
LATE = """
def tripled(x):
    return x * 3
"""
KERNELS = '''
from pathlib import Path
import numpy as np
from warpladder.workloads.api import Buffer, Case, CudaVariant, HostVariant, Launch, Workload

TEXT = """
__global__ void first(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
"""

def rung(name, idea, source, block):
    def launches(case, config):
        return [Launch("first", (1, 1, 1), (block, 1, 1), ("x", "y"))]
    return CudaVariant(name, name, "rung", source=idea + source if isinstance(source, str) else source, launches=launches)

WORKLOAD = Workload(
    "kernels",
    "kernels",
    (Case({"n": 32}, 32, 256, ("quick",)),),
    (
        rung("v01_text", "// Idea: a text of the file, so that there is one file less to open.", TEXT, 32),
        rung("v02_file", "", Path(__file__).with_name("second.cu"), 32),
        HostVariant("numpy", "NumPy", "host", run=lambda case, inputs, outputs: {"y": 2 * inputs["x"]}),
    ),
    lambda case: ({"x": Buffer((32,))}, {"y": Buffer((32,))}),
    lambda case, rng: {"x": rng.random(32, np.float32)},
    lambda case, inputs: {"y": 2 * inputs["x"].astype(np.float64)},
    baseline="v01_text",
    host_baseline="numpy",
)
'''
SECOND = '// Idea: a file.\n#include "twice.cuh"\n__global__ void first(const float* x, float* y) { y[threadIdx.x] = twice(x[threadIdx.x]); }\n'
TWICE = "__device__ float twice(float x) { return x + x; }\n"
FILES = {
    "bench.py": BENCH,
    "helpers.py": HELPERS,
    "late.py": LATE,
    "kernels.py": KERNELS,
    "second.cu": SECOND,
    "twice.cuh": TWICE,
}


def taken(folder: Path, texts: dict[str, str], file: str) -> Code:
    """The code of a file in a folder of its own."""
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    path = (folder / file).resolve()
    return code_of(registry.load_all((), [path]), path)


def changed(before: Code, now: Code) -> list[tuple[str, str]]:
    """The workload and variant of each part that differs or is new."""
    return [key for key, digest in now.items() if before.get(key) != digest]


def edited(tmp_path: Path, name: str, old: str, new: str) -> list[str]:
    """The names of the variants that an edit of one of FILES changes; `problem` for a workload, `process` for what acts on it."""
    assert FILES[name].count(old) == 1
    main = "kernels.py" if name in ("kernels.py", "second.cu", "twice.cuh") else "bench.py"
    before = taken(tmp_path / "before", FILES, main)
    return names(before, taken(tmp_path / "after", {**FILES, name: FILES[name].replace(old, new)}, main))


def names(before: Code, now: Code) -> list[str]:
    return [
        variant or ("process" if (workload, variant) == PROCESS else "problem") for workload, variant in changed(before, now)
    ]


@pytest.mark.thorough
def test_a_file_of_any_depth_that_loads_is_compared(tmp_path: Path) -> None:
    before = taken(tmp_path / "before", {**FILES, "bench.py": BENCH + DEEP}, "bench.py")
    other = (BENCH + DEEP).replace("- 897)", "- 896)")
    assert names(before, taken(tmp_path / "after", {**FILES, "bench.py": other}, "bench.py")) == ["deep"]
    other = (BENCH + DEEP).replace("SMALL = 499", "SMALL = 500")
    assert names(before, taken(tmp_path / "later", {**FILES, "bench.py": other}, "bench.py")) == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "old", "new", "variants"),
    [
        pytest.param("bench.py", "# a local name", "# the same in other words", [], id="a comment"),
        pytest.param("bench.py", "Idea: the plain one.", "Idea: as plain as can be.", [], id="a docstring"),
        pytest.param("bench.py", "A docstring of", "A docstring for", [], id="a docstring of the file"),
        pytest.param("bench.py", "    return FACTOR * x\n", "\n    return (FACTOR *\n            x)\n", [], id="layout"),
        pytest.param("bench.py", '"by hand"', '"by foot"', [], id="what runs only by hand"),
        pytest.param("bench.py", "* 0 + 3", "* 0 + 3.0", ["blocked"], id="a function that a variant alone calls"),
        pytest.param("bench.py", "BLOCK = 64", "BLOCK = 32", ["blocked"], id="a constant that a function of it reads"),
        pytest.param("bench.py", '[{"block": 64}]', '[{"block": 64}, {"block": 8}]', ["blocked"], id="configs"),
        pytest.param("bench.py", "return in_blocks", "import absent; return in_blocks", ["blocked"], id="an import of what is not there"),
        pytest.param("helpers.py", "x * factor", "factor * x", ["blocked"], id="a function beside the file"),
        pytest.param("helpers.py", "x + 2 * x", "x + x + x", ["other"], id="a variant beside the file"),
        pytest.param("late.py", "x * 3", "3 * x", ["lazy"], id="a module that a variant imports when it is called"),
        pytest.param("bench.py", "    n = 3  #", "    n = 3.0  #", ["plain", "again"], id="a function of two variants"),
        pytest.param("bench.py", "return function(x)", "return 1 * function(x)", ["again"], id="what wraps a variant"),
        pytest.param("bench.py", ', role="peer"', "", ["other"], id="the role of a variant"),
        pytest.param("bench.py", "grid=1", "grid=2", ["first"], id="the launch of a kernel"),
        pytest.param("bench.py", "if __name__", "@bench.variant\ndef new(x):\n    return 3 * x\n\nif __name__", ["new"], id="a new variant"),
        pytest.param("kernels.py", "2 * x[threadIdx.x]", "x[threadIdx.x] * 2", ["v01_text"], id="a kernel in a text"),
        pytest.param("kernels.py", "one file less to open", "less to open", [], id="a comment of a kernel in a text"),
        pytest.param("second.cu", "= twice", "= 1 * twice", ["v02_file"], id="a kernel in a file"),
        pytest.param("second.cu", "Idea: a file.", "Idea: one file.", [], id="a comment of a kernel in a file"),
        pytest.param("twice.cuh", "x + x", "2 * x", ["v02_file"], id="a file that a kernel includes"),
        pytest.param("kernels.py", "(block, 1, 1)", "(1 * block, 1, 1)", ["v01_text", "v02_file"], id="launches that kernels share"),
        pytest.param("kernels.py", 'run=lambda case, inputs, outputs: {"y": 2 * ', 'run=lambda case, inputs, outputs: {"y": 2.0 * ', ["numpy"], id="a lambda"),
    ],
)  # fmt: skip
def test_an_edit_changes_these_variants_and_nothing_else(
    name: str, old: str, new: str, variants: list[str], tmp_path: Path
) -> None:
    assert edited(tmp_path, name, old, new) == variants


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "old", "new", "what"),
    [
        pytest.param("bench.py", "n=[1000]", "n=[1000, 2000]", ["problem"], id="axes"),
        pytest.param("bench.py", "helpers.spread(n, rng)", "2 * helpers.spread(n, rng)", ["problem"], id="inputs"),
        pytest.param("helpers.py", "rng.random(n,", "1 - rng.random(n,", ["problem"], id="what inputs call"),
        pytest.param("bench.py", "return exact(x)", "return 1 * exact(x)", ["problem"], id="the reference"),
        pytest.param("bench.py", "return FACTOR * x", "return x * FACTOR", ["problem"], id="what the reference calls"),
        pytest.param("bench.py", "FACTOR = 3", "FACTOR = 3.0", ["problem"], id="a constant of that"),
        pytest.param("bench.py", "BLOCK = 64\n", "BLOCK = 64\nnp.seterr(all='ignore')\n", ["process"], id="a call"),
        pytest.param("kernels.py", "2 * inputs[\"x\"].astype", "1 * 2 * inputs[\"x\"].astype", ["problem"], id="a lambda of the reference"),
        pytest.param("bench.py", "BLOCK = 64\n", "BLOCK = 64\nnp.all_faster = True\n", ["process"], id="a setting of a library"),
        pytest.param("bench.py", "BLOCK = 64\n", "BLOCK = 64\nfunctools.all_faster = True\n", ["blocked", "again", "process"], id="a setting of what variants use"),
        pytest.param("bench.py", "def exact", "@np.library.custom_op('a')\ndef exact", ["problem", "process"], id="an operator for the whole process"),
    ],
)  # fmt: skip
def test_an_edit_of_what_all_variants_depend_on_is_told_apart(
    name: str, old: str, new: str, what: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = SimpleNamespace(custom_op=lambda name: lambda function: function)
    monkeypatch.setattr(numpy, "library", library, raising=False)
    assert edited(tmp_path, name, old, new) == what


SHARED = """
import numpy as np
import warpladder

FACTOR = 3
SIZES = (32, 64)
CODE = '''
__global__ void tripled(const float* x, float* out) { out[threadIdx.x] = 3 * x[threadIdx.x]; }  // one
'''
bench = warpladder.Benchmark("triple", n=[1000])

def checked(x):
    return x

@bench.inputs
def inputs(n, rng):
    return checked(rng.random(n, np.float32))

def reference(x):
    return FACTOR * x

bench.reference(reference)

@bench.variant(baseline=True)
def plain(x):
    return reference(x)

@bench.variant
def other(x):
    return FACTOR * checked(x)

def times(size, x):
    return 3 * x[:size * size]

for size in SIZES:
    @bench.variant(name=f"in_{size}")
    def sized(x, size=size):
        return x * 3

def width(n):
    return n

bench.cuda(CODE, kernel="tripled", grid=width, block=32)
bench.cuda(CODE, kernel="tripled", grid=1, block=64, name="wide", skip=lambda n: "too large" if n > 5000 else None)

if len(SIZES) > 1:
    @bench.variant
    def last(x):
        return x + 2 * x

def unused():
    return last(1)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("old", "new", "variants"),
    [
        ("FACTOR = 3", "FACTOR = 3.0", ["problem", "plain", "other"]),
        ("return FACTOR * x\n", "return x * FACTOR\n", ["problem", "plain"]),
        ("    return x\n", "    return 1 * x\n", ["problem", "other"]),
        ("FACTOR * checked(x)", "checked(x) * FACTOR", ["other"]),
        ("return reference(x)", "return 1 * reference(x)", ["plain"]),
        ("x + 2 * x", "x + x + x", ["last"]),
        ("        return x * 3", "        return 3 * x", ["in_32", "in_64"]),
        ("if len(SIZES)", "if 0 + len(SIZES)", []),
        ("    return n\n", "    return n // 1\n", ["tripled"]),
        ("block=64", "block=128", ["wide"]),
        ("n > 5000", "n > 500", ["wide"]),
        ("out[threadIdx.x] = 3 *", "out[threadIdx.x] = 3.0f *", ["tripled", "wide"]),
        ("// one", "// two", []),
        ("(n, rng):", "(n, rng):\n    # a comment", []),
        ("import numpy as np", "import numpy as np\nnp.seterr(all='ignore')", ["process"]),
        ("SIZES = (32, 64)", "SIZES = (32, 64)\nnp.seterr(all='ignore') if SIZES else 0", ["process"]),
        ("return last(1)", "return last(2)", []),
    ],
)
def test_what_a_variant_shares_with_inputs_or_reference_changes_both(
    old: str, new: str, variants: list[str], tmp_path: Path
) -> None:
    assert SHARED.count(old) == 1
    texts = [{"bench.py": SHARED}, {"bench.py": SHARED.replace(old, new)}]
    before, now = (taken(tmp_path / str(number), each, "bench.py") for number, each in enumerate(texts))
    assert names(before, now) == variants


def test_a_variant_that_the_reference_calls_changes_the_problem_too(tmp_path: Path) -> None:
    texts = {**FILES, "bench.py": BENCH.replace("return FACTOR * x", "return plain(x)")}
    again = {**texts, "bench.py": texts["bench.py"].replace("return n * x", "return x * n")}
    now = taken(tmp_path / "b", again, "bench.py")
    assert names(taken(tmp_path / "a", texts, "bench.py"), now) == ["problem", "plain", "again"]


def test_a_variant_that_is_gone_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    assert edited(tmp_path, "bench.py", 'bench.variant(helpers.other, name="other", role="peer")\n', "") == []


def test_files_that_are_not_there_yet_are_watched(tmp_path: Path) -> None:
    for name in ("kernels.py", "bench.py", "second.cu"):
        (tmp_path / name).write_text(FILES[name])
    of_python = {file.relative_to(tmp_path).as_posix() for file in python_files([tmp_path / "bench.py"])}
    assert of_python >= {"bench.py", "helpers.py", "late.py", "helpers/__init__.py", "numpy.py"}
    shutil.copy(tmp_path / "second.cu", tmp_path / "twice.cuh")  # a file to load it by; it includes itself
    workloads = registry.load_all((), [tmp_path / "kernels.py"])
    (tmp_path / "twice.cuh").unlink()
    assert {file.name for file in files_of([], workloads)} == {"second.cu", "twice.cuh"}


def test_modules_of_two_folders_are_told_apart(tmp_path: Path) -> None:
    texts = {name: {**FILES, "helpers.py": HELPERS.replace("x * factor", name)} for name in ("factor * x", "x * factor")}
    one, two = (taken(tmp_path / f"folder {number}", each, "bench.py") for number, each in enumerate(texts.values()))
    assert names(one, two) == ["blocked"]


def test_a_copy_has_the_files_beside_links_to_all_else(tmp_path: Path) -> None:
    user, folder = tmp_path / "user" / "benches", tmp_path / "copies" / "last"
    (user / "kit").mkdir(parents=True)
    for name in ("bench.py", "kit/own.py", "kit/data.npy", "../shared.txt"):
        (user / name).write_text(name)
    copy_files([user / "bench.py", user / "kit" / "own.py", user / "absent.py"], folder)
    copied = folder / user.relative_to("/")
    for name in ("bench.py", "kit/own.py", "kit/data.npy"):
        (user / name).write_text("changed")
    texts = {name: (copied / name).read_text() for name in ("bench.py", "kit/own.py", "kit/data.npy", "../shared.txt")}
    assert texts == {
        "bench.py": "bench.py",
        "kit/own.py": "kit/own.py",
        "kit/data.npy": "changed",
        "../shared.txt": "../shared.txt",
    }
    shutil.rmtree(folder)
    assert (user / "kit" / "data.npy").read_text() == "changed"


def test_comments_and_layout_of_cuda_code_do_not_count_but_texts_do() -> None:
    code = 'int  f() { /* two\nlines */ return g("a // b",\n\n  1\'000); } // end\n#define X 1\n'
    assert of_cpp(code) == 'int f() { return g("a // b",\n1\'000); }\n#define X 1'
    assert of_cpp('R"(// not a comment)" // one') == 'R"(// not a comment)" // one'


def test_a_file_that_does_not_parse_is_told_from_others_by_its_bytes(tmp_path: Path) -> None:
    texts = {"a.py": b"def f(:", "b.py": b"def g(:", "c.py": b"\xff\xfe", "d.py": b"x = 1", "e.py": b"x = 1  # one\n"}
    for name, content in texts.items():
        (tmp_path / name).write_bytes(content)
    forms = list(files_now(tmp_path / name for name in texts).values())
    assert len(set(forms)) == 4 and forms[3] == forms[4]
    assert files_now([tmp_path / "absent.py"]) == {tmp_path / "absent.py": ""}
