"""A user's workload file finds the modules beside it, wherever it is loaded, and nobody else does."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from warpladder.__main__ import command
from warpladder.collectors.core import kernel_cache, under_tool
from warpladder.collectors.core.plan import LIMITS, Request, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.cuda import compile_ahead
from warpladder.collectors.wiring import collector_of
from warpladder.data import store
from warpladder.workloads import registry
from warpladder.workloads.api import HostVariant, WorkloadError

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).resolve().parents[3]
BENCH: Final = """
import numpy as np
import data
import helpers
from kit import tiles
from kit.deep.inner import DEPTH
from warpladder.workloads.api import Buffer, Case, HostVariant, Workload


def scaled(case, inputs, outputs):
    import late  # imported where it runs
    from helpers import FACTOR

    outputs["y"][:] = FACTOR * inputs["x"] * late.ONE


WORKLOAD = Workload(
    name=data.NAME, title="Scaling", cases=(Case({"n": tiles.N}, flops=8, min_bytes=64, sets=("quick",)),),
    variants=(HostVariant("scaled", "scaled", "host", run=scaled),),
    buffers=lambda case: ({"x": Buffer((8,))}, {"y": Buffer((8,))}),
    make_inputs=lambda case, rng: {"x": rng.standard_normal(8, dtype=np.float32)},
    reference=lambda case, inputs: {"y": helpers.FACTOR * inputs["x"].astype(np.float64)},
)
"""
LIMITS_HERE: Final = replace(LIMITS["quick"], seconds=0.05, max_rounds=6, budget_s=None)


def write(folder: Path, name: str, factor: float, bench: str = BENCH, **more: str) -> Path:
    """A workload file `bench.py` in a folder with its neighbours, among them some that are called as ours are."""
    files = {
        "bench.py": bench,
        "data.py": f"from shared import NAME as NAME\nassert NAME == {name!r}",
        "shared.py": f"NAME = {name!r}",
        "helpers.py": f"FACTOR = {factor}",
        "late.py": "ONE = 1.0",
        "workloads.py": "raise AssertionError('this is not the package that was meant')",
        "collectors.py": "",
        "kit/__init__.py": "from . import tiles\nfrom kit.deep import inner",
        "kit/tiles.py": "import helpers\nN = 8",
        "kit/deep/inner.py": "from .. import tiles\nDEPTH = tiles.N",
        **more,
    }
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    return folder / "bench.py"


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    return [write(tmp_path / name, name, factor) for name, factor in (("twice", 2.0), ("thrice", 3.0))]


def test_files_of_two_folders_take_each_their_own_neighbours(two: list[Path]) -> None:
    before = {name: sys.modules.get(name) for name in ("data", "workloads", "collectors", "helpers", "kit")}
    twice, thrice = (registry.load_file(file)[0] for file in two)
    assert [workload.name for workload in (twice, thrice)] == ["twice", "thrice"]
    for workload, factor in ((twice, 2.0), (thrice, 3.0), (twice, 2.0)):
        import numpy as np

        variant, outputs = workload.variants[0], {"y": np.zeros(8)}
        assert isinstance(variant, HostVariant)
        variant.run(workload.cases[0], {"x": np.ones(8)}, outputs)
        assert outputs["y"].tolist() == 8 * [factor]
    assert {name: sys.modules.get(name) for name in before} == before
    assert "helpers" not in sys.modules and not any(str(file.parent) in sys.path for file in two)
    assert "def scaled(" in twice.variants[0].source_text


@pytest.mark.thorough
def test_they_are_found_in_the_process_that_measures(two: list[Path], tmp_path: Path) -> None:
    run_id, _ = Recorder(make_plan(Request(files=two), LIMITS_HERE), collector_of("host_clock")).record(
        tmp_path / "runs", "", []
    )
    results = store.open_run(tmp_path / "runs" / run_id).table("results")
    assert dict(zip(results["workload"], results["status"], strict=True)) == {"twice": "ok", "thrice": "ok"}, results["detail"]


@pytest.mark.thorough
def test_they_are_found_by_a_recording_under_a_tool(two: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(two[0].parent)
    request = Request(files=[Path("bench.py")], max_rounds=6)
    run, *_ = under_tool.record_inside(["env"], request, "host_clock", tmp_path / "runs")
    assert run.table("results")["status"].tolist() == ["ok"]


@pytest.mark.thorough
def test_they_are_found_where_functions_are_compiled_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernel_cache.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    loops = "import numba\n\n@numba.njit(cache=True)\ndef scale(x, y, factor):\n    for i in range(x.size):\n        y[i] = factor * x[i]\n"
    bench = BENCH.replace('outputs["y"][:] = FACTOR * inputs["x"] * late.ONE', 'loops.scale(inputs["x"], outputs["y"], FACTOR)')
    bench = bench.replace("import helpers\n", "import helpers\nimport loops\n", 1).replace(
        '"host", run', '"host", requires=("numba",), run'
    )
    write(tmp_path / "mine", "mine", 2.0, bench, **{"loops.py": loops})
    monkeypatch.chdir(tmp_path / "mine")
    jobs = compile_ahead.jobs_of(make_plan(Request(files=[Path("bench.py")])), [])
    told: list[tuple[int, int, str]] = []
    with compile_ahead.Compilers(jobs, lambda *report: told.append(report), lambda: None) as compilers:
        compilers.wait_for()
    assert [report[:2] for report in told] == [(0, 1), (1, 1)]
    assert list((tmp_path / "numba").rglob("*scale*.nbc"))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "words", [["list"], ["record", "--collector", "host_clock", "--max-rounds", "6", "--data-dir", "runs"]]
)
def test_the_command_line_takes_a_file_from_its_own_folder(two: list[Path], words: list[str]) -> None:
    environment: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-m", "warpladder", *words, "bench.py"]
    done = subprocess.run(command, cwd=two[1].parent, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "thrice" in done.stdout


def test_a_folder_of_files_hides_no_installed_package(tmp_path: Path) -> None:
    # As results of other programs lie beside a workload.
    file = write(tmp_path, "mine", 2.0, "import numpy\nnumpy.float32\n" + BENCH)
    for name in ("numpy", "json", "torch"):
        (tmp_path / name).mkdir()
    assert registry.load_file(file)[0].name == "mine"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import absent", "ModuleNotFoundError: No module named 'absent'"),
        ("import kit.absent", "ModuleNotFoundError: No module named 'kit.absent'"),
        ("from kit import absent", "ImportError: cannot import name 'absent' from 'kit'"),
        ("import broken", "ZeroDivisionError: division by zero"),
    ],
)
def test_what_does_not_import_is_named_as_its_user_names_it(line: str, said: str, tmp_path: Path) -> None:
    file = write(tmp_path, "mine", 2.0, f"{line}\n{BENCH}", **{"broken.py": "1 / 0"})
    with pytest.raises(WorkloadError) as refused:
        registry.load_file(file)
    assert str(refused.value).startswith(
        f"{file}:1: {said}" if line != "import broken" else f"{tmp_path / 'broken.py'}:1: {said}"
    )
    assert "user_workload_" not in str(refused.value)
    done = CliRunner().invoke(command(), ["list", str(file)])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)


@pytest.mark.thorough
def test_what_was_not_reached_is_told_without_folders(two: list[Path], tmp_path: Path) -> None:
    limits = replace(LIMITS_HERE, budget_s=0.0)
    recorder = Recorder(make_plan(Request(files=two), limits), collector_of("host_clock"))
    typed = ["record", str(two[0]), "--if-none", "--set", "quick"]
    run_id, _ = recorder.record(tmp_path / "runs", "", typed)
    texts = "\n".join(store.open_run(tmp_path / "runs" / run_id).table("diagnostics")["text"])
    assert f"; to measure all: warpladder record {two[0].name} --set quick --no-limit" in texts
    assert str(tmp_path) not in texts
