"""The examples of docs/own-kernel.md, as far as they run without a GPU.

Kernels run on the emulator, on Numba's simulator and on Triton's interpreter. tests/collectors/cuda/test_examples.py runs them on a GPU.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.emulator import emulator
from warpladder.collectors.choice import has_module
from warpladder.collectors.core.plan import LIMITS, Request, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.collectors.wiring import collector_of
from warpladder.data import store
from warpladder.workloads import registry
from warpladder.workloads.api import CudaVariant, Launch, Workload

pytestmark = pytest.mark.slow

DOCS = Path(__file__).resolve().parents[3] / "docs"
EXAMPLES = DOCS / "examples"
SOFTMAX, LAYER_NORM = EXAMPLES / "softmax.py", EXAMPLES / "layer_norm" / "bench.py"
NO_GPU = "skipped: needs an NVIDIA GPU"
needs_torch = pytest.mark.skipif(not has_module("torch"), reason="PyTorch is not installed")
needs_triton = pytest.mark.skipif(not has_module("triton"), reason="Triton is not installed")
without_gpu = pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="with a GPU its variants are measured")


def recorded(folder: Path, file: Path, case: str, variants: Sequence[str] = ()) -> dict[str, str]:
    """By variant `ok`, or another status and its reason, of a short recording on the host."""
    limits = replace(LIMITS["quick"], seconds=0.05, processes=1)
    plan = make_plan(Request(files=[file], cases=[case], variants=list(variants)), limits)
    run_id, _ = Recorder(plan, collector_of("host_clock")).record(folder, "", [])
    results = store.open_run(folder / run_id).table("results").drop_duplicates("variant").set_index("variant")
    said = results["status"].where(results["status"] == "ok", results["status"] + ": " + results["detail"])
    return {str(name): text for name, text in said.items()}


def run_python(text: str, **variables: str) -> str:
    """What a script prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, **variables},
        cwd=DOCS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- softmax ---------------------------------------------------------------------------------------------------------


def test_the_readme_shows_softmax_as_it_is() -> None:
    assert f"```python\n{SOFTMAX.read_text()}```" in (DOCS.parent / "README.md").read_text()


def test_softmax_has_at_most_15_lines_besides_its_kernel() -> None:
    tree = ast.parse(SOFTMAX.read_text())
    kernel = [node for node in tree.body if isinstance(node, ast.With) or getattr(node, "name", "") == "fused"]
    of_kernel = {line for node in kernel for line in range(node.body[0].lineno, (node.end_lineno or 0) + 1)}
    of_kernel |= {node.lineno for node in kernel if isinstance(node, ast.FunctionDef)}
    of_kernel |= set(range(1, (tree.body[0].end_lineno or 0) + 1))  # the docstring of the file
    lines = SOFTMAX.read_text().splitlines()
    rest = [line for number, line in enumerate(lines, start=1) if line.strip() and number not in of_kernel]
    assert 10 < len(rest) <= 15, rest


@needs_torch
@without_gpu
def test_softmax_is_measured_without_a_gpu_and_its_kernel_is_skipped(tmp_path: Path) -> None:
    found = recorded(tmp_path, SOFTMAX, "rows=16,n=100")
    assert found["eager"] == found["compiled"] == "ok"
    assert found["fused"].startswith(NO_GPU)


@needs_torch
@without_gpu
@needs_triton
@pytest.mark.parametrize("n", [1, 1000, 4097])
def test_softmax_s_kernel_is_right_on_triton_s_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert recorded(tmp_path, SOFTMAX, f"rows=3,n={n}", ["eager", "fused"])["fused"] == "ok"


# -- layer normalisation ----------------------------------------------------------------------------------------------


def cuda_variants(workload: Workload) -> list[CudaVariant]:
    return [variant for variant in workload.variants if isinstance(variant, CudaVariant)]


def test_layer_norm_has_three_rungs_and_one_file() -> None:
    workload = registry.load_file(LAYER_NORM)[0]
    rungs = cuda_variants(workload)
    assert [(rung.name, rung.rung) for rung in rungs] == [("thread_a_row", 1), ("block_a_row", 2), ("row_in_registers", 3)]
    assert {rung.source_file for rung in rungs} == {LAYER_NORM.with_name("kernels.cu")}
    assert (workload.baseline, workload.host_baseline) == ("thread_a_row", "numpy")
    assert workload.variant("numpy").role == "host"


@pytest.mark.parametrize("arch", [pytest.param("sm_75", marks=pytest.mark.thorough), "sm_90"])
def test_layer_norm_s_kernels_compile_without_spills(arch: str) -> None:
    workload = registry.load_file(LAYER_NORM)[0]
    for variant in cuda_variants(workload):
        cells = [(case, config) for case in workload.cases for config in variant.configs if not variant.skip(case, config)]
        kernels = sorted({variant.launches(case, config)[0].kernel for case, config in cells})
        assert {each.spill_bytes for each in compile_variant(variant, kernels, arch).kernels.values()} == {0}


@pytest.mark.sampled(2)
@emulator.needs_compiler
@pytest.mark.parametrize(("rows", "n"), [(3, 1024), (65, 1024), (2, 4096)])
@pytest.mark.parametrize("order", ["forward", "backward"])
def test_layer_norm_s_kernels_compute_the_reference(rows: int, n: int, order: emulator.Order) -> None:
    workload = registry.load_file(LAYER_NORM)[0]
    assert workload.make_case is not None
    case = workload.make_case({"rows": rows, "n": n})
    inputs = workload.make_inputs(case, np.random.default_rng(1))
    right = workload.reference(case, inputs)["out"]
    for variant in cuda_variants(workload):
        for config in variant.configs:
            outputs = {"out": np.full((rows, n), np.nan, np.float32)}
            emulator.run(variant, variant.launches(case, config), inputs, outputs, order)
            assert np.linalg.norm(outputs["out"] - right) <= workload.tolerance["fp32"] * np.linalg.norm(right)


def test_a_row_that_does_not_divide_into_vectors_is_skipped_with_the_reason() -> None:
    workload = registry.load_file(LAYER_NORM)[0]
    assert workload.make_case is not None
    case = workload.make_case({"rows": 3, "n": 1000})
    skipped = workload.variant("row_in_registers").skip(case, {"block": 128})
    assert skipped == "n must be a multiple of 512: a thread takes whole vectors of 16 bytes"


@without_gpu
def test_layer_norm_is_measured_on_the_host_as_far_as_packages_are_there(tmp_path: Path) -> None:
    found = recorded(tmp_path, LAYER_NORM, "rows=16,n=1024")
    assert found["numpy"] == "ok" and found["block_a_row"].startswith(NO_GPU)
    missing = "skipped: needs the Python package torch, which is not installed"
    assert found["pytorch"] == ("ok" if has_module("torch") else missing)


# -- reduction -----------------------------------------------------------------------------------------------------------

RUNGS = ("atomics", "tree", "shuffles", "strided", "vectors")


@pytest.fixture(scope="module")
def reduction() -> dict[str, Any]:
    module = registry.load_file(EXAMPLES / "reduction.py")[0].variant("tree").function  # type: ignore[attr-defined]
    return dict(module.__globals__)


@pytest.mark.parametrize("arch", [pytest.param("sm_75", marks=pytest.mark.thorough), "sm_90"])
def test_the_reduction_s_kernels_compile_without_spills(reduction: dict[str, Any], arch: str) -> None:
    variant = CudaVariant("reduction", "reduction", "rung", source=reduction["KERNELS"])
    assert {name: each.spill_bytes for name, each in compile_variant(variant, RUNGS, arch).kernels.items()} == dict.fromkeys(
        RUNGS, 0
    )


def on_emulator(program: emulator.Program, order: emulator.Order) -> Callable[[str], Callable[..., None]]:
    """Launches as CuPy's kernels do."""

    def kernel(name: str) -> Callable[..., None]:
        def launch(grid: tuple[int], block: tuple[int], args: tuple[Any, ...]) -> None:
            x, out, n = args
            found = {"sum": out.reshape(1).copy()}
            program.run([Launch(name, (*grid, 1, 1), (*block, 1, 1), ("x", "sum", np.int64(n)))], {"x": x}, found, order)
            out[...] = found["sum"][0]

        return launch

    return kernel


@pytest.mark.sampled(4)
@emulator.needs_compiler
@pytest.mark.parametrize("n", [1, 3, 255, 1003, 4096])
@pytest.mark.parametrize("order", ["forward", "backward"])
def test_the_reduction_s_kernels_compute_the_sum(
    reduction: dict[str, Any], monkeypatch: pytest.MonkeyPatch, n: int, order: emulator.Order
) -> None:
    program = emulator.build(CudaVariant("reduction", "reduction", "rung", source=reduction["KERNELS"]), RUNGS)
    monkeypatch.setitem(reduction["launch"].__globals__, "kernel", on_emulator(program, order))
    x = reduction["inputs"](n, np.random.default_rng(n))
    for name in RUNGS:
        out = np.full((), np.nan, np.float32)
        reduction[name](x, out, *([2] if name in ("strided", "vectors") else []))
        assert out == x.sum(dtype=np.float64), name


@pytest.mark.thorough
@without_gpu
def test_the_reduction_is_measured_by_numpy_without_a_gpu(tmp_path: Path) -> None:
    found = recorded(tmp_path, EXAMPLES / "reduction.py", "n=1000")
    assert found.pop("numpy_sum") == "ok"
    assert all(text.startswith(NO_GPU) for text in found.values())
    assert set(found) == {*RUNGS, "cupy_sum"}


# -- histogram -----------------------------------------------------------------------------------------------------------

SIMULATION = """
import runpy
import numpy as np
names = runpy.run_path("docs/examples/numba_histogram.py")
for values in ("uniform", "skewed"):
    x = names["inputs"](values, 2052, np.random.default_rng(1))
    for variant in ("memory_atomics", "block_bins", "warp_bins"):
        out = np.full(256, -5, np.int32)
        names[variant](x, out, 2, 0)
        print(values, variant, np.array_equal(out, names["reference"](x)), (out == out.max()).argmax() == 7)
"""


@pytest.mark.thorough
def test_the_histogram_s_kernels_count_right_on_numba_s_simulator() -> None:
    lines = run_python(SIMULATION, NUMBA_ENABLE_CUDASIM="1").splitlines()
    assert [line.split()[2] for line in lines] == ["True"] * 6
    assert [line.split()[3] for line in lines[3:]] == ["True"] * 3  # most of the skewed values are 7


@pytest.mark.thorough
@without_gpu
def test_the_histogram_is_measured_by_numpy_without_a_gpu(tmp_path: Path) -> None:
    found = recorded(tmp_path, EXAMPLES / "numba_histogram.py", "values=skewed,n=4000")
    assert found.pop("numpy_bincount") == "ok"
    assert all(text.startswith(NO_GPU) for text in found.values())
    assert set(found) == {"memory_atomics", "block_bins", "warp_bins", "cupy_bincount"}
