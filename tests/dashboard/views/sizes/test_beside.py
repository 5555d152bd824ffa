"""Sizes with a second device beside the run's, on runs of made devices with known times."""

from pathlib import Path

import pytest

from tests.dashboard.pages import plotted
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic.made_devices import COPY, DEVICES, MIN_BYTES, TIMES, TIMING, loaded, write, write_both
from warpladder.dashboard.compare.side_by_side import Beside
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import Chart, look
from warpladder.dashboard.views.sizes import chart as charts
from warpladder.dashboard.views.sizes import query as queries

__all__ = ["open_app"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("devices")
    write_both(made)
    return made


def drawn(a: RunData, b: RunData | None, metric: charts.Metric = "median_ns", shown: tuple[str, ...] | None = None) -> Chart:
    frame, regions = queries.sizes(a, "w", TIMING), queries.regions(a, "w")
    beside = Beside(queries.sizes(b, "w", TIMING), ("H100", "H200"), DEVICES, "b of today") if b else None
    return charts.over_size(frame, regions, look(a), metric, shown, beside)


@pytest.fixture(scope="module")
def a(folder: Path) -> RunData:
    return loaded(folder, "h100")


@pytest.fixture(scope="module")
def b(folder: Path) -> RunData:
    return loaded(folder, "h200")


def test_each_variant_has_a_thinner_line_of_its_colour_with_open_marks(a: RunData, b: RunData) -> None:
    traces = {trace.name: trace for trace in drawn(a, b).figure.data}
    assert list(traces) == [
        *(f"{name}{suffix}" for name in TIMES["n=1"] for suffix in ("", " · H200")),
        "floor",
        "floor · H200",
    ]
    for name in TIMES["n=1"]:
        own, other = traces[name], traces[f"{name} · H200"]
        assert own.line.color == other.line.color == other.marker.color
        assert other.line.width < own.line.width and other.line.dash == own.line.dash
        assert other.marker.symbol != own.marker.symbol and "-open" in other.marker.symbol
        assert list(other.y) == pytest.approx([1_000 * of_case[name][1] for of_case in TIMES.values()], rel=2e-3)
        assert all(end > 0 for end in other.error_y.array)
    assert "device: <b>H200</b>" in traces["v03 · H200"].hovertext[0] and "device: <b>H100</b>" in traces["v03"].hovertext[0]


@pytest.mark.thorough
def test_each_device_has_its_own_floor(a: RunData, b: RunData) -> None:
    traces = {trace.name: trace for trace in drawn(a, b).figure.data}
    for name, rate in zip(("floor", "floor · H200"), COPY, strict=True):
        assert list(traces[name].y) == pytest.approx([MIN_BYTES / rate] * 3)
    shares = {trace.name: trace for trace in drawn(a, b, "percent_of_floor").figure.data}
    assert shares["v03"].y[1] == pytest.approx(100 * 75 / 200, rel=2e-3)
    assert shares["v03 · H200"].y[1] == pytest.approx(100 * 50 / 166, rel=2e-3)
    assert "floor · H200" not in shares, "100 % of each is one line"


@pytest.mark.thorough
def test_the_data_and_the_name_of_the_chart_change_only_with_a_second_device(a: RunData, b: RunData) -> None:
    alone, both = drawn(a, None), drawn(a, b)
    assert "device" not in alone.data and alone.name == "sizes-w-device-cold-median-time"
    assert both.name == "sizes-w-device-cold-median-time-beside-h200"
    assert both.data[list(alone.data)].head(len(alone.data)).equals(alone.data)
    assert both.data.groupby("device", sort=False)["variant"].count().to_dict() == dict.fromkeys(DEVICES, 12)
    assert "Thin lines with open marks: NVIDIA H200, run b of today; n = 20." in both.note


@pytest.mark.thorough
def test_the_title_names_the_first_on_both_at_the_largest_size_that_both_have(tmp_path: Path, a: RunData, b: RunData) -> None:
    assert drawn(a, b).title == "w: at n=3, first on the H100 and the H200: v03 with 200 µs and v03 ≈ v02 with 100 µs"
    write(tmp_path, "b", 1, times={case: TIMES[case] for case in ("n=1", "n=2")})
    smaller = loaded(tmp_path, "b")
    assert drawn(a, smaller).title == "w: at n=2, first on the H100 and the H200: v03 with 200 µs and 166 µs"
    assert drawn(a, smaller, shown=("v02",)).title.startswith("w: at n=2, first of the 1 shown on the H100 and the H200: v02")
    write(tmp_path, "doubted", 1, doubt="n=3", times={"n=3": {"v03": (200, 100)} | {"v01": (900, 900)}})
    title = drawn(a, loaded(tmp_path, "doubted"), shown=("v03",)).title
    assert title.startswith("w: on the H100 at n=3, first of the 1 shown is v03 with 200 µs; on the H200 at n=3, ")


def test_only_shown_variants_and_sizes_of_either_are_drawn(tmp_path: Path, a: RunData) -> None:
    write(tmp_path, "b", 1, times=TIMES | {"n=9": TIMES["n=1"]})
    figure = drawn(a, loaded(tmp_path, "b"), shown=("v02", "lib")).figure
    assert [trace.name for trace in figure.data][:4] == ["v02", "v02 · H200", "lib", "lib · H200"]
    assert list(figure.layout.xaxis.ticktext)[-1] == "n=9" and 10 ** figure.layout.xaxis.range[1] > 9


def test_the_page_shows_the_device_that_is_chosen_and_keeps_it_in_the_link(folder: Path, open_app: Open) -> None:
    app = open_app(folder, "sizes", run="h100")
    choice = app.selectbox(key="choose beside")
    assert choice.options == ["–", "H200"] and choice.value == "none"
    assert "beside" not in app.query_params
    choice.select("NVIDIA H200").run()
    assert app.query_params["beside"] in ("NVIDIA H200", ["NVIDIA H200"])
    assert "first on the H100 and the H200" in words(app)


def test_a_link_with_a_device_that_is_not_here_is_said(folder: Path, open_app: Open) -> None:
    app = open_app(folder, "sizes", run="h100", beside="**NVIDIA** <b>A100")
    assert "The link asks for beside **NVIDIA** <b>A100, which is not here; showing none." in words(app)
    assert "beside" not in app.query_params


def test_without_another_device_there_is_no_choice(tmp_path: Path, open_app: Open) -> None:
    write(tmp_path, "a", 0)
    app = open_app(tmp_path, "sizes", run="a", beside="NVIDIA H200")
    assert not [each for each in app.main.selectbox if each.key == "choose beside"]


@pytest.mark.thorough
def test_one_of_several_runs_of_the_device_can_be_chosen(tmp_path: Path, open_app: Open) -> None:
    write_both(tmp_path)
    write(
        tmp_path,
        "again",
        1,
        times={case: {name: (us, 2 * more) for name, (us, more) in of.items()} for case, of in TIMES.items()},
    )
    app = open_app(tmp_path, "sizes", run="h100", beside="NVIDIA H200", **{"with": "again"})
    assert "v03 with 200 µs and v03 ≈ v02 with 200 µs" in words(app)
    assert app.selectbox(key="choose with").value == "again"


@pytest.mark.thorough
def test_a_device_that_timed_none_of_the_shown_variants_is_said_with_the_command(tmp_path: Path, open_app: Open) -> None:
    write(tmp_path, "a", 0)
    write(tmp_path, "b", 1, times={case: {"v07": (1, 1), "v01": (9, 9)} for case in TIMES})
    app = open_app(tmp_path, "sizes", run="a", beside="NVIDIA H200", variants="v02")
    assert "has none of these variants in device time, cold L2. Record it on NVIDIA H200: warpladder record w" in words(app)


@pytest.mark.thorough
def test_a_damaged_run_of_the_device_leaves_the_page(tmp_path: Path, open_app: Open) -> None:
    write(tmp_path, "a", 0)
    (write(tmp_path, "b", 1) / "samples.parquet").write_bytes(b"PAR1 damaged PAR1")
    app = open_app(tmp_path, "sizes", run="a", beside="NVIDIA H200")
    assert plotted(app)
    assert "The run of NVIDIA H200 cannot be read" in words(app)
