"""The example of `docs/own-workload.md` is a workload like those that ship: it loads, compiles, computes and is recorded."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.emulator import emulator
from warpladder.collectors.core.plan import LIMITS, Request, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.collectors.wiring import collector_of
from warpladder.data import store
from warpladder.workloads import registry
from warpladder.workloads.api import Case, CudaVariant, HostVariant, Launch, Workload, WorkloadError

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLE = DOCS / "examples" / "row_sum.py"
SMALL = Case({"rows": 37}, flops=0, min_bytes=0)  # no multiple of a block's 4, 8, 128 or 256 rows


@pytest.fixture(scope="module")
def example() -> Workload:
    return registry.load_file(EXAMPLE)[0]


def _cuda(workload: Workload) -> list[CudaVariant]:
    return [variant for variant in workload.variants if isinstance(variant, CudaVariant)]


def test_example_has_two_cuda_variants_and_a_numpy_one_in_at_most_40_lines(example: Workload) -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 40
    assert [(variant.name, variant.kind) for variant in example.variants] == [
        ("v01_thread", "cuda"),
        ("v02_warp", "cuda"),
        ("numpy", "host"),
    ]


def test_example_counts_operations_and_bytes_of_its_smallest_case(example: Workload) -> None:
    case = example.case("rows=1000")
    assert case.flops == 999_000  # 999 additions in each of 1000 rows
    assert case.min_bytes == 4_004_000  # a million numbers in, a thousand out, 4 bytes each


def test_example_s_sources_say_their_idea(example: Workload) -> None:
    assert example.variant("v01_thread").header["idea"].startswith("A thread a row.")
    assert example.variant("v02_warp").header["idea"].startswith("A warp a row.")


def test_example_s_warp_a_row_needs_32_times_the_blocks_of_a_thread_a_row(example: Workload) -> None:
    grids = [variant.launches(SMALL, {"block": 128})[0].grid for variant in _cuda(example)]
    assert grids == [(1, 1, 1), (10, 1, 1)]  # 37 threads; 37 warps, four a block


@pytest.mark.parametrize("arch", [pytest.param("sm_75", marks=pytest.mark.thorough), "sm_90"])
def test_example_s_kernels_compile_without_spills(example: Workload, arch: str) -> None:
    for variant in _cuda(example):
        for config in variant.configs:
            (launch,) = variant.launches(SMALL, config)
            kernel = compile_variant(variant, [launch.kernel], arch).kernels[launch.kernel]
            assert 0 < kernel.registers < 64
            assert kernel.spill_bytes == 0


@emulator.needs_compiler
@pytest.mark.parametrize("name", ["v01_thread", "v02_warp"])
def test_example_s_kernels_compute_the_reference(example: Workload, name: str) -> None:
    variant = example.variant(name)
    assert isinstance(variant, CudaVariant)
    inputs = example.make_inputs(SMALL, np.random.default_rng(3))
    expected = example.reference(SMALL, inputs)["sums"]
    for config in variant.configs:
        outputs = {"sums": np.full(37, np.nan, np.float32)}
        emulator.run(variant, variant.launches(SMALL, config), inputs, outputs)
        assert np.linalg.norm(outputs["sums"] - expected) <= example.tolerance["fp32"] * np.linalg.norm(expected)


def test_example_s_numpy_variant_computes_the_reference(example: Workload) -> None:
    variant = example.variant("numpy")
    assert isinstance(variant, HostVariant)
    inputs = example.make_inputs(SMALL, np.random.default_rng(3))
    expected = example.reference(SMALL, inputs)["sums"]
    returned = variant.run(SMALL, inputs, {"sums": np.full(37, np.nan, np.float32)})
    assert returned is not None
    assert np.linalg.norm(returned["sums"] - expected) <= example.tolerance["fp32"] * np.linalg.norm(expected)


@pytest.mark.thorough
def test_example_is_recorded_with_its_kernels_skipped_for_want_of_a_gpu(tmp_path: Path) -> None:
    limits = replace(LIMITS["quick"], seconds=0.05)
    plan = make_plan(Request(files=[EXAMPLE], cases=["rows=1000"]), limits)
    run_id, interrupted = Recorder(plan, collector_of("host_clock")).record(tmp_path, "", ["record", EXAMPLE.name])
    assert not interrupted
    run = store.open_run(tmp_path / run_id)
    results = run.table("results")
    assert dict(results.groupby("variant")["status"].first()) == {"v01_thread": "skipped", "v02_warp": "skipped", "numpy": "ok"}
    assert results.query("variant == 'numpy'")["verified_elements"].tolist() == [1000]
    assert set(run.table("samples")["variant"]) == {"numpy"}


def test_page_shows_the_example_as_it_is() -> None:
    assert f"```python\n{EXAMPLE.read_text()}```" in (DOCS / "own-workload.md").read_text()


def test_an_included_file_stands_in_its_place_and_a_compiler_names_the_places_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "twice.cuh").write_text("__device__ float twice(float x) { return x + x; }\n")
    kernel = tmp_path / "v01_twice.cu"
    kernel.write_text('// Idea: one.\n#include "twice.cuh"\n__global__ void f(float* x) { *x = twice(*x); }\n')
    variant = CudaVariant("v01_twice", "twice", "rung", source=kernel)
    assert variant.source_text.splitlines() == [
        "// Idea: one.",
        '#line 1 "twice.cuh"',
        "__device__ float twice(float x) { return x + x; }",
        '#line 3 "v01_twice.cu"',
        "__global__ void f(float* x) { *x = twice(*x); }",
    ]
    assert variant.header["idea"] == "one."
    assert compile_variant(variant, ["f"], "sm_90").kernels["f"].registers > 0
    values = np.array([1.5], np.float32)
    emulator.run(variant, [Launch("f", (1, 1, 1), (1, 1, 1), ("x",))], {}, {"x": values})
    assert values == [3.0]


def test_an_included_file_that_is_not_there_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "v01_lost.cu").write_text('// Idea: one.\n#include "lost.cuh"\n')
    with pytest.raises(WorkloadError, match=r'v01_lost\.cu:2: #include "lost\.cuh": no such file beside it; mend the path'):
        _ = CudaVariant("v01_lost", "lost", "rung", source=tmp_path / "v01_lost.cu").source_text
