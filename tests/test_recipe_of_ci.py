"""The recipes of docs/compare.md, "In CI", run as a shell runs them: a good change passes, and a slow, wrong, crashed, lost,
unseen or otherwise checked one fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doc_pages import ROOT, blocks_of

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "compare.md"
AGAINST, ON_MAIN, ON_CHANGE = (
    block.text for block in blocks_of(PAGE) if block.language == "text" and "record bench.py" in block.text
)
BENCH = """
import ctypes

import numpy as np

import warpladder

bench = warpladder.Benchmark("squares", n=[60_000])


@bench.inputs
def inputs(n):
    return np.random.rand(n).astype(np.float32)


@bench.variant(name="plain", baseline=True)
@bench.reference
def plain(x):
    return np.sqrt(x * x + 1)


@bench.variant
def in_place(x):
    y = x * x
    y += 1
    return np.sqrt(y, out=y)
"""
MINE = "@bench.variant\ndef mine(x):\n    "
SLOW = "for _ in range(20):\n        y = np.hypot(x, 1)\n    return y\n"
#: What becomes of the variant `mine`, and how the job ends.
CHANGES = {
    "slow": (SLOW, 1),
    "good": ("return np.sqrt(x * x + 1)\n", 0),
    "wrong": ("return np.hypot(x, 1) + 1\n", 1),
    "crashed": ("ctypes.string_at(1)\n    return np.hypot(x, 1)\n", 1),
    "lost": ("", 1),
    "other reference": ("return np.sqrt(x * x + 1)\n", 1),
    "too noisy": ("return np.sqrt(x * x + 1)\n", 3),
}


def shell(text: str, folder: Path) -> int:
    """The exit code of a job's step: bash, which ends at the first command that fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # A tenth of a second a scope instead of the default, so that the test is short.
    text = text.replace("record bench.py", "record bench.py --seconds 0.1")
    variables = {**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    return subprocess.run(["bash", "-e", "-c", text], cwd=folder, env=variables, capture_output=True, check=False).returncode


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of a repository with the file on its main branch, and the recording of it."""
    origin, folder = (tmp_path_factory.mktemp(name) for name in ("origin", "job"))
    (origin / "bench.py").write_text(f"{BENCH}\n\n{MINE}return np.hypot(x, 1)\n")
    commit = "git -c user.name=a -c user.email=a@b.org commit -q -m first"
    assert shell(f"git init -q -b main && git add bench.py && {commit} && git clone -q . {folder}/clone", origin) == 0
    assert shell(ON_MAIN, folder / "clone") == 0
    return folder / "clone"


def recipe(kind: str, change: str) -> str:
    text = {"against": AGAINST, "two runs": ON_CHANGE}[kind]
    few = "--processes 1 --max-rounds 4"
    if change == "too noisy":
        return text.replace("--processes 5", few) if kind == "two runs" else text.replace("bench.py", f"bench.py {few}")
    return text


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["against", "two runs"])
@pytest.mark.parametrize("change", CHANGES)
def test_the_recipes_pass_a_good_change_and_no_other(job: Path, change: str, kind: str) -> None:
    body, code = CHANGES[change]
    text = BENCH.replace("return np.sqrt(x * x + 1)", "return np.hypot(x, 1)") if change == "other reference" else BENCH
    (job / "bench.py").write_text(f"{text}\n\n{MINE}{body}" if body else text)
    for left in (job / "runs", job / "summary.md"):
        subprocess.run(["rm", "-rf", left], check=True)
    assert shell(recipe(kind, change), job) == code
    summary = (job / "summary.md").read_text()
    told = {
        "good": "**",
        "slow": "| slower | squares |",
        "wrong": r"- FAILED: squares n=60000 mine: wrong\_result: ",
        "crashed": r"- FAILED: squares n=60000 mine: launch\_error: ",
        "lost": "- FAILED: squares n=60000 mine: lost: B has no such variant",
    }
    assert told.get(change, "**") in summary


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["against", "two runs"])
def test_a_file_with_an_error_ends_the_recipes_with_2(job: Path, kind: str) -> None:
    (job / "bench.py").write_text("import nothing_of_that_name\n")
    subprocess.run(["rm", "-rf", job / "runs"], check=True)
    assert shell(recipe(kind, ""), job) == 2
