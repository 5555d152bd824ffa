"""The generator's figures out of a trace whose executions are laid out, and counted, by hand."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pytest

from tests.dashboard.test_app import Open, open_app
from tests.dashboard.views.reports.details.test_generator import CASES, row, write
from warpladder.dashboard import export
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.trace.lanes import build
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.reports.details import generator
from warpladder.dashboard.views.reports.details import generator as queries
from warpladder.dashboard.views.reports.details import generator_chart as charts
from warpladder.dashboard.views.reports.details.generator import DENSE, DIRECT, IN, LAST, NORMS, OPERANDS, OUT, PRODUCTS
from warpladder.workloads.api import format_params
from warpladder.workloads.gan_tconv.problem import make_case
from warpladder.workloads.gan_tconv.workload import WORKLOAD

__all__ = ["open_app"]

pytestmark = pytest.mark.slow

CASE: Final = CASES[2]
US: Final = 1_000
#: Where the trace begins, on its clock.
BEGIN: Final = 7_000_000
Work = tuple[str, int, int]
#: What ran from when to when, in microseconds: 72 of kernels, 52, 56 and 52.
HEAD: Final[tuple[Work, ...]] = (("h2d", 0, 10), ("dense", 10, 12), ("batch_norm", 12, 13), ("relu", 13, 14))
TWO: Final = (*HEAD, ("expand", 14, 20), ("multiply", 20, 40), ("tconv", 40, 80), ("tanh_layer", 80, 82), ("d2h", 82, 100))
THREE: Final = (
    *HEAD,
    ("flip_weights", 14, 20),
    ("multiply", 20, 50),
    ("tconv", 50, 60),
    ("tanh_layer", 60, 62),
    ("d2h", 62, 80),
)
FOUR: Final = (*HEAD, ("expand", 14, 24), ("multiply", 24, 64), ("tanh_layer", 64, 66), ("d2h", 66, 84))
#: 5 of 10 in behind the first kernel; all 20 out behind the last, and 0 of 5 at the end.
HIDDEN: Final = (("h2d", 0, 10), ("dense", 5, 12), ("multiply", 12, 57), ("d2h", 30, 50), ("d2h", 57, 62))


class Trace:
    """Rows of trace tables, one execution after another."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = {name: [] for name in ("ranges", "kernels", "memory_ops", "api_calls")}
        self.tables["api_calls"].append(row("api_calls", name="cuInit", start_ns=BEGIN, end_ns=BEGIN + 10))
        self.now = BEGIN + 100 * US

    def add(
        self, variant: str, config: str, work: Sequence[Work], turn: int | None, *, scope: str = "end_to_end", case: str = CASE
    ) -> int:
        """A sample, its last kernel launched within a range of a library.

        Returns:
            The start of its device work, from that of the trace.
        """
        ranges, start = self.tables["ranges"], self.now
        outer = len(ranges)
        end = start + US * max(end for _, _, end in work)
        ours = {"workload": "gan_tconv", "variant": variant, "config": config, "case": case, "scope": scope, "round": turn}
        times = {"start_ns": start - 50, "end_ns": end + 50, "gpu_start_ns": start, "gpu_end_ns": end, "style": "push_pop"}
        ranges.append(row("ranges", range_id=outer, domain="warpladder", text=f"{scope}.hot#{turn}", **ours, **times))
        ranges.append(row("ranges", range_id=outer + 1, parent_id=outer, depth=1, text="inner", **times))
        last = [name for name, _, _ in work if name not in ("h2d", "d2h")][-1]
        for name, begins, ends in work:
            of = {"start_ns": start + US * begins, "end_ns": start + US * ends, "range_id": outer + (name == last)}
            if name in ("h2d", "d2h"):
                self.tables["memory_ops"].append(row("memory_ops", kind=name, bytes=1_000 * (ends - begins), **of))
            else:
                self.tables["kernels"].append(row("kernels", name=name, full_name=f"{name}(float*)", **of))
        self.now = end + 20 * US
        return start - BEGIN


def longer(work: Sequence[Work], by: int) -> tuple[Work, ...]:
    """The same, its last copy longer by some microseconds."""
    *others, (name, begins, ends) = work
    return (*others, (name, begins, ends + by))


class Written:
    """A run with that trace, and when the execution of three products began that is to be drawn."""

    def __init__(self, folder: Path) -> None:
        trace = Trace()
        trace.add("v05_mixed", "products=3", longer(THREE, -9), None)
        trace.add("v05_mixed", "products=3", longer(THREE, 9), 0)
        trace.add("v05_mixed", "products=4", FOUR, 0)
        self.drawn = trace.add("v05_mixed", "products=3", THREE, 1)
        trace.add("v05_mixed", "products=3", longer(THREE, -5), 2)
        # Of two, the shorter.
        trace.add("v05_mixed", "products=2", longer(TWO, 1), 0)
        trace.add("v05_mixed", "products=2", TWO, 1)
        trace.add("v07_overlapped", "", HIDDEN, 0)
        # None of these is asked for.
        trace.add("v05_mixed", "products=3", THREE, 0, scope="operation")
        trace.add("v05_mixed", "products=3", THREE, 0, case=CASES[1])
        trace.add("v09_graph", "", THREE, 0)
        self.data = write(folder, trace=trace.tables)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def written(folder: Path) -> Written:
    return Written(folder)


@pytest.fixture
def data(written: Written) -> RunData:
    return written.data


@pytest.fixture
def frame(data: RunData) -> pd.DataFrame:
    return queries.executions(data, CASE)


def of(frame: pd.DataFrame, config: str) -> pd.DataFrame:
    return frame[frame["config"] == config]


def test_of_each_figure_the_execution_of_median_duration_is_taken(written: Written, frame: pd.DataFrame) -> None:
    keys = frame.drop_duplicates(["variant", "config"])
    assert list(zip(keys["figure"], keys["variant"], keys["config"], keys["n"], keys["span_ns"], strict=True)) == [
        ("figure 2", "v05_mixed", "products=2", 2, 100 * US),
        ("figure 3", "v05_mixed", "products=3", 3, 80 * US),
        ("figure 4", "v05_mixed", "products=4", 1, 84 * US),
        ("figure 6", "v07_overlapped", "", 1, 62 * US),
    ]
    assert set(of(frame, "products=3")["trace_ns"]) == {written.drawn}


def test_its_work_stands_from_its_start_on_by_kind_and_that_of_inner_ranges_too(frame: pd.DataFrame) -> None:
    rows = of(frame, "products=3")
    assert list(zip(rows["kind"], rows["start_ns"] // US, rows["end_ns"] // US, strict=True)) == [
        (IN, 0, 10), (DENSE, 10, 12), (NORMS, 12, 13), (NORMS, 13, 14), (OPERANDS, 14, 20), (PRODUCTS, 20, 50), (DIRECT, 50, 60),
        (LAST, 60, 62), (OUT, 62, 80),
    ]  # fmt: skip
    assert rows["bytes"].dropna().tolist() == [10_000, 18_000]


def test_a_copy_is_hidden_while_a_kernel_of_its_execution_runs(frame: pd.DataFrame) -> None:
    copies = frame[(frame["variant"] == "v07_overlapped") & frame["bytes"].notna()]
    assert (copies["hidden_ns"] / US).tolist() == [5, 20, 0]
    assert (of(frame, "products=2")["hidden_ns"].dropna() == 0).all()


def test_windows_are_counted_from_where_the_timeline_begins(data: RunData, frame: pd.DataFrame) -> None:
    lanes = build(data.traces)
    assert lanes is not None
    assert lanes.begin_ns == BEGIN
    # The first range is a warm-up of 71 us, the second the round of 89, then four products: each 20 us after the one before.
    assert of(frame, "products=4")["trace_ns"].iloc[0] == (100 + 71 + 20 + 89 + 20) * US


def test_without_kernels_of_the_case_there_is_nothing_to_draw(data: RunData, tmp_path: Path) -> None:
    assert queries.executions(data, CASES[0]).empty
    assert queries.executions(write(tmp_path), CASE).empty


def test_kinds_and_rows_are_those_of_the_workload() -> None:
    case, kernels, keys = make_case({"images": 101}), set(), set()
    for name in dict.fromkeys(variant for variant, _ in generator.FIGURES):
        variant = WORKLOAD.variant(name)
        keys |= {(name, format_params(config)) for config in variant.configs}
        kernels |= {launch.kernel for config in variant.configs for launch in variant.launches(case, config)}
    assert keys == set(generator.FIGURES)
    assert kernels == set(generator.KIND_OF) - {"h2d", "d2h"}
    assert any(each.name == generator.FIGURE_6_CASE for each in WORKLOAD.cases)


def test_the_chart_says_which_mix_is_fastest_and_where_its_time_goes(data: RunData, frame: pd.DataFrame) -> None:
    chart = charts.figures_2_to_6(frame, look(data), CASE)
    # 30 and 10 of 52 us; 25 of 35 us of copies.
    assert chart.title == (
        "At images=1000, v05_mixed [products=3] is the fastest of 3 mixes: kernels take 52.0 µs, 57.7 % layer products, "
        "19.2 % direct convolutions; v07_overlapped hides 71.4 % of its copies"
    )
    assert chart.figure.layout.yaxis.ticktext[1] == "v05_mixed [products=3]<br>figure 3 · 80.0 µs"
    bars = {bar.name: bar for bar in chart.figure.data}
    assert list(bars[PRODUCTS].base) == [20 * US, 20 * US, 24 * US, 12 * US]
    assert list(bars[PRODUCTS].x) == [20 * US, 30 * US, 40 * US, 45 * US]
    assert len({bar.marker.color for bar in chart.figure.data}) == len(chart.figure.data) == 8
    assert (
        bars[PRODUCTS].hovertext[1]
        == "<b>multiply</b>: <b>30.0 µs</b><br>layer products<br>v05_mixed [products=3], after 20.0 µs"
    )
    assert "20.0 kB at 1.00 GB/s, 100 % behind kernels" in bars[OUT].hovertext[3]
    assert list(chart.figure.layout.xaxis.range) == [0, 100 * US]
    assert "n = 1 to 3;" in chart.note


def test_bands_of_a_row_do_not_touch_one_another_nor_the_next_row(data: RunData, frame: pd.DataFrame) -> None:
    bars = {bar.name: bar for bar in charts.figures_2_to_6(frame, look(data), CASE).figure.data}
    edges = [
        y
        for kind in (PRODUCTS, IN, OUT)
        for y in (bars[kind].y[0] - bars[kind].width / 2, bars[kind].y[0] + bars[kind].width / 2)
    ]
    assert edges == sorted(edges)
    assert -0.5 < edges[0] < edges[-1] < 0.5


def test_a_single_mix_is_not_called_the_fastest(data: RunData, frame: pd.DataFrame) -> None:
    title = charts.figures_2_to_6(of(frame, "products=2"), look(data), CASE).title
    assert (
        title
        == "At images=1000, the kernels of v05_mixed [products=2] take 72.0 µs, 55.6 % direct convolutions, 27.8 % layer products"
    )


def test_of_too_many_bars_the_first_are_drawn_in_all_rows_up_to_one_time(data: RunData, frame: pd.DataFrame) -> None:
    (one,) = of(frame, "products=2").query("name == 'multiply'").to_dict("records")
    many = pd.DataFrame(
        [
            {**one, "config": config, "start_ns": 10 * number + shift, "end_ns": 10 * number + shift + 5, "span_ns": 15_000}
            for config, shift in (("products=2", 0), ("products=3", 5)) for number in range(1_500)
        ]
    )  # fmt: skip
    chart = charts.figures_2_to_6(many, look(data), CASE)
    (bar,) = chart.figure.data
    assert len(bar.x) == 2_000
    assert max(bar.base) == 9_995
    assert list(chart.figure.layout.xaxis.range) == [0, 10_000]
    assert "the 2,000 bars of 3,000 that start within 10.0 µs; the Timeline has all of them" in chart.note
    assert len(chart.data) == 3_000


def test_a_trace_without_copies_is_drawn_too(frame: pd.DataFrame, data: RunData) -> None:
    chart = charts.figures_2_to_6(frame[frame["bytes"].isna()], look(data, "dark"), CASE)
    assert {IN, OUT}.isdisjoint(bar.name for bar in chart.figure.data)
    assert "hides" not in chart.title


@pytest.mark.thorough
def test_the_figures_are_exported(data: RunData) -> None:
    generator = [chart.name for chart in export.charts_of(data, topics=["details"])]
    assert generator.count("generator-figures-images-1000") == 1


@pytest.mark.thorough
def test_the_page_draws_them_with_a_link_to_each_window_on_the_timeline(open_app: Open, folder: Path, written: Written) -> None:
    app = open_app(folder, "details", run="generator", topic="generator", case=CASE)
    headings = " ".join(str(block.value) for block in app.main.markdown).replace("\\", "")
    assert "v05_mixed [products=3] is the fastest of 3 mixes" in headings
    links = {re.sub(r"\\", "", link.proto.label): link.proto.query_string for link in app.main.get("page_link")}
    window = f"{written.drawn}-{written.drawn + 80 * US}"
    assert links["v05_mixed [products=3] →"] == f"run=generator&window={window}"
    assert len(links) == 4
