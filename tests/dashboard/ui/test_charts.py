"""Charts: how numbers are written, colours, and that a name out of a run is text."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import hostile_run
from tests.synthetic import made_runs, made_sweeps, made_traces
from warpladder.dashboard.core import numbers
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.export import charts_of
from warpladder.dashboard.ui import template
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.ladder import chart as ladder
from warpladder.dashboard.views.ladder import query as ladders
from warpladder.dashboard.views.sizes import chart as sizes
from warpladder.dashboard.views.sizes import query as over_sizes
from warpladder.dashboard.views.trust import chart as distribution
from warpladder.data import store

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)>"
#: How the names of charts begin that show no times, so that their notes tell of no samples.
WITHOUT_SAMPLES = ("bank-conflicts",)
AS_TEXT = "a name out of a run goes through `template.text` before Plotly gets it"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunData]:
    yield load(store.open_run(made_runs.write(tmp_path_factory.mktemp("runs"), rounds=12)))


@pytest.mark.parametrize(
    ("nanoseconds", "written"),
    [
        (0.5, "0.500 ns"), (1, "1.00 ns"), (999.4, "999 ns"), (999.6, "1.00 µs"), (12_345, "12.3 µs"), (1e6, "1.00 ms"),
        (999_600, "1.00 ms"), (123_456_789, "123 ms"), (2.5e9, "2.50 s"), (1.04e12, "1,040 s"), (float("nan"), "–"),
    ],
)  # fmt: skip
def test_durations_have_three_significant_digits_and_an_si_unit(nanoseconds: float, written: str) -> None:
    assert numbers.format_duration(nanoseconds) == written


def test_rates_bytes_ratios_and_percentages_have_three_significant_digits() -> None:
    assert numbers.format_rate(4224) == "4.22 TB/s"
    assert numbers.format_rate(0.0321) == "32.1 MB/s"
    assert numbers.format_rate(51_300, "GFLOP/s") == "51.3 TFLOP/s"
    assert (numbers.format_bytes(512), numbers.format_bytes(1_073_741_824)) == ("512 B", "1.07 GB")
    assert [numbers.format_ratio(value) for value in (0.0123, 0.914, 3.417, 38.04, 1119.8)] == [
        "0.0123×",
        "0.914×",
        "3.42×",
        "38.0×",
        "1,120×",
    ]
    assert (numbers.format_percent(97.53), numbers.format_percent(99.97)) == ("97.5 %", "100 %")
    assert numbers.format_interval("12.2 µs", "12.4 µs") == "12.2 to 12.4 µs"
    assert numbers.format_interval("998 ns", "1.02 µs") == "998 ns to 1.02 µs"


def test_a_ceiling_is_written_with_the_si_prefix_of_its_size() -> None:
    figures = [(4257.9, "GB/s"), (71_200, "GB/s"), (307.8, "TFLOP/s"), (0.0614, "TFLOP/s"), (2.88, "us"), (12.0, "passes")]
    written = ["4.26 TB/s", "71.2 TB/s", "308 TFLOP/s", "61.4 GFLOP/s", "2.88 µs", "12.0 passes"]
    assert [numbers.format_measure(*figure) for figure in figures] == written


def test_no_number_is_written_with_an_exponent() -> None:
    assert numbers.format_half_width(100, 99.99999, 100.00001) == "±0.00001 %"
    assert [numbers.significant(value, 2) for value in (100.0, 0.000012, 99.7)] == ["100", "0.000012", "100"]


def test_ticks_stand_at_round_numbers() -> None:
    linear = template.ticks(0, 870_000, numbers.format_duration, logarithmic=False)
    assert linear["ticktext"] == ["0", "200 µs", "400 µs", "600 µs", "800 µs"]
    logarithmic = template.ticks(2_000, 40_000, numbers.format_duration, logarithmic=True)
    assert {"2 µs", "5 µs", "10 µs", "20 µs", "50 µs"} <= set(logarithmic["ticktext"])


@pytest.mark.parametrize(("low", "high"), [(0, 1), (100, 100.1), (3e9, 3e9), (3e9, 3e9 + 1e-3), (0, 0), (1e-9, 5.0)])
def test_a_linear_axis_has_few_ticks_however_close_its_ends_are(low: float, high: float) -> None:
    values = template.ticks(low, high, str, logarithmic=False)["tickvals"]
    assert len(values) <= 8 and all(low <= value <= high + 0.08 * (high - low or high) for value in values)


def test_labels_of_values_close_together_make_room_for_each_other() -> None:
    assert template.spaced([10, 100, 880, 1000, 2224, 2512, 4856, 5248]) == [10, 100, 880, 2224, 4856]
    assert template.spaced([4, 4]) == [4]
    doubling = [64, 128, 256, 512, 1024, 2048, 4096, 8192]
    assert template.spaced(doubling) == doubling


@pytest.mark.thorough
def test_every_chart_of_a_run_has_its_own_name_a_note_and_few_marks(run: RunData) -> None:
    charts = list(charts_of(run))
    twice = [name for name, count in Counter(chart.name for chart in charts).items() if count > 1]
    assert twice == [], "a chart's name has its workload, case and timing, as far as it is drawn for several"
    assert len(charts) > 50
    for chart in charts:
        assert chart.title and len(chart.data) and chart.figure.layout.height
        says_samples = "n = " in chart.note or chart.name.startswith(WITHOUT_SAMPLES)
        assert says_samples, f"{chart.name}: its note has no `template.samples`; without times it stands in WITHOUT_SAMPLES"
        assert sum(len(trace.x) for trace in chart.figure.data if trace.x is not None) < 1000


@pytest.mark.thorough
def test_a_chart_drawn_twice_is_the_same(run: RunData) -> None:
    first, second = (next(charts_of(run, "dark")).figure.to_json() for _ in range(2))
    assert first == second


def test_the_ladder_states_its_answer_and_writes_the_gain_of_each_step(run: RunData) -> None:
    chart = ladder.ladder(ladders.ladder(run, "conv2d", "n=8192", Timing("device", "cold")), look(run))
    assert chart.title.startswith("conv2d, n=8192: v04_sliding reaches 97.")
    assert "v01_naive [block=16]" in chart.note
    words = [annotation.text for annotation in chart.figure.layout.annotations]
    # 0.74 after 0.27 of the ceiling.
    assert "2.72×" in words or "2.73×" in words or "2.71×" in words
    assert "out of memory" in words


@pytest.mark.thorough
def test_a_name_out_of_a_run_is_text_in_every_figure(tmp_path: Path) -> None:
    run = load(store.open_run(made_runs.write(tmp_path, rounds=12, workloads=("conv2d",))))
    names = {"v04_sliding": HOSTILE, "rows=8": HOSTILE, "conv2d": f"conv2d{HOSTILE}"}
    frames = {name: getattr(run, name).replace(names) for name in ("variants", "cases", "results", "diagnostics")}
    texts = run.samples.columns[run.samples.dtypes == "category"]
    frames["samples"] = run.samples.astype(dict.fromkeys(texts, "str")).replace(names)
    hostile = replace(run, **frames)
    charts = [chart for chart in charts_of(hostile) if "conv2d" in chart.name]
    assert any(HOSTILE in chart.title for chart in charts), "titles are plain text; who shows one escapes it"
    drawn = {chart.name: chart.figure.to_json().replace("\\u003c", "<") for chart in charts}
    assert [name for name, figure in drawn.items() if "<img" in figure] == [], AS_TEXT
    # Of the samples over the rounds, the name stands in the title alone; the variants with blocks are others.
    assert {name.split("-")[0] for name, figure in drawn.items() if "&lt;img" not in figure} == {"block", "samples"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("write", [made_traces.write, made_sweeps.write_counted, made_sweeps.write_scaling])
def test_no_figure_has_a_link_or_a_template_out_of_a_run(tmp_path: Path, write: Callable[..., Path]) -> None:
    made = write(tmp_path)
    # A report's own charts know its workload and cases by their names.
    keep = ("workload", "case") if write is made_sweeps.write_scaling else ()
    hostile = load(store.open_run(hostile_run.write(made, tmp_path / "hostile" / made.name, keep=keep)))
    texts = [found for chart in charts_of(hostile) for found in texts_of(chart.figure.to_plotly_json())]
    assert any("&lt;a href" in text for _, text in texts)
    # A legend's group is a key, and never drawn.
    drawn = [(key, text) for key, text in texts if key != "legendgroup"]
    assert [(key, text) for key, text in drawn if "<a " in text or "<img" in text] == [], AS_TEXT
    assert [(key, text) for key, text in drawn if key.endswith("template") and "evil" in text] == []


def texts_of(part: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """The texts of a figure, each with the name of what holds it."""
    if isinstance(part, str):
        yield key, part
    elif isinstance(part, Mapping):
        for name, inner in part.items():
            yield from texts_of(inner, name)
    elif isinstance(part, (list, tuple, np.ndarray)):
        for inner in part:
            yield from texts_of(inner, key)


def test_of_many_samples_every_kth_is_drawn_and_the_note_says_so(run: RunData) -> None:
    cell = run.samples[(run.samples["variant"] == "v04_sliding") & (run.samples["config"] == "rows=8")]
    cell = cell[(cell["case"] == "n=8192") & (cell["scope"] == "device") & (cell["cache"] == "cold")]
    many = cell.loc[cell.index.repeat(100)].assign(round=range(1200))
    chart = distribution.samples_over_rounds(many, look(run))
    assert len(chart.figure.data[0].x) == 400
    assert "n = 1200" in chart.note and " 1 sample of 3 is drawn." in chart.note


def test_half_the_interval_stands_relative_to_the_median() -> None:
    # (131.3 - 130.7) / 2 = 0.3 of 131.
    assert numbers.format_half_width(131, 130.7, 131.3) == "±0.2 %"
    assert [numbers.format_half_width(100, 100 - half, 100 + half) for half in (0, 0.04, 1.44, 21.4, 250)] == [
        "±0 %", "±0.04 %", "±1.4 %", "±21 %", ">±100 %",
    ]  # fmt: skip
    assert numbers.format_half_width(float("nan"), 1, 2) == "–"


def test_the_ladder_has_bars_up_to_twenty_times_the_least_and_marks_beyond(run: RunData) -> None:
    frame = ladders.ladder(run, "conv2d", "n=8192", Timing("device", "cold"))
    for most, kind in ((190, ("bar", "linear")), (191, ("scatter", "log"))):
        rows = frame.assign(median_ns=[10.0 + most * (row == 1) for row in range(len(frame))])
        figure = ladder.ladder(rows, look(run)).figure
        assert (figure.data[0].type, figure.layout.xaxis.type) == kind


@pytest.mark.thorough
def test_no_title_compares_the_baseline_with_itself(run: RunData) -> None:
    cold = Timing("device", "cold")
    rungs = ladders.ladder(run, "tensor_transpose", "n=512,perm=210", cold)
    alone = ladder.ladder(rungs[rungs["variant"] == "v01_simple"], look(run)).title
    assert alone.endswith("of the memory floor, the baseline itself")
    over_size = over_sizes.sizes(run, "tensor_transpose", cold, "perm=210")
    regions = over_sizes.regions(run, "tensor_transpose", "perm=210")
    chart = sizes.over_size(over_size[over_size["variant"] == "v01_simple"], regions, look(run), "speedup")
    assert chart.title == "tensor_transpose, perm=210: at n=512, first is v01_simple, the baseline itself"


def test_a_baseline_of_several_configs_is_the_fastest_of_them(run: RunData) -> None:
    rungs = ladders.ladder(run, "conv2d", "n=8192", Timing("device", "cold"))
    chart = ladder.ladder(rungs[rungs["variant"] == "v01_naive"], look(run))
    assert chart.title.endswith("the baseline itself") and "v01_naive [block=16]" in chart.note


def test_a_cell_above_its_ceiling_says_so_in_the_hover_and_in_the_note(run: RunData) -> None:
    frame = ladders.ladder(run, "conv2d", "n=8192", Timing("device", "cold"))
    assert "bove" not in ladder.ladder(frame, look(run)).note
    passed = frame.assign(percent_of_floor=frame["percent_of_floor"].where(frame["variant"] != "v04_sliding", 103.0))
    chart = ladder.ladder(passed, look(run))
    assert "Above 100 %: faster than the ceiling measured in the same run." in chart.note
    told = [trace.hovertext for trace in chart.figure.data if "103 %" in trace.hovertext]
    assert len(told) == 1 and "103 % (above the measured ceiling)" in told[0]


@pytest.mark.thorough
def test_the_ceilings_of_a_floor_stand_in_the_hovers(run: RunData) -> None:
    cold = Timing("device", "cold")
    rows = ladders.ladder(run, "tensor_transpose", "n=512,perm=210", cold)
    chart = ladder.ladder(rows, look(run))
    told = [trace.hovertext for trace in chart.figure.data]
    assert (
        sum("of the memory floor, by device_copy: " in text for text in told) == len(told) - (rows["floor_ns"].isna()).sum() > 0
    )
    (line,) = [word for word in chart.figure.layout.annotations if "memory floor" in (word.text or "")]
    assert line.hovertext == "by device_copy, measured in the same run"
    frame = over_sizes.sizes(run, "tensor_transpose", cold, "perm=210")
    chart = sizes.over_size(frame, over_sizes.regions(run, "tensor_transpose", "perm=210"), look(run), "percent_of_floor")
    assert any(
        ", memory, by device_copy" in text for trace in chart.figure.data for text in np.atleast_1d(trace.hovertext or "")
    )


@pytest.mark.thorough
def test_the_caches_of_a_processor_are_no_l2_of_a_gpu(tmp_path: Path) -> None:
    host = load(store.open_run(made_runs.write_host_run(tmp_path, rounds=8, workloads=("conv2d",))))
    notes = [chart.note for chart in charts_of(host) if not chart.name.startswith(WITHOUT_SAMPLES)]
    assert notes and all("operation time, caches warm" in note and " L2" not in note for note in notes)


@pytest.mark.thorough
def test_the_title_of_a_ladder_names_the_peers_that_are_faster_than_its_best_rungs() -> None:
    """On an H100 at the odd shape cuBLASLt is faster in float32 and in TF32; at 4096³ in neither."""
    recorded, cold = load(store.find_run("H100 mlp_gemm", [store.RECORDED])), Timing("device", "cold")
    frames = [ladders.ladder(recorded, "mlp_gemm", case, cold) for case in ("shape=80x70x90", "n=4096")]
    odd, large = (ladder.ladder(frame, look(recorded)).title for frame in frames)
    assert odd.endswith("; faster peers: cublaslt_own_d · fp32 1.07×, cublaslt_own_d_tf32 1.43×")
    assert "peer" not in large


@pytest.mark.thorough
def test_the_title_of_a_ladder_names_a_peer_that_is_as_fast_as_its_best_rung() -> None:
    recorded = load(store.find_run("H200 gemm_bf16", [store.RECORDED]))
    title = ladder.ladder(ladders.ladder(recorded, "gemm_bf16", "n=8192", Timing("device", "cold")), look(recorded)).title
    assert title.endswith("; tied peer: cublaslt")
