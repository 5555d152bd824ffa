"""The Timeline page, what it sends to the browser and takes from there, and its figure."""

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.test_app import Open, open_app, words
from tests.dashboard.views.timeline.test_timeline import write_trace
from tests.synthetic import made_runs, made_traces
from tests.synthetic.made_traces import HOSTILE
from warpladder.dashboard.core.run_data import load
from warpladder.dashboard.trace.lanes import build
from warpladder.dashboard.ui.template import Look, Style, look
from warpladder.dashboard.views.timeline import chart as charts
from warpladder.dashboard.views.timeline import query as timeline
from warpladder.dashboard.views.timeline import query as timeline_detail
from warpladder.dashboard.views.timeline.component import Act, parse
from warpladder.data import store

__all__ = ["open_app"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traced")
    made_traces.write(folder)
    made_traces.write_variants(folder)
    made_traces.write(folder, "calls only", without=("ranges", "kernels", "memory_ops"))
    made_traces.write(folder, "no ranges", without=("ranges",))
    made_traces.write(folder, "ranges only", without=("kernels", "memory_ops", "api_calls"))
    made_runs.write_host_run(folder, "host", rounds=8)
    return folder


def sent(app: AppTest) -> Any:
    """What the page sent to the canvas."""
    found = [element for element in app.main if getattr(element, "type", "") == "bidi_component"]
    return json.loads(found[0].proto.json)


def lanes_sent(app: AppTest) -> list[tuple[str, str, int]]:
    return [(lane["group"], lane["label"], len(lane["start"]) + len(lane["bin"])) for lane in sent(app)["lanes"]]


def test_the_page_sends_every_lane_with_its_events_from_the_start_of_the_trace(open_app: Open, traced: Path) -> None:
    app = open_app(traced, "timeline", run="trace")
    assert not app.error
    assert lanes_sent(app)[:3] == [
        ("process 100 · GPU 0", "stream 7", 7),
        ("process 100 · GPU 1", "stream 7", 2),
        ("process 100 · thread 101", "NVTX depth 0", 1),
    ]
    assert sent(app)["window"] == [0, 12_300]
    assert "window" not in app.query_params


def test_a_window_in_the_url_is_sent_alone(open_app: Open, traced: Path) -> None:
    app = open_app(traced, "timeline", run="trace", window="10000-12300")
    assert sent(app)["window"] == [10_000, 12_300]
    assert lanes_sent(app)[0] == ("process 100 · GPU 0", "stream 7", 2), "the kernels from 11000 and from 12000"
    assert sent(app)["lanes"][0]["start"] == [11_000, 12_000]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("window", ["5-5", "9-3", "x-y", "99999-999999", "1e3-2e3", "-5", "<b>"])
def test_a_window_that_the_trace_has_not_shows_all_of_it_and_says_so(open_app: Open, traced: Path, window: str) -> None:
    app = open_app(traced, "timeline", run="trace", window=window)
    assert sent(app)["window"] == [0, 12_300]
    assert f"The link asks for the window {window}" in words(app)


def test_a_chosen_range_lists_its_work_and_is_lit(open_app: Open, traced: Path) -> None:
    app = open_app(traced, "timeline", run="trace", chosen="ranges-0")
    assert "range train" in words(app)
    assert "Launched in it: 3 kernels, 2 memory operations; the GPU was busy for 4.60 µs." in words(app)
    table = next(frame.value for frame in app.main.dataframe if "busy_ns" in frame.value)
    assert table["total_ns"].tolist() == [3_000, 1_000, 500, 100]
    assert sent(app)["chosen"] == {"lane": 2, "span": [0, 10_000], "links": [], "arrows": []}
    assert sent(app)["lanes"][0]["lit"] == [1, 1, 1, 1, 1, 0, 0]


def test_a_chosen_kernel_shows_its_launch_and_ranges(open_app: Open, traced: Path) -> None:
    app = open_app(traced, "timeline", run="trace", chosen="kernels-0")
    table = next(frame.value for frame in app.main.dataframe if "duration_ns" in frame.value)
    assert table["what"].tolist() == ["kernel", "API call", "range", "range", "range"]


def test_what_is_chosen_and_is_not_there_is_said(open_app: Open, traced: Path) -> None:
    app = open_app(traced, "timeline", run="trace", chosen="kernels-700")
    assert "The link asks for kernels-700, which is not in this trace." in words(app)


def test_lanes_of_one_kind_can_be_shown_alone(open_app: Open, traced: Path) -> None:
    app = open_app(traced, "timeline", run="trace", lanes="device")
    assert {lane["kind"] for lane in sent(app)["lanes"]} == {"device"}
    assert app.query_params["lanes"] == "device" or app.query_params["lanes"] == ["device"]


def test_a_run_with_variants_is_coloured_by_them(open_app: Open, traced: Path) -> None:
    data = sent(open_app(traced, "timeline", run="variants"))
    assert [data["swatches"][place] for place in data["legend"]][:2] == ["v01_slow", "v02_fast"]
    by_kernel = sent(open_app(traced, "timeline", run="variants", color="kernel"))
    assert by_kernel["window"] == data["window"]


@pytest.mark.parametrize("run", ["calls only", "no ranges", "ranges only"])
def test_a_trace_that_lacks_tables_shows_what_it_has(open_app: Open, traced: Path, run: str) -> None:
    app = open_app(traced, "timeline", run=run)
    assert not app.error
    kinds = {"calls only": {"calls"}, "no ranges": {"device", "calls"}, "ranges only": {"ranges"}}[run]
    assert {lane["kind"] for lane in sent(app)["lanes"]} == kinds


def test_a_run_without_a_trace_says_how_to_import_one(open_app: Open, traced: Path) -> None:
    app = open_app(traced, "timeline", run="host")
    assert "This run has no trace" in words(app)
    assert [block.value for block in app.main.code] == ["warpladder import REPORT"]


def test_what_the_browser_sends_is_taken_when_it_is_an_act_and_else_dropped() -> None:
    assert parse({"number": 3, "window": [5, 9.0], "pixels": 800, "pick": ["device", 4]}) == Act(3, (5, 9), 800, ("device", 4))
    assert parse({"number": 3, "window": [5, 9], "pixels": 10**9, "pick": None}) == Act(3, (5, 9), 8000, None)
    for bad in (None, 5, {}, {"window": 1}, {"number": 1, "window": ["a", 2], "pixels": 1, "pick": None},
                {"number": 1, "window": [float("inf"), 2], "pixels": 1, "pick": None}):  # fmt: skip
        assert parse(bad) is None


def test_what_the_browser_searches_measures_and_steps_to_is_taken_in_bounds() -> None:
    seen = {
        "number": 3,
        "window": [5, 9],
        "pixels": 800,
        "pick": None,
        "search": "gemm\ud800",
        "step": -2,
        "measure": [6, 7],
    }
    assert parse(seen) == Act(3, (5, 9), 800, None, "gemm", -2, (6, 7))
    assert parse({**seen, "search": "x" * 9_999, "step": 10**9}) == Act(3, (5, 9), 800, None, "x" * 300, 1_000, (6, 7))
    wrong: list[dict[str, Any]] = [
        {"step": "x"},
        {"measure": [1]},
        {"measure": ["a", "b"]},
    ]
    for bad in wrong:
        assert parse({**seen, **bad}) is None


def test_memory_in_use_is_a_lane_below_the_streams(open_app: Open, tmp_path: Path) -> None:
    changes = [{"process": 1, "source": "cuda", "start_ns": at, "bytes": size} for at, size in ((100, 1_000), (600, 4_000))]
    kernels = [{"process": 1, "name": "k", "full_name": "k", "start_ns": 0, "end_ns": 1_000}]
    write_trace(tmp_path, kernels=kernels, memory_in_use=changes)
    *_, lane = sent(open_app(tmp_path, "timeline", run="run"))["lanes"]
    assert (lane["kind"], lane["group"], lane["label"], lane["most"]) == ("memory", "GPU 0", "memory ≤ 4.00 kB", 4_000)
    length = len(lane["used"])
    assert [lane["used"][int(share * length)] for share in (0.05, 0.5, 0.65, 0.95)] == [0, 1_000, 4_000, 4_000]


def test_a_search_counts_its_hits_and_marks_them_in_the_window(open_app: Open, traced: Path) -> None:
    app = open_app(traced, "timeline", run="trace", search="GEMM", window="4000-8000")
    found = sent(app)["search"]
    assert (found["total"], found["place"]) == (3, -1)
    # The kernels start at 1000, 3000 and 5000; 1000 bins of 4 ns.
    assert found["marks"] == [(5_000 - 4_000) * sent(app)["bins"] // 4_000]
    assert app.query_params["search"] in ("GEMM", ["GEMM"])


def test_a_link_to_a_hit_shows_its_place_among_the_hits_also_where_its_lane_is_left_out(open_app: Open, traced: Path) -> None:
    app = open_app(traced, "timeline", run="trace", search="idle", chosen="ranges-6")
    found = sent(app)["search"]
    assert (found["total"], found["place"]) == (1, 0)
    assert sent(app)["chosen"]["span"] == [2_000, 2_100]
    assert "range idle" in words(app)


def window_tables(app: AppTest) -> tuple[list[list[Any]], list[list[Any]]]:
    """The rows of the tables of GPUs and of kernels."""
    gpus, kernels = (next(each.value for each in app.main.dataframe if name in each.value) for name in ("idle", "share"))
    return gpus.to_numpy().tolist(), kernels.drop(columns="full_name").to_numpy().tolist()


def test_the_tables_follow_the_window_and_a_measured_span(open_app: Open, traced: Path) -> None:
    app = open_app(traced, "timeline", run="trace", window="2000-6000")
    gpus, kernels = window_tables(app)
    # GPU 0: relu from 2000 to 2500, a copy from 3800 to 4800, gemm from 5000 to 6000.
    assert gpus[0] == ["GPU 0", 2_500, 0.625, 0.375, 0.375, 0.25]
    assert kernels == [["gemm", 2, 1_600, 800, 0.2], ["relu", 2, 900, 450, 0.1125]]
    assert "GPU 0 is idle 37.5 % of this window of 4.00 µs, the most of all GPUs" in words(app)

    app = open_app(traced, "timeline", run="trace", window="2000-6000", measure="5500-6500")
    gpus, kernels = window_tables(app)
    assert gpus[0] == ["GPU 0", 1_000, 1.0, 0.0, 1.0, 0.0]
    assert kernels == [["gemm", 1, 1_000, 1_000, 0.5]]
    assert sent(app)["measure"] == [5_500, 6_500]


def test_a_trace_without_device_work_has_no_tables_of_it(open_app: Open, traced: Path) -> None:
    app = open_app(traced, "timeline", run="calls only")
    assert not app.main.dataframe


def test_the_table_has_the_events_of_the_window_as_text(traced: Path) -> None:
    data = load(store.open_run(traced / "trace"))
    lanes = build(data.traces)
    assert lanes is not None
    coloring = timeline.coloring(data.traces, lanes, "kernel")
    window = timeline_detail.window(10_000, 12_300, len(lanes.lanes), 1000)
    scene = timeline.scene(data.traces, lanes, lanes.lanes, window, coloring)
    table = charts.table(scene, window, data.traces, lanes, coloring, look(data))
    device = table[table["lane"] == "process 100 · GPU 0 · stream 7"]
    assert device[["start_ns", "end_ns", "busy_ns"]].to_numpy().tolist() == [[11_000, 11_100, 100], [12_000, 12_300, 300]]
    assert HOSTILE in device["name"].tolist()


def test_hovering_tells_the_rate_of_a_copy_and_that_a_range_was_never_closed(traced: Path) -> None:
    data = load(store.open_run(traced / "trace"))
    lanes = build(data.traces)
    assert lanes is not None
    window = timeline_detail.window(0, 12_300, len(lanes.lanes), 1000)
    shown = timeline.scene(data.traces, lanes, lanes.lanes, window, timeline.coloring(data.traces, lanes, "kernel"))
    names, notes = charts.words(data.traces, lanes, shown[0])
    assert names[2] == "copy host to device"
    assert notes[2] == "1.00 MB at 1.00 TB/s, pinned to device\nin range step"
    opened = next(each for each in shown if each.lane.owner == (200, 201) and each.lane.kind == "ranges")
    assert charts.words(data.traces, lanes, opened) == (["open"], ["never closed"])


def test_variants_of_one_name_and_colour_are_one_entry_of_the_legend(tmp_path: Path) -> None:
    ours = (
        ("conv2d", "serial", 0, 100),
        ("gemm", "serial", 100, 200),
        ("conv2d", "v01", 200, 350),
        ("gemm", "v01", 350, 360),
    )
    rows = [
        {"range_id": number, "workload": workload, "variant": variant, "start_ns": start, "end_ns": end}
        for number, (workload, variant, start, end) in enumerate(ours, 1)
    ]
    traces = write_trace(tmp_path, ranges=rows)
    lanes = build(traces)
    assert lanes is not None
    shades = ("#111111", "#111111", "#222222", "#333333")
    styles = {each[:2]: Style(color, "circle", "solid", "") for each, color in zip(ours, shades, strict=True)}
    drawn_by = Look("light", styles, "", on_gpu=True)
    coloring = timeline.coloring(traces, lanes, "variant")
    window = timeline_detail.window(0, 360, 1, 1000)
    scene = timeline.scene(traces, lanes, lanes.lanes, window, coloring)
    names = charts.swatch_names(coloring, drawn_by)
    # 100 + 100 ns, 150 ns, 10 ns.
    entries = [names[place] for place in charts.legend(scene, coloring, drawn_by)]
    assert entries == ["serial", "v01 (conv2d)", "v01 (gemm)"]
    assert charts.table(scene, window, traces, lanes, coloring, drawn_by)["color"].tolist() == [
        "serial",
        "serial",
        "v01 (conv2d)",
        "v01 (gemm)",
    ]
