"""A small part of `make walk`: nothing overlaps, a table has no scrolling of its own, rows answer, charts stay legible without their font."""

import re
from pathlib import Path

import pytest

from tests.browser.pages import PATIENCE_MS, expect, open_page, settle, sync_api
from tests.walk.in_browser import OVERLAPS, see
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.run_data import load
from warpladder.dashboard.ui import document
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.ladder import chart as charts
from warpladder.dashboard.views.ladder import query
from warpladder.data import store

pytestmark = pytest.mark.slow

GEMM = "20261130T151131Z-h200-mlp-gemm-5f18"
COUNTED = "20261122T232531Z-h200-by-nsight-compute-2f0f"
TENSOR_CORES = "20261125T211711Z-h100-cnn-conv-with-counters-35c3"
#: Its times lie apart by more than two decades.
FAR = "20261127T114725Z-h100-gan-tconv-a3e2"
CONV = "20261127T042751Z-h200-conv2d-5b5c"


@pytest.mark.thorough
def test_nothing_overlaps_in_either_size(page: "sync_api.Page", address: str) -> None:
    """Of the pages that had overlaps at 1024 pixels."""
    for path in (
        f"counters?run={COUNTED}",
        f"counters?run={TENSOR_CORES}",
        f"devices?run={FAR}",
        f"details?run={CONV}&topic=copies",
    ):
        for seen in see(page, address, path):
            assert seen.problems == (), seen
        expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=PATIENCE_MS)


@pytest.mark.thorough
def test_all_rows_of_the_overview_are_seen_without_a_scrolling_of_its_own(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/?run={GEMM}")
    table = page.get_by_role("grid").first
    expect(table).to_be_visible(timeout=PATIENCE_MS)
    shown, whole = table.evaluate("each => [each.clientHeight, each.scrollHeight]")
    assert whole <= shown
    assert "None" not in table.inner_text()


@pytest.mark.thorough
def test_a_click_beside_the_mark_of_a_row_shows_its_source(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/ladder?run={GEMM}")
    plot = page.locator(".js-plotly-plot .nsewdrag").first
    expect(plot).to_be_visible(timeout=PATIENCE_MS)
    box = plot.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + 25)  # the first row, whose mark is further to the right
    expect(page).to_have_url(re.compile("variant=v02_two_dimensional"), timeout=PATIENCE_MS)
    settle(page)


@pytest.mark.thorough
def test_the_columns_of_a_saved_chart_stay_apart_without_its_font(page: "sync_api.Page", tmp_path: Path) -> None:
    data = load(store.open_run(store.RECORDED / GEMM))
    rows = query.ladder(data, "mlp_gemm", "n=8192", Timing("device", "cold"))
    html = document.chart_page(charts.ladder(rows, look(data)))
    saved = tmp_path / "chart.html"
    saved.write_text(re.sub(r"@font-face\{.*?\}", "", html).replace("Source Sans", "A font that is not there"))
    page.goto(saved.as_uri())
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=PATIENCE_MS)
    assert page.evaluate(OVERLAPS, -2) == []


@pytest.mark.thorough
def test_figures_and_short_words_of_home_are_whole_in_a_narrow_window(page: "sync_api.Page", address: str) -> None:
    page.set_viewport_size({"width": 1024, "height": 768})
    open_page(page, f"{address}/?run={FAR}")
    grid = page.get_by_role("grid").first
    expect(grid).to_be_visible(timeout=PATIENCE_MS)
    cut = """(grid, whole) => [...grid.querySelectorAll("[role=columnheader]")].flatMap((head, column) =>
        whole.includes(head.innerText) ? [...grid.querySelectorAll(`[data-at$=",${column}"]`)] : [])
        .filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.innerText)"""
    assert grid.evaluate(cut, ["Prec.", "Of floor", "Time", "Speedup", "⚠"]) == []
