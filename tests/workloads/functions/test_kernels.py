"""Kernels of CUDA C++ as variants of a benchmark: their names, grids and arguments, and what they compute on the emulator."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.emulator import emulator
from warpladder import Benchmark
from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.workloads.api import CudaVariant, WorkloadError

SCALE = """// Idea: A thread an element.
template <int kBlock> __global__ void scale(const float* x, float factor, float* out, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < n) out[i] = factor * x[i];
}"""


def scaling(**given: Any) -> Benchmark:
    bench = Benchmark("scaling", n=[1000, 4000])
    bench.inputs(lambda n, rng: (rng.standard_normal(n, np.float32), 3.0))

    @bench.reference
    def reference(x: np.ndarray, factor: float) -> np.ndarray:
        return factor * x

    chosen = {"kernel": "scale<{block}>", "grid": lambda n, block: -(-n // block), "block": "block"}
    chosen |= {"args": ("x", "factor", "out", "n"), "configs": ({"block": 64}, {"block": 256})}
    bench.cuda(SCALE, **{**chosen, **given})
    return bench


def made(bench: Benchmark, name: str = "scale") -> tuple[CudaVariant, Any, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The variant, the first case, its inputs and its right outputs."""
    workload = bench.workload
    variant, case = workload.variant(name), workload.cases[0]
    assert isinstance(variant, CudaVariant)
    inputs = workload.make_inputs(case, np.random.default_rng(1))
    return variant, case, dict(inputs), dict(workload.reference(case, inputs))


def test_names_grids_and_arguments_follow_axes_and_config() -> None:
    variant, case, _, _ = made(scaling())
    (launch,) = variant.launches(case, {"block": 64})
    assert (launch.kernel, launch.grid, launch.block) == ("scale<64>", (16, 1, 1), (64, 1, 1))
    assert launch.args == ("x", 3.0, "out", 1000) and [type(each) for each in launch.args[1::2]] == [np.float32, np.int32]
    assert variant.name == "scale" and variant.rung == 1 and variant.header["idea"] == "A thread an element."


def test_a_kernel_compiles_before_any_input_is_made() -> None:
    variant = scaling().workload.variant("scale")
    assert isinstance(variant, CudaVariant)
    launch = variant.launches(scaling().workload.cases[1], {"block": 256})[0]
    assert launch.args == () and launch.grid == (16, 1, 1)
    assert compile_variant(variant, [launch.kernel], "sm_90").kernels["scale<256>"].registers > 0


@emulator.needs_compiler
def test_a_kernel_computes_the_reference() -> None:
    variant, case, inputs, right = made(scaling())
    for config in variant.configs:
        outputs = {"out": np.full(1000, np.nan, np.float32)}
        emulator.run(variant, variant.launches(case, config), inputs, outputs)
        np.testing.assert_allclose(outputs["out"], right["out"], rtol=1e-6)


def test_a_file_is_found_from_the_file_that_declares_the_benchmark(tmp_path: Path) -> None:
    bench = scaling()
    assert bench.file == Path(__file__)
    bench.file = tmp_path / "bench.py"
    (tmp_path / "kernel.cu").write_text(SCALE)
    bench.cuda("kernel.cu", kernel="scale<64>", grid=1, block=(64, 1), name="of_file")
    variant = bench.workload.variant("of_file")
    assert isinstance(variant, CudaVariant) and variant.source_text == SCALE and variant.rung == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kernel": "scale<{threads}>"}, "kernel='scale<{threads}>' names 'threads'; it can name n, block"),
        ({"grid": 0}, "grid is 0; give a whole number from 1"),
        ({"grid": lambda n: n / 2}, "grid is 500.0; give a whole number"),
        ({"grid": (1, 1, 1, 1)}, "grid has 4 extents"),
        ({"block": "threads"}, "block is None; give a whole number from 1, one of n, block, or a function"),
        ({"args": ("x", "y")}, "args names 'y'; name one of x, factor, out, n, block"),
        ({"args": ("x", 2**40)}, "argument 1099511627776 is no float or int"),
        ({"grid": lambda m: m}, "takes m, which is no axis; the axes are n, block"),
    ],
)
def test_a_launch_that_cannot_be_is_named(given: dict[str, Any], said: str) -> None:
    variant, case, _, _ = made(scaling(**given))
    with pytest.raises(WorkloadError) as error:
        variant.launches(case, {"block": 64})
    assert said in str(error.value)


def test_a_missing_file_is_named_when_it_is_declared() -> None:
    with pytest.raises(WorkloadError, match=r"nothing\.cu: no such file; give the path of a \.cu file"):
        scaling().cuda("nothing.cu", kernel="k", grid=1, block=1)
    with pytest.raises(WorkloadError, match=r"long\.cu: no such file; give the path of a \.cu file"):
        scaling().cuda(f"{300 * 'a'}long.cu", kernel="k", grid=1, block=1)


def test_code_may_be_one_line_that_is_longer_than_a_name_of_a_file() -> None:
    bench = scaling()
    code = 'extern "C" __global__ void one(const float* x, float* out) { ' + "out[0] = x[0]; " * 30 + "}"
    bench.cuda(code, kernel="one", grid=1, block=1)
    assert bench.workload.variant("one").source_text == code
