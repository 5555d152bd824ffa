"""The examples of docs/own-kernel.md on a GPU: every variant is right, and is timed cold and hot."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from warpladder.collectors.core.plan import LIMITS, Request, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.wiring import collector_of
from warpladder.data import store
from warpladder.workloads import registry
from warpladder.workloads.declare.functions.variants import FunctionVariant

pytestmark = pytest.mark.gpu
EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"


def recorded(folder: Path, name: str, cases: Sequence[str]) -> store.Run:
    limits = replace(LIMITS["quick"], seconds=0.1, cell_timeout_s=120.0, budget_s=None, processes=1)
    plan = make_plan(Request(files=[EXAMPLES / name], cases=cases), limits)
    run_id, _ = Recorder(plan, collector_of("cuda_events")).record(folder, "", [])
    run = store.open_run(folder / run_id)
    results = run.table("results")
    assert set(results["status"]) == {"ok"}, results.query("status != 'ok'")[["variant", "config", "detail"]].to_dict("records")
    return run


@pytest.mark.parametrize(
    ("name", "modules", "cases", "on_host"),
    [
        ("softmax.py", ("torch", "triton"), ("rows=4096,n=1024", "rows=500,n=1000", "rows=64,n=16384"), set()),
        ("reduction.py", (), ("n=1048576", "n=1000003"), {"numpy_sum"}),
        ("numba_histogram.py", ("numba_cuda",), ("values=uniform,n=1048576", "values=skewed,n=1048576"), {"numpy_bincount"}),
        ("layer_norm/bench.py", ("torch",), ("rows=1024,n=1024", "rows=333,n=4096"), {"numpy"}),
    ],
)
def test_every_variant_is_right_and_timed_cold_and_hot(
    name: str, modules: Sequence[str], cases: Sequence[str], on_host: set[str], tmp_path: Path
) -> None:
    for module in modules:
        pytest.importorskip(module)
    run = recorded(tmp_path, name, cases)
    timed = run.table("samples").query("scope == 'device'").groupby("cache")["variant"].agg(set)
    assert timed["cold"] == timed["hot"] == set(run.table("results")["variant"]) - on_host


def test_the_kernel_of_triton_is_not_behind_what_pytorch_does_without_it(tmp_path: Path) -> None:
    for module in ("torch", "triton"):
        pytest.importorskip(module)
    samples = recorded(tmp_path, "softmax.py", ["rows=4096,n=4096"]).table("samples")
    medians = samples.query("scope == 'device' and cache == 'cold'").groupby(["variant", "config"])["duration_ns"].median()
    assert medians["fused"].min() < 1.1 * medians["eager"].min()


def test_the_hot_time_of_triton_s_kernel_is_that_of_triton_s_own_benchmark(tmp_path: Path) -> None:
    """Both replay a graph of many calls on the same arrays. `do_bench` leaves L2 full of lines that its clearing has written."""
    torch, testing = pytest.importorskip("torch"), pytest.importorskip("triton.testing")
    samples = recorded(tmp_path, "softmax.py", ["rows=4096,n=4096"]).table("samples")
    found = samples.query("variant == 'fused' and config == 'warps=8' and scope == 'device' and cache == 'hot'")
    variant = registry.load_file(EXAMPLES / "softmax.py")[0].variant("fused")
    assert isinstance(variant, FunctionVariant)
    x = torch.randn(4096, 4096, device="cuda")
    theirs_ms = testing.do_bench_cudagraph(lambda: variant.function(x, 8), rep=100, return_mode="median")
    assert 0.9 < found["duration_ns"].median() / (theirs_ms * 1e6) < 1.1


def test_each_rung_of_the_reduction_is_ahead_of_the_atomic_additions(tmp_path: Path) -> None:
    samples = recorded(tmp_path, "reduction.py", ["n=16777216"]).table("samples")
    medians = samples.query("scope == 'device' and cache == 'cold'").groupby(["variant", "config"])["duration_ns"].median()
    best = medians.groupby("variant").min()
    assert best["vectors"] < 1.1 * best["strided"] and best["strided"] < best["atomics"] and best["shuffles"] < best["atomics"]
