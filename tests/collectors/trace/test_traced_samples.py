"""Device samples taken from a trace."""

from collections.abc import Container
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.collectors.nsight_systems import reports
from warpladder.collectors.core.bench import NO_GPU_STATE
from warpladder.collectors.nsight_systems.source import open_report
from warpladder.collectors.nsight_systems.trace import NsightTrace
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.samples import add_trace
from warpladder.data import schema, store
from warpladder.data.names import Source
from warpladder.data.store import RunWriter


def sample(cache: str, round_number: int, duration_ns: int, twin: int = 0, scope: str = "device") -> dict[str, Any]:
    cell = {"workload": "conv2d", "variant": "v01_tile", "config": "block=16", "case": "n=64"}
    state = dict.fromkeys(NO_GPU_STATE)
    place = {
        "gpus": 1,
        "rank": 0,
        "cache": cache,
        "scope": scope,
        "twin": twin,
        "process": 0,
        "round": round_number,
        "position": 0,
    }
    return {**cell, **place, "duration_ns": duration_ns, **state}


def traced(
    tmp_path: Path,
    samples: list[dict[str, Any]] | pd.DataFrame,
    inner: list[tuple[str, int, int, list[tuple[int, int]]]],
    other_threads: Container[int] = (),
) -> Any:
    """Samples with the times of a trace in which each inner range (text of its sample, start, executions) launched that device work.

    Args:
        other_threads: correlation ids of what a thread without a range launched.
    """
    ours = {"domainId": 1}
    events = [reports.nvtx("warpladder", 0, None, 75, **ours), reports.nvtx("conv2d", 0, 10_000, **ours)]
    events.append(reports.nvtx("n=64", 1, 9_999, **ours))
    calls, kernels = [], []
    for text, start, executions, work in inner:
        events += [
            reports.nvtx("v01_tile[block=16]", start, start + 90, **ours),
            reports.nvtx(text, start + 1, start + 89, **ours),
            reports.nvtx(f"executions={executions}", start + 10, start + 80, **ours),
        ]
        for number, (begins, ends) in enumerate(work):
            correlation = start + number
            tid = reports.OTHER_TID if correlation in other_threads else reports.TID
            calls.append(reports.call(correlation, start + 11 + number, start + 12 + number, tid=tid))
            kernels.append(reports.kernel(correlation, begins, ends))
    tables = {
        **reports.small(),
        "NVTX_EVENTS": events,
        "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
        "CUPTI_ACTIVITY_KIND_KERNEL": kernels,
    }
    path = reports.write(tmp_path / "report.sqlite", tables)
    frame = pd.DataFrame(samples).astype({"round": "int32", "twin": "int8", "process": "int16"})
    with open_report(path) as report, RunWriter(tmp_path / "runs", "run") as writer:
        found, diagnostics = add_trace(writer, NsightTrace(report), frame, Notes())
    assert set(found.columns) == set(schema.SAMPLES.arrow.names)
    return found, diagnostics


def test_a_cold_sample_is_from_first_start_to_last_end_and_a_hot_one_the_busy_time_of_each_execution(tmp_path: Path) -> None:
    samples = [sample("cold", 0, 1), sample("hot", 0, 1), sample("hot", 0, 7, scope="operation")]
    inner = [
        ("device.cold#0", 1_000, 1, [(20_000, 20_100), (20_150, 20_300)]),
        ("device.hot#0", 2_000, 4, [(30_000, 30_100), (30_500, 30_600)]),
    ]
    found, _ = traced(tmp_path, samples, inner)
    times = found.set_index(["scope", "cache"])["duration_ns"].to_dict()
    assert times == {("device", "cold"): 300, ("device", "hot"): 50, ("operation", "hot"): 7}


def test_work_that_another_thread_launches_during_an_execution_counts(tmp_path: Path) -> None:
    # As that of a backward pass: the second kernel of each.
    samples = [sample("cold", 0, 1), sample("hot", 0, 1)]
    work = [(20_000, 20_100), (20_150, 20_300)]
    inner = [
        ("device.cold#0", 1_000, 1, work),
        ("device.hot#0", 2_000, 1, [(begin + 9_000, end + 9_000) for begin, end in work]),
    ]
    found, _ = traced(tmp_path, samples, inner, other_threads={1_001, 2_001})
    assert found.set_index("cache")["duration_ns"].to_dict() == {"cold": 300, "hot": 250}


def test_several_executions_of_one_sample_are_averaged(tmp_path: Path) -> None:
    inner = [("device.cold#0", 1_000, 2, [(20_000, 20_400)])]
    found, _ = traced(tmp_path, [sample("cold", 0, 1)], inner)
    assert found["duration_ns"].tolist() == [200]


def test_twins_are_kept_apart_warm_ups_left_out_and_a_sample_taken_again_is_the_last(tmp_path: Path) -> None:
    samples = [sample("cold", 0, 1), sample("cold", 0, 1, twin=1)]
    inner = [
        ("device.cold.warm_up#0", 1_000, 1, [(20_000, 29_000)]),
        ("device.cold#0", 2_000, 1, [(30_000, 30_900)]),
        ("device.cold#0", 3_000, 1, [(40_000, 40_100)]),
        ("device.cold.twin#0", 4_000, 1, [(50_000, 50_200)]),
    ]
    found, _ = traced(tmp_path, samples, inner)
    assert found.set_index("twin")["duration_ns"].to_dict() == {0: 100, 1: 200}


def test_a_sample_that_the_trace_knows_nothing_of_is_left_out_and_told(tmp_path: Path) -> None:
    found, diagnostics = traced(
        tmp_path, [sample("cold", 0, 5), sample("cold", 1, 5)], [("device.cold#0", 1_000, 1, [(20_000, 20_100)])]
    )
    assert found["round"].tolist() == [0]
    [lost] = [row for row in diagnostics if row["source"] == Source.LOST]
    assert lost["text"].startswith("1 device samples")
    assert (lost["variant"], lost["case"]) == ("v01_tile", "n=64")


@pytest.mark.parametrize(
    ("event_ns", "says"), [(50_500, "1 agree within 2% (the largest difference is 1.0%)"), (60_000, "0 agree within 2%")]
)
def test_how_far_events_and_trace_agree_is_told(tmp_path: Path, event_ns: int, says: str) -> None:
    _, diagnostics = traced(
        tmp_path, [sample("cold", 0, event_ns)], [("device.cold#0", 1_000, 1, [(100_000, 150_000)])]
    )  # fmt: skip
    [agreement] = [row for row in diagnostics if row["source"] == Source.AGREEMENT]
    assert says in agreement["text"]


@pytest.mark.parametrize("inner", [[], [("device.cold#0", 1_000, 1, [(20_000, 20_100)])]])
def test_where_nothing_was_measured_there_are_no_samples_and_the_trace_is_written_all_the_same(
    tmp_path: Path, inner: list[Any]
) -> None:
    nothing = store.frame("samples", [])
    found, diagnostics = traced(tmp_path, nothing, inner)
    assert found.empty
    assert [(row["severity"], row["source"]) for row in diagnostics] == [("warning", Source.TRACING), ("info", Source.TRACING)]
    assert diagnostics[0]["text"] == (
        "no cell was measured, so that the trace has no samples to time; the statuses in table results say why"
    )


def test_where_the_trace_has_none_of_the_samples_all_device_samples_are_told_as_lost(tmp_path: Path) -> None:
    found, diagnostics = traced(tmp_path, [sample("cold", 0, 1), sample("hot", 0, 7, scope="operation")], [])
    assert found["scope"].tolist() == ["operation"]
    assert [row["source"] for row in diagnostics] == [Source.TRACING, Source.LOST]
