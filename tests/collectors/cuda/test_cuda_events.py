"""The collector `cuda_events` on a GPU: containment, scopes, ceilings, and every variant right at odd sizes."""

import itertools
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from warpladder.collectors.core.plan import LIMITS, Request, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.wiring import collector_of
from warpladder.data import store
from warpladder.data.limits import DEVICE_MIXES
from warpladder.data.names import Ceiling, Phase, found_by_size
from warpladder.workloads import registry

pytestmark = pytest.mark.gpu

FAULTY = Path(__file__).parent / "faulty_kernels.py"
QUICK = replace(LIMITS["quick"], seconds=0.3, cell_timeout_s=15.0, budget_s=None)
WITH_SIZES = replace(QUICK, ceilings_by_size=True)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    data_dir = tmp_path_factory.mktemp("data")
    run_id, _ = Recorder(make_plan(Request(files=[FAULTY]), WITH_SIZES), collector_of("cuda_events")).record(data_dir, "", [])
    return store.open_run(data_dir / run_id)


@pytest.mark.parametrize(
    ("variant", "status", "detail"),
    [
        ("doubled", "ok", "device cold: "),
        ("nothing", "wrong_result", "not finite"),
        ("outside", "launch_error", "cudaErrorIllegalAddress"),
        ("forever", "timeout", "no progress"),
        ("doubled_2048", "launch_error", "CUDA_ERROR_INVALID_VALUE"),
        ("absent", "launch_error", "does not compile"),
        ("too_large", "out_of_memory", "OutOfMemoryError"),
        ("not_waited_for", "ok", "device cold: "),
        ("not_installed", "skipped", "needs the Python package no_such_package"),
    ],
)
def test_a_fault_of_a_kernel_is_its_own_verdict(faulty: store.Run, variant: str, status: str, detail: str) -> None:
    rows = faulty.table("results").query("variant == @variant")
    assert set(rows["status"]) == {status}
    assert rows["detail"].str.contains(detail, regex=False).all()


def test_a_call_that_nobody_waits_for_is_distrusted(faulty: store.Run) -> None:
    found = faulty.table("diagnostics").query("source == 'never_synchronized'")
    assert ("not_waited_for", "n=16777216") in set(zip(found["variant"], found["case"], strict=True))


def test_every_scope_is_sampled_and_nested(faulty: store.Run) -> None:
    samples = faulty.table("samples").query("variant == 'doubled' and case == 'n=16777216' and twin == 0")
    median = samples.groupby(["scope", "cache"])["duration_ns"].median()
    assert median["device", "cold"] <= median["operation", "hot"] <= median["end_to_end", "hot"]
    phases = sum(median[name, "hot"] for name in (Phase.H2D, Phase.COMPUTE, Phase.D2H))
    assert phases == pytest.approx(median["end_to_end", "hot"], rel=0.1)


def test_a_program_of_the_host_has_no_device_time(tmp_path: Path) -> None:
    plan = make_plan(Request(["mlp_training"], cases=["batch=100"], variants=["v01_products_only", "v03_final"]), QUICK)
    run_id, _ = Recorder(plan, collector_of("cuda_events")).record(tmp_path, "", [])
    run = store.open_run(tmp_path / run_id)
    assert set(run.table("results")["status"]) == {"ok"}
    scopes = run.table("samples").groupby("variant")["scope"].agg(set)
    assert scopes["v01_products_only"] == {"operation", "end_to_end"}
    assert {"device", "operation", "end_to_end"} <= scopes["v03_final"]


def test_the_state_of_the_gpu_stands_beside_every_sample(faulty: store.Run) -> None:
    samples = faulty.table("samples")
    assert samples["sm_clock_mhz"].between(100, 5000).all()
    is_batch = (samples["scope"] == "device") & (samples["cache"] == "hot")
    assert samples["held_clock_mhz"][is_batch].between(100, 5000).all() and samples["held_clock_mhz"][~is_batch].isna().all()
    assert samples["throttle_reasons"].notna().all()


def test_the_ceilings_are_plausible_and_ordered(faulty: store.Run) -> None:
    values = faulty.table("ceilings").set_index("name")["value"]
    assert values[Ceiling.GRAPH_NODE] < values[Ceiling.QUEUED_LAUNCH] <= values[Ceiling.LAUNCH]
    assert values[Ceiling.H2D_PAGEABLE] < values[Ceiling.H2D_PINNED] < values[Ceiling.DEVICE_COPY]
    assert values[Ceiling.FP32_FMA] > 1
    assert "tf32_wgmma" not in values or values["tf32_wgmma"] > values["tf32_mma"]


def test_times_of_memory_by_size_grow_to_those_of_its_rates(faulty: store.Run) -> None:
    values = faulty.table("ceilings").set_index("name")["value"].to_dict()
    by_size = {found: 1000 * values[name] for name in values if (found := found_by_size(name))}
    for mix, cache in itertools.product(DEVICE_MIXES, ("cold", "hot")):
        times = [by_size[found] for found in sorted(by_size) if found[:2] == (mix, cache)]
        assert times[0] < times[-1] / 10
        largest = max(found[2] for found in by_size if found[:2] == (mix, cache))
        assert by_size[mix, cache, largest] == pytest.approx(largest / values[mix], rel=0.1)
    assert by_size[Ceiling.DEVICE_COPY, "hot", 4 << 20] < by_size[Ceiling.DEVICE_COPY, "cold", 4 << 20]


@pytest.mark.parametrize("name", registry.names())
def test_every_variant_is_right_at_odd_sizes(name: str, tmp_path: Path) -> None:
    workload = registry.load(name)
    odd = [case.name for case in workload.cases if case.size_rank is None and (case.flops or 0) < 1e11]
    limits = replace(QUICK, max_rounds=6, seconds=0.01)
    run_id, _ = Recorder(make_plan(Request([name], cases=odd), limits), collector_of("cuda_events")).record(tmp_path, "", [])
    results = store.open_run(tmp_path / run_id).table("results")
    wrong = results.query("status not in ('ok', 'skipped')")
    assert wrong.empty, wrong.to_string()
    assert workload.baseline in set(results.query("status == 'ok'")["variant"])


def test_the_best_rung_measured_twice_agrees_within_one_percent(tmp_path: Path) -> None:
    medians = []
    for _ in range(2):
        plan = make_plan(Request(["conv2d"], cases=["n=2048"], variants=["v09_loads_first", "v01_copy"]))
        run_id, _ = Recorder(plan, collector_of("cuda_events")).record(tmp_path, "", [])
        samples: pd.DataFrame = store.open_run(tmp_path / run_id).table("samples")
        cold = samples.query("scope == 'device' and cache == 'cold' and variant == 'v09_loads_first' and twin == 0")
        medians.append(cold.groupby("config")["duration_ns"].median().min())
    assert medians[0] == pytest.approx(medians[1], rel=0.01)
