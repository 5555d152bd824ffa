"""The lanes of a trace and their level of detail: against counting by nanosecond, and on a trace whose figures are counted by hand."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.synthetic import made_traces
from tests.synthetic.made_runs import row, run_row, write_tables
from tests.synthetic.made_traces import GEMM
from warpladder.dashboard.core.run_data import load
from warpladder.dashboard.core.traces import Traces
from warpladder.dashboard.trace.lanes import Lane, Lanes, build, layers
from warpladder.dashboard.views.time.calls.query import summary
from warpladder.dashboard.views.timeline import query as timeline
from warpladder.dashboard.views.timeline import query as timeline_detail
from warpladder.dashboard.views.timeline import selection as timeline_selection
from warpladder.dashboard.views.timeline.query import Window, detail
from warpladder.dashboard.views.timeline.selection import ChosenEvent
from warpladder.data import store


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    return Traces(store.open_run(made_traces.write(tmp_path_factory.mktemp("runs"))))


def lanes_of(traces: Traces) -> Lanes:
    found = build(traces)
    assert found is not None
    return found


def lane_of(start: Any, end: Any) -> Lane:
    covered = np.concatenate(([0], np.cumsum(np.asarray(end) - np.asarray(start)))).astype(np.int64)
    rows = np.arange(len(start), dtype=np.int32)
    return Lane("device", (1, 0, 7), "GPU 0", "stream 7", np.asarray(start, dtype=np.int64), covered, rows, 0)


def write_trace(folder: Path, **tables: list[dict[str, Any]]) -> Traces:
    """A run of these rows, each given by what is not null or zero in it."""
    usual = {"ranges": {"style": "push_pop"}, "memory_ops": {"kind": "h2d"}}
    filled = {name: [row(name, **usual.get(name, {}) | given) for given in rows] for name, rows in tables.items()}
    return Traces(store.open_run(write_tables(folder, run_row("run", "run"), filled)))


def test_streams_stand_above_threads_process_by_process_and_overlapping_work_gets_a_lane_of_its_own(traces: Traces) -> None:
    lanes = lanes_of(traces)
    assert [(lane.group, lane.label, len(lane), lane.busy_ns) for lane in lanes.lanes] == [
        ("process 100 · GPU 0", "stream 7", 7, 5_000),
        ("process 100 · GPU 1", "stream 7", 2, 1_400),
        ("process 100 · thread 101", "NVTX depth 0", 1, 10_000),
        ("process 100 · thread 101", "NVTX depth 1", 2, 8_000),
        ("process 100 · thread 101", "NVTX depth 2", 1, 900),
        ("process 100 · thread 101", "CUDA API", 6, 600),
        ("process 100 · thread 102", "NVTX depth 0", 1, 3_000),
        ("process 100 · thread 102", "CUDA API", 3, 4_400),
        ("process 200 · GPU 1", "stream 7", 1, 600),
        ("process 200 · GPU 1", "stream 7 (2)", 1, 2_000),
        ("process 200 · thread 201", "NVTX depth 0", 1, 10_300),
        ("process 200 · thread 201", "CUDA API", 2, 600),
        ("process 200 · thread 202", "NVTX depth 0", 1, 100),
    ]
    assert (lanes.begin_ns, lanes.end_ns) == (0, 12_300), "a range that was never closed lasts to the end of the trace"


@pytest.mark.parametrize(
    ("call", "api"), [("hipLaunchKernel", "HIP API"), ("cuLaunchKernel", "CUDA API"), ("clEnqueue", "API")]
)
def test_calls_stand_in_a_lane_of_their_api(tmp_path: Path, call: str, api: str) -> None:
    calls = [{"correlation": 1, "process": 1, "thread": 2, "start_ns": 0, "end_ns": 10, "name": call}]
    copies = [{"correlation": 1, "process": 1, "device": 0, "start_ns": 5, "end_ns": 9, "kind": "h2d", "bytes": 4}]
    traces = write_trace(tmp_path, api_calls=calls, memory_ops=copies)
    assert lanes_of(traces).lanes[-1].label == api
    (name,) = summary(load(traces.run), "cuda_gpu_mem_time_sum")["Operation"]
    assert name == f"[{api.removesuffix('API')}memcpy Host-to-Device]"


def test_no_event_of_a_lane_overlaps_another_whatever_the_trace() -> None:
    generator = np.random.default_rng(3)
    for longest in (3, 30, 3_000):
        start = np.sort(generator.integers(0, 2_000, 400))
        end = start + generator.integers(0, longest, 400)
        order = np.lexsort((end, start))
        layer = layers(start[order], end[order])
        for number in range(layer.max() + 1):
            begins, ends = start[order][layer == number], end[order][layer == number]
            assert len(begins)
            assert (begins[1:] >= ends[:-1]).all()


def test_nested_events_are_layered_by_depth_and_events_in_a_chain_by_turns() -> None:
    assert layers(np.array([0, 1, 2, 5, 20]), np.array([10, 4, 3, 6, 30])).tolist() == [0, 1, 2, 1, 0]
    start = np.arange(0, 100, 2)
    assert layers(start, start + 3).tolist() == [0, 1] * 25


@pytest.mark.parametrize("seed", range(12))
def test_bars_and_events_of_a_window_are_busy_in_every_bin_exactly_as_long_as_the_trace_is(seed: int) -> None:
    generator = np.random.default_rng(seed)
    gaps, lasts = generator.integers(0, 40, 900), generator.choice([0, 1, 2, 5, 30, 400], 900)
    start = np.cumsum(gaps + np.concatenate(([0], lasts[:-1])))
    end = start + lasts
    lane = lane_of(start, end)
    running = np.zeros(end[-1] + 1, dtype=int)
    for begins, ends in zip(start, end, strict=True):
        running[begins:ends] += 1
    assert running.max() == 1
    for span in (3, 50, 777, 5_000, int(end[-1])):
        begin = int(generator.integers(0, max(end[-1] - span, 1)))
        window = timeline_detail.window(begin, begin + span, 1, 97)
        edges, found = window.edges, detail(lane, window)
        assert edges[0] == begin and edges[-1] == begin + span and (np.diff(edges) > 0).all()
        busy, count = np.zeros(window.bins, dtype=int), np.zeros(window.bins, dtype=int)
        busy[found.bin], count[found.bin] = found.busy_ns, found.count
        for place in found.alone:
            overlap = np.minimum(end[place], edges[1:]) - np.maximum(start[place], edges[:-1])
            busy += np.maximum(overlap, 0)
        expected = [running[low:high].sum() for low, high in pairwise(edges)]
        assert busy.tolist() == expected
        together = np.setdiff1d(np.arange(len(start)), found.alone)
        for number, (low, high) in enumerate(pairwise(edges)):
            inside = (start[together] < high) & (np.maximum(end[together], start[together] + 1) > low)
            assert count[number] == inside.sum()
            assert (lasts[together][inside] < -(-span // window.bins)).all(), "an event as wide as a bin is drawn by itself"


def test_short_events_that_share_a_bin_are_one_bar_and_a_lone_one_is_drawn() -> None:
    # Bins of 10 ns. Two events in the first, one in the third, one of 25 ns from the fifth to the seventh, and one on its end.
    lane = lane_of([1, 5, 22, 45, 70], [3, 9, 24, 70, 70])
    found = detail(lane, Window(0, 100, 10))
    assert (found.bin.tolist(), found.busy_ns.tolist(), found.count.tolist()) == ([0], [6], [2])
    assert found.alone.tolist() == [2, 3, 4]


def test_a_window_of_many_lanes_has_wider_bins_and_none_is_below_a_nanosecond() -> None:
    assert timeline_detail.window(0, 10**9, 4, 1000).bins == 1000
    assert timeline_detail.window(0, 10**9, 60, 1000).bins == 200
    assert timeline_detail.window(5, 12, 4, 1000).edges.tolist() == [5, 6, 7, 8, 9, 10, 11, 12]
    far = Window(0, 2**62, 1000)
    assert far.edges[-1] == 2**62 and (np.diff(far.edges) > 0).all()


def test_many_events_draw_no_more_than_a_bar_and_an_event_a_bin() -> None:
    start = np.arange(300_000) * 10
    lane = lane_of(start, start + 7)
    for span in (3_000_000, 30_000, 900):
        window = timeline_detail.window(0, span, 1, 1000)
        found = detail(lane, window)
        assert len(found.bin) + len(found.alone) <= 2 * window.bins + 1


def test_colours_are_those_of_the_variant_around_the_launch(tmp_path: Path) -> None:
    traces = Traces(store.open_run(made_traces.write_variants(tmp_path)))
    lanes = lanes_of(traces)
    colors = timeline.coloring(traces, lanes, "variant")
    window = timeline_detail.window(lanes.begin_ns, lanes.end_ns, len(lanes.lanes), 1000)
    device = timeline.scene(traces, lanes, lanes.lanes, window, colors)[0]
    named = [colors.swatches[color].name for color in device.alone_color]
    one = ["copy to the device", "v01_slow", "copy to the host", "copy to the device", "v02_fast", "copy to the host"]
    assert named == one * 2
    assert timeline.names(traces, lanes, device.lane, device.detail.alone)[:3] == ["h2d", "v01_slow", "d2h"]


def test_a_range_inside_one_of_ours_has_its_variant(tmp_path: Path) -> None:
    ours = {"workload": "w", "variant": "v", "text": "v", "range_id": 1, "start_ns": 0, "end_ns": 100}
    inner = {"range_id": 2, "parent_id": 1, "depth": 1, "text": "inner", "start_ns": 10, "end_ns": 90}
    traces = write_trace(tmp_path, ranges=[ours, inner], kernels=[{"start_ns": 20, "end_ns": 30, "range_id": 2, "stream": 1}])
    colors = timeline.coloring(traces, lanes_of(traces), "variant")
    kernels = lanes_of(traces).lanes[0]
    assert colors.swatches[colors.of(traces, lanes_of(traces), kernels, kernels.row)[0]].name == "v"


def test_colours_by_kernel_go_to_those_of_most_time(traces: Traces) -> None:
    colors = timeline.coloring(traces, lanes_of(traces), "kernel")
    assert [swatch.name for swatch in colors.swatches if swatch.kind == "kernel"][:2] == [GEMM, "relu"]


def test_a_range_lists_the_work_launched_in_it_and_in_the_ranges_inside(traces: Traces) -> None:
    chosen = ChosenEvent("ranges", 0)
    found = timeline_selection.work(traces, chosen, 0)
    rows = found.drop(columns="bytes").itertuples(index=False, name=None)
    assert list(rows) == [
        ("kernel", GEMM, 2, 3_000, 3_000, 1_000, 7_000),
        ("memory operation", "h2d", 1, 1_000, 1_000, 3_800, 4_800),
        ("kernel", "relu", 1, 500, 500, 2_000, 2_500),
        ("memory operation", "memset", 1, 100, 100, 9_700, 9_800),
    ]
    assert found["bytes"].dropna().tolist() == [1_000_000, 4_096]
    assert timeline_selection.busy_ns(traces, chosen) == 4_600
    lit = timeline_selection.belongs(traces, chosen)
    assert np.flatnonzero(lit.device).tolist() == [0, 1, 2, 7, 10]
    assert np.flatnonzero(lit.ranges).tolist() == [0, 1, 2, 3]
    assert np.flatnonzero(lit.calls).tolist() == [0, 1, 2, 3, 8]


def test_busy_counts_work_that_overlaps_once(traces: Traces) -> None:
    # The kernel of `open` runs from 3000 to 3600, its copy from 3200 to 5200.
    assert timeline_selection.busy_ns(traces, ChosenEvent("ranges", 5)) == 2_200


def test_a_kernel_shows_its_launch_and_its_ranges(traces: Traces) -> None:
    found = timeline_selection.around(traces, ChosenEvent("kernels", 0), 0)
    assert list(found.itertuples(index=False, name=None)) == [
        ("kernel", GEMM.removeprefix("void "), 1_000, 1_000),
        ("API call", "cudaLaunchKernel", 700, 100),
        ("range", "inner", 600, 900),
        ("range", "step", 500, 2_500),
        ("range", "train", 0, 10_000),
    ]
    lit = timeline_selection.belongs(traces, ChosenEvent("kernels", 0))
    assert [np.flatnonzero(mask).tolist() for mask in (lit.device, lit.ranges, lit.calls)] == [[0], [0, 1, 2], [0]]


def test_a_kernel_shows_the_operators_around_its_call_and_the_line_of_the_program(tmp_path: Path) -> None:
    """Two threads with an operator each at the time of the call, one operator inside another, and one that has ended by then."""
    places = {"process": 1, "thread": 7, "input_dims": "", "input_types": "", "input_strides": "", "concrete_inputs": ""}
    spans = ((0, 100, "aten::linear", "torch/nn.py(5): f\ntrain.py(31): step\nmain.py(2): <module>", 7), (10, 90, "aten::mm", "", 7),
             (20, 30, "aten::t", "", 7), (0, 100, "aten::other", "", 8))  # fmt: skip
    operations = [
        {**places, "operation_id": number, "start_ns": start, "end_ns": end, "name": name, "stack": stack, "thread": thread}
        for number, (start, end, name, stack, thread) in enumerate(spans)
    ]
    traces = write_trace(
        tmp_path,
        operations=operations,
        api_calls=[{"process": 1, "thread": 7, "correlation": 3, "name": "cudaLaunchKernel", "start_ns": 40, "end_ns": 50}],
        kernels=[
            {"process": 1, "correlation": 3, "name": name, "full_name": name, "start_ns": start, "end_ns": start + 5}
            for name, start in (("one", 60), ("two", 70))
        ],
    )
    chosen = ChosenEvent("kernels", 1)
    call, *work = timeline_selection.launch_of(traces, ChosenEvent("api_calls", 0))
    assert call == ChosenEvent("api_calls", 0) and work == [ChosenEvent("kernels", 0), chosen]
    assert timeline_selection.launch_of(traces, chosen) == [call, chosen]
    operators = timeline_selection.operators_of(traces, chosen)
    assert operators.tolist() == [1, 0] and timeline_selection.source_of(traces, operators) == "train.py(31): step"
    around = timeline_selection.around(traces, chosen, 0)
    assert around.loc[around["what"] == "operator", "name"].tolist() == ["aten::mm", "aten::linear"]
    lanes = lanes_of(traces)
    span = timeline_selection.span_of(traces, lanes, lanes.lanes, chosen, (), [call, *work])
    # From the start of the trace, which is that of the call.
    assert span and [other["span"] for _, other in span["arrows"]] == [(20, 25), (30, 35)]
    assert {one["span"] for one, _ in span["arrows"]} == {(0, 10)}
    without_calls = [lane for lane in lanes.lanes if lane.kind == "device"]
    hidden = timeline_selection.span_of(traces, lanes, without_calls, chosen, (), [call, *work])
    assert hidden and hidden["arrows"] == []


def test_a_call_shows_what_it_caused_in_its_own_process(traces: Traces) -> None:
    # Both processes have a correlation 2: here the copy of process 200, there a kernel of process 100.
    found = timeline_selection.around(traces, ChosenEvent("api_calls", 7), 0)
    assert found["what"].tolist() == ["memory operation", "API call", "range"]
    assert found["duration_ns"].isna().tolist() == [False, False, True], "the range was never closed"


@pytest.mark.parametrize(
    "text", ["", "kernels", "kernels-7", "kernels--1", "run-0", "kernels-1e3", "ranges-99999999999999", "<b>-1"]
)
def test_what_the_trace_has_not_cannot_be_chosen(traces: Traces, text: str) -> None:
    assert timeline_selection.parse(text, traces) is None


def test_a_row_of_the_trace_is_chosen_by_its_table(traces: Traces) -> None:
    assert timeline_selection.parse("kernels-6", traces) == ChosenEvent("kernels", 6)
    lanes = lanes_of(traces)
    assert str(timeline_selection.chosen_of(lanes, lanes.lanes[0], 8)) == "memory_ops-1"


def test_start_end_ranges_that_cross_stand_in_lanes_below_those_that_nest(tmp_path: Path) -> None:
    crossing = [
        {"style": "start_end", "range_id": n, "text": "open", "start_ns": 10 * n, "end_ns": 10 * n + 25} for n in range(4)
    ]
    nested = {"range_id": 9, "text": "push", "start_ns": 0, "end_ns": 100}
    lanes = lanes_of(write_trace(tmp_path, ranges=[*crossing, nested]))
    assert [(lane.label, len(lane)) for lane in lanes.lanes] == [
        ("NVTX depth 0", 1), ("NVTX start/end", 2), ("NVTX start/end (2)", 1), ("NVTX start/end (3)", 1),
    ]  # fmt: skip


def test_a_trace_of_one_event_of_no_duration_has_a_window(tmp_path: Path) -> None:
    lanes = lanes_of(write_trace(tmp_path, kernels=[{"start_ns": 500, "end_ns": 500, "stream": 1}]))
    assert (lanes.begin_ns, lanes.end_ns) == (500, 501)
    found = detail(lanes.lanes[0], timeline_detail.window(lanes.begin_ns, lanes.end_ns, 1, 1000))
    assert (found.alone.tolist(), found.bin.tolist()) == ([0], [])


def test_a_run_without_a_trace_has_no_lanes() -> None:
    assert build(Traces(None)) is None


def test_of_hundreds_of_streams_those_that_are_busy_longest_are_shown_first(tmp_path: Path) -> None:
    kernels = [{"start_ns": 0, "end_ns": 10 + stream, "stream": stream} for stream in range(200)]
    lanes = lanes_of(write_trace(tmp_path, kernels=kernels))
    assert len(lanes.lanes) == 200
    assert [lane.label for lane in lanes.busiest()] == [f"stream {number}" for number in range(192, 200)]


def test_executions_that_a_recording_names_as_a_variant_are_none(tmp_path: Path) -> None:
    named = [
        {"start_ns": 0, "end_ns": 9, "workload": "w", "variant": "v01_a", "text": "v01_a"},
        {"range_id": 1, "start_ns": 10, "end_ns": 19, "workload": "w", "variant": "executions=1", "text": "executions=1"},
    ]
    traces = write_trace(tmp_path, ranges=named)
    assert timeline.variants(traces)["variant"].tolist() == ["v01_a"]
    swatches = timeline.coloring(traces, lanes_of(traces), "variant").swatches
    assert [each.name for each in swatches if each.kind == "variant"] == ["v01_a"]
