"""`warpladder new NAME`: what it writes is right, and is recorded as far as this machine can."""

import ast
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.bindings")

from click.testing import CliRunner

from tests.emulator import emulator
from warpladder.__main__ import command
from warpladder.collectors.core.plan import LIMITS, Request, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.collectors.wiring import collector_of
from warpladder.commands import new as skeleton
from warpladder.data import store
from warpladder.workloads import registry
from warpladder.workloads.api import CudaVariant, Launch

pytestmark = pytest.mark.slow

#: Of the skeletons: the options, the file to record, and each variant with what it needs.
FUNCTIONS = [
    pytest.param(["--arrays", "numpy"], "mine.py", {"by_steps": "numpy", "into_out": "numpy"}, id="numpy"),
    pytest.param(["--arrays", "numpy", "--folder"], "mine/bench.py", {"by_steps": "numpy", "into_out": "numpy"}, id="folder"),
    pytest.param(["--arrays", "torch"], "mine.py", {"by_steps": "torch", "library": "torch"}, id="torch"),
    pytest.param(["--kind", "cuda", "--arrays", "numpy"], "mine/bench.py", {"numpy": "numpy", "softmax": "gpu"}, id="cuda"),
    pytest.param(["--kind", "cuda", "--arrays", "torch"], "mine/bench.py", {"library": "torch", "softmax": "gpu"}, id="cuda-torch"),
]  # fmt: skip
ON_GPU = [
    pytest.param(["--arrays", "cupy"], "mine.py", {"by_steps": "cupy", "raw_kernel": "cupy"}, id="cupy"),
    pytest.param(["--arrays", "triton"], "mine.py", {"eager": "torch", "fused": "triton"}, id="triton"),
    pytest.param(["--kind", "cuda", "--arrays", "cupy"], "mine/bench.py", {"by_steps": "cupy", "softmax": "cupy"}, id="cuda-cupy"),
]  # fmt: skip


def new(*arguments: str) -> list[str]:
    """What `warpladder new` prints in the working directory."""
    done = CliRunner().invoke(command(), ["new", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def statuses(file: str, collector: str) -> dict[str, set[str]]:
    plan = make_plan(Request(files=[Path(file)], cases=["rows=64,n=256"]), replace(LIMITS["quick"], seconds=0.1))
    run_id, _ = Recorder(plan, collector_of(collector)).record(Path("runs"), "", [])
    results = store.open_run(Path("runs", run_id)).table("results")
    return {variant: set(rows["status"]) for variant, rows in results.groupby("variant")}


@pytest.mark.thorough
@pytest.mark.parametrize(("options", "file", "variants"), FUNCTIONS)
def test_a_skeleton_is_recorded_on_the_host(options: list[str], file: str, variants: dict[str, str]) -> None:
    for module in {*variants.values()} - {"gpu"}:
        pytest.importorskip(module)
    said = new("mine", *options)
    assert said[1:] == [f"warpladder record {file}", f"warpladder record {file} --watch"]
    assert statuses(file, "host_clock") == {name: {"skipped" if needs == "gpu" else "ok"} for name, needs in variants.items()}


@pytest.mark.gpu
@pytest.mark.parametrize(("options", "file", "variants"), [*FUNCTIONS, *ON_GPU])
def test_a_skeleton_is_recorded_on_a_gpu(options: list[str], file: str, variants: dict[str, str]) -> None:
    for module in {*variants.values()} - {"gpu"}:
        pytest.importorskip(module)
    new("mine", *options)
    assert statuses(file, "cuda_events") == {name: {"ok"} for name in variants}


@pytest.mark.parametrize(("options", "file", "variants"), ON_GPU)
def test_a_skeleton_for_the_gpu_declares_two_variants(options: list[str], file: str, variants: dict[str, str]) -> None:
    new("mine", *options)
    tree = ast.parse(Path(file).read_text())
    declared = {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and "variant" in ast.dump(node.decorator_list[0])
    }
    kernels = {"softmax"} if "cuda" in options else set()
    assert declared | kernels == set(variants)


def kernels() -> list[tuple[CudaVariant, Launch]]:
    """The kernels of kind `cuda` and of CuPy's skeleton, with their launches on 5 rows of 300 elements."""
    new("mine", "--kind", "cuda", "--arrays", "numpy")
    workload = registry.load_file(Path("mine/bench.py"))[0]
    case = workload.case("rows=5,n=300")
    workload.reference(case, workload.make_inputs(case, np.random.default_rng(1)))
    ours = workload.variant("softmax")
    assert isinstance(ours, CudaVariant)
    found = [(ours, *ours.launches(case, config)) for config in ours.configs]
    new("other", "--arrays", "cupy")
    assigned = [node for node in ast.parse(Path("other.py").read_text()).body if isinstance(node, ast.Assign)]
    (text,) = [node.value.value for node in assigned if isinstance(node.value, ast.Constant)]
    raw = CudaVariant("raw", "raw", "rung", source=str(text))
    launch = Launch("softmax", (5, 1, 1), (128, 1, 1), ("x", "out", np.int32(300)))
    return [*found, (raw, launch)]  # type: ignore[list-item]


def test_the_kernels_compile_and_do_not_spill() -> None:
    for variant, launch in kernels():
        compiled = compile_variant(variant, [launch.kernel], "sm_90").kernels[launch.kernel]
        assert (compiled.registers > 0, compiled.spill_bytes) == (True, 0)


@emulator.needs_compiler
def test_the_kernels_compute_the_softmax() -> None:
    x = np.random.default_rng(1).standard_normal((5, 300), np.float32)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected = e / e.sum(axis=1, keepdims=True)
    for variant, launch in kernels():
        outputs = {"out": np.full((5, 300), np.nan, np.float32)}
        emulator.run(variant, [launch], {"x": x}, outputs)
        assert np.linalg.norm(outputs["out"] - expected) < 1e-6 * np.linalg.norm(expected)


def test_the_header_of_the_kernel_says_what_it_tries() -> None:
    new("mine", "--kind", "cuda", "--arrays", "numpy")
    header = registry.load_file(Path("mine/bench.py"))[0].variant("softmax").header
    assert all(header[name] for name in ("idea", "bottleneck", "next", "source"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["2fast"], "2fast: not a name in Python; write letters, digits and _"),
        (["my-kernel"], "my-kernel: not a name in Python"),
        (["../up"], "../up: not a name in Python"),
        (["lambda"], "lambda: not a name in Python"),
        (["größe"], "größe: not a name in Python"),
        (["math"], "math: a module of this name is there, which the file would hide"),
        (["torch"], "torch: a module of this name is there"),
        (["mine", "--kind", "rust"], "--kind rust: no such kind; choose functions or cuda"),
        (["mine", "--arrays", "tensorflow"], "--arrays tensorflow: no such library; choose numpy, torch, cupy, triton"),
        (["mine", "--kind", "cuda", "--arrays", "triton"], "--kind cuda --arrays triton: the kernel is CUDA C++"),
        (["there", "--arrays", "numpy"], "there.py: is there already, and is not overwritten"),
        (["there", "--kind", "cuda", "--arrays", "numpy"], "there/kernel.cu: is there already, and is not overwritten"),
        (["a_file", "--folder", "--arrays", "numpy"], "a_file/bench.py: cannot be written (File exists)"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(arguments: list[str], said: str, folder: Path) -> None:
    Path("there.py").write_text("mine")
    Path("there").mkdir()
    Path("there/kernel.cu").write_text("mine")
    Path("a_file").write_text("mine")
    before = sorted(folder.rglob("*"))
    done = CliRunner().invoke(command(), ["new", *arguments])
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert done.stderr.startswith(said)
    assert sorted(folder.rglob("*")) == before
    assert {Path(name).read_text() for name in ("there.py", "there/kernel.cu", "a_file")} == {"mine"}


def test_without_a_choice_the_library_is_one_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"torch"}
    monkeypatch.setattr(skeleton, "has_module", lambda name: name in there)
    monkeypatch.setattr(skeleton, "gpu_problem", lambda: None)
    assert skeleton.usual_arrays() == "torch"
    there.symmetric_difference_update({"torch", "cupy"})
    assert skeleton.usual_arrays() == "cupy"
    monkeypatch.setattr(skeleton, "gpu_problem", lambda: "no driver")
    assert skeleton.usual_arrays() == "numpy"
    assert skeleton.missing("cupy") == ""
    assert skeleton.missing("triton").endswith("pip install torch triton")


def test_a_full_disk_leaves_no_file_and_no_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two files does not fit."""

    @contextmanager
    def full(path: Path, mode: str = "r", **options: Any) -> Iterator[Any]:
        with open_file(path, mode, **options) as opened:
            yield opened
            if mode == "x" and path.suffix == ".cu":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    open_file = Path.open
    monkeypatch.setattr(Path, "open", full)
    before = sorted(folder.rglob("*"))
    done = CliRunner().invoke(command(), ["new", "mine", "--kind", "cuda"])
    assert (done.exit_code, done.stderr) == (
        2,
        "mine/kernel.cu: cannot be written (No space left on device); choose another folder\n",
    )
    assert sorted(folder.rglob("*")) == before
