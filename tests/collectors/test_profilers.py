"""The collectors `nsight_systems`, `cupti` and `nsight_compute` on a GPU, on one small recording each."""

from pathlib import Path

import pytest

from warpladder.collectors import choice
from warpladder.collectors.core.plan import Request, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.wiring import collector_of
from warpladder.data import store
from warpladder.data.names import Source
from warpladder.recording import UNDER_TOOL

pytestmark = pytest.mark.gpu

REQUEST = Request(["conv2d"], cases=["n=2048"], variants=["v01_copy", "v02_naive_global", "v09_loads_first"], max_rounds=6)


def recorded(collector: str, data_dir: Path) -> store.Run:
    problem = choice.problem_of(collector)
    if problem:
        pytest.skip(problem)
    if collector in UNDER_TOOL:
        inside, under = UNDER_TOOL[collector]
        run_id, _ = under(REQUEST, data_dir, "", [], inside=inside)
    else:
        run_id, _ = Recorder(make_plan(REQUEST), collector_of(collector)).record(data_dir, "", [])
    return store.open_run(data_dir / run_id)


@pytest.mark.parametrize("collector", ["nsight_systems", "cupti"])
def test_a_trace_holds_every_sample_every_launch_and_the_bytes_of_the_case(collector: str, tmp_path: Path) -> None:
    run = recorded(collector, tmp_path)
    assert run.info["collector"] == collector
    assert not set(run.table("diagnostics")["source"]) & {Source.LOST, Source.DROPPED, Source.COLLECTOR}
    samples = run.table("samples").query("scope == 'device'")
    assert samples.groupby(["variant", "config", "cache", "twin"]).size().min() == 6
    assert run.table("kernels")["launch_start_ns"].notna().all()
    ranges = run.table("ranges").query("scope == 'end_to_end' and round == round and text.str.startswith('end_to_end')")
    copies = run.table("memory_ops").merge(ranges[["range_id"]], on="range_id")
    moved = copies.groupby(["range_id", "kind"])["bytes"].sum().unstack()
    case = run.table("cases").iloc[0]
    assert (moved["h2d"] == case["h2d_bytes"]).all()
    assert (moved["d2h"] == case["d2h_bytes"]).all()


def test_counters_are_read_of_every_cell(tmp_path: Path) -> None:
    run = recorded("nsight_compute", tmp_path)
    verified = run.table("results").query("status == 'ok'")
    counters = run.table("counters").query("metric == 'gpu__time_duration.sum'")
    assert len(verified) == len(counters.drop_duplicates(["variant", "config"]))
    assert (counters["value"] > 1_000).all()
    assert "samples" not in run.tables
