"""Ladder with a second device beside the run's, on runs of made devices with known times."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.dashboard.pages import plotted
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic.made_devices import DEVICES, NAMES, TIMES, TIMING, loaded, write, write_both
from warpladder.dashboard.compare import side_by_side
from warpladder.dashboard.compare.side_by_side import Beside
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import Chart, look
from warpladder.dashboard.views.ladder import chart as charts
from warpladder.dashboard.views.ladder import query as queries

__all__ = ["open_app"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("devices")
    write_both(made)
    return made


@pytest.fixture(scope="module")
def a(folder: Path) -> RunData:
    return loaded(folder, "h100")


@pytest.fixture(scope="module")
def b(folder: Path) -> RunData:
    return loaded(folder, "h200")


def drawn(
    a: RunData, b: RunData | None, case: str, scale: charts.Scale = "auto", draw: Callable[..., Chart] = charts.ladder
) -> Chart:
    beside = Beside(queries.beside(a, b, "w", case, TIMING), NAMES, DEVICES, "b of today") if b else None
    return draw(queries.ladder(a, "w", case, TIMING), look(a), scale, None, beside)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_an_open_diamond_in_the_colour_of_the_variant_is_at_its_time(a: RunData, b: RunData, scale: charts.Scale) -> None:
    *rows, marks = drawn(a, b, "n=2", scale).figure.data
    assert list(marks.x) == pytest.approx([1_000 * us for _, us in TIMES["n=2"].values()], rel=2e-3)
    assert list(marks.y) == [row.y[0] for row in rows]
    assert marks.marker.symbol == "diamond-open"
    assert list(marks.marker.color) == [look(a).style("w", name).color for name in TIMES["n=2"]]


def test_its_hover_text_has_time_ratio_and_share_of_its_own_floor(a: RunData, b: RunData) -> None:
    *rows, marks = drawn(a, b, "n=2").figure.data
    text = marks.hovertext[2]
    assert "device: <b>H200</b>" in text and "device: <b>H100</b>" in rows[2].hovertext
    assert "median: <b>166 µs (16" in text
    assert "over the H100: <b>0.83" in text and "the time</b>" in text
    assert "of the memory floor, by device_copy: <b>30.1 %" in text


def test_the_ratio_has_the_interval_of_the_page_devices(a: RunData, b: RunData) -> None:
    frame = queries.beside(a, b, "w", "n=2", TIMING).set_index("variant")
    for pair in side_by_side.side_by_side(a, b, "w", TIMING).pairs:
        if pair.a.case == "n=2":
            assert frame.loc[pair.a.variant, ["ratio", "ratio_low", "ratio_high"]].tolist() == [
                *pair.ratio.columns("").values()
            ]


@pytest.mark.thorough
def test_the_data_and_the_name_of_the_chart_change_only_with_a_second_device(a: RunData, b: RunData) -> None:
    alone, both = drawn(a, None, "n=2"), drawn(a, b, "n=2")
    assert "device" not in alone.data and alone.name == "ladder-w-n-2-device-cold"
    assert both.name == "ladder-w-n-2-device-cold-beside-h200"
    assert both.data["device"].tolist() == [DEVICES[0]] * 4 + [DEVICES[1]] * 4
    assert both.data["variant"].tolist() == [*alone.data["variant"]] * 2
    assert "Open diamonds: NVIDIA H200, run b of today; n = 20." in both.note


def test_the_axis_reaches_the_times_of_the_other_device(tmp_path: Path, a: RunData) -> None:
    write(tmp_path, "b", 1, times={"n=2": {name: (us, 30 * us) for name, (us, _) in TIMES["n=2"].items()}})
    figure = drawn(a, loaded(tmp_path, "b"), "n=2").figure
    assert figure.layout.xaxis.type == "log", "27 ms and 200 µs"
    assert max(figure.layout.xaxis.tickvals) >= 10e6


@pytest.mark.thorough
def test_a_click_on_a_row_or_a_diamond_is_about_the_variant(a: RunData, b: RunData) -> None:
    *rows, marks, _ = drawn(a, b, "n=2", draw=charts.answering).figure.data
    assert [row.customdata[0] for row in rows] == list(marks.customdata) == [0, 1, 2, 3]
    assert drawn(a, None, "n=2", draw=charts.answering).figure.layout.barmode == "overlay", "else bars are beside their names"


def test_the_rungs_of_the_case_that_win_on_one_and_lose_on_the_other_are_named(a: RunData, b: RunData) -> None:
    found = side_by_side.side_by_side(a, b, "w", TIMING)
    line = side_by_side.losers_of_case(found, "n=1", NAMES)
    assert line.startswith("At n=1, v02 wins on the H200 and is ") and "; v03 wins on the H100 and is " in line
    assert line.endswith(" slower than v02 on the H200.")
    none = "No variant wins on one of the H100 and the H200 and loses on the other at n=2."
    assert side_by_side.losers_of_case(found, "n=2", NAMES) == none
    assert side_by_side.losers_of_case(found, "n=7", NAMES) == ""


def test_the_page_shows_the_device_of_the_link_and_names_who_loses(folder: Path, open_app: Open) -> None:
    app = open_app(folder, "ladder", run="h100", beside="NVIDIA H200", **{"case.n": "1"})
    assert app.selectbox(key="choose beside").value == "NVIDIA H200" and app.query_params["beside"] in (
        "NVIDIA H200",
        ["NVIDIA H200"],
    )
    assert "At n=1, v02 wins on the H200" in words(app)
    app = open_app(folder, "ladder", run="h100", beside="NVIDIA H200", show="error")
    assert "beside" not in app.query_params


@pytest.mark.thorough
def test_a_case_that_the_other_run_has_not_is_one_line_with_the_command(tmp_path: Path, open_app: Open) -> None:
    write(tmp_path, "a", 0)
    write(tmp_path, "b", 1, times={"n=1": TIMES["n=1"]})
    app = open_app(tmp_path, "ladder", run="a", beside="NVIDIA H200", **{"case.n": "2"})
    assert (
        "has none of these variants at n=2 in device time, cold L2. Record it on NVIDIA H200: warpladder record w --case n=2"
        in words(app)
    )
    assert plotted(app)


@pytest.mark.thorough
def test_a_link_with_a_device_that_is_not_here_is_said(folder: Path, open_app: Open) -> None:
    app = open_app(folder, "ladder", run="h100", beside="\u202e" + "9" * 3_000)
    assert "The link asks for beside" in words(app) and "showing none." in words(app)
