"""Ranges nested a hundred thousand deep: what every page asks of them takes a second of the processor at most, and gives the same figures."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.collectors.nsight_systems.reports import call, copy, kernel, nvtx, small, write
from tests.limits import cpu_seconds
from warpladder.collectors.nsight_systems.parse import import_report
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.trace import samples as trace_samples
from warpladder.dashboard.trace.lanes import MOST_LAYERS, build
from warpladder.dashboard.views.reports.details import phases
from warpladder.dashboard.views.time.calls import query as trace_kernels
from warpladder.dashboard.views.time.calls import query as trace_sums
from warpladder.dashboard.views.time.transfers import query as transfers
from warpladder.dashboard.views.timeline import query as timeline
from warpladder.dashboard.views.timeline import query as timeline_detail
from warpladder.dashboard.views.timeline import selection as timeline_selection
from warpladder.dashboard.views.timeline.selection import ChosenEvent
from warpladder.dashboard.views.trust.query import rounds
from warpladder.data import store

pytestmark = pytest.mark.slow

DEEP = 100_000
KERNELS = 1_000
MOST_SECONDS = 1.0
FORMS = ("closed", "never closed", "start/end")
FIXTURES = sorted((Path(__file__).resolve().parents[2] / "fixtures").glob("nsight-systems-*/*/report.sqlite"))


def deep_report(path: Path, form: str) -> Path:
    """Ranges one in the other, of 77 texts; at every hundredth a kernel is launched, at every thousandth a copy. They run later."""
    tables = small()
    style = 60 if form == "start/end" else 59
    tables["NVTX_EVENTS"] = [
        nvtx(f"layer {place % 7} n={place % 11}", 10 * place, 30 * DEEP - place if form == "closed" else None, style)
        for place in range(DEEP)
    ]
    at = [1_000 * number + 2 for number in range(KERNELS)]
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"] = [call(number + 1, start, start + 2) for number, start in enumerate(at)]
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"] += [
        call(KERNELS + number + 1, at[number] + 3, at[number] + 4, 5) for number in range(0, KERNELS, 10)
    ]
    tables["CUPTI_ACTIVITY_KIND_KERNEL"] = [
        kernel(number + 1, 10 * DEEP + start, 10 * DEEP + start + 30 + number % 13, demangledName=1 + number % 3)
        for number, start in enumerate(at)
    ]
    tables["CUPTI_ACTIVITY_KIND_MEMCPY"] = [
        copy(KERNELS + number + 1, at[number] + 60, at[number] + 65, 1, 4096) for number in range(0, KERNELS, 10)
    ]
    del tables["CUPTI_ACTIVITY_KIND_MEMSET"]
    return write(path, tables)


@pytest.fixture(scope="module", params=FORMS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    folder = tmp_path_factory.mktemp("deep")
    report = deep_report(folder / "report.sqlite", request.param)
    with cpu_seconds(6):
        return store.open_run(folder / import_report(report, folder, "", None, []))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "ask",
    [
        *(lambda data, name=name: trace_sums.summary(data, name) for name in trace_sums.SUMMARIES),
        trace_samples.extents,
        transfers.stages,
        rounds,
        phases.workloads,
    ],
    ids=[*trace_sums.SUMMARIES, "parts", "stages", "rounds", "phases"],
)
def test_what_a_page_asks_is_answered_within_a_second(run: store.Run, ask: Callable[[RunData], Any]) -> None:
    data = load(run)
    with cpu_seconds(MOST_SECONDS):
        ask(data)


@pytest.mark.sampled(1)
def test_the_timeline_is_drawn_within_a_second_each(run: store.Run) -> None:
    traces = load(run).traces
    with cpu_seconds(MOST_SECONDS):
        lanes = build(traces)
    assert lanes is not None
    with cpu_seconds(MOST_SECONDS):
        coloring = timeline.coloring(traces, lanes, "variant")
    for shown in (lanes.busiest(), lanes.lanes):
        window = timeline_detail.window(lanes.begin_ns, lanes.end_ns, len(shown), 1000)
        with cpu_seconds(MOST_SECONDS):
            timeline.scene(traces, lanes, shown, window, coloring)


@pytest.mark.sampled(1)
def test_ranges_below_so_many_that_none_could_be_read_have_no_lane_and_are_counted(run: store.Run) -> None:
    data = load(run)
    lanes = build(data.traces)
    assert lanes is not None
    of_ranges = [lane for lane in lanes.lanes if lane.kind == "ranges"]
    assert [len(lane) for lane in of_ranges] == [1] * MOST_LAYERS
    assert [lane.row.tolist() for lane in of_ranges] == [[depth] for depth in range(MOST_LAYERS)]
    assert lanes.too_deep == DEEP - MOST_LAYERS


@pytest.mark.sampled(1)
def test_what_belongs_to_an_event_is_found_within_a_second(run: store.Run) -> None:
    traces = load(run).traces
    for chosen in (ChosenEvent("ranges", 0), ChosenEvent("ranges", DEEP // 2)):
        with cpu_seconds(MOST_SECONDS):
            lit = timeline_selection.belongs(traces, chosen)
        assert np.flatnonzero(lit.ranges).tolist() == list(range(chosen.row, DEEP))
        with cpu_seconds(MOST_SECONDS):
            work = timeline_selection.work(traces, chosen, 0)
        kernels = work[work["what"] == "kernel"]
        assert kernels["count"].sum() == KERNELS - (10 * chosen.row + 997) // 1000
    last = ChosenEvent("kernels", KERNELS - 1)
    with cpu_seconds(MOST_SECONDS):
        around = timeline_selection.around(traces, last, 0)
    # The kernel, its call, and the ranges around it, the innermost first.
    depth = 1_000 * (KERNELS - 1) // 10
    assert around["what"].tolist() == ["kernel", "API call", *["range"] * (depth + 1)]
    assert around["start_ns"].tolist()[2:] == list(range(10 * depth, -1, -10))
    with cpu_seconds(MOST_SECONDS):
        lit = timeline_selection.belongs(traces, last)
    assert np.flatnonzero(lit.ranges).tolist() == list(range(depth + 1))


@pytest.mark.parametrize("run", ["closed"], indirect=True)
def test_what_all_ranges_hold_is_summed_by_hand(run: store.Run) -> None:
    found = trace_sums.summary(load(run), "nvtx_kern_sum")
    durations = 30 + np.arange(KERNELS) % 13
    # A kernel counts once for every range around it: the one at number 100 n, and all those before.
    times = 100 * np.arange(KERNELS) + 1
    assert found["Total Time (ns)"].sum() == int((durations * times).sum())
    assert found["Kern Inst"].sum() == sum(min(int(each), 77) for each in times)
    assert found["NVTX Inst"].sum() == sum(int(times[number::3].max()) for number in range(3))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("report", FIXTURES, ids=lambda path: f"{path.parent.parent.name} {path.parent.name}")
def test_launches_in_order_give_the_sums_of_every_range_beside_every_kernel(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = load(store.open_run(tmp_path / import_report(report, tmp_path, "", None, [])))
    assert "nvtx_kern_sum" in trace_sums.available(data)
    usual = trace_sums.summary(data, "nvtx_kern_sum")
    monkeypatch.setattr(trace_kernels, "_FEW_LAUNCHES", 2)
    monkeypatch.setattr(trace_kernels, "_PAIRS_AT_ONCE", 3)
    pd.testing.assert_frame_equal(trace_sums.summary(data, "nvtx_kern_sum"), usual)


@pytest.mark.thorough
def test_a_long_text_among_many_does_not_take_its_room_for_each(tmp_path: Path) -> None:
    tables = small()
    many = 30_000
    tables["NVTX_EVENTS"] = [nvtx(f"text {place}", 10 * place, 10 * place + 5) for place in range(many)]
    tables["NVTX_EVENTS"].append(nvtx("long" * 2_000, 10 * many, 10 * many + 5))
    report = write(tmp_path / "report.sqlite", tables)
    data = load(store.open_run(tmp_path / import_report(report, tmp_path, "", None, [])))
    tracemalloc.start()
    try:
        found = trace_sums.summary(data, "nvtx_sum")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == many + 1
    # 8,000 characters of 4 bytes for each would be 960 MB.
    assert most < 200e6
