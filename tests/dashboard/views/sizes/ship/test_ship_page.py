"""The page Which to ship, and its chart."""

from pathlib import Path

import pytest

from tests.dashboard.pages import source
from tests.dashboard.test_app import Open, open_app, words
from tests.dashboard.views.sizes.ship.test_ship import COLD, WORKLOAD, write
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.export import charts_of
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.sizes.ship import chart, query
from warpladder.data import store

__all__ = ["open_app"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("page")
    write(made)
    return made


@pytest.fixture(scope="module")
def data(folder: Path) -> RunData:
    return load(store.open_run(folder / "ship"))


def test_the_page_answers_in_a_sentence_and_its_code_follows_the_choices(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "ship", run="ship")
    assert (
        "Ship v01_small, v03_large and v04_partial: at most 1.00 % slower than the fastest rung, 0.249 % on average"
        in words(app)
    )
    costs, *_ = (table.value for table in app.main.dataframe if "slower on average" in table.value)
    assert list(costs["ship"]) == ["one", "two", "three"]
    # v01 at 100, v04 at 400, and v03 from there on.
    assert source(app).count("return") == 3

    app.segmented_control(key="choose ship").set_value("one").run()
    app.segmented_control(key="choose code").set_value("Python").run()
    assert source(app).endswith('def choose_sum(n: int) -> str:\n    return "v02_middle"\n')
    app.selectbox(key="choose among").set_value("peers").run()
    assert "Ship cublas: the fastest rung or peer over 4 cases; numpy is faster in 4 of 4 cases, by up to 50.0×" in words(app)
    assert not app.exception


def test_values_of_the_url_that_cannot_be_used_are_notes(open_app: Open, folder: Path) -> None:
    asked = {"ship": "<b>", "accept": "-1", "code": "COBOL", "among": "all"}
    app = open_app(folder, "ship", run="ship", **asked)
    assert words(app).count("which is not here") == len(asked)


def test_the_chart_has_a_linear_axis_up_to_the_shipped_variants_and_names_what_it_leaves_out(data: RunData) -> None:
    found = query.contest(data, WORKLOAD, COLD, "fp32", "hosts")
    one, *_ = query.shipments(found)
    drawn = chart.losses(found, one, look(data))
    assert drawn.title == "sum, fp32: numpy is never slower than the fastest"
    assert [line.name for line in drawn.figure.data] == ["<b>numpy</b>"]
    assert drawn.figure.layout.yaxis.type is None
    assert drawn.figure.layout.yaxis.range[1] == pytest.approx(5.2)
    assert "Always more than 5.0 % slower, and not drawn: cublas, v02_middle, v03_large, v01_small, v04_partial." in drawn.note
    assert len(drawn.data) == 4 * 5 + 2
    row = drawn.data[(drawn.data["variant"] == "cublas") & (drawn.data["case"] == "n=400")].iloc[0]
    assert (row["slower_percent"], row["median_ns"]) == (pytest.approx(900), 100_000)


@pytest.mark.thorough
def test_the_chart_is_exported(data: RunData) -> None:
    assert "ship-sum-fp32-device-cold" in [drawn.name for drawn in charts_of(data, topics=["comparisons"])]
