"""Benchmarks of plain functions, recorded on the host."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.workloads.functions.recording import record
from warpladder import Benchmark
from warpladder.data import store
from warpladder.workloads.api import WorkloadError

pytestmark = pytest.mark.slow

SOFTMAX = '''
import numpy as np
import warpladder

bench = warpladder.Benchmark("softmax", rows=[7], n=[10, 40])


@bench.inputs
def inputs(rows, n, rng):
    return rng.standard_normal((rows, n), np.float32)


@bench.reference
def reference(x):
    assert x.dtype == np.float64
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@bench.variant(baseline=True)
def naive(x):
    """Subtracts, exponentiates and divides, each into a new array."""
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@bench.variant
def into(x, out):
    np.subtract(x, x.max(axis=1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True)


@bench.variant(writes_inputs=True)
def in_place(x):
    x -= x.max(axis=1, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis=1, keepdims=True)


@bench.variant(configs=[{"step": 2}, {"step": 5}], role="peer")
def by_rows(x, step, out):
    for row in range(0, len(x), step):
        out[row : row + step] = naive(x[row : row + step])
'''


@pytest.fixture(scope="module")
def softmax(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    return record(tmp_path_factory.mktemp("softmax"), SOFTMAX)


def test_three_ways_to_give_an_output_are_verified_and_timed(softmax: store.Run) -> None:
    results = softmax.table("results")
    assert set(results["status"]) == {"ok"} and len(results) == 2 * 5
    variants = softmax.table("variants").set_index("variant")
    assert variants.loc[["naive", "into", "in_place"], "rung"].tolist() == [1, 2, 3]
    assert variants.loc["by_rows", "role"] == "peer" and variants.loc["naive", "precision"] == "fp32"
    assert variants.loc["naive", "idea"] == "Subtracts, exponentiates and divides, each into a new array."


def test_the_bytes_of_a_case_are_those_of_its_arrays(softmax: store.Run) -> None:
    cases = softmax.table("cases").set_index("case")
    assert cases.loc["rows=7,n=40", ["h2d_bytes", "d2h_bytes", "min_bytes"]].tolist() == [1120, 1120, 2240]
    assert cases.loc["rows=7,n=40", "size_rank"] == 1


def test_the_first_call_is_a_sample_of_its_own(softmax: store.Run) -> None:
    samples = softmax.table("samples")
    first = samples[samples["scope"] == "phase:first_call"]
    assert len(first) == 2 * 5 and (first["duration_ns"] > 0).all()


def test_the_first_call_is_told_in_the_verdict(softmax: store.Run) -> None:
    told = softmax.table("results")["detail"].str.extract(r"first call: ([\d.e+-]+) ms")[0].astype(float)
    first = softmax.table("samples").query("scope == 'phase:first_call'")["duration_ns"]
    assert sorted(told) == pytest.approx(sorted(first / 1e6), rel=0.01)


def test_the_least_benchmark_has_inputs_a_reference_and_a_variant() -> None:
    bench = Benchmark("least", n=[2])
    with pytest.raises(WorkloadError, match="least: has no inputs"):
        _ = bench.workload
    bench.inputs(lambda n: np.ones(n))
    with pytest.raises(WorkloadError, match="least: has no reference"):
        _ = bench.workload


def test_an_axis_with_one_value_can_be_left_out_of_a_case() -> None:
    bench = Benchmark("axes", rows=[7], kind=["even"], n=[10, 40])
    bench.inputs(lambda rows, n: np.ones((rows, n)))
    bench.reference(lambda x: x)
    bench.variant(lambda x: x, name="same")
    assert bench.workload.case("n=5").params == {"rows": 7, "kind": "even", "n": 5}
    with pytest.raises(WorkloadError, match="n is missing; its axes are rows \\(from 1, 7 if left out\\)"):
        bench.workload.case("rows=5")


class Kernel:
    """Stands for what `@triton.jit` makes of a function."""

    __module__ = "triton.runtime.jit"


triton_kernel = Kernel()


def with_triton(x: np.ndarray) -> Any:
    return triton_kernel and x


@pytest.mark.parametrize(("interpreted", "kind"), [("0", "library"), ("1", "host")])
def test_a_function_that_launches_a_kernel_of_triton_needs_a_gpu_unless_triton_interprets_it(
    monkeypatch: pytest.MonkeyPatch, interpreted: str, kind: str
) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", interpreted)
    monkeypatch.setattr("warpladder.workloads.declare.functions.variants.has_nvidia_driver", lambda: False)
    bench = Benchmark("triton", n=[2], arrays="torch")
    bench.inputs(lambda n: np.ones(n))
    bench.reference(lambda x: x)
    bench.variant(with_triton)
    bench.variant(lambda x: x, name="named", requires=["triton"])
    bench.variant(lambda x: x, name="eager")
    assert [variant.kind for variant in bench.workload.variants] == [kind, kind, "host"]


def test_numpy_stands_beside_the_ladder_of_kernels() -> None:
    bench = Benchmark("beside", n=[2])
    bench.inputs(lambda n: np.ones(n))
    bench.reference(lambda x: x)
    bench.variant(lambda x: x, name="numpy")
    assert bench.workload.variant("numpy").rung == 1
    bench.cuda("__global__ void copy(const double* x, double* y) {\n}", kernel="copy", grid=1, block=2)
    assert [(variant.role, variant.rung) for variant in bench.workload.variants] == [("host", None), ("rung", 1)]


def test_bytes_that_a_benchmark_declares_stand_and_others_are_those_of_the_arrays(tmp_path: Path) -> None:
    run = record(
        tmp_path,
        """
import numpy as np, warpladder
bench = warpladder.Benchmark("ends", n=[5, 6, 7], bytes=lambda n: {5: 16, 6: 0}.get(n, 24.0))
bench.inputs(lambda n, rng: {"x": rng.standard_normal(n)})
bench.reference(lambda x: x[:1] + x[-1:])
bench.variant(lambda x: x[:1] + x[-1:], name="sum", arrays="numpy")
""",
    )
    cases = run.table("cases").set_index("case")
    assert cases["min_bytes"].to_dict() == {"n=5": 16, "n=6": 56, "n=7": 24}
    assert cases["h2d_bytes"].to_dict() == {"n=5": 40, "n=6": 48, "n=7": 56}, "copies are of whole arrays"
    assert set(cases["d2h_bytes"]) == {8} and set(run.table("results")["status"]) == {"ok"}


def test_the_set_quick_has_the_cases_that_a_benchmark_says() -> None:
    cases = declared(Benchmark("some", n=[5, 500], quick=lambda n: n < 100)).workload.cases
    assert {case.name: case.sets for case in cases} == {"n=5": ("quick", "report", "full"), "n=500": ("report", "full")}


def test_axes_may_have_the_names_of_options() -> None:
    bench = Benchmark("named", axes={"device": ["one", "two"], "title": [3], "name": [1]}, n=[5])
    assert [case.name for case in declared(bench).workload.cases] == [
        f"device={each},title=3,name=1,n=5" for each in ("one", "two")
    ]
    assert Benchmark(name="by_keyword", n=[1]).name == "by_keyword"
    assert [case.name for case in declared(Benchmark("alone")).workload.cases] == ["only"]


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({"name": [1]}, r"name=\[1\]: name is an option of Benchmark; for an axis of this name, give axes={'name': \[...\]}"),
        ({"tolerance": (1, 2)}, r"tolerance=\(1, 2\): tolerance is an option"),
        ({"axes": {"n": [1]}, "n": [2]}, "axis n is in axes, and an argument too; leave one out"),
        ({"axes": [1]}, r"axes is \[1\]; give a dict of values by axis"),
        ({"axes": {3: [1]}}, "axis 3: not a name; give a text"),
    ],
)
def test_an_axis_that_clashes_is_refused(axes: dict[str, Any], said: str) -> None:
    with pytest.raises(WorkloadError, match=said):
        Benchmark("clash", **axes)


def declared(bench: Benchmark) -> Benchmark:
    bench.inputs(lambda: np.ones(3))
    bench.reference(lambda x: x)
    bench.variant(lambda x: x, name="same", baseline=True)
    bench.variant(lambda x: 1 * x, name="peer", role="peer")
    return bench


def test_a_benchmark_and_its_workload_show_what_they_hold() -> None:
    bench = declared(Benchmark("shown", n=[1, 2]))
    assert repr(bench) == "<Benchmark 'shown', n=[1, 2]: same (baseline), peer>"
    assert repr(bench.workload) == "<Workload 'shown': cases 2, variants same, peer>"
    assert [variant.role for variant in bench.workload.variants] == ["rung", "peer"]


BY_AXIS = """
import numpy as np
import warpladder

bench = warpladder.Benchmark("halves", kind=["float32", "float64"])

@bench.inputs
def inputs(rng):
    return rng.integers(-50, 50, 100).astype(np.float64)

@bench.reference(outputs=lambda kind: {"out": kind})
def reference(x):
    return x / 2

@bench.variant
def half(x, kind):
    return (x / 2).astype(kind)
"""


def test_types_of_outputs_may_depend_on_the_axes(tmp_path: Path) -> None:
    results = record(tmp_path, BY_AXIS).table("results")
    assert dict(zip(results["case"], results["status"], strict=True)) == {"kind=float32": "ok", "kind=float64": "ok"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("lambda kind: 'floaty'", "outputs is 'floaty'; give the name of a type"),
        ("lambda other: ''", "takes other, which is no axis"),
    ],
)
def test_a_function_that_gives_no_types_is_named(function: str, said: str, tmp_path: Path) -> None:
    results = record(tmp_path, BY_AXIS.replace('lambda kind: {"out": kind}', function)).table("results")
    assert all(said in detail for detail in results["detail"]), results["detail"].tolist()
