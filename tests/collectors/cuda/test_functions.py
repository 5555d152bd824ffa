"""Functions on the GPU: what is right is timed, cold and hot, and what is wrong is named."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from warpladder.collectors.core.plan import LIMITS, Request, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.wiring import collector_of
from warpladder.data import store

pytestmark = pytest.mark.gpu
FILE = Path(__file__).with_name("functions_on_gpu.py")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    for module in ("torch", "triton", "numba"):
        pytest.importorskip(module)
    data_dir = tmp_path_factory.mktemp("data")
    limits = replace(LIMITS["quick"], seconds=0.1, cell_timeout_s=60.0, budget_s=None)
    run_id, _ = Recorder(make_plan(Request(files=[FILE]), limits), collector_of("cuda_events")).record(data_dir, "", [])
    return store.open_run(data_dir / run_id)


@pytest.fixture(scope="module")
def module() -> Any:
    return pytest.importorskip("tests.collectors.cuda.functions_on_gpu")


def test_what_is_right_is_timed_cold_and_hot(run: store.Run, module: Any) -> None:
    results = run.table("results").query("workload == 'affine' and variant in @module.RIGHT")
    assert set(results["status"]) == {"ok"}, results.query("status != 'ok'")[["variant", "case", "detail"]].to_dict("records")
    on_gpu = set(module.RIGHT) - {"from_host"}
    samples = run.table("samples").query("workload == 'affine'")
    timed = samples[samples["scope"] == "device"].groupby("cache")["variant"].agg(set)
    assert timed["cold"] == timed["hot"] == on_gpu


def test_work_on_the_default_stream_is_timed_and_told(run: store.Run) -> None:
    results = run.table("results").query("workload == 'affine'").set_index("variant")
    assert results.loc[["numba_default_stream"], "detail"].str.contains("it launches on CUDA's default stream").all()
    assert not results.loc[["with_numba"], "detail"].str.contains("default stream").any()
    samples = run.table("samples").query(
        "workload == 'affine' and case == 'n=4194304' and scope == 'device' and cache == 'cold'"
    )
    times = samples.groupby("variant")["duration_ns"].median()
    assert 0.9 * times["with_numba"] < times["numba_default_stream"] < times["with_numba"] + 10_000


def test_what_is_wrong_is_named(run: store.Run, module: Any) -> None:
    results = run.table("results").query("workload == 'affine'").set_index("variant")
    found = {}
    for variant, (status, said) in module.WRONG.items():
        rows = results.loc[[variant]]
        if set(rows["status"]) != {status} or not rows["detail"].str.contains(said, regex=False).all():
            found[variant] = rows[["status", "detail"]].to_dict("records")
    assert not found


def test_the_types_that_numpy_lacks_are_measured(run: store.Run) -> None:
    results = run.table("results").query("workload == 'products'")
    assert set(results["status"]) == {"ok"} and len(results) == 2 * 3, results["detail"].tolist()


def test_gradients_are_verified_and_both_passes_timed(run: store.Run) -> None:
    results = run.table("results").query("workload == 'layer_norm'")
    assert set(results["status"]) == {"ok"}, results["detail"].tolist()
    samples = run.table("samples").query("workload == 'layer_norm'")
    medians = samples.groupby(["variant", "case", "scope", "cache"])["duration_ns"].median()
    for variant, case in {(key[0], key[1]) for key in medians.index}:
        parts = medians[variant, case, "phase:forward", "hot"] + medians[variant, case, "phase:backward", "hot"]
        assert 0.5 < parts / medians[variant, case, "device", "hot"] < 3


def test_the_first_call_holds_the_compilation(run: store.Run) -> None:
    samples = run.table("samples").query("scope == 'phase:first_call' and workload == 'affine'")
    first = samples.groupby("variant")["duration_ns"].max()
    assert first["compiled"] > 20 * first["raw_kernel"]
