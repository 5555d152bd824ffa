"""Picking variants on the page, and every page on what was picked."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.pages import choose_run, lead, rows
from tests.dashboard.test_app import PAGES, Open, open_app, words
from tests.synthetic import made_runs, made_traces
from tests.synthetic.made_traces import EXPRESSION
from warpladder.dashboard.trace import picked
from warpladder.dashboard.ui import runs

__all__ = ["open_app"]

pytestmark = pytest.mark.slow
PICK = f"nvtx:{EXPRESSION}"


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("annotated")
    made_traces.write_annotated(folder)
    made_runs.write_host_run(folder, "host", rounds=8)
    return folder


def badges(app: AppTest) -> str:
    """The badges of a page, without any backslash."""
    return " ".join(str(block.value) for block in app.main.markdown if "badge" in str(block.value)).replace("\\", "")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("page", PAGES)
def test_every_page_compares_what_a_link_picked_and_says_so(open_app: Open, annotated: Path, page: str) -> None:
    app = open_app(annotated, page, run="annotated", pick=PICK)
    assert not app.error
    assert app.query_params["pick"] == PICK
    assert "variants picked by ^(?P<variant>naive|tiled) (?P<case>n=d+)$" in badges(app)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("page", ["sizes", "ladder"])
def test_a_page_without_variants_leads_to_the_picker_and_with_picked_ones_compares_them(
    open_app: Open, annotated: Path, page: str
) -> None:
    assert "Its NVTX ranges can be" in words(open_app(annotated, page, run="annotated"))
    assert "tiled" in words(open_app(annotated, page, run="annotated", pick=PICK))


def test_home_leads_to_the_picker_and_names_no_winner_of_three_samples(open_app: Open, annotated: Path) -> None:
    leads = [link.proto.label for link in open_app(annotated, run="annotated").main.get("page_link")]
    assert "Compare its ranges as variants →" in leads
    app = open_app(annotated, run="annotated", pick=PICK)
    frame = rows(app)
    assert frame["Workload"].tolist() == ["report"]
    assert not {"Speedup", "Of floor"} & set(frame), "its work is not known"
    assert "no winner: tiled (410 ns) is of only 3 samples" in words(app)


@pytest.mark.thorough
def test_a_suggestion_is_compared_by_one_click_and_undone_by_another(open_app: Open, annotated: Path) -> None:
    app = open_app(annotated, "picker", run="annotated")
    assert app.text_input(key="pattern").value == r"^(?P<variant>\w+) (?P<case>n=\d+)$"
    assert "**2 variants** × **2 cases**, **12 samples** · not compared yet" in words(app)
    assert "pick" not in app.query_params
    next(button for button in app.main.button if button.label == "Compare these").click().run()
    assert app.query_params["pick"] == r"nvtx:^(?P<variant>\w+) (?P<case>n=\d+)$"
    assert "compared on all pages" in words(app)
    lead(app, "sizes")
    app.run()
    assert "tiled" in words(app)
    assert app.query_params["pick"], "the next page's URL has it too"
    app.button(key="undo pick").click().run()
    assert "pick" not in app.query_params
    assert "Its NVTX ranges can be" in words(app)


def test_a_typed_pattern_with_placeholders_is_previewed_with_its_command_line(open_app: Open, annotated: Path) -> None:
    app = open_app(annotated, "picker", run="annotated")
    app.text_input(key="pattern").set_value("{variant} n={case}").run()
    assert "**2 variants** × **2 cases**" in words(app)
    assert app.main.code[0].value == (
        "warpladder import report.nsys-rep --variant-from 'nvtx:^(?P<variant>.+?) n=(?P<case>.+?)$'"
    )


@pytest.mark.parametrize(
    ("typed", "says"),
    [("(", "not a regular expression"), ("gemm", "variant has to be one"), ("(?P<variant>gone)", "finds no range")],
)
def test_a_bad_pattern_is_one_line_and_cannot_be_compared(open_app: Open, annotated: Path, typed: str, says: str) -> None:
    app = open_app(annotated, "picker", run="annotated")
    app.text_input(key="pattern").set_value(typed).run()
    assert len(app.error) == 1
    assert says in app.error[0].value.replace("\\", "")
    assert next(button for button in app.main.button if button.label == "Compare these").disabled


@pytest.mark.sampled(5)
def test_a_link_with_a_pattern_that_is_none_is_followed_without_it(open_app: Open, annotated: Path) -> None:
    app = open_app(annotated, "sizes", run="annotated", pick="nvtx:(")
    assert "The link picks variants by a pattern that cannot be used" in words(app)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("page", [page for page in PAGES if page != "picker"])  # where what is typed stays
def test_a_link_with_a_pattern_that_finds_nothing_says_so_and_can_be_undone(open_app: Open, annotated: Path, page: str) -> None:
    app = open_app(annotated, page, run="annotated", pick="nvtx:(?P<variant>gone)")
    assert ["finds no range" in error.value for error in app.error] == [True]
    app.button(key="undo pick after an error").click().run()
    assert not app.exception
    assert not app.error
    assert "pick" not in app.query_params


def test_a_pattern_that_cannot_be_used_is_said_and_tried_once(
    open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_traces.write_annotated(tmp_path)
    tried: list[str] = []
    monkeypatch.setattr(runs, "pick", lambda data, naming: tried.append(naming.expression) or picked.pick(data, naming))
    app = open_app(tmp_path, "sizes", run="annotated", pick="nvtx:^(?P<variant>none such)$")
    assert "finds no range" in app.error[0].value.replace("\\", "")
    app.run()
    assert len(tried) == 1


@pytest.mark.thorough
def test_a_pick_is_of_its_run_and_of_the_link_that_has_it(open_app: Open, annotated: Path) -> None:
    app = open_app(annotated, "sizes", run="annotated", pick=PICK)
    choose_run(app, "host")
    assert "pick" not in app.query_params
    assert badges(app) == ""
    choose_run(app, "annotated")
    assert "pick" not in app.query_params and "tiled" not in words(app)
    choose_run(app, "annotated", pick=PICK)
    assert "tiled" in words(app)


def test_a_run_without_ranges_says_what_to_import(open_app: Open, annotated: Path) -> None:
    assert "no NVTX ranges to pick from" in words(open_app(annotated, "picker", run="host"))
